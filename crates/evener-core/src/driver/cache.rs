//! What a driver has made of the last sessions (key schedules, contexts), found by the session's name.

use crate::driver::HasEnded;
use crate::job::session::{Session, SessionId};

/// A small cache: the newest `N` prepared sessions; the oldest is dropped, and wiped by its own `Drop`.
///
/// `N` is a power of two or not, but small: the search is linear, and bursts nearly always hit the entry that
/// was used last.
pub struct SessionCache<T, const N: usize> {
    entries: Vec<(SessionId, T)>,
    /// Entry that was found last.
    last: usize,
    /// Entry that is replaced next.
    next: usize,
}

impl<T, const N: usize> Default for SessionCache<T, N> {
    fn default() -> Self {
        Self { entries: Vec::with_capacity(N), last: 0, next: 0 }
    }
}

impl<T, const N: usize> SessionCache<T, N> {
    /// What `prepare` made of `session`, now or earlier.
    ///
    /// # Errors
    ///
    /// Whatever `prepare` returns; nothing is kept then.
    #[inline]
    pub fn prepared<E>(
        &mut self,
        session: &Session,
        prepare: impl FnOnce(&Session) -> Result<T, E>,
    ) -> Result<&mut T, E> {
        // The one case that a job of 64 bytes would notice, so it is the one that is inlined.
        if self.entries.get(self.last).is_none_or(|(known, _)| *known != session.id()) {
            self.last = self.find_or_prepare(session, prepare)?;
        }
        Ok(&mut self.entries[self.last].1)
    }

    /// Drops what was made of the sessions that `has_ended` names.
    pub fn evict(&mut self, has_ended: HasEnded<'_>) {
        self.entries.retain(|(known, _)| !has_ended(*known));
        (self.last, self.next) = (0, 0);
    }

    /// Whether something made of this session is kept.
    #[must_use]
    pub fn keeps(&self, session: SessionId) -> bool {
        self.entries.iter().any(|(known, _)| *known == session)
    }

    #[inline(never)]
    fn find_or_prepare<E>(
        &mut self,
        session: &Session,
        prepare: impl FnOnce(&Session) -> Result<T, E>,
    ) -> Result<usize, E> {
        match self.entries.iter().position(|(known, _)| *known == session.id()) {
            Some(place) => Ok(place),
            None => Ok(self.insert(session.id(), prepare(session)?)),
        }
    }

    fn insert(&mut self, id: SessionId, made: T) -> usize {
        if self.entries.len() < N {
            self.entries.push((id, made));
            return self.entries.len() - 1;
        }
        let place = self.next;
        self.next = (place + 1) % N;
        self.entries[place] = (id, made);
        place
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::{Algorithm, Direction, Padding};

    #[test]
    fn a_session_is_prepared_again_only_after_n_others() {
        let sessions: Vec<Session> = (0..5)
            .map(|i| Session::new(Algorithm::Aes128Ecb, Direction::Encrypt, Padding::None, &[i; 16]).unwrap())
            .collect();
        let mut cache = SessionCache::<u64, 4>::default();
        let mut prepared = Vec::new();
        for &use_of in &[0, 1, 2, 3, 0, 3, 4, 0, 1] {
            let session = &sessions[use_of];
            let made = cache.prepared(session, |s| {
                prepared.push(use_of);
                Ok::<_, ()>(s.id().0)
            });
            assert_eq!(made, Ok(&mut session.id().0.clone()));
        }
        assert_eq!(prepared, [0, 1, 2, 3, 4, 0, 1]);
    }

    /// Counts those that live.
    struct Counted(Rc<()>);

    #[test]
    fn what_was_made_of_a_session_that_is_over_is_dropped_and_nothing_else() {
        let session = |key| Session::new(Algorithm::Aes128Ecb, Direction::Encrypt, Padding::None, &[key; 16]);
        let sessions: Vec<Session> = (0..5).map(|key| session(key).unwrap()).collect();
        let (alive, mut cache) = (Rc::new(()), SessionCache::<Counted, 4>::default());
        let mut prepare = |session: &Session| {
            cache.prepared(session, |_| Ok::<_, ()>(Counted(Rc::clone(&alive)))).unwrap();
            Rc::strong_count(&alive) - 1
        };
        assert_eq!(sessions.iter().map(&mut prepare).collect::<Vec<_>>(), [1, 2, 3, 4, 4]);
        cache.evict(&|id| id == sessions[4].id() || id == sessions[2].id() || id == sessions[0].id());
        assert_eq!(Rc::strong_count(&alive) - 1, 2);
        let kept = [false, true, false, true, false];
        assert_eq!(sessions.iter().map(|session| cache.keeps(session.id())).collect::<Vec<_>>(), kept);
        let mut prepare = |session: &Session| {
            let counted = cache.prepared(session, |_| Ok::<_, ()>(Counted(Rc::clone(&alive)))).unwrap();
            Rc::strong_count(&counted.0) - 1
        };
        assert_eq!([1, 4, 2, 0, 3].map(|at: usize| prepare(&sessions[at])), [2, 3, 4, 4, 4]);
    }
}
