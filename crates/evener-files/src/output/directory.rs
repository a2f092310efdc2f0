//! Directories that output goes to: opened or made, locked while a run may have drafts in them, found again at its end.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{self, AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::attributes::Attributes;
use super::leftovers::{lock, remove_stale_drafts};
use crate::error::FileError;
use crate::input::beneath::{DIRECTORY_FLAGS, open_beneath};
use crate::input::source_file::{READ_FLAGS, SourceFile};
use crate::record::Spot;

/// A directory that output goes to.
pub(crate) struct OutputDir {
    /// Locked for sharing, so that no other run takes our drafts for those of a killed one.
    pub(super) fd: OwnedFd,
    /// For messages.
    pub(crate) path: PathBuf,
    /// Whether this run made it, so that nothing can stand in it already.
    pub(crate) is_new: bool,
    /// Where it is below the run's output.
    pub(crate) spot: Spot,
    pub(super) device: u64,
    inode: u64,
}

impl OutputDir {
    /// Opens a directory that the user named, making it (with `mode`) where it does not exist; links are followed.
    /// Removes drafts of killed runs.
    pub(crate) fn open(path: &Path, mode: Mode) -> Result<Arc<Self>, FileError> {
        let made = fs::mkdir(path, mode | Mode::RWXU);
        let open = || fs::open(path, DIRECTORY_FLAGS, Mode::empty());
        Self::made(made, open, path.to_owned(), Spot::default())
    }

    /// As [`OutputDir::open`] for a directory in this one. What else stands under `name`, a link too, is an error.
    pub(crate) fn open_in(&self, name: &OsStr, mode: Mode) -> Result<Arc<Self>, FileError> {
        let made = fs::mkdirat(&self.fd, name, mode | Mode::RWXU);
        let open = || fs::openat(&self.fd, name, DIRECTORY_FLAGS | OFlags::NOFOLLOW, Mode::empty());
        Self::made(made, open, self.path.join(name), self.spot.join(name))
    }

    /// `made` says whether the directory was made. It has owner access then, while the run lasts; the final mode is
    /// set at the end.
    fn made(
        made: Result<(), Errno>,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
        path: PathBuf,
        spot: Spot,
    ) -> Result<Arc<Self>, FileError> {
        let is_new = match made {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(FileError::io("make the directory")(errno)),
        };
        let fd = open().map_err(|errno| match errno {
            Errno::NOTDIR | Errno::LOOP => FileError::NoDirectory,
            errno => FileError::io("open the directory")(errno),
        })?;
        if !is_new {
            remove_stale_drafts(&fd);
        }
        lock(&fd);
        let Stat { st_dev: device, st_ino: inode, .. } =
            fs::fstat(&fd).map_err(FileError::io("look at the directory"))?;
        Ok(Arc::new(Self { fd, path, is_new, spot, device, inode }))
    }

    /// Lets the owner work in a directory that an earlier run gave the mode of a source that is read-only.
    pub(crate) fn give_owner_access(&self) -> Result<(), FileError> {
        let stat = fs::fstat(&self.fd).map_err(FileError::io("look at the directory"))?;
        let (mode, all) = (Mode::from_raw_mode(stat.st_mode), Mode::RWXU);
        if self.is_new || mode.contains(all) || stat.st_uid != rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        fs::fchmod(&self.fd, mode | all).map_err(FileError::io("set the mode of the directory"))
    }

    /// What is needed to find the directory again below `base`, and to know it.
    pub(crate) fn trace(&self, base: &Arc<Self>) -> DirTrace {
        let relative = self.path.strip_prefix(&base.path).expect("it was made below the base").to_owned();
        DirTrace { base: Arc::clone(base), relative, device: self.device, inode: self.inode }
    }

    /// What stands under `name`, if anything.
    pub(crate) fn stat(&self, name: &OsStr) -> Result<Option<Stat>, FileError> {
        match fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(FileError::io("look at the output")(errno)),
        }
    }

    /// Opens the regular file that stands under `name` for reading.
    pub(crate) fn open_file(&self, name: &OsStr) -> Result<SourceFile, FileError> {
        let fd = fs::openat(&self.fd, name, READ_FLAGS | OFlags::NOFOLLOW, Mode::empty());
        let fd = fd.map_err(FileError::io("open the output"))?;
        let stat = fs::fstat(&fd).map_err(FileError::io("look at the output"))?;
        Ok(SourceFile { fd, stat, named: None })
    }
}

/// A directory of the output that is closed meanwhile: runs enter more of them than can be open at a time.
pub(crate) struct DirTrace {
    base: Arc<OutputDir>,
    relative: PathBuf,
    device: u64,
    inode: u64,
}

impl DirTrace {
    /// For messages.
    pub(crate) fn path(&self) -> PathBuf {
        self.base.path.join(&self.relative)
    }

    /// Gives the directory the mode and time of its source.
    pub(crate) fn set_attributes(&self, source: &Attributes) -> Result<(), FileError> {
        let dir = self.reopen()?;
        fs::fchmod(&dir, source.mode).map_err(FileError::io("set the mode of the directory"))?;
        fs::futimens(&dir, &source.times()).map_err(FileError::io("set the time of the directory"))
    }

    /// The directory itself; whatever else stands in its place by now is an error.
    fn reopen(&self) -> Result<OwnedFd, FileError> {
        let opened = open_beneath(self.base.fd.as_fd(), &self.relative, DIRECTORY_FLAGS);
        let dir = opened.map_err(|errno| match errno {
            Errno::NOTDIR | Errno::LOOP | Errno::NOENT => FileError::OtherDirectory,
            errno => FileError::io("open the directory")(errno),
        })?;
        let stat = fs::fstat(&dir).map_err(FileError::io("look at the directory"))?;
        let is_same = (stat.st_dev, stat.st_ino) == (self.device, self.inode);
        if is_same { Ok(dir) } else { Err(FileError::OtherDirectory) }
    }
}
