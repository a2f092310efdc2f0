//! Drafts of killed runs: how a draft is known by its name, and how a run shows that it lives.
//!
//! A run holds a shared lock on each directory that the user named for output; the kernel drops it with the process. Who finds
//! no lock of others on a directory and on all above it knows that no other run lives that has drafts there. So a run holds few
//! descriptors for it, however many directories it works in. The look gives no lock up, so that of two runs that look at once
//! each sees the other.
//!
//! Beside it a run holds the lock of `flock`, and looks for one: older versions and flock(1) know no other.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use evener_fd::range_lock;
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
    run_of(name).is_some()
}

/// The run whose draft has this name.
fn run_of(name: &OsStr) -> Option<u64> {
    let middle = name.to_str()?.strip_prefix(DRAFT_PREFIX)?.strip_suffix(DRAFT_SUFFIX)?;
    let (run, number) = middle.split_once('-')?;
    let is_run = run.len() == 16 && run.bytes().all(|digit| digit.is_ascii_hexdigit());
    let run = u64::from_str_radix(run, 16).ok().filter(|_| is_run);
    run.filter(|_| number.parse::<u64>().is_ok())
}

/// The locks that this run holds, on each directory that the user named for output, and where it looked for drafts of others.
#[derive(Default)]
pub(super) struct Locks {
    held: Mutex<Vec<Weak<Place>>>,
    /// Directories that were looked through, by device and inode: each is once in a run.
    cleaned: Mutex<HashSet<(u64, u64)>>,
}

impl Locks {
    /// Says that this run may have drafts at or below `place`, as long as that is in use.
    pub(super) fn hold(&self, place: &Arc<Place>) -> Result<(), FileError> {
        lock(&*place.fd()?);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|place| place.strong_count() > 0);
        held.push(Arc::downgrade(place));
        Ok(())
    }

    /// Removes the drafts of killed runs in `place`, unless some other run lives that may have drafts there: it holds a lock on
    /// that directory or on one above it. Where the file system knows no locks, they stay.
    pub(super) fn remove_stale_drafts(&self, place: &Place) {
        if !self.cleaned.lock().unwrap_or_else(PoisonError::into_inner).insert(place.identity) {
            return;
        }
        let (Ok(dir), Ok(own)) = (place.fd(), run_number()) else { return };
        let Ok(entries) = fs::Dir::read_from(&*dir) else { return };
        // This process's own are in work, whichever of its runs made them.
        let is_stale = |entry: &DirEntry| {
            run_of(OsStr::from_bytes(entry.file_name().to_bytes())).is_some_and(|run| run != own)
        };
        let drafts: Vec<_> = entries.flatten().filter(is_stale).collect();
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

    /// Whether another run holds a lock on `dir`. By the descriptor that holds this run's own, if one does, for which that is none
    /// of others; where this run holds several, one of them counts as another's, and drafts stay for a later run.
    fn is_held_by_others(&self, dir: &OwnedFd) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |place: &Arc<Place>| Some(place.identity) == identity(dir);
        let own = held.iter().filter_map(Weak::upgrade).find(is_it).and_then(|place| place.fd().ok());
        let looked = range_lock::is_locked(own.as_deref().unwrap_or(dir).as_fd(), LOCKED);
        looked.unwrap_or(true) || is_flocked(dir, own.as_deref())
    }
}

/// Whether another process holds the lock of `flock` on `dir`, on which this run holds its own by the descriptor `own`, if it does.
fn is_flocked(dir: &OwnedFd, own: Option<&OwnedFd>) -> bool {
    let is_held =
        |fd: &OwnedFd| fs::flock(fd, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
    if let Some(own) = own {
        // This run's own is gone for a moment; who knows the other lock sees that.
        let is_held = is_held(own);
        flock(own);
        return is_held;
    }
    // Opened for the look: what it takes goes with it, and nothing of this run's.
    let Ok(fresh) = fs::openat(dir, c".", DIRECTORY_FLAGS, Mode::empty()) else { return true };
    for _ in 0..FLOCK_TRIES {
        if !is_held(&fresh) {
            return false;
        }
        // It may be another look.
        std::thread::sleep(FLOCK_PAUSE);
    }
    true
}

fn identity(fd: &OwnedFd) -> Option<(u64, u64)> {
    fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino)).ok()
}

