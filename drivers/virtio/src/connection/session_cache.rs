//! Sessions that are open at the host: as many as it takes, and the one that was used longest ago makes space.
//!
//! Opening and closing one takes 54 to 86 us across two cores (measured), the time of some 100 KiB of AES-128-CBC.

use std::collections::BTreeMap;
use std::sync::Weak;

use evener_core::{HasEnded, Session, SessionId};

/// Sessions that one connection keeps open, where the other side takes as many. Assumed, not measured: 1024, because a host that drives a device has as many clients by default and one connection for all of them.
const KEYS_MAX: usize = 1_024;

/// A session at the host.
#[derive(Debug)]
struct Entry {
    /// Tells whether the session is still held; a borrowed one lives as long as its jobs may come.
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
    entries: BTreeMap<SessionId, Entry>,
    /// Most entries; fewer where the host proved to hold fewer.
    entries_max: usize,
    clock: u64,
}

impl Default for SessionCache {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), entries_max: KEYS_MAX, clock: 0 }
    }
}

impl SessionCache {
    /// The host's id of the job's session, where it is open. Counts a use, which [`SessionCache::release`] ends.
    pub(crate) fn known(&mut self, session: SessionId) -> Option<u64> {
        self.clock += 1;
        let clock = self.clock;
        let entry = self.entries.get_mut(&session)?;
        entry.uses += 1;
        entry.last_use = clock;
        Some(entry.id)
    }

    /// Keeps what the host just opened, with one use.
    pub(crate) fn insert(&mut self, session: SessionId, owner: Option<Weak<Session>>, id: u64) {
        let last_use = self.clock;
        self.entries.insert(session, Entry { owner, is_over: false, id, uses: 1, last_use });
    }

    /// Ends a use.
    pub(crate) fn release(&mut self, session: SessionId) {
        if let Some(entry) = self.entries.get_mut(&session) {
            // A session that was forgotten and opened anew is released by requests of both.
            entry.uses = entry.uses.saturating_sub(1);
        }
    }

    /// Whether one must make space before the next is opened.
    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= self.entries_max
    }

    /// Learns that the host holds no more than are open now: it took the last only for another.
    pub(crate) fn limit(&mut self) {
        self.entries_max = self.entries.len().max(1);
    }

    /// Gives up the one that was used longest ago, of those not in use; its id is to be closed.
    pub(crate) fn take_oldest(&mut self) -> Option<u64> {
        let idle = self.entries.iter().filter(|(_, entry)| entry.uses == 0);
        let (&session, _) = idle.min_by_key(|(_, entry)| entry.last_use)?;
        self.entries.remove(&session).map(|entry| entry.id)
    }

    /// Gives up one that cannot be used any more, if there is one; its id is to be closed.
    pub(crate) fn take_orphan(&mut self) -> Option<u64> {
        let has_owner = |entry: &Entry| entry.owner.as_ref().is_none_or(|owner| owner.strong_count() > 0);
        let is_orphan = |entry: &Entry| entry.uses == 0 && (entry.is_over || !has_owner(entry));
        let (&session, _) = self.entries.iter().find(|(_, entry)| is_orphan(entry))?;
        self.entries.remove(&session).map(|entry| entry.id)
    }

    /// Marks sessions that have ended: each is an orphan once no request uses it.
    pub(crate) fn mark_ended(&mut self, has_ended: HasEnded<'_>) {
        self.entries
            .iter_mut()
            .filter(|(session, _)| has_ended(**session))
            .for_each(|(_, entry)| entry.is_over = true);
    }

    /// Forgets a session that the host says it does not have.
    pub(crate) fn remove(&mut self, session: SessionId) {
        // Its other requests end the same way; the next one opens it anew.
        self.entries.remove(&session);
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
    fn the_one_used_longest_ago_makes_space_but_none_that_is_in_use() {
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
    fn a_thousand_clients_keys_stay_open_and_none_is_closed_for_another() {
        let mut keys = SessionCache::default();
        let sessions: Vec<_> = (0..1_024).map(|_| session(1)).collect();
        for (session, id) in sessions.iter().zip(0..) {
            assert!(!keys.is_full(), "{id}");
            keep(&mut keys, session, id);
            keys.release(session.id());
        }
        assert!(sessions.iter().zip(0..).all(|(session, id)| keys.known(session.id()) == Some(id)));
        assert!(keys.is_full());
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
