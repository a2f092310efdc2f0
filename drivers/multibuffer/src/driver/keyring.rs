//! Prepared keys of the last sessions, and those that the burst at hand uses.

use std::convert::Infallible;
use std::sync::Arc;

use evener_core::{HasEnded, Session, SessionCache, SessionId};

/// Sessions whose keys are kept: those of 64 threads that combine, twice. Looking through as many takes less than
/// preparing a key. Assumed, not measured: 128, because that is two for each of so many threads.
const SESSIONS_MAX: usize = 128;

/// Keys by session. A burst may have more sessions than are kept, so what it uses is held apart.
pub(crate) struct Keyring<K> {
    cache: SessionCache<Arc<K>, SESSIONS_MAX>,
    held: Vec<Arc<K>>,
    /// The session of the last key in `held`.
    last: Option<SessionId>,
}

impl<K> Default for Keyring<K> {
    fn default() -> Self {
        Self { cache: SessionCache::default(), held: Vec::new(), last: None }
    }
}

impl<K> Keyring<K> {
    /// The keys of `session`, prepared by `prepare` where they are not kept.
    pub(crate) fn keys(&mut self, session: &Session, prepare: impl FnOnce(&Session) -> Arc<K>) -> &Arc<K> {
        let Ok(keys) = self.cache.prepared(session, |session| Ok::<_, Infallible>(prepare(session)));
        keys
    }

    /// Holds the keys of `session` until [`Keyring::release`]; gives their place in [`Keyring::held`].
    pub(crate) fn hold(&mut self, session: &Session, prepare: impl FnOnce(&Session) -> Arc<K>) -> usize {
        if self.last != Some(session.id()) {
            let keys = Arc::clone(self.keys(session, prepare));
            self.held.push(keys);
            self.last = Some(session.id());
        }
        self.held.len() - 1
    }

    /// What is held, in the order of [`Keyring::hold`].
    pub(crate) fn held(&self) -> &[Arc<K>] {
        &self.held
    }

    /// Ends a burst.
    pub(crate) fn release(&mut self) {
        self.held.clear();
        self.last = None;
    }

    /// Drops the keys of sessions that are over. Between bursts nothing else has them.
    pub(crate) fn evict(&mut self, has_ended: HasEnded<'_>) {
        self.cache.evict(has_ended);
    }
}

#[cfg(test)]
mod tests {
    use evener_core::{Algorithm, Direction, Padding};

    use super::*;

    #[test]
    fn keys_of_a_session_that_is_over_are_dropped() {
        let session = |key| Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[key; 16]);
        let [over, open] = [1, 2].map(|key| session(key).unwrap());
        let mut ring = Keyring::<u8>::default();
        let [of_over, of_open] = [&over, &open].map(|session| {
            ring.hold(session, |_| Arc::new(7));
            Arc::downgrade(ring.held().last().unwrap())
        });
        ring.release();
        ring.evict(&|id| id == over.id());
        assert_eq!([of_over.strong_count(), of_open.strong_count()], [0, 1]);
    }
}