/// Says that this process may have drafts at or below `dir`; the lock ends with the last use of `dir`, however the process ends.
/// Where the file system knows no locks, no process removes drafts.
fn lock(dir: &OwnedFd) {
    range_lock::share(dir.as_fd(), LOCKED).ok();
    flock(dir);
}

/// Takes the lock of `flock` on `dir`, shared.
fn flock(dir: &OwnedFd) {
    for _ in 0..FLOCK_TRIES {
        match fs::flock(dir, FlockOperation::NonBlockingLockShared) {
            // Another run looks whether there are locks.
            Err(Errno::WOULDBLOCK) => std::thread::sleep(FLOCK_PAUSE),
            _ => return,
        }
    }
    // Another program, such as flock(1), has it alone, and so keeps out all who would remove drafts.
}

/// How often and at which intervals a lock is tried. Assumed, not measured: 20 ms together, a thousand times what a look at a lock takes.
const FLOCK_TRIES: u32 = 10;
const FLOCK_PAUSE: Duration = Duration::from_millis(2);

/// The byte of a directory that is locked. There are no bytes in one, and none is needed.
const LOCKED: Range<u64> = 0..1;

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Barrier;

    use super::*;
    use crate::input::place::OpenPlaces;

    /// The directory as another run has it open, with its lock.
    fn run_in(path: &Path) -> (Locks, Arc<Place>) {
        let fd = fs::open(path, DIRECTORY_FLAGS, Mode::empty()).unwrap();
        let place = Place::root(fd, path, &OpenPlaces::new(8)).unwrap();
        let locks = Locks::default();
        locks.hold(&place).unwrap();
        (locks, place)
    }

    #[test]
    fn of_two_runs_that_look_at_once_none_takes_the_other_for_dead() {
        let dir = tempfile::tempdir().unwrap();
        let draft = dir.path().join(".evener-0123456789abcdef-7.draft");
        std::fs::write(&draft, "in work").unwrap();
        for turn in 0..2_000 {
            let (runs, begin) = ([run_in(dir.path()), run_in(dir.path())], Barrier::new(2));
            std::thread::scope(|scope| {
                for (locks, place) in &runs {
                    scope.spawn(|| {
                        begin.wait();
                        locks.remove_stale_drafts(place);
                    });
                }
            });
            assert!(draft.exists(), "turn {turn}");
        }
        let (locks, place) = run_in(dir.path());
        locks.remove_stale_drafts(&place);
        assert!(!draft.exists(), "no other run lives by now");
    }

    #[test]
    fn a_lock_of_flock_keeps_drafts_wherever_it_is_held_and_each_run_holds_one() {
        let above = tempfile::tempdir().unwrap();
        let (named, below) = (above.path().join("named"), above.path().join("named/below"));
        std::fs::create_dir_all(&below).unwrap();
        let open = |path: &Path| fs::open(path, DIRECTORY_FLAGS, Mode::empty()).unwrap();
        for of_others in [&*below, &*named, above.path()] {
            let draft = below.join(".evener-0123456789abcdef-7.draft");
            std::fs::write(&draft, "in work").unwrap();
            let other = open(of_others);
            fs::flock(&other, FlockOperation::LockShared).unwrap();
            for is_held in [true, false] {
                let (locks, place) = run_in(&named);
                locks.remove_stale_drafts(&place.enter("below".as_ref()).unwrap().0);
                assert_eq!(draft.exists(), is_held, "{}", of_others.display());
                let alone = fs::flock(open(&named), FlockOperation::NonBlockingLockExclusive);
                assert_eq!(alone, Err(Errno::WOULDBLOCK), "this run lives, after its look as well");
                fs::flock(&other, FlockOperation::Unlock).unwrap();
            }
        }
    }

    #[test]
    fn drafts_of_the_run_itself_stay_and_a_directory_is_looked_through_once() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join(Name::new().unwrap().text);
        let dead = dir.path().join(".evener-0123456789abcdef-7.draft");
        let (locks, place) = run_in(dir.path());
        for is_left in [false, true] {
            std::fs::write(&own, "in work").unwrap();
            std::fs::write(&dead, "left behind").unwrap();
            locks.remove_stale_drafts(&place);
            assert_eq!((own.exists(), dead.exists()), (true, is_left));
        }
    }
}
