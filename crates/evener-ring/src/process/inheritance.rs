//! What a process leaves to those that are forked from it, and when that is freed: a value that was made in a process is its child's copy, and
//! is freed by its grandchild. So a line of processes, each of which is forked by the one before and makes its own, does not grow.
//!
//! The child itself frees nothing: the thread that forked may be inside a call, as where a signal handler forks, and goes on in it.
//! Calls that are [put aside](crate::put_aside) go on at any time and in any generation; as long as there are some, nothing is freed.

use std::sync::Arc;
use std::sync::atomic::AtomicU32 as Count;
use std::sync::atomic::Ordering::Relaxed;

use crate::sync::atomic::AtomicU32;

/// A value that a process may leave behind.
pub trait Inherited {
    /// Whether it is whole in another process than its own: none of that one's threads, which are not there, stopped while it changed what
    /// the value's drop looks at. What is not whole is never freed.
    fn is_whole(&mut self) -> bool;
}

/// Calls of this process that are put aside; of its parents', if it was forked beside some.
static PUT_ASIDE: Count = Count::new(0);

/// A call that another part of its thread goes on instead of.
#[derive(Debug)]
pub(crate) struct CountedAside(());

/// Counts a call that is put aside until what this returns is dropped.
pub(crate) fn count_put_aside() -> CountedAside {
    // Relaxed: a fork copies it as it is, and only threads of the child, which come later, look at it to free anything.
    PUT_ASIDE.fetch_add(1, Relaxed);
    CountedAside(())
}

impl Drop for CountedAside {
    fn drop(&mut self) {
        PUT_ASIDE.fetch_sub(1, Relaxed);
    }
}

/// Frees what a grandparent left, or leaves it for good.
pub(super) fn free<T: Inherited>(mut left: Box<T>) {
    if PUT_ASIDE.load(Relaxed) == 0 && left.is_whole() {
        drop(left);
    } else {
        Box::leak(left);
    }
}

impl<T: Inherited> Inherited for Arc<T> {
    /// Where a thread of the other process had it, too, it stays.
    fn is_whole(&mut self) -> bool {
        Self::get_mut(self).is_some_and(T::is_whole)
    }
}

/// Values without anything that a thread could leave half done.
macro_rules! always_whole {
    ($($value:ty),*) => {
        $(
            impl Inherited for $value {
                fn is_whole(&mut self) -> bool {
                    true
                }
            }
        )*
    };
}

always_whole!(u8, u32, AtomicU32);
#[cfg(not(any(loom, miri)))]
always_whole!(super::Mapping);
