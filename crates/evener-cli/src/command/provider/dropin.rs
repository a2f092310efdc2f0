//! Files that hand a configuration to services or sessions, written whole and taken back by hand.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::atomic_file;
use crate::terminal::PathDisplay;

/// The first line of every file that is written here, and of none that is not.
pub(super) const WRITER: &str = "evener provider install";

/// One file to write.
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl File {
    /// Refuses where a file that this command did not write stands in its place.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error).with_context(|| format!("cannot look at {}", PathDisplay(&self.path))),
            Ok(metadata) if metadata.is_file() && is_ours(&self.path) => Ok(()),
            Ok(_) => {
                bail!("{} is there already and not Evener's: it is left as it is", PathDisplay(&self.path))
            }
        }
    }

    pub(super) fn write(&self) -> anyhow::Result<()> {
        let place = || format!("cannot write {}", PathDisplay(&self.path));
        atomic_file::write(&self.path, &self.text, 0o644).with_context(place)
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
