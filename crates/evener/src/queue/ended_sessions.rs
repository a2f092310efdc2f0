//! Sessions that end while a run goes on: `Runtime::end_session` -> list -> each thread with drivers, before its next claim
//! and before it sleeps -> its drivers evict them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use evener_core::{HasEnded, SessionId};

/// Sessions that are remembered for a thread that comes late; one that is later forgets all, which costs preparing anew what is still in
/// use. Assumed, not measured: 256, more than any driver keeps.
const REMEMBERED_MAX: usize = 256;

/// Sessions that have ended, the last of them by name.
#[derive(Debug, Default)]
pub(crate) struct EndedSessions {
    last: Mutex<VecDeque<SessionId>>,
    /// How many there were so far.
    count: AtomicU64,
}

/// How many of them a thread has read.
#[derive(Debug, Default)]
pub(crate) struct Cursor(AtomicU64);

impl EndedSessions {
    /// Adds a session; sleepers are to be woken afterwards.
    pub(crate) fn add(&self, session: SessionId) {
        let mut last = self.last();
        if last.len() == REMEMBERED_MAX {
            last.pop_front();
        }
        last.push_back(session);
        // Release: pairs with the Acquire in `has_news`; the name is there.
        self.count.fetch_add(1, Ordering::Release);
    }

    /// Whether some ended since the thread last looked.
    pub(crate) fn has_news(&self, cursor: &Cursor) -> bool {
        // Relaxed: `cursor` is the calling thread's own.
        self.count.load(Ordering::Acquire) != cursor.0.load(Ordering::Relaxed)
    }

    /// Calls `evict` with the sessions that ended since the thread last looked, if any did.
    pub(crate) fn poll(&self, cursor: &Cursor, evict: impl FnOnce(HasEnded<'_>)) {
        if !self.has_news(cursor) {
            return;
        }
        let last = self.last();
        let count = self.count.load(Ordering::Relaxed);
        let news = usize::try_from(count - cursor.0.swap(count, Ordering::Relaxed)).unwrap_or(usize::MAX);
        if news > last.len() {
            drop(last);
            return evict(&|_| true);
        }
        let names: Vec<SessionId> = last.iter().rev().take(news).copied().collect();
        drop(last);
        evict(&|session| names.contains(&session));
    }

    /// The list is whole between any two statements, so a panic elsewhere does not spoil it.
    fn last(&self) -> MutexGuard<'_, VecDeque<SessionId>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of these sessions, those that are reported to a thread as ended.
    fn ended_of(ended: &EndedSessions, cursor: &Cursor, of: std::ops::Range<u64>) -> Vec<u64> {
        let mut ended_of = Vec::new();
        ended.poll(cursor, |has_ended| ended_of.extend(of.filter(|id| has_ended(SessionId(*id)))));
        ended_of
    }

    #[test]
    fn each_thread_hears_once_of_each_session_and_who_is_too_late_of_all() {
        let (ended, early, late) = (EndedSessions::default(), Cursor::default(), Cursor::default());
        assert_eq!(ended_of(&ended, &early, 0..9), [0; 0]);
        ended.add(SessionId(3));
        ended.add(SessionId(5));
        assert!(ended.has_news(&early));
        assert_eq!(ended_of(&ended, &early, 0..9), [3, 5]);
        assert_eq!(ended_of(&ended, &early, 0..9), [0; 0]);
        ended.add(SessionId(4));
        assert_eq!(ended_of(&ended, &early, 0..9), [4]);
        (10..10 + REMEMBERED_MAX as u64 - 3).for_each(|id| ended.add(SessionId(id)));
        assert_eq!(ended_of(&ended, &late, 0..9), [3, 4, 5]);
        (1_000..1_001 + REMEMBERED_MAX as u64).for_each(|id| ended.add(SessionId(id)));
        assert_eq!(ended_of(&ended, &late, 0..9), (0..9).collect::<Vec<_>>());
        assert!(!ended.has_news(&late));
    }
}
