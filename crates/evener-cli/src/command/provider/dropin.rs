//! Files that hand a configuration to services or sessions: written whole, known by their first line, and taken back with the directories
//! that were made for them.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use evener_fd::atomic_file;

use super::scope::{DROP_IN, FRAGMENT, PROFILE, below};
use crate::openssl::system::OPENWRT_FRAGMENTS;
use crate::terminal::PathDisplay;

/// The first line of every file that is written here, and of none that is not.
pub(super) const WRITER: &str = "evener provider install";

/// Begins a line that names a directory that was made for the file.
const MADE: &str = "# Made for it: ";

/// One file to write.
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl File {
    /// Refuses where a file that this command did not write stands in its place.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        match standing(&self.path)? {
            Standing::Nothing | Standing::Ours => Ok(()),
            Standing::Others => {
                bail!("{} is there already and not Evener's: it is left as it is", PathDisplay(&self.path))
            }
        }
    }

    /// Writes it, and into it which directories below `root` that took.
    pub(super) fn write(&self, root: &Path) -> anyhow::Result<()> {
        let place = || format!("cannot write {}", PathDisplay(&self.path));
        let mut made = made_for(&self.path);
        let missing = self.path.ancestors().skip(1).take_while(|path| !path.exists());
        made.extend(missing.map(|path| Path::new("/").join(path.strip_prefix(root).unwrap_or(path))));
        let made: String = made.iter().map(|path| format!("{MADE}{}\n", path.display())).collect();
        let (first, rest) = self.text.split_once('\n').unwrap_or((&self.text, ""));
        atomic_file::write(&self.path, &format!("{first}\n{made}{rest}"), 0o644).with_context(place)
    }
}

/// What stands under a name.
#[derive(PartialEq, Eq)]
pub(super) enum Standing {
    Nothing,
    Ours,
    Others,
}

pub(super) fn standing(path: &Path) -> anyhow::Result<Standing> {
    match fs::symlink_metadata(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Standing::Nothing)
        }
        Err(error) => Err(error).with_context(|| format!("cannot look at {}", PathDisplay(path))),
        Ok(metadata) if metadata.is_file() && is_ours(path) => Ok(Standing::Ours),
        Ok(_) => Ok(Standing::Others),
    }
}

/// Removes files that are Evener's below `root`, in this order, and then the directories that were made for them and are empty.
pub(super) fn remove(paths: &[PathBuf], root: &Path) -> anyhow::Result<()> {
    let mut made = Vec::new();
    for path in paths {
        made.extend(made_for(path));
        match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", PathDisplay(path)));
            }
            _ => {}
        }
    }
    // The deepest first.
    made.sort();
    for path in made.iter().rev() {
        // Where something else lies in it by now it stays.
        fs::remove_dir(below(root, path)).unwrap_or_default();
    }
    Ok(())
}

/// Directories that a file of Evener's says were made for it, as they are called in the system itself.
fn made_for(path: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix(MADE)).map(PathBuf::from).collect()
}

/// All files below `root` that were written for services or the system, drop-ins before what they name. No link is followed: what it leads to is listed, if it
/// is Evener's, where it lies.
pub(super) fn all(root: &Path) -> Vec<PathBuf> {
    let entries = |folder: PathBuf| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let is_folder = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let units = entries(root.join("etc/systemd/system")).into_iter();
    let others = ["etc/systemd/system.conf.d", "etc/environment.d"].map(|folder| root.join(folder));
    let folders = units.chain(others).filter(is_folder);
    let mut all: Vec<_> = folders.map(|folder| folder.join(DROP_IN)).collect();
    all.extend(
        [Path::new(PROFILE).to_owned(), Path::new(OPENWRT_FRAGMENTS).join(FRAGMENT)]
            .map(|path| below(root, &path)),
    );
    all.extend(Some(root.join("etc/evener")).filter(is_folder).into_iter().flat_map(entries));
    all.retain(|path| matches!(standing(path), Ok(Standing::Ours)));
    all
}

/// The file that sets the unit's environment already, if one does.
pub(super) fn sets_openssl_conf(root: &Path, unit: &str) -> Option<PathBuf> {
    let folders =
        ["etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"];
    folders.iter().find_map(|folder| {
        let unit_file = root.join(folder).join(unit);
        let beside = fs::read_dir(root.join(folder).join(format!("{unit}.d"))).ok();
        let beside = beside.into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
        let mut files = std::iter::once(unit_file).chain(beside).filter(|path| !is_ours(path));
        files.find(|path| fs::read_to_string(path).is_ok_and(|text| speaks_of_it(&text)))
    })
}

fn speaks_of_it(text: &str) -> bool {
    let lines = text.lines().map(str::trim_start);
    lines.filter(|line| line.starts_with("Environment")).any(|line| line.contains("OPENSSL_CONF="))
}

fn is_ours(path: &Path) -> bool {
    let first = fs::read_to_string(path).ok().and_then(|text| text.lines().next().map(str::to_owned));
    first.is_some_and(|line| line.starts_with(&format!("# Written by `{WRITER}`")))
}
