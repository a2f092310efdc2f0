//! One value for each generation of a process: what a child of fork must not share with what its parent's threads held.
//!
//! The child has a copy of every word, and none of the threads that would go on from there. So it never looks at them:
//! it comes with another generation and gets a value of its own.

use std::ptr;

use super::inheritance::{self, Inherited};
use crate::sync::atomic::AtomicPtr;
use crate::sync::atomic::Ordering::{AcqRel, Acquire};

/// A list of values by generation, to which anyone may add without waiting.
///
/// It has the process's own value, one of its nearest forebear that used it, and what of others may not be freed
/// ([`Inherited`]).
pub struct PerFork<T> {
    /// The newest; null before the first. Changed only by putting one in front.
    newest: AtomicPtr<Entry<T>>,
}

struct Entry<T> {
    generation: u32,
    value: T,
    /// Null at the first, and where what lay behind was freed.
    older: AtomicPtr<Self>,
    /// Of that one.
    older_generation: u32,
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

impl<T: Inherited> PerFork<T> {
    /// The value of `generation`, made by `make` where there is none yet. Where several threads make one at once, one of
    /// them is used and the others are dropped.
    #[inline]
    pub fn of(&self, generation: u32, make: impl FnOnce() -> T) -> &T {
        // Acquire: pairs with the Release of the thread that put the value there; its fields are seen.
        let newest = self.newest.load(Acquire);
        match self.find(newest, generation) {
            Some(value) => value,
            None => {
                // First, so that what is made finds the space.
                Self::free_behind(newest);
                self.add(newest, generation, make())
            }
        }
    }

    /// The value of `generation`, if there is one.
    pub fn get(&self, generation: u32) -> Option<&T> {
        self.find(self.newest.load(Acquire), generation)
    }

    /// Goes from `at`, the newest at some moment of this process, over this generation's own and never into what may be freed.
    #[inline]
    fn find(&self, mut at: *mut Entry<T>, generation: u32) -> Option<&T> {
        loop {
            // SAFETY: null, or put on the list whole. What was the newest in this process, or is of its generation, stays until `self` is dropped.
            let entry = unsafe { at.as_ref() }?;
            if entry.generation == generation {
                return Some(&entry.value);
            }
            if is_before(entry.older_generation, generation) {
                return None;
            }
            at = entry.older.load(Acquire);
        }
    }

    #[cold]
    fn add(&self, newest_seen: *mut Entry<T>, generation: u32, value: T) -> &T {
        let mut newest_seen = newest_seen;
        let mut entry =
            Box::new(Entry { generation, value, older: AtomicPtr::default(), older_generation: generation });
        loop {
            // SAFETY: null, or what was the newest in this process, as in `find`.
            let older_generation =
                unsafe { newest_seen.as_ref() }.map_or(generation, |older| older.generation);
            (entry.older, entry.older_generation) = (AtomicPtr::new(newest_seen), older_generation);
            let raw = Box::into_raw(entry);
            // Release: pairs with the Acquire of the thread that finds it.
            match self.newest.compare_exchange(newest_seen, raw, AcqRel, Acquire) {
                // SAFETY: on the list now, and stays until `self` is dropped.
                Ok(_) => return unsafe { &(*raw).value },
                Err(now) => {
                    // SAFETY: made above from a box, and not on the list.
                    entry = unsafe { Box::from_raw(raw) };
                    newest_seen = now;
                }
            }
            if let Some(value) = self.find(newest_seen, generation) {
                return value;
            }
        }
    }

    /// Frees what lies behind the newest value that there is when the process is about to make its own.
    fn free_behind(found: *mut Entry<T>) {
        // SAFETY: null, or an entry that was the newest in this process, as in `find`.
        let Some(found) = (unsafe { found.as_ref() }) else { return };
        let mut at = found.older.swap(ptr::null_mut(), AcqRel);
        while !at.is_null() {
            // SAFETY: made from a box, and taken off the list just now by this thread alone. No thread of this process was ever there: it
            // looks at what was the newest in its time and at its own generation.
            let entry = unsafe { Box::from_raw(at) };
            at = entry.older.load(Acquire);
            inheritance::free(entry);
        }
    }
}

/// What is left whole is left with its entry.
impl<T: Inherited> Inherited for Entry<T> {
    fn is_whole(&mut self) -> bool {
        self.value.is_whole()
    }
}

/// Whether a generation is an earlier one; they wrap.
const fn is_before(generation: u32, other: u32) -> bool {
    generation.wrapping_sub(other) > u32::MAX / 2
}

impl<T> Drop for PerFork<T> {
    fn drop(&mut self) {
        let mut at = self.newest.load(Acquire);
        while !at.is_null() {
            // SAFETY: on the list, so made from a box; `self` is borrowed for good and each value is met once.
            let entry = unsafe { Box::from_raw(at) };
            at = entry.older.load(Acquire);
        }
    }
}
