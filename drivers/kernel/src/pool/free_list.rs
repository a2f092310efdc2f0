//! A free list: buffers of one request are kept for the next, a few of a kind, for so many callers at once.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Of each kind. Assumed, not measured: 8, because so many callers at once are usual, and more allocate for themselves.
const FREE_MAX: usize = 8;

pub(crate) struct FreeList<T>(Mutex<Vec<T>>);

impl<T> Default for FreeList<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> FreeList<T> {
    /// The one that was kept last.
    pub(crate) fn take(&self) -> Option<T> {
        self.all().pop()
    }

    pub(crate) fn put(&self, one: T) {
        let mut all = self.all();
        if all.len() < FREE_MAX {
            all.push(one);
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
