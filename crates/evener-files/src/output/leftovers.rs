//! Drafts of killed runs: how a draft is known by its name, and how a run shows that it lives.
//!
//! A run holds a shared lock on each directory in which it may have drafts; the kernel drops it with the process.
//! A process that gets the lock exclusively knows that no run lives that has drafts there.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{self, AtFlags, FlockOperation};
use rustix::io::Errno;

use crate::error::FileError;
use crate::random::fill_random;

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

/// Whether a name is that of a draft, be it of a run that lives or of one that was killed.
pub(crate) fn is_draft(name: &OsStr) -> bool {
    let middle = |name: &'_ str| {
        let (run, number) = name.strip_prefix(DRAFT_PREFIX)?.strip_suffix(DRAFT_SUFFIX)?.split_once('-')?;
        let is_run = run.len() == 16 && run.bytes().all(|digit| digit.is_ascii_hexdigit());
        Some(is_run && number.parse::<u64>().is_ok())
    };
    name.to_str().and_then(middle) == Some(true)
}

/// Removes the drafts of killed runs, unless some run lives that may have drafts here. Where the file system knows
/// no locks, they stay.
pub(crate) fn remove_stale_drafts(dir: &OwnedFd) {
    let Ok(entries) = fs::Dir::read_from(dir) else { return };
    let drafts = entries.flatten().filter(|entry| is_draft(OsStr::from_bytes(entry.file_name().to_bytes())));
    let drafts: Vec<_> = drafts.collect();
    // Locked before they are removed: a run that made drafts since then holds a lock, and these were listed before.
    if drafts.is_empty() || fs::flock(dir, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    for draft in drafts {
        fs::unlinkat(dir, draft.file_name(), AtFlags::empty()).ok();
    }
}

/// Says that this process may have drafts here; the lock ends with the last use of `dir`, however the process ends.
pub(crate) fn lock(dir: &OwnedFd) {
    for _ in 0..LOCK_TRIES {
        match fs::flock(dir, FlockOperation::NonBlockingLockShared) {
            // Another run is removing stale drafts, among which ours must not be.
            Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
            // Locked; or the file system knows no locks, and no process removes drafts.
            _ => return,
        }
    }
    // Another program, such as flock(1), holds the directory exclusively, and so keeps out every run that would remove drafts.
}

/// How often and at which intervals a lock is tried. Assumed, not measured: 2 s together, in less of which some thousand drafts
/// are removed.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(10);
