//! Keys that a driver has put into the kernel: few, for modules hold few (QEMU's built-in one 128 of all programs together).
//!
//! An entry is made when a session is first seen and opened by the runner that first needs it, for the kernel may sleep over
//! a key too. The one that was used longest ago makes space. The last to drop an entry closes its key.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use evener_core::{HasEnded, Session, SessionId};
use zeroize::{Zeroize as _, Zeroizing};

use crate::pool::device::{Failure, Spec};
use crate::process::served::{Inherited, leave_locked};

/// Most keys that one driver keeps open. Assumed, not measured: 16, because that is an eighth of what QEMU's module holds.
const KEYS_MAX: usize = 16;

/// One key.
pub(crate) struct Entry<K> {
    session: SessionId,
    pub(crate) spec: Spec,
    /// Kept until the entry goes: the thread that opens the key needs them.
    pub(crate) bytes: Zeroizing<Box<[u8]>>,
    opened: OnceLock<Result<K, Failure>>,
    last_use: AtomicU64,
}

/// The keys of one driver.
pub(crate) struct KeyCache<K> {
    entries: Mutex<Vec<Arc<Entry<K>>>>,
    /// Most entries; less where the module proved to hold less.
    entries_max: AtomicUsize,
    uses: AtomicU64,
}

impl<K> Default for KeyCache<K> {
    fn default() -> Self {
        Self { entries: Mutex::default(), entries_max: AtomicUsize::new(KEYS_MAX), uses: AtomicU64::new(0) }
    }
}

impl<K> KeyCache<K> {
    /// The entry of a session, made where there is none. One that makes space for it goes to `close`.
    pub(crate) fn entry(&self, session: &Session, close: impl FnOnce(Arc<Entry<K>>)) -> Arc<Entry<K>> {
        // Relaxed: only the order of uses matters, all of which this thread makes.
        let now = self.uses.fetch_add(1, Ordering::Relaxed);
        let mut entries = self.entries();
        let known = entries.iter().find(|entry| entry.session == session.id()).cloned();
        let entry = known.unwrap_or_else(|| {
            let entry = Arc::new(Entry::new(session));
            entries.push(Arc::clone(&entry));
            entry
        });
        entry.last_use.store(now, Ordering::Relaxed);
        let surplus = match entries.len() > self.entries_max.load(Ordering::Relaxed) {
            true => take_oldest_idle(&mut entries),
            false => None,
        };
        drop(entries);
        // Outside the lock: closing a key is a call into the kernel.
        if let Some(surplus) = surplus {
            close(surplus);
        }
        entry
    }

    /// The key of `entry` where it is open already, or why it could not be opened.
    pub(crate) fn known(entry: &Entry<K>) -> Option<Result<&K, Failure>> {
        entry.opened.get().map(|opened| opened.as_ref().map_err(|&failure| failure))
    }

