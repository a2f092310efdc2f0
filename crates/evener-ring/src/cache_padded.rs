//! Distance between words that different cores write.

use std::ops::Deref;

/// A value alone in its cache lines, so that writing it does not take a neighbour's line away from another core.
///
/// 128 bytes: two lines of x86-64, whose prefetcher fetches lines in pairs, and one of the larger AArch64 cores.
/// Our own, because `crossbeam-utils` would bring a dependency for these few lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CachePadded<T>(T);

impl<T> CachePadded<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for CachePadded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
