//! What all clients of one user have together: the host keeps books by user, for who may start one process may start a thousand.
//!
//! `enter (a place, or which limit is in the way) -> map, fault, open -> given back, each where it was taken -> forgotten with the last`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::state::closer::Closer;
use crate::state::report::Count;

/// A user, as the host knows it. Relaxed throughout: each number is changed by one operation, and nothing else is read through it.
#[derive(Debug, Default)]
pub(crate) struct User {
    pub(crate) uid: u32,
    /// Changed under the lock of the list of all clients.
    pub(crate) clients: AtomicUsize,
    pub(crate) held: Holdings,
    /// What its clients sent and did not need to.
    pub(crate) closer: Arc<Closer>,
    /// Clients, sessions and connections that a limit of the user was in the way of.
    pub(crate) refused: Count,
}

/// What all clients of a user hold together.
#[derive(Debug, Default)]
pub(crate) struct Holdings {
    pub(crate) sessions: Quantity,
    pub(crate) mapped_bytes: Quantity,
    /// Pages that the host made, or may make without asking again.
    pub(crate) pages: Quantity,
}

/// A number with a limit that is told at each use.
#[derive(Debug, Default)]
pub(crate) struct Quantity(AtomicU64);

impl Quantity {
    /// Adds `more`, unless that goes beyond `max`; `credit` of what there is will be given back at once and does not count.
    pub(crate) fn take(&self, more: u64, max: u64, credit: u64) -> bool {
        let fits = |now: u64| {
            let sum = now.checked_add(more)?;
            (sum.saturating_sub(credit) <= max).then_some(sum)
        };
        self.0.fetch_update(Relaxed, Relaxed, fits).is_ok()
    }

    pub(crate) fn give_back(&self, less: u64) {
        self.0.fetch_update(Relaxed, Relaxed, |now| Some(now.saturating_sub(less))).ok();
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// All users of whom something is known.
#[derive(Debug, Default)]
pub(crate) struct Users(Mutex<BTreeMap<u32, Arc<User>>>);

impl Users {
    /// The one of that number.
    pub(crate) fn of(&self, uid: u32) -> Arc<User> {
        let mut users = self.list();
        Arc::clone(users.entry(uid).or_insert_with(|| Arc::new(User { uid, ..User::default() })))
    }

    /// Those of whom something is there.
    pub(crate) fn all(&self) -> Vec<Arc<User>> {
        self.list().values().cloned().collect()
    }

    /// Forgets users of whom nothing is left. No client has one of them then, for who takes one does so under the lock.
    pub(crate) fn forget_gone(&self) {
        let owes = |user: &User| user.held.pages.value() > 0 || user.closer.count() > 0;
        self.list().retain(|_, user| Arc::strong_count(user) > 1 || owes(user));
    }

    /// Descriptors that wait to be closed.
    pub(crate) fn closing(&self) -> usize {
        self.list().values().map(|user| user.closer.count()).sum()
    }

    /// The list is whole between any two statements, so a panic elsewhere does not spoil it.
    fn list(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<User>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_stays_below_its_limit_and_comes_back() {
        let quantity = Quantity::default();
        assert!(quantity.take(6, 10, 0) && !quantity.take(5, 10, 0));
        assert!(quantity.take(5, 10, 6), "what is replaced does not count");
        quantity.give_back(6);
        assert_eq!(quantity.value(), 5);
        assert!(!quantity.take(u64::MAX, u64::MAX, 0));
        quantity.give_back(u64::MAX);
        assert_eq!(quantity.value(), 0);
    }

    #[test]
    fn a_user_is_one_for_all_its_clients_and_forgotten_with_the_last() {
        let users = Users::default();
        let first = users.of(7);
        assert!(Arc::ptr_eq(&first, &users.of(7)));
        users.forget_gone();
        assert_eq!(users.all().len(), 1);
        drop(first);
        users.of(8).held.pages.take(1, 1, 0);
        users.forget_gone();
        let left: Vec<u32> = users.all().iter().map(|user| user.uid).collect();
        assert_eq!(left, [8], "who left pages behind is remembered");
    }
}
