//! Whole blocks, or a data unit of XTS, by this thread or shared between several (`native/split.rs`, `part_starts.rs`).

use evener_core::Family;
use evener_kernels::modes::BLOCK;
use zeroize::Zeroize as _;

use super::{BlockContext, part_starts};
use crate::native::split::{Cut, Place, Split};

impl BlockContext {
    /// From how many bytes on a piece may be split between threads, which takes memory, locks and the kernel's time.
    #[inline]
    pub(crate) fn split_from(&self) -> usize {
        self.row().native_split_from()
    }

    /// Whole blocks, or of XTS a data unit, by this thread or by several; `None` where threads have left a part undone.
    ///
    /// # Safety
    /// The places are good for reading and writing.
    pub(super) unsafe fn crypt(&mut self, place: Place) -> Option<()> {
        if place.2 < self.split_from() {
            // SAFETY: the caller's word.
            unsafe { self.crypt_whole(place) };
            return Some(());
        }
        let split = Split::of(self.row(), self.encrypts, place);
        match split.as_ref().and_then(Split::cut) {
            // SAFETY: as above.
            Some(cut) => unsafe { self.crypt_shared(&cut, place) }?,
            // SAFETY: as above.
            None => unsafe { self.crypt_whole(place) },
        }
        split.into_iter().for_each(Split::end);
        Some(())
    }

    /// The same, by this thread.
    ///
    /// # Safety
    /// As [`crypt`](Self::crypt).
    #[inline]
    pub(super) unsafe fn crypt_whole(&mut self, (from, to, bytes): Place) {
        if self.family() == Family::Xts {
            // SAFETY: the caller's word.
            unsafe { self.key.crypt_unit(&self.iv, from, to, bytes) };
        } else {
            // SAFETY: as above.
            unsafe { self.key.crypt(&mut self.iv, from, to, bytes / BLOCK) };
        }
    }

    /// # Safety
    /// As [`crypt`](Self::crypt).
    pub(super) unsafe fn crypt_shared(&mut self, cut: &Cut<'_>, place: Place) -> Option<()> {
        // SAFETY: the caller lends the input, of which nothing is overwritten yet.
        let input = unsafe { std::slice::from_raw_parts(place.0, place.2) };
        let (mut starts, end) = part_starts::of(self.family(), &self.key, &self.iv, input, cut.part_bytes);
        let (key, is_unit) = (&self.key, self.family() == Family::Xts);
        let part = |index: usize, (from, to, bytes): Place| {
            let mut chain = starts.get(index).copied().unwrap_or_default();
            if is_unit {
                // SAFETY: the part's place.
                unsafe { key.crypt_unit_at(&mut chain, from, to, bytes) };
                chain.zeroize();
            } else {
                // SAFETY: as above.
                unsafe { key.crypt(&mut chain, from, to, bytes / BLOCK) };
            }
        };
        // SAFETY: the caller's word.
        let is_done = unsafe { cut.share(&part) };
        if !is_done {
            // A thread panicked, which none has a reason to: no other way may go on with what is there.
            self.is_lost = true;
            return None;
        }
        if is_unit {
            starts.zeroize();
        }
        self.iv = end;
        self.tally.went_elsewhere(place.2);
        Some(())
    }
}
