//! A side: one directory of a tree, which may not be there.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::FileError;
use crate::input::place::DIRECTORY_FLAGS;
use crate::record::Spot;

/// A directory of the source and its mirror, each where it is there.
pub(crate) struct Pair {
    pub(super) source: Side,
    pub(super) output: Side,
    pub(super) spot: Spot,
    /// Below the named directories.
    pub(super) relative: PathBuf,
}

pub(super) struct Side(Option<OwnedFd>);

/// The named directories of a run with their mirrors, and their paths.
pub(crate) fn pairs(sources: &[PathBuf], target: &Path) -> Vec<(PathBuf, PathBuf, Spot)> {
    match sources {
        [only] => vec![(only.clone(), target.to_owned(), Spot::default())],
        several => {
            let named = several.iter().filter_map(|source| Some((source, own_name(source)?)));
            named
                .map(|(source, name)| (source.clone(), target.join(&name), Spot::default().join(&name)))
                .collect()
        }
    }
}

fn own_name(source: &Path) -> Option<OsString> {
    let name = source.file_name().map(OsStr::to_owned);
    name.or_else(|| std::fs::canonicalize(source).ok()?.file_name().map(OsStr::to_owned))
}

impl Pair {
    /// Opens what was named; links there are followed.
    pub(super) fn open(source: &Path, output: &Path, spot: Spot) -> Result<Self, FileError> {
        let open = |path: &Path| match fs::open(path, DIRECTORY_FLAGS, Mode::empty()) {
            Err(Errno::NOENT) => Ok(Side(None)),
            opened => opened.map(|fd| Side(Some(fd))).map_err(FileError::io("read")),
        };
        Ok(Self { source: open(source)?, output: open(output)?, spot, relative: PathBuf::new() })
    }

    /// The directories `name` in both.
    pub(super) fn enter(&self, name: &OsStr) -> Result<Self, FileError> {
        let relative = self.relative.join(name);
        Ok(Self {
            source: self.source.enter(name)?,
            output: self.output.enter(name)?,
            spot: self.spot.join(name),
            relative,
        })
    }
}

impl Side {
    pub(super) const fn is_there(&self) -> bool {
        self.0.is_some()
    }

    fn enter(&self, name: &OsStr) -> Result<Self, FileError> {
        let Some(dir) = &self.0 else { return Ok(Self(None)) };
        match fs::openat(dir, name, DIRECTORY_FLAGS | OFlags::NOFOLLOW, Mode::empty()) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(Self(None)),
            opened => opened.map(|fd| Self(Some(fd))).map_err(FileError::io("read")),
        }
    }

    /// What stands under `name`, if anything.
    pub(super) fn stat(&self, name: &OsStr) -> Result<Option<Stat>, FileError> {
        let Some(dir) = &self.0 else { return Ok(None) };
        match fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            stat => stat.map(Some).map_err(FileError::io("read")),
        }
    }

    /// Removes `name`, which is or is no directory.
    pub(super) fn remove(&self, name: &OsStr, is_directory: bool) -> Result<(), FileError> {
        let Some(dir) = &self.0 else { return Ok(()) };
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        fs::unlinkat(dir, name, flags).map_err(FileError::io("remove the output"))
    }

    /// Its entries by name; none where it is not there.
    pub(super) fn entries(&self) -> Result<Vec<(OsString, FileType)>, FileError> {
        let Some(dir) = &self.0 else { return Ok(Vec::new()) };
        let mut entries = Vec::new();
        for entry in Dir::read_from(dir.as_fd()).map_err(FileError::io("read"))? {
            let entry = entry.map_err(FileError::io("read"))?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not say.
                FileType::Unknown => match self.stat(&name)? {
                    Some(stat) => FileType::from_raw_mode(stat.st_mode),
                    None => continue,
                },
                kind => kind,
            };
            entries.push((name, kind));
        }
        entries.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        Ok(entries)
    }
}
