//! A file that is being read: bytes at given places, whole or not at all, and whether the file stayed as it was.

use std::ffi::OsStr;
use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use evener_fd::open_named;
use rustix::fs::{self, FileType, OFlags, SeekFrom, Stat};
use rustix::io::{Errno, preadv};

use super::place::{DIRECTORY_FLAGS, OpenPlaces, Place};
use crate::error::FileError;

/// For opening what should be a regular file: never waits, should a pipe have taken its place.
pub(crate) const READ_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// The unit in which the system counts what a file takes.
const BLOCK_BYTES: u64 = 512;

/// A regular file that is being read, as it was when it was opened.
pub(crate) struct SourceFile {
    pub(crate) fd: OwnedFd,
    /// Of the file that the user named, but for the length, which is that of `fd`.
    pub(crate) stat: Stat,
    /// The file that the user named as it was when it was opened, where another is read in its stead.
    pub(crate) named: Option<(OwnedFd, Stat)>,
    /// The bytes that it begins with, as far as they were read ahead.
    start: Vec<u8>,
}

/// A file of this length is read ahead whole. Assumed, not measured: 64 KiB, which are copied in the time of one system call.
const AHEAD_BYTES_MAX: usize = 64 << 10;

impl SourceFile {
    /// Opens the file `name` that a walk found in `place`.
    pub(crate) fn open(place: &Place, name: &OsStr) -> Result<Self, FileError> {
        let fd = place.open(name, READ_FLAGS)?;
        Self::of(fd, || FileError::Changed)
    }

    /// Opens the file that the user named `path`, with links followed that are his own or root's.
    pub(crate) fn open_named(path: &Path) -> Result<Self, FileError> {
        let fd = open_named(path, READ_FLAGS).map_err(FileError::io("read"))?;
        Self::of(fd, || FileError::NoLength)
    }

