//! Files that hand a configuration to services or sessions: written whole, known by their first line, and taken back with the directories
//! that were made for them. One that was edited since, which its sum tells, is kept beside it first.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use evener_fd::atomic_file;

use super::scope::{DROP_IN, FRAGMENT, PROFILE, below};
use crate::openssl::system::OPENWRT_FRAGMENTS;
use crate::terminal::{PathDisplay, output};

/// The first line of every file that is written here, and of none that is not.
pub(super) const WRITER: &str = "evener provider install";

/// Begins a line that names a directory that was made for the file.
const MADE: &str = "# Made for it: ";

/// Begins the line with the sum of the others.
const SUM: &str = "# Sum of the other lines: ";

/// Ends the first line of a file that has a sum.
const SUMMED: &str = " What is edited is kept beside when it is written again.";

/// Ends the name of a file that was edited, as it was. No program reads such a name.
const EDITED: &str = ".edited";

/// One file to write.
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// Whether programs of all users read it. OpenSSL says nothing of one that it may not read.
    pub(super) is_for_all: bool,
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
        let made: String =
            self.made(root)?.iter().map(|path| format!("{MADE}{}\n", path.display())).collect();
        let (first, rest) = self.text.split_once('\n').unwrap_or((&self.text, ""));
        let (first, rest) = (format!("{first}{SUMMED}\n"), made + rest);
        let text = format!("{first}{SUM}{:016x}\n{rest}", sum(format!("{first}{rest}").as_bytes()));
        keep_if_edited(&self.path)?;
        let written = if self.is_for_all {
            // What an administrator gave besides stays.
            let mode = fs::symlink_metadata(&self.path).map_or(0, |there| there.permissions().mode() & 0o777);
            atomic_file::write_for_all(&self.path, &text, if mode == 0 { 0o644 } else { mode | 0o444 })
        } else {
            atomic_file::write(&self.path, &text, 0o644)
        };
        written.with_context(|| format!("cannot write {}", PathDisplay(&self.path)))
    }

    /// Directories that were made for it, for other files of Evener's in them, or will be, as they are called in the system itself.
    fn made(&self, root: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
        let in_system = |path: &Path| Path::new("/").join(path.strip_prefix(root).unwrap_or(path));
        let missing = self.path.ancestors().skip(1).take_while(|path| !path.exists());
        let mut made: BTreeSet<PathBuf> = missing.map(in_system).collect();
        made.extend(made_for(&self.path));
        if self.is_for_all {
            let own = in_system(&self.path);
            let for_others = all(root)?.into_iter().flat_map(|path| made_for(&path));
            made.extend(for_others.filter(|path| own.starts_with(path)));
        }
        Ok(made)
    }
}

/// Opens directories on the way to what all read where they were made for it, and says which others are shut.
pub(super) fn open_ways(files: &[File], root: &Path) -> anyhow::Result<()> {
    let files = || files.iter().filter(|file| file.is_for_all);
    let made: BTreeSet<PathBuf> =
        files().flat_map(|file| made_for(&file.path)).map(|path| below(root, &path)).collect();
    let way = |file: &'_ File| -> Vec<PathBuf> {
        let way = file.path.ancestors().skip(1).take_while(|path| *path != root);
        way.map(Path::to_owned).collect()
    };
    for directory in files().flat_map(way).collect::<BTreeSet<_>>() {
        let mode = fs::metadata(&directory).map_or(0o755, |metadata| metadata.permissions().mode());
        if mode & 0o005 != 0o005 && made.contains(&directory) {
            fs::set_permissions(&directory, Permissions::from_mode(0o755))
                .with_context(|| format!("cannot open {} to all", PathDisplay(&directory)))?;
        } else if mode & 0o001 == 0 {
            let directory = PathDisplay(&directory);
            output::warning(format_args!(
                "{directory} is shut to other users, whose programs cannot read what was written in it"
            ));
        }
    }
    Ok(())
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
        Err(error) if is_missing(&error) => Ok(Standing::Nothing),
        Ok(metadata) if !metadata.is_file() => Ok(Standing::Others),
        looked => match looked.and_then(|_| is_ours(path)).with_context(|| cannot_look(path))? {
            true => Ok(Standing::Ours),
            false => Ok(Standing::Others),
        },
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn cannot_look(path: &Path) -> String {
    format!("cannot look at {}", PathDisplay(path))
}

