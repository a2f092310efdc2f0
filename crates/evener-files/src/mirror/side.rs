//! A side: one directory of a tree, which may not be there.

use std::cell::OnceCell;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{self, AtFlags, Dir, FileType, Stat};
use rustix::io::Errno;

use crate::error::FileError;
use crate::input::place::{OpenPlaces, Place};
use crate::input::source_file::open_root;
use crate::output::{give_back, give_owner_access};
use crate::record::Spot;
use crate::walk::Input;

/// A directory of the source and its mirror, each where it is there.
pub(crate) struct Pair {
    pub(super) source: Side,
    pub(super) output: Side,
    pub(super) spot: Spot,
}

/// A directory, where it is there.
pub(super) struct Side {
    place: Option<Arc<Place>>,
    /// What it was before something was removed from it.
    before: OnceCell<Stat>,
}

/// What was named as input: a file, or a directory with its mirror.
pub(crate) struct NamedInput {
    pub(crate) source: PathBuf,
    /// An error where the output has no name.
    pub(crate) output: Result<PathBuf, FileError>,
    /// Of the output.
    pub(crate) spot: Spot,
}

impl NamedInput {
    /// Of an input of a run whose outputs all go into one directory (`is_tree`), or are single ones.
    pub(crate) fn of(input: Input, is_tree: bool) -> Self {
        let spot = match &input.target {
            Ok(_) if is_tree && input.target_is_named => Spot::default(),
            Ok(output) => {
                let above = output.parent().filter(|above| !above.as_os_str().is_empty());
                let single = || Spot::of_single_outputs(above.unwrap_or_else(|| Path::new(".")));
                let dir = if is_tree { Spot::default() } else { single() };
                dir.join(output.file_name().unwrap_or_default())
            }
            Err(_) => Spot::default(),
        };
        Self { source: input.source, output: input.target, spot }
    }
}

impl Pair {
    /// Opens what was named.
    pub(super) fn open(
        source: &Path,
        output: &Path,
        spot: Spot,
        open: &Arc<OpenPlaces>,
    ) -> Result<Self, FileError> {
        let root = |path: &Path| Side::found(open_root(path, open).map(|(place, _)| place), false);
        Ok(Self { source: root(source)?, output: root(output)?, spot })
    }

    /// The directories `name` in both.
    pub(super) fn enter(&self, name: &OsStr) -> Result<Self, FileError> {
        Ok(Self {
            source: self.source.enter(name)?,
            output: self.output.enter(name)?,
            spot: self.spot.join(name),
        })
    }
}

impl Side {
    fn of(place: Option<Arc<Place>>) -> Self {
        Self { place, before: OnceCell::new() }
    }

    pub(super) const fn is_there(&self) -> bool {
        self.place.is_some()
    }

    /// Device and inode.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        self.place.as_ref().map(|place| place.identity)
    }

    fn enter(&self, name: &OsStr) -> Result<Self, FileError> {
        let Some(dir) = &self.place else { return Ok(Self::of(None)) };
        Self::found(dir.enter(name).map(|(place, _)| place), true)
    }

    /// What was opened; nothing where it is not there or, `below` a directory, something else is.
    fn found(opened: Result<Arc<Place>, FileError>, below: bool) -> Result<Self, FileError> {
        let kind = match &opened {
            Err(FileError::Link) if below => return Ok(Self::of(None)),
            Err(FileError::Io(error)) => error.answer().kind(),
            _ => return opened.map(|place| Self::of(Some(place))),
        };
        match kind {
            io::ErrorKind::NotFound => Ok(Self::of(None)),
            io::ErrorKind::NotADirectory if below => Ok(Self::of(None)),
            _ => opened.map(|place| Self::of(Some(place))),
        }
    }

    /// Where the symbolic link `name` points; `None` where none stands there.
    pub(super) fn link_target(&self, name: &OsStr) -> Result<Option<CString>, FileError> {
        let Some(dir) = &self.place else { return Ok(None) };
        match fs::readlinkat(&*dir.fd()?, name, Vec::new()) {
            Err(Errno::NOENT | Errno::INVAL) => Ok(None),
            target => target.map(Some).map_err(FileError::io("read")),
        }
    }

    /// What stands under `name`, if anything.
    pub(super) fn stat(&self, name: &OsStr) -> Result<Option<Stat>, FileError> {
        let Some(dir) = &self.place else { return Ok(None) };
        match fs::statat(&*dir.fd()?, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            stat => stat.map(Some).map_err(FileError::io("read")),
        }
    }

    /// Removes `name`, which is or is no directory; from a directory that its owner may not write in, too ([`Side::restore`]).
    pub(super) fn remove(&self, name: &OsStr, is_directory: bool) -> Result<(), FileError> {
        let Some(dir) = &self.place else { return Ok(()) };
        let (dir, flags) = (dir.fd()?, if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() });
        if self.before.get().is_none() {
            let stat = fs::fstat(&*dir).map_err(FileError::io("look at the directory"))?;
            self.before.set(stat).ok();
        }
        let removed = match fs::unlinkat(&*dir, name, flags) {
            Err(Errno::ACCESS) => {
                give_owner_access(&dir)?;
                fs::unlinkat(&*dir, name, flags)
            }
            removed => removed,
        };
        removed.map_err(FileError::io("remove the output"))
    }

    /// Gives it the mode back that it had before something was removed from it, and the time where that `is_kept`.
    pub(super) fn restore(&mut self, is_kept: bool) -> Result<(), FileError> {
        match (&self.place, self.before.take()) {
            (Some(dir), Some(before)) => give_back(&*dir.fd()?, &before, is_kept),
            _ => Ok(()),
        }
    }

    /// Its entries by name; none where it is not there.
    pub(super) fn entries(&self) -> Result<Vec<(OsString, FileType)>, FileError> {
        let Some(dir) = &self.place else { return Ok(Vec::new()) };
        let mut entries = Vec::new();
        for entry in Dir::read_from(&*dir.fd()?).map_err(FileError::io("read"))? {
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
