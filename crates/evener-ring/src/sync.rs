//! What threads share, of std or of loom: the only module that knows which.

use std::mem::MaybeUninit;

#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex};
#[cfg(loom)]
pub(crate) use loom::{cell::UnsafeCell, sync::atomic};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic;
#[cfg(all(miri, not(loom)))]
pub(crate) use std::sync::{Condvar, Mutex};

/// A 32-bit word that threads share: a position, a turn, a count.
pub type Word = atomic::AtomicU32;

/// The place of one item, empty or full; its slot's turn word says which, and whose turn it is to touch it.
#[repr(transparent)]
pub struct Place<T>(UnsafeCell<MaybeUninit<T>>);

impl<T> Place<T> {
    /// Makes an empty place.
    #[must_use]
    pub fn empty() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// Moves `item` in. What lay here before is forgotten, not dropped.
    ///
    /// # Safety
    ///
    /// No other thread touches this place during the call.
    #[inline]
    pub(crate) unsafe fn write(&self, item: T) {
        // SAFETY: the pointer is this place's own, and the caller keeps every other thread away.
        self.0.with_mut(|place| unsafe { place.write(MaybeUninit::new(item)) });
    }

    /// Moves the item out; the place counts as empty afterwards.
    ///
    /// # Safety
    ///
    /// The place holds an item, written by a call that happened before, and no other thread touches it during the call.
    #[inline]
    pub(crate) unsafe fn take(&self) -> T {
        // SAFETY: the pointer is this place's own, and the caller keeps every other thread away.
        let item = self.0.with(|place| unsafe { place.read() });
        // SAFETY: the caller knows that an item was written here.
        unsafe { item.assume_init() }
    }
}

/// std's cell with the interface of loom's.
#[cfg(not(loom))]
#[repr(transparent)]
struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    #[inline(always)]
    fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