    /// A regular file; what else it is, is an error that `other` tells.
    fn of(fd: OwnedFd, other: impl FnOnce() -> FileError) -> Result<Self, FileError> {
        let stat = fs::fstat(&fd).map_err(FileError::io("read"))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if stat.st_size == 0 => Self::empty(fd, stat),
            FileType::RegularFile => Ok(Self::new(fd, stat)),
            _ => Err(other()),
        }
    }

    /// A regular file that was looked at.
    pub(crate) fn new(fd: OwnedFd, stat: Stat) -> Self {
        Self { fd, stat, named: None, start: Vec::new() }
    }

    /// The file `fd` of `bytes`, which is read in the stead of this one.
    pub(crate) fn replaced_by(self, fd: OwnedFd, bytes: u64) -> Result<Self, FileError> {
        let mut stat = self.stat;
        stat.st_size = i64::try_from(bytes).map_err(|_| FileError::NoLength)?;
        Ok(Self { fd, stat, named: Some((self.fd, self.stat)), start: Vec::new() })
    }

    /// Reads a short file whole, and of another one `least` bytes, so that header and contents take one call.
    pub(crate) fn read_ahead(&mut self, least: usize) -> Result<(), FileError> {
        let most = if self.len() <= AHEAD_BYTES_MAX as u64 { AHEAD_BYTES_MAX } else { least };
        self.start = self.read_start(most)?;
        Ok(())
    }

    /// Lets go of what was read ahead.
    pub(crate) fn forget_start(&mut self) {
        self.start = Vec::new();
    }

    /// A file that says that it is empty: the kernel's own files say so whatever they hold.
    fn empty(fd: OwnedFd, stat: Stat) -> Result<Self, FileError> {
        match read_up_to(&fd, &mut [IoSliceMut::new(&mut [0])], 0) {
            Ok(0) => Ok(Self::new(fd, stat)),
            Ok(_) => Err(FileError::NoLength),
            Err(errno) => Err(FileError::io("read")(errno)),
        }
    }

    /// Its length when it was opened, in bytes.
    pub(crate) fn len(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }

    /// Fills `parts` from `offset` on. What lies in a hole is not read.
    pub(crate) fn read(&self, parts: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), FileError> {
        let wanted: usize = parts.iter().map(|part| part.len()).sum();
        if let Some(ahead) = self.ahead(offset, wanted) {
            let mut ahead = ahead;
            for part in parts {
                let own;
                (own, ahead) = ahead.split_at(part.len());
                part.copy_from_slice(own);
            }
            return Ok(());
        }
        if self.is_hole(offset, wanted as u64) {
            parts.iter_mut().for_each(|part| part.fill(0));
            return Ok(());
        }
        match read_up_to(&self.fd, parts, offset) {
            Ok(came) if came == wanted => Ok(()),
            Ok(_) => Err(FileError::Changed),
            Err(errno) => Err(FileError::io("read")(errno)),
        }
    }

    /// `bytes` from `offset` on, where they were read ahead.
    fn ahead(&self, offset: u64, bytes: usize) -> Option<&[u8]> {
        self.start.get(usize::try_from(offset).ok()?..)?.get(..bytes)
    }

    /// Whether the file takes less space than its length, and has no data in `bytes` from `offset` on. Moves the offset of the descriptor,
    /// by which nothing is read.
    fn is_hole(&self, offset: u64, bytes: u64) -> bool {
        let space = u64::try_from(self.stat.st_blocks).unwrap_or(u64::MAX).saturating_mul(BLOCK_BYTES);
        let ends_at = offset.saturating_add(bytes);
        if bytes == 0 || space >= self.len() || ends_at > self.len() {
            return false;
        }
        match fs::seek(&self.fd, SeekFrom::Data(offset)) {
            Ok(data) => data >= ends_at,
            // No data up to the end.
            Err(Errno::NXIO) => true,
            // Of no help: it is read.
            Err(_) => false,
        }
    }

    /// Reads what there is from the start, at most `most` bytes.
    pub(crate) fn read_start(&self, most: usize) -> Result<Vec<u8>, FileError> {
        let mut start = vec![0; most.min(usize::try_from(self.len()).unwrap_or(most))];
        self.read(&mut [IoSliceMut::new(&mut start)], 0)?;
        Ok(start)
    }

    /// The file that the user named, with what it was when it was opened.
    pub(crate) fn origin(&self) -> (&OwnedFd, &Stat) {
        self.named.as_ref().map_or((&self.fd, &self.stat), |(fd, stat)| (fd, stat))
    }

    /// Device and inode, where the file has several names.
    pub(crate) fn names(&self) -> Option<(u64, u64)> {
        let (_, stat) = self.origin();
        (stat.st_nlink > 1).then_some((stat.st_dev, stat.st_ino))
    }

    /// Fails where the file is no longer what it was when it was opened: what was read may then be a mixture.
    pub(crate) fn check_unchanged(&self) -> Result<(), FileError> {
        let (fd, stat) = self.origin();
        let now = fs::fstat(fd).map_err(FileError::io("read"))?;
        let stamp = |stat: &Stat| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
        if stamp(&now) == stamp(stat) { Ok(()) } else { Err(FileError::Changed) }
    }

    /// The same file once more.
    pub(crate) fn share(&self) -> std::io::Result<Self> {
        Ok(Self::new(self.fd.try_clone()?, self.stat))
    }

    /// What the file system said of the file that the user named when it was opened.
    pub(crate) fn named_stat(&self) -> &Stat {
        self.named.as_ref().map_or(&self.stat, |(_, stat)| stat)
    }

    /// Tells the kernel that the file is read from front to back.
    pub(crate) fn announce(&self) {
        // Advice only.
        fs::fadvise(&self.fd, 0, None, fs::Advice::Sequential).ok();
    }
}

/// Opens the directory that the user named `path`, with what it is.
pub(crate) fn open_root(path: &Path, open: &Arc<OpenPlaces>) -> Result<(Arc<Place>, Stat), FileError> {
    let fd = open_named(path, DIRECTORY_FLAGS).map_err(FileError::io("read"))?;
    let stat = fs::fstat(&fd).map_err(FileError::io("read"))?;
    let place = Place::root(fd, path, open).map_err(FileError::io("read"))?;
    Ok((place, stat))
}

/// Reads until `parts` are full or the file ends; returns how much came.
pub(crate) fn read_up_to(
    fd: &OwnedFd,
    mut parts: &mut [IoSliceMut<'_>],
    mut offset: u64,
) -> Result<usize, Errno> {
    let mut total = 0;
    while parts.iter().any(|part| !part.is_empty()) {
        let came = match preadv(fd, parts, offset) {
            Err(Errno::INTR) => continue,
            came => came?,
        };
        if came == 0 {
            break;
        }
        total += came;
        offset += came as u64;
        IoSliceMut::advance_slices(&mut parts, came);
    }
    Ok(total)
}