    /// The key of `entry`, opened now if it was not; others give way where the module is full.
    pub(crate) fn opened<'e>(
        &self,
        entry: &'e Entry<K>,
        open: impl Fn() -> Result<K, Failure>,
    ) -> Result<&'e K, Failure> {
        let opened = entry.opened.get_or_init(|| {
            loop {
                match open() {
                    Err(Failure::Full) if self.make_space() => {}
                    opened => break opened,
                }
            }
        });
        opened.as_ref().map_err(|&failure| {
            // The next request tries anew.
            self.entries().retain(|other| other.session != entry.session);
            failure
        })
    }

    /// Takes out the keys of sessions that are over. Dropping them closes them, but for those that a request still has.
    #[must_use]
    pub(crate) fn evict(&self, has_ended: HasEnded<'_>) -> Vec<Arc<Entry<K>>> {
        let mut over = Vec::new();
        let mut entries = self.entries();
        for place in (0..entries.len()).rev() {
            if has_ended(entries[place].session) {
                over.push(entries.swap_remove(place));
            }
        }
        over
    }

    /// Closes one key that is not in use; false where there is none.
    fn make_space(&self) -> bool {
        let closed = self.take_oldest();
        if closed.is_some() {
            let left = self.entries().len();
            // Relaxed: a limit that is a moment late costs one more refusal.
            self.entries_max.store(left.max(1), Ordering::Relaxed);
        }
        closed.is_some()
    }

    fn take_oldest(&self) -> Option<Arc<Entry<K>>> {
        take_oldest_idle(&mut self.entries())
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Arc<Entry<K>>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> Entry<K> {
    fn new(session: &Session) -> Self {
        Self {
            session: session.id(),
            spec: Spec { algorithm: session.algorithm(), direction: session.direction() },
            bytes: Zeroizing::new(session.key().into()),
            opened: OnceLock::new(),
            last_use: AtomicU64::new(0),
        }
    }

    /// Takes out what the kernel has of the key, which goes when that is dropped, and wipes what is here.
    pub(crate) fn take(&mut self) -> Option<Result<K, Failure>> {
        self.bytes.zeroize();
        self.opened.take()
    }
}

impl<K> Inherited for KeyCache<K> {
    /// As the pool, whose it is.
    fn is_whole(&mut self) -> bool {
        leave_locked(&mut self.entries);
        true
    }
}

/// `EKEYREJECTED` of Linux.
const KEY_REJECTED: i32 = 129;

/// Why the kernel did not take `key`, by its number. Modules that are full say `EINVAL` as well (QEMU's with 128 keys): then
/// `takes` says whether another key of that length goes in, which is no secret.
pub(crate) fn why_refused(errno: i32, key: &[u8], takes: impl FnOnce(&[u8]) -> bool) -> Failure {
    match errno {
        libc::ENOSPC | libc::ENOMEM | libc::EBUSY | libc::EAGAIN => Failure::Full,
        libc::EINVAL => {
            let other: Vec<u8> = (0..=254).cycle().take(key.len()).collect();
            if takes(&other) { Failure::KeyRefused(errno) } else { Failure::Full }
        }
        KEY_REJECTED => Failure::KeyRefused(errno),
        errno => Failure::Errno(errno),
    }
}

/// The entry that was used longest ago, of those that no request holds.
fn take_oldest_idle<K>(entries: &mut Vec<Arc<Entry<K>>>) -> Option<Arc<Entry<K>>> {
    let idle = entries.iter().enumerate().filter(|(_, entry)| Arc::strong_count(entry) == 1);
    let (place, _) = idle.min_by_key(|(_, entry)| entry.last_use.load(Ordering::Relaxed))?;
    Some(entries.swap_remove(place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use evener_core::{Algorithm, Direction, Padding};
    use std::rc::Rc;

    fn sessions(count: u8) -> Vec<Session> {
        let session = |key| Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[key; 16]);
        (0..count).map(|key| session(key).unwrap()).collect()
    }

    /// A module that holds so many keys; each key is a part of the count.
    fn open(holds: &Rc<()>, most: usize) -> Result<Rc<()>, Failure> {
        if Rc::strong_count(holds) > most { Err(Failure::Full) } else { Ok(Rc::clone(holds)) }
    }

    #[test]
    fn no_more_keys_stay_open_than_the_table_takes() {
        let (keys, holds) = (KeyCache::default(), Rc::new(()));
        for session in sessions(3 * u8::try_from(KEYS_MAX).unwrap()) {
            let entry = keys.entry(&session, drop);
            assert!(keys.opened(&entry, || open(&holds, usize::MAX)).is_ok());
        }
        assert_eq!(Rc::strong_count(&holds), 1 + KEYS_MAX);
        drop(keys.evict(&|_| true));
        assert_eq!(Rc::strong_count(&holds), 1);
    }

    #[test]
    fn the_key_of_a_session_that_is_over_is_closed_when_its_last_request_is_back() {
        let (keys, holds, sessions) = (KeyCache::default(), Rc::new(()), sessions(3));
        for session in &sessions {
            assert!(keys.opened(&keys.entry(session, drop), || open(&holds, 3)).is_ok());
        }
        let in_use = keys.entry(&sessions[1], drop);
        drop(keys.evict(&|id| id != sessions[2].id()));
        assert_eq!(Rc::strong_count(&holds), 1 + 2, "one is idle and gone, one in use, one not over");
        drop(in_use);
        assert_eq!(Rc::strong_count(&holds), 1 + 1);
    }

    #[test]
    fn a_module_that_is_full_takes_a_new_key_for_the_one_that_was_used_longest_ago() {
        let (keys, holds, sessions) = (KeyCache::default(), Rc::new(()), sessions(4));
        for session in &sessions[..3] {
            assert!(keys.opened(&keys.entry(session, drop), || open(&holds, 3)).is_ok());
        }
        keys.entry(&sessions[0], drop);
        assert!(keys.opened(&keys.entry(&sessions[3], drop), || open(&holds, 3)).is_ok());
        assert_eq!(Rc::strong_count(&holds), 4);
        let is_open = |session: &Session| keys.entry(session, drop).opened.get().is_some();
        assert_eq!([&sessions[0], &sessions[2], &sessions[3]].map(is_open), [true; 3]);
        assert!(!is_open(&sessions[1]));
    }

    #[test]
    fn a_key_in_use_makes_no_space_and_a_refused_one_is_tried_anew() {
        let (keys, holds, sessions) = (KeyCache::default(), Rc::new(()), sessions(2));
        let first = keys.entry(&sessions[0], drop);
        assert!(keys.opened(&first, || open(&holds, 1)).is_ok());
        let second = keys.entry(&sessions[1], drop);
        assert_eq!(keys.opened(&second, || open(&holds, 1)).err(), Some(Failure::Full));
        drop((first, second));
        let again = keys.entry(&sessions[1], drop);
        assert!(keys.opened(&again, || open(&holds, 1)).is_ok());
    }

    #[test]
    fn a_key_that_is_refused_is_told_from_a_module_that_is_full() {
        let key = [7; 16];
        let why = |errno, takes: bool| {
            why_refused(errno, &key, |other| {
                assert!(other.len() == key.len() && *other != key);
                takes
            })
        };
        // As a module without space says it, and as one says it that does not like the key.
        assert_eq!(why(libc::EINVAL, false), Failure::Full);
        assert_eq!(why(libc::EINVAL, true), Failure::KeyRefused(libc::EINVAL));
        assert_eq!(
            [false, true].map(|takes| why(KEY_REJECTED, takes)),
            [Failure::KeyRefused(KEY_REJECTED); 2]
        );
        assert_eq!(why(libc::ENOSPC, true), Failure::Full);
        assert_eq!(why(libc::EACCES, true), Failure::Errno(libc::EACCES));
    }

    #[test]
    fn a_key_that_is_refused_costs_no_other_key_its_place() {
        let (keys, holds, sessions) = (KeyCache::default(), Rc::new(()), sessions(2));
        assert!(keys.opened(&keys.entry(&sessions[0], drop), || open(&holds, 9)).is_ok());
        let refused = keys.entry(&sessions[1], drop);
        let failure = keys.opened(&refused, || Err(Failure::KeyRefused(22))).err();
        assert_eq!((failure, Rc::strong_count(&holds)), (Some(Failure::KeyRefused(22)), 2));
    }
}
