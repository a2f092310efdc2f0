//! A value and who has a share of it: owners, and threads that serve it.

use std::ptr::NonNull;

use crate::process::Creator;
use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::{Acquire, Release};
use crate::sync::fence;

pub(super) struct Inside<T> {
    /// Owners, and [`THREAD`] for each thread: in one word, so that a child finds them as they were at one moment.
    pub(super) shares: AtomicU64,
    pub(super) creator: Creator,
    pub(super) value: T,
}

/// An owner's share.
pub(super) const OWNER: u64 = 1;
/// A thread's.
pub(super) const THREAD: u64 = 1 << 32;
/// The bits of owners' shares.
pub(super) const OWNERS: u64 = THREAD - 1;

impl<T> Inside<T> {
    /// With one owner, in this process.
    pub(super) fn new(value: T) -> Self {
        Self { shares: AtomicU64::new(OWNER), creator: Creator::current(), value }
    }
}

/// Gives a share back in the process that made the value; the last one frees it.
///
/// # Safety
///
/// `inside` was made from a box, and the share is the caller's, who does not touch it again.
pub(super) unsafe fn give_back<T>(inside: NonNull<Inside<T>>, share: u64) {
    // SAFETY: the caller has a share.
    let before = unsafe { inside.as_ref() }.shares.fetch_sub(share, Release);
    if before == share {
        // Pairs with the Release of all who gave theirs back before: what they did is over and seen.
        fence(Acquire);
        // SAFETY: made from a box, and no one has a share any more.
        drop(unsafe { Box::from_raw(inside.as_ptr()) });
    }
}
