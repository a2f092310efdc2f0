//! Which results a module's worker saw of requests that waited for a key to be opened.
//!
//! `results -> session by session: is it one of the last used?` ([`RecentSessions::first_use`]). A key is a cost of its session and not of the
//! request; where each request has a session of its own it is a cost of every request.

use evener_core::SessionId;

/// Sessions whose keys are taken for open, the last ones used: as many as `drivers/kernel` keeps open.
const SESSIONS_KNOWN: usize = 16;

/// Looks in a row that found a new session after which that is how requests come. Assumed, not measured: 4, above the requests of one session that
/// wait for its key together.
const NEW_IN_ROW_MAX: u32 = 4;

/// Sessions of which a module has had a request.
#[derive(Default)]
pub(crate) struct RecentSessions {
    /// The last one used at the end.
    known: Vec<SessionId>,
    /// Looks in a row that found a new one.
    new_in_row: u32,
}

impl RecentSessions {
    /// Whether one of these, which came back together, waited for its key, and those before it mostly did not.
    pub(crate) fn first_use(&mut self, sessions: impl Iterator<Item = SessionId>) -> bool {
        let mut is_new = false;
        for session in sessions {
            match self.known.iter().position(|known| *known == session) {
                // Nearly always the last one.
                Some(place) => _ = self.known.remove(place),
                None => is_new = true,
            }
            self.known.push(session);
        }
        let surplus = self.known.len().saturating_sub(SESSIONS_KNOWN);
        self.known.drain(..surplus);
        self.new_in_row = if is_new { self.new_in_row.saturating_add(1) } else { 0 };
        is_new && (self.new_in_row <= NEW_IN_ROW_MAX || cfg!(mutant = "keys_never_usual"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::test_support::session;

    fn ids(count: usize) -> Vec<SessionId> {
        (0..count).map(|_| session().id()).collect()
    }

    #[test]
    fn the_first_request_of_a_session_opens_a_key_and_those_after_it_do_not() {
        let (mut sessions, ids) = (RecentSessions::default(), ids(2));
        let mut looks = |of: &[usize]| sessions.first_use(of.iter().map(|&at| ids[at]));
        assert_eq!(
            [looks(&[0]), looks(&[0]), looks(&[0, 1]), looks(&[1]), looks(&[0])],
            [true, false, true, false, false]
        );
    }

    #[test]
    fn a_session_that_was_not_used_for_long_opens_its_key_again() {
        let (mut sessions, ids) = (RecentSessions::default(), ids(SESSIONS_KNOWN + 1));
        // Each twice, so that none of them is one in a row of new ones.
        for &id in &ids {
            let looks = [id, id].map(|id| sessions.first_use([id].into_iter()));
            assert_eq!(looks, [true, false]);
        }
        let again = [1, 0].map(|at| sessions.first_use([ids[at]].into_iter()));
        assert_eq!(again, [false, true]);
    }

    #[test]
    fn where_each_request_has_a_session_of_its_own_its_key_is_part_of_what_it_takes() {
        let mut sessions = RecentSessions::default();
        let looks: Vec<bool> = ids(8).into_iter().map(|id| sessions.first_use([id].into_iter())).collect();
        assert_eq!(looks, [true, true, true, true, false, false, false, false]);
    }
}