/// Removes files that are Evener's below `root`, in this order, and then the directories that were made for them and are empty.
pub(super) fn remove(paths: &[PathBuf], root: &Path) -> anyhow::Result<()> {
    let mut made = Vec::new();
    for path in paths {
        made.extend(made_for(path));
        keep_if_edited(path)?;
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

/// Copies a file of Evener's that was edited since it was written to a name of its own, and says so.
fn keep_if_edited(path: &Path) -> anyhow::Result<()> {
    if !fs::read(path).is_ok_and(|text| is_edited(&text)) {
        return Ok(());
    }
    let named = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(EDITED);
        if number > 1 {
            name.push(number.to_string());
        }
        PathBuf::from(name)
    };
    let kept = (1..).map(named).find(|kept| fs::symlink_metadata(kept).is_err()).expect("one is free");
    fs::copy(path, &kept).with_context(|| {
        format!("cannot keep what was edited in {} as {}", PathDisplay(path), PathDisplay(&kept))
    })?;
    output::warning(format_args!(
        "{} was edited: as it was, it is kept as {}",
        PathDisplay(path),
        PathDisplay(&kept)
    ));
    Ok(())
}

/// Whether a text is another than the one that was written; never where an older version wrote it, without a sum.
fn is_edited(text: &[u8]) -> bool {
    let mut lines = text.split_inclusive(|byte| *byte == b'\n');
    let Some(line) = lines.clone().find(|line| line.starts_with(SUM.as_bytes())) else {
        // Who took it out left the words that speak of it.
        return lines.next().is_some_and(|first| first.ends_with(format!("{SUMMED}\n").as_bytes()));
    };
    let others: Vec<u8> = lines.filter(|other| *other != line).flatten().copied().collect();
    line != format!("{SUM}{:016x}\n", sum(&others)).as_bytes()
}

/// FNV-1a of 64 bits (Fowler, Noll and Vo): against slips, and no adversary.
fn sum(text: &[u8]) -> u64 {
    let mixed = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    text.iter().fold(0xcbf2_9ce4_8422_2325, mixed)
}

/// Directories that a file of Evener's says were made for it, as they are called in the system itself.
fn made_for(path: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix(MADE)).map(PathBuf::from).collect()
}

/// All files below `root` that were written for services or the system, drop-ins before what they name. No link is followed: what it leads to is listed, if it
/// is Evener's, where it lies.
///
/// # Errors
///
/// Where one may not look.
pub(super) fn all(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut folders = entries(&root.join("etc/systemd/system"))?;
    folders.extend(["etc/systemd/system.conf.d", "etc/environment.d"].map(|folder| root.join(folder)));
    let mut places = Vec::new();
    for folder in folders {
        if is_folder(&folder)? {
            places.push(folder.join(DROP_IN));
        }
    }
    places.extend(
        [Path::new(PROFILE).to_owned(), Path::new(OPENWRT_FRAGMENTS).join(FRAGMENT)]
            .map(|path| below(root, &path)),
    );
    let own = root.join("etc/evener");
    if is_folder(&own)? {
        places.extend(entries(&own)?);
    }
    let is_kept = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(EDITED));
    let mut all = Vec::new();
    for path in places {
        if !is_kept(&path) && standing(&path)? == Standing::Ours {
            all.push(path);
        }
    }
    Ok(all)
}

fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listed = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    match listed {
        Err(error) if is_missing(&error) => Ok(Vec::new()),
        listed => listed.with_context(|| cannot_look(folder)),
    }
}

fn is_folder(path: &Path) -> anyhow::Result<bool> {
    match fs::symlink_metadata(path) {
        Err(error) if is_missing(&error) => Ok(false),
        looked => Ok(looked.with_context(|| cannot_look(path))?.is_dir()),
    }
}

/// The file that sets the unit's environment already, if one does.
pub(super) fn sets_openssl_conf(root: &Path, unit: &str) -> Option<PathBuf> {
    let folders =
        ["etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"];
    folders.iter().find_map(|folder| {
        let unit_file = root.join(folder).join(unit);
        let beside = fs::read_dir(root.join(folder).join(format!("{unit}.d"))).ok();
        let beside = beside.into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
        let mut files =
            std::iter::once(unit_file).chain(beside).filter(|path| !is_ours(path).unwrap_or(false));
        files.find(|path| fs::read_to_string(path).is_ok_and(|text| speaks_of_it(&text)))
    })
}

fn speaks_of_it(text: &str) -> bool {
    let lines = text.lines().map(str::trim_start);
    lines.filter(|line| line.starts_with("Environment")).any(|line| line.contains("OPENSSL_CONF="))
}

fn is_ours(path: &Path) -> io::Result<bool> {
    let text = fs::read(path)?;
    Ok(text.starts_with(format!("# Written by `{WRITER}`").as_bytes()))
}
