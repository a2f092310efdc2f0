//! What threads share, of std or of loom: the only module that knows which.

#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex};
#[cfg(loom)]
pub(crate) use loom::{cell::UnsafeCell, sync::atomic};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic;
#[cfg(all(miri, not(loom)))]
pub(crate) use std::sync::{Condvar, Mutex};

#[cfg(loom)]
pub use model::{Word, Word16, Word64};

/// std's fence, or loom's.
pub use atomic::fence;

#[cfg(loom)]
pub(crate) use loom::thread::yield_now;
#[cfg(not(loom))]
pub(crate) use std::thread::yield_now;

/// A 32-bit word that threads share: a position, a sequence, a count.
#[cfg(not(loom))]
pub type Word = atomic::AtomicU32;

/// A 16-bit word of a virtqueue: an index, a flag, an entry.
#[cfg(not(loom))]
pub type Word16 = atomic::AtomicU16;

/// A 64-bit word: a generation, an address.
#[cfg(not(loom))]
pub type Word64 = atomic::AtomicU64;

/// std's cell with the interface of loom's.
#[cfg(not(loom))]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

#[cfg(loom)]
mod model {
    use super::atomic::Ordering::{self, Relaxed};
    use super::atomic::{AtomicU16, AtomicU32, AtomicU64};

    /// Writes one of loom's words behind a gate that every access passes.
    ///
    /// loom 0.7.2 looks for another order of two accesses only at a word's *last* access (tokio-rs/loom#166, #392). A
    /// thread that loads a word and then stores to it, as a claim does, hides the other thread's load before its own: of
    /// `x.load() | x.load(); x.store(1)` one interleaving is tried, and the left side never sees 1. An exchange conflicts
    /// with every other access, so that the last one is all that matters: gates bring the lost interleavings back. A gate
    /// is relaxed and orders nothing in the memory model.
    macro_rules! gated {
        ($(#[$docs:meta])* $visible:vis $name:ident, $atomic:ident, $bits:ident) => {
            $(#[$docs])*
            #[derive(Debug, Default)]
            $visible struct $name {
                gate: AtomicU32,
                word: $atomic,
            }

            impl $name {
                /// Makes a word that holds `value`.
                #[must_use]
                $visible fn new(value: $bits) -> Self {
                    Self { gate: AtomicU32::new(0), word: $atomic::new(value) }
                }

                /// As std's.
                pub fn load(&self, order: Ordering) -> $bits {
                    self.pass().load(order)
                }

                /// As std's.
                pub fn store(&self, value: $bits, order: Ordering) {
                    self.pass().store(value, order);
                }

                /// As std's.
                ///
                /// # Errors
                ///
                /// What the word holds, where that is not `old`.
                pub fn compare_exchange(
                    &self,
                    old: $bits,
                    new: $bits,
                    won: Ordering,
                    lost: Ordering,
                ) -> Result<$bits, $bits> {
                    self.pass().compare_exchange(old, new, won, lost)
                }

                fn pass(&self) -> &$atomic {
                    self.gate.fetch_add(0, Relaxed);
                    &self.word
                }
            }
        };
    }

    gated! {
        /// loom's 32-bit word behind a gate.
        pub Word, AtomicU32, u32
    }
    gated! {
        /// loom's 64-bit word behind a gate.
        pub Word64, AtomicU64, u64
    }
    gated! {
        /// loom's 16-bit word behind a gate.
        pub Word16, AtomicU16, u16
    }

    impl Word {
        /// As std's.
        pub fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
            self.pass().fetch_add(value, order)
        }

        /// As std's.
        pub fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
            self.pass().fetch_sub(value, order)
        }
    }
}
