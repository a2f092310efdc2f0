//! Drafts of killed runs: how a draft is known by its name, and how a run shows that it lives.
//!
//! A run holds a shared lock on each directory that the user named for output; the kernel drops it with the process. A
//! process that could have the locks of a directory and of all above it exclusively knows that no run lives that has
//! drafts there. So a run holds few descriptors for it, however many directories it works in.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use rustix::fs::{self, AtFlags, DirEntry, FlockOperation, Mode};
use rustix::io::Errno;

use crate::error::FileError;
use crate::input::place::{DIRECTORY_FLAGS, Place};
use crate::random::fill_random;
use crate::record::is_record;

const DRAFT_PREFIX: &str = ".evener-";
const DRAFT_SUFFIX: &str = ".draft";

/// `.evener-RUN-NUMBER.draft`; RUN is a random number of the process, in 16 hexadecimal digits. A process id would
/// not do: other containers that see the directory use the same ones.
pub(super) struct Name {
    pub(super) number: u64,
    pub(super) text: OsString,
}

impl Name {
    /// One that no other draft of this process has.
    pub(super) fn new() -> Result<Self, FileError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Self::of(NUMBER.fetch_add(1, Ordering::Relaxed))
    }

    /// That of the draft with this number.
    pub(super) fn of(number: u64) -> Result<Self, FileError> {
        let text = format!("{DRAFT_PREFIX}{:016x}-{number}{DRAFT_SUFFIX}", run_number()?).into();
        Ok(Self { number, text })
    }
}

fn run_number() -> Result<u64, FileError> {
    static RUN: OnceLock<u64> = OnceLock::new();
    if let Some(run) = RUN.get() {
        return Ok(*run);
    }
    let mut bytes = [0; 8];
    fill_random(&mut bytes)?;
    Ok(*RUN.get_or_init(|| u64::from_ne_bytes(bytes)))
}

/// Whether a name is of those that runs take for themselves: a draft's or a record's.
pub(crate) fn is_own_name(name: &OsStr) -> bool {
    is_draft(name) || is_record(name)
}

/// Whether a name is that of a draft, be it of a run that lives or of one that was killed.
fn is_draft(name: &OsStr) -> bool {
    let middle = |name: &'_ str| {
        let (run, number) = name.strip_prefix(DRAFT_PREFIX)?.strip_suffix(DRAFT_SUFFIX)?.split_once('-')?;
        let is_run = run.len() == 16 && run.bytes().all(|digit| digit.is_ascii_hexdigit());
        Some(is_run && number.parse::<u64>().is_ok())
    };
    name.to_str().and_then(middle) == Some(true)
}

/// The locks that this run holds: on each directory that the user named for output.
#[derive(Default)]
pub(super) struct Locks(Mutex<Vec<Weak<Place>>>);

impl Locks {
    /// Says that this run may have drafts at or below `place`, as long as that is in use.
    pub(super) fn hold(&self, place: &Arc<Place>) -> Result<(), FileError> {
        lock(&*place.fd()?);
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|place| place.strong_count() > 0);
        held.push(Arc::downgrade(place));
        Ok(())
    }

    /// Removes the drafts of killed runs in `place`, unless some run lives that may have drafts there: it holds a lock on that
    /// directory or on one above it. Where the file system knows no locks, they stay.
    pub(super) fn remove_stale_drafts(&self, place: &Place) {
        let Ok(dir) = place.fd() else { return };
        let Ok(entries) = fs::Dir::read_from(&*dir) else { return };
        let is_draft = |entry: &DirEntry| is_draft(OsStr::from_bytes(entry.file_name().to_bytes()));
        let drafts: Vec<_> = entries.flatten().filter(is_draft).collect();
        // Looked for after the drafts were listed: a run that made them since holds its lock already.
        if drafts.is_empty() || self.another_lives(place) {
            return;
        }
        for draft in drafts {
            fs::unlinkat(&*dir, draft.file_name(), AtFlags::empty()).ok();
        }
    }

    /// Whether another run lives that may have drafts in `place`. A directory above that this user may not open is none of his
    /// runs'.
    fn another_lives(&self, place: &Place) -> bool {
        let mut root = None;
        for place in std::iter::once(place).chain(place.ancestors()) {
            let Ok(fd) = place.fd() else { return true };
            if self.is_held_by_others(&fd) {
                return true;
            }
            root = Some(fd);
        }
        let up = |dir: BorrowedFd<'_>| fs::openat(dir, c"..", DIRECTORY_FLAGS, Mode::empty()).ok();
        let mut at = root.and_then(|root| up(root.as_fd()));
        while let Some(dir) = at {
            if self.is_held_by_others(&dir) {
                return true;
            }
            at = up(dir.as_fd()).filter(|above| identity(above) != identity(&dir));
        }
        false
    }

    /// Whether another process holds a lock on `dir`. This run's own are given up for the look.
    fn is_held_by_others(&self, dir: &OwnedFd) -> bool {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |place: &Arc<Place>| Some(place.identity) == identity(dir);
        let own = held.iter().filter_map(Weak::upgrade).filter(is_it);
        let own: Vec<_> = own.filter_map(|place| place.fd().ok()).collect();
        for fd in &own {
            fs::flock(&**fd, FlockOperation::Unlock).ok();
        }
        let is_held = fs::flock(dir, FlockOperation::NonBlockingLockExclusive).is_err();
        fs::flock(dir, FlockOperation::Unlock).ok();
        own.iter().for_each(|fd| lock(fd));
        is_held
    }
}

fn identity(fd: &OwnedFd) -> Option<(u64, u64)> {
    fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino)).ok()
}

/// Says that this process may have drafts at or below `dir`; the lock ends with the last use of `dir`, however the process ends.
fn lock(dir: &OwnedFd) {
    for _ in 0..LOCK_TRIES {
        match fs::flock(dir, FlockOperation::NonBlockingLockShared) {
            // Another run looks whether there are locks.
            Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
            // Locked; or the file system knows no locks, and no process removes drafts.
            _ => return,
        }
    }
    // Another program, such as flock(1), holds the directory exclusively, and so keeps out every run that would remove drafts.
}

/// How often and at which intervals a lock is tried. Assumed, not measured: 20 ms together, a thousand times what a look at a lock takes.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(2);
