//! A value that a process makes once and a forked child makes anew.
//!
//! States of the word: untried -> making (one thread) -> made | failed. It lies where a fork wipes it, so in a child
//! it is untried again, whatever the parent's threads were doing.

use std::fmt;
use std::ptr;

use super::inheritance::{self, Inherited};
use crate::Words;
use crate::sync::atomic::AtomicPtr;
use crate::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

/// A value that belongs to one process, without locks: a lock that another thread of the parent held would stay locked in a
/// child for ever.
///
/// What was made is never freed in its process, nor in that one's children; theirs free it ([`Inherited`]).
pub struct PerProcess<T: Send + Sync + 'static, W: Words> {
    /// One word; see above.
    state: W,
    /// Meaningful only while the state is [`MADE`]; before that, the nearest forebear's.
    value: AtomicPtr<T>,
    /// What that one found there. Changed by the thread that makes.
    older: AtomicPtr<T>,
}

impl<T: Inherited + Send + Sync + 'static, W: Words> PerProcess<T, W> {
    /// Makes a place without a value. `state` is at least one word that is zero, here and in a child after each fork.
    ///
    /// # Panics
    ///
    /// Where `state` has no word.
    #[must_use]
    pub fn new(state: W) -> Self {
        assert!(!state.words().is_empty(), "the state is a word");
        Self { state, value: AtomicPtr::default(), older: AtomicPtr::default() }
    }

    /// Returns this process's value, which `make` makes where no thread has tried yet.
    ///
    /// Nothing where that failed, and while another thread makes it: no thread ever waits.
    pub fn get_or_make(&self, make: impl FnOnce() -> Option<T>) -> Option<&'static T> {
        let state = &self.state.words()[0];
        // Acquire: pairs with the Release below; a thread that sees MADE sees the value.
        match state.load(Acquire) {
            MADE => return self.made(),
            UNTRIED => {}
            _ => return None,
        }
        // Relaxed: the winner reads nothing that others wrote.
        state.compare_exchange(UNTRIED, MAKING, Relaxed, Relaxed).ok()?;
        // First, so that what is made finds the space.
        let found = self.value.swap(ptr::null_mut(), Relaxed);
        self.free(self.older.swap(found, Relaxed));
        let Some(value) = make() else {
            state.store(FAILED, Relaxed);
            return None;
        };
        self.value.store(Box::into_raw(Box::new(value)), Relaxed);
        // Release: pairs with the Acquire above.
        state.store(MADE, PUBLISH);
        self.made()
    }

    /// Frees a grandparent's.
    fn free(&self, left: *mut T) {
        if !left.is_null() {
            // SAFETY: a box gave it away in another process, and since then it went from `value` to `older` and to here, in this process alone.
            inheritance::free(unsafe { Box::from_raw(left) });
        }
    }

    fn made(&self) -> Option<&'static T> {
        // SAFETY: the state was seen as MADE in this process, so the pointer is one that a box gave away for good.
        Some(unsafe { &*self.value.load(Relaxed) })
    }
}

impl<T: Send + Sync + 'static, W: Words> fmt::Debug for PerProcess<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerProcess").finish_non_exhaustive()
    }
}

const UNTRIED: u32 = 0;
const MAKING: u32 = 1;
const MADE: u32 = 2;
const FAILED: u32 = 3;

const PUBLISH: Ordering = if cfg!(mutant = "made_relaxed") { Relaxed } else { Release };
