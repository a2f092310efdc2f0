//! The register of this process's drafts: a program that is to end at once removes them all, whatever its threads are at.
//!
//! Path: [`Registered::create`] (the name is known before the file is there) -> the draft gets its final name or goes, or [`abandon_drafts`].

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use rustix::fs::{self, AtFlags, Mode, OFlags};

use super::directory::OutputDir;
use super::leftovers::Name;
use crate::error::FileError;

/// Whether drafts may be made. A thread that makes one reads it meanwhile, so that after it is set none is on its way.
static IS_CLOSED: RwLock<bool> = RwLock::new(false);

/// Drafts under their numbers.
static DRAFTS: Mutex<BTreeMap<u64, Arc<OutputDir>>> = Mutex::new(BTreeMap::new());

/// A temporary name in a directory; the file is removed unless it was renamed.
pub(super) struct Registered {
    pub(super) dir: Arc<OutputDir>,
    name: Name,
    pub(super) renamed: bool,
}

impl Registered {
    /// Makes a file under a name of its own.
    pub(super) fn create(
        dir: &Arc<OutputDir>,
        access: OFlags,
        mode: Mode,
    ) -> Result<(Self, OwnedFd), FileError> {
        let flags = access | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Self::make(dir, |fd, name| {
            fs::openat(fd, name, flags, mode).map_err(FileError::io("create the output"))
        })
    }

    /// Lets `make` make something under a name of its own in the directory.
    pub(super) fn make<T>(
        dir: &Arc<OutputDir>,
        make: impl FnOnce(&OwnedFd, &OsStr) -> Result<T, FileError>,
    ) -> Result<(Self, T), FileError> {
        let is_closed = IS_CLOSED.read().unwrap_or_else(PoisonError::into_inner);
        if *is_closed {
            return Err(FileError::Stopped);
        }
        let name = Name::new()?;
        let made = make(&*dir.fd()?, &name.text)?;
        drafts().insert(name.number, Arc::clone(dir));
        Ok((Self { dir: Arc::clone(dir), name, renamed: false }, made))
    }

    pub(super) fn name(&self) -> &OsStr {
        &self.name.text
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if !self.renamed {
            // Nothing can be done about a draft that cannot be removed; the next run tries again.
            self.dir.fd().ok().map(|dir| fs::unlinkat(&*dir, &self.name.text, AtFlags::empty()));
        }
        drafts().remove(&self.name.number);
    }
}

/// Removes every draft of this process, and lets none be made any more: for a program that ends at once. What has its final name
/// stays. Waits for a file that is being created, for nothing else.
pub fn abandon_drafts() {
    *IS_CLOSED.write().unwrap_or_else(PoisonError::into_inner) = true;
    for (&number, dir) in &*drafts() {
        let Ok(name) = Name::of(number) else { return };
        let name: OsString = name.text;
        dir.fd().ok().map(|dir| fs::unlinkat(&*dir, &name, AtFlags::empty()));
    }
}

fn drafts() -> MutexGuard<'static, BTreeMap<u64, Arc<OutputDir>>> {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner)
}
