//! Sessions that are open at the host: few, and the one that was used longest ago makes room.
//!
//! Opening and closing one takes 54 to 86 us across two cores (measured), the time of some 100 KiB of AES-128-CBC.

use std::sync::Weak;

use evener_core::{HasEnded, Session, SessionId};

/// Sessions that one connection keeps open. Assumed, not measured: 64.
const KEYS_MAX: usize = 64;

/// A session at the host.
#[derive(Debug)]
struct Entry {
    session: SessionId,
    /// Tells whether anybody still has the session; a borrowed one lives as long as its jobs may come.
    owner: Option<Weak<Session>>,
    /// The session has ended, as its user says.
    is_over: bool,
    id: u64,
    /// Requests under way.
    uses: u32,
    last_use: u64,
}

/// The sessions of one connection.
#[derive(Debug)]
pub(crate) struct SessionCache {
    entries: Vec<Entry>,
    /// Most entries; fewer where the host proved to hold fewer.
    entries_max: usize,
    clock: u64,
}

impl Default for SessionCache {
    fn default() -> Self {
        Self { entries: Vec::new(), entries_max: KEYS_MAX, clock: 0 }
    }
}

impl SessionCache {
    /// The host's id of the job's session, where it is open. Counts a use, which [`SessionCache::release`] ends.
    pub(crate) fn known(&mut self, session: SessionId) -> Option<u64> {
        self.clock += 1;
        let clock = self.clock;
        let entry = self.entries.iter_mut().find(|entry| entry.session == session)?;
        entry.uses += 1;
        entry.last_use = clock;
        Some(entry.id)
    }

    /// Keeps what the host just opened, with one use.
    pub(crate) fn insert(&mut self, session: SessionId, owner: Option<Weak<Session>>, id: u64) {
        let last_use = self.clock;
        self.entries.push(Entry { session, owner, is_over: false, id, uses: 1, last_use });
    }

    /// Ends a use.
    pub(crate) fn release(&mut self, session: SessionId) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.session == session) {
            // A session that was forgotten and opened anew is released by requests of both.
            entry.uses = entry.uses.saturating_sub(1);
        }
    }

    /// Whether one must make room before the next is opened.
    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= self.entries_max
    }

    /// Learns that the host holds no more than are open now: it took the last only for another.
    pub(crate) fn limit(&mut self) {
        self.entries_max = self.entries.len().max(1);
    }

    /// Gives up the one that was used longest ago, of those not in use; its id is to be closed.
    pub(crate) fn take_oldest(&mut self) -> Option<u64> {
        let idle = self.entries.iter().enumerate().filter(|(_, entry)| entry.uses == 0);
        let (place, _) = idle.min_by_key(|(_, entry)| entry.last_use)?;
        Some(self.entries.swap_remove(place).id)
    }

    /// Gives up one that nobody can use any more, if there is one; its id is to be closed.
    pub(crate) fn take_orphan(&mut self) -> Option<u64> {
        let has_owner = |entry: &Entry| entry.owner.as_ref().is_none_or(|owner| owner.strong_count() > 0);
        let is_orphan = |entry: &Entry| entry.uses == 0 && (entry.is_over || !has_owner(entry));
        let place = self.entries.iter().position(is_orphan)?;
        Some(self.entries.swap_remove(place).id)
    }

    /// Marks sessions that have ended: each is an orphan once no request uses it.
    pub(crate) fn mark_ended(&mut self, has_ended: HasEnded<'_>) {
        self.entries
            .iter_mut()
            .filter(|entry| has_ended(entry.session))
            .for_each(|entry| entry.is_over = true);
    }

    /// Forgets a session that the host says it does not have.
    pub(crate) fn remove(&mut self, session: SessionId) {
        // Its other requests end the same way; the next one opens it anew.
        self.entries.retain(|entry| entry.session != session);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use evener_core::{Algorithm, Direction, Padding};

    fn session(byte: u8) -> Arc<Session> {
        Arc::new(Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[byte; 16]).unwrap())
    }

    fn keep(keys: &mut SessionCache, session: &Arc<Session>, id: u64) {
        assert_eq!(keys.known(session.id()), None);
        keys.insert(session.id(), Some(Arc::downgrade(session)), id);
    }

    #[test]
    fn the_one_used_longest_ago_makes_room_but_none_that_is_in_use() {
        let (mut keys, sessions) = (SessionCache::default(), [session(1), session(2), session(3)]);
        for (session, id) in sessions.iter().zip(10..) {
            keep(&mut keys, session, id);
        }
        assert_eq!(keys.take_oldest(), None, "all are in use");
        sessions.iter().for_each(|session| keys.release(session.id()));
        assert_eq!(keys.known(sessions[0].id()), Some(10));
        keys.release(sessions[0].id());
        assert_eq!([(); 4].map(|()| keys.take_oldest()), [Some(11), Some(12), Some(10), None]);
    }

    #[test]
    fn a_key_whose_session_is_gone_is_given_up() {
        let (mut keys, one, other) = (SessionCache::default(), session(1), session(2));
        keep(&mut keys, &one, 10);
        keep(&mut keys, &other, 11);
        let id = one.id();
        drop(one);
        assert_eq!(keys.take_orphan(), None, "a request is under way");
        keys.release(id);
        assert_eq!((keys.take_orphan(), keys.take_orphan()), (Some(10), None));
    }

    #[test]
    fn a_key_whose_session_has_ended_is_given_up_though_somebody_has_it() {
        let (mut keys, one, other) = (SessionCache::default(), session(1), session(2));
        keep(&mut keys, &one, 10);
        keep(&mut keys, &other, 11);
        keys.release(other.id());
        keys.mark_ended(&|id| id == one.id());
        assert_eq!(keys.take_orphan(), None, "a request is under way");
        keys.release(one.id());
        assert_eq!((keys.take_orphan(), keys.take_orphan()), (Some(10), None));
    }

    #[test]
    fn a_host_that_holds_few_is_asked_for_no_more() {
        let mut keys = SessionCache::default();
        let sessions: Vec<_> = (0..3).map(session).collect();
        sessions.iter().zip(0..).for_each(|(session, id)| keep(&mut keys, session, id));
        assert!(!keys.is_full());
        keys.limit();
        assert!(keys.is_full());
    }
}
