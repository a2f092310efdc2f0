//! One value for each generation of a process: what a child of fork must not share with what its parent's threads held.
//!
//! The child has a copy of every word, and none of the threads that would go on from there. So it never looks at them:
//! it comes with another generation and gets a value of its own.

use std::ptr;

use crate::sync::atomic::AtomicPtr;
use crate::sync::atomic::Ordering::{AcqRel, Acquire};

/// A list of values by generation, to which anyone may add without waiting.
///
/// As long as processes fork: one value for each fork on the way from the first process to this one that used it.
pub struct PerFork<T> {
    /// The newest; null before the first. Changed only by putting one in front.
    newest: AtomicPtr<Entry<T>>,
}

struct Entry<T> {
    generation: u32,
    value: T,
    /// Null at the first. Never changed once the value is on the list.
    older: *mut Self,
}

// SAFETY: threads that share the list share its values, and the thread that drops the list drops them.
unsafe impl<T: Send + Sync> Sync for PerFork<T> {}
// SAFETY: the list owns its values.
unsafe impl<T: Send> Send for PerFork<T> {}

impl<T> Default for PerFork<T> {
    fn default() -> Self {
        Self { newest: AtomicPtr::new(ptr::null_mut()) }
    }
}

impl<T> PerFork<T> {
    /// The value of `generation`, made by `make` where there is none yet. Where several threads make one at once, one of
    /// them is used and the others are dropped.
    #[inline]
    pub fn of(&self, generation: u32, make: impl FnOnce() -> T) -> &T {
        // Acquire: pairs with the Release of the thread that put the value there; its fields are seen.
        let newest = self.newest.load(Acquire);
        match self.find(newest, generation) {
            Some(value) => value,
            None => self.add(newest, generation, make()),
        }
    }

    /// The value of `generation`, if there is one.
    pub fn get(&self, generation: u32) -> Option<&T> {
        self.find(self.newest.load(Acquire), generation)
    }

    #[inline]
    fn find(&self, mut at: *mut Entry<T>, generation: u32) -> Option<&T> {
        loop {
            // SAFETY: null, or put on the list whole; entries stay until `self` is dropped, and are not changed.
            let entry = unsafe { at.as_ref() }?;
            if entry.generation == generation {
                return Some(&entry.value);
            }
            at = entry.older;
        }
    }

    #[cold]
    fn add(&self, newest_seen: *mut Entry<T>, generation: u32, value: T) -> &T {
        let mut newest_seen = newest_seen;
        let mut entry = Box::new(Entry { generation, value, older: newest_seen });
        loop {
            let raw = Box::into_raw(entry);
            // Release: pairs with the Acquire of the thread that finds it.
            match self.newest.compare_exchange(newest_seen, raw, AcqRel, Acquire) {
                // SAFETY: on the list now, and stays until `self` is dropped.
                Ok(_) => return unsafe { &(*raw).value },
                Err(now) => {
                    // SAFETY: made above from a box, and not on the list.
                    entry = unsafe { Box::from_raw(raw) };
                    (newest_seen, entry.older) = (now, now);
                }
            }
            if let Some(value) = self.find(newest_seen, generation) {
                return value;
            }
        }
    }
}

impl<T> Drop for PerFork<T> {
    fn drop(&mut self) {
        let mut at = self.newest.load(Acquire);
        while !at.is_null() {
            // SAFETY: on the list, so made from a box; `self` is borrowed for good and each value is met once.
            let entry = unsafe { Box::from_raw(at) };
            at = entry.older;
        }
    }
}
