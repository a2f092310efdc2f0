//! A pool that is tried and never waited for: a few values, each with a [`Permit`] for its one user.
//!
//! `free -> try_take (bit set) -> Permit (use) -> drop (bit cleared)`. No thread waits for one.

use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

use crate::sync::UnsafeCell;
use crate::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use crate::{CachePadded, Word};

/// Most permits: one bit each in one word.
pub const PERMITS_MAX: usize = 32;

/// Up to [`PERMITS_MAX`] permits, each of which owns a `T`.
pub struct ObjectPool<T> {
    /// Bit `i` is set while permit `i` is held.
    held: CachePadded<Word>,
    /// The holder of the permit touches it.
    owned: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

/// The right to use one `T` until this is dropped.
pub struct Permit<'p, T> {
    permits: &'p ObjectPool<T>,
    index: usize,
    // The holder uses the `T` as its own: it goes to another thread, or is looked at by several, where the `T` may.
    // No reference is kept: it would outlive the right while the permit is dropped.
    owns: PhantomData<&'p mut T>,
}

// SAFETY: threads that share permits reach each `T` one at a time, so `T: Send` is enough.
unsafe impl<T: Send> Sync for ObjectPool<T> {}
// SAFETY: permits own what they hold.
unsafe impl<T: Send> Send for ObjectPool<T> {}

impl<T> ObjectPool<T> {
    /// One permit for each of `values`.
    ///
    /// # Panics
    ///
    /// Where there are more than [`PERMITS_MAX`].
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = T>) -> Self {
        let owned: Box<[_]> =
            values.into_iter().map(|value| UnsafeCell::new(MaybeUninit::new(value))).collect();
        assert!(owned.len() <= PERMITS_MAX, "one bit each in one word");
        Self { held: CachePadded::new(Word::new(0)), owned }
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.owned.len()
    }

    /// Takes a free permit, the lowest; nothing where all are held.
    #[must_use]
    pub fn try_take(&self) -> Option<Permit<'_, T>> {
        let mut held = self.held.load(Relaxed);
        loop {
            let index = held.trailing_ones() as usize;
            if index >= self.owned.len() {
                return None;
            }
            // Acquire: pairs with the Release of its last holder; its use of the `T` is over and seen.
            match self.held.compare_exchange(held, held | 1 << index, TAKE, Relaxed) {
                Ok(_) => return Some(Permit { permits: self, index, owns: PhantomData }),
                Err(now) => held = now,
            }
        }
    }
}

impl<T> Drop for ObjectPool<T> {
    /// Leaks what is held: by a permit that was leaked, or, in the child of a fork, by a thread that exists in the parent
    /// only and may have left it half changed.
    fn drop(&mut self) {
        let held = self.held.load(Relaxed);
        for (index, cell) in self.owned.iter().enumerate() {
            if held >> index & 1 == 0 {
                // SAFETY: `self` is borrowed for good and the permit is free, so that there is no other reference.
                let value = cell.with_mut(|value| unsafe { &mut *value });
                // SAFETY: written by `new` and dropped here only.
                unsafe { value.assume_init_drop() };
            }
        }
    }
}

impl<T> Deref for Permit<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the bit was clear and is ours, and `self` is borrowed: there is no `&mut` to this cell.
        let value = self.permits.owned[self.index].with(|value| unsafe { &*value });
        // SAFETY: written by `new`, and dropped only when no permit borrows the permits.
        unsafe { value.assume_init_ref() }
    }
}

impl<T> DerefMut for Permit<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the bit was clear and is ours, and `self` is borrowed for writing: there is no other reference.
        let value = self.permits.owned[self.index].with_mut(|value| unsafe { &mut *value });
        // SAFETY: written by `new`, and dropped only when no permit borrows the permits.
        unsafe { value.assume_init_mut() }
    }
}

impl<T> Drop for Permit<'_, T> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `try_take`.
        self.permits.held.fetch_sub(1 << self.index, PASS_ON);
    }
}

impl<T> fmt::Debug for Permit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permit({})", self.index)
    }
}

const TAKE: Ordering = if cfg!(mutant = "permit_take_relaxed") { Relaxed } else { Acquire };
const PASS_ON: Ordering = if cfg!(mutant = "permit_pass_relaxed") { Relaxed } else { Release };
