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
        let is_closed = IS_CLOSED.read().unwrap_or_else(PoisonError::into_inner);
        if *is_closed {
            return Err(FileError::Stopped);
        }
        let name = Name::new()?;
        let flags = access | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = fs::openat(&dir.fd, &name.text, flags, mode);
        let file = file.map_err(FileError::io("create the output"))?;
        drafts().insert(name.number, Arc::clone(dir));
        Ok((Self { dir: Arc::clone(dir), name, renamed: false }, file))
    }

    pub(super) fn name(&self) -> &OsStr {
        &self.name.text
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if !self.renamed {
            // Nothing can be done about a draft that cannot be removed; the next run tries again.
            fs::unlinkat(&self.dir.fd, &self.name.text, AtFlags::empty()).ok();
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
        fs::unlinkat(&dir.fd, &name, AtFlags::empty()).ok();
    }
}

fn drafts() -> MutexGuard<'static, BTreeMap<u64, Arc<OutputDir>>> {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner)
}
