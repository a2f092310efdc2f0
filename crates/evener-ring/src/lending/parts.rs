//! One buffer in parts, each for one thread.
//!
//! The path of one part: claimed at the front or at the back ([`Claims`]) -> [`Part`], the only access to its bytes ->
//! [`Part::done`], or dropped. What is not done when the threads have left is the owner's again ([`Parts::undone`]), but
//! for a part in place whose [bytes](Part::bytes) were given out: how many of them are still input is unknown.

use std::marker::PhantomData;
use std::{ptr, slice};

use crate::sync::atomic::Ordering::Relaxed;
use crate::{Claims, Word};

/// A borrowed buffer, or an input and an output, cut into parts of one length (the last may be shorter).
///
/// Threads that share it claim parts, each part once.
#[derive(Debug)]
pub struct Parts<'a> {
    claims: Claims,
    /// Where claimants at the back begin. They and those at the front go upwards; a claimant that meets the other's first part
    /// goes on with the other's last ones.
    back_first: usize,
    /// One word per part: [`OPEN`]; [`SPOILT`] and then [`DONE`] by its claimant. Its owner reads them when all claimants have
    /// left.
    fates: Box<[Word]>,
    /// Where input is read; the output's place where the work is in place.
    input: *const u8,
    output: *mut u8,
    len: usize,
    part_bytes: usize,
    lent: PhantomData<(&'a [u8], &'a mut [u8])>,
}

// SAFETY: threads that share parts reach the borrowed bytes through claims only, which give each part to one thread;
// bytes may be read and written by any thread.
unsafe impl Sync for Parts<'_> {}
// SAFETY: it holds borrows of bytes and plain words, which may all move to another thread.
unsafe impl Send for Parts<'_> {}

/// One part, its claimant's alone until it is done or dropped.
#[derive(Debug)]
#[must_use = "a part that is dropped stays undone"]
pub struct Part<'p> {
    /// Number of the part, from 0.
    pub index: usize,
    /// Bytes before the part.
    pub offset: usize,
    bytes: PartBytes<'p>,
    fate: &'p Word,
}

/// The bytes of a part.
#[derive(Debug)]
pub enum PartBytes<'p> {
    /// Input that becomes output where it stands.
    InPlace(&'p mut [u8]),
    /// Input, and output of the same length elsewhere.
    Apart(&'p [u8], &'p mut [u8]),
}

impl<'a> Parts<'a> {
    /// Cuts `data`, which is worked on in place.
    ///
    /// # Panics
    ///
    /// Where `part_bytes` is 0 or so small that there are more than [`Claims::COUNT_MAX`] parts.
    #[must_use]
    pub fn in_place(data: &'a mut [u8], part_bytes: usize) -> Self {
        let output = data.as_mut_ptr();
        Self::cut(output, output, data.len(), part_bytes)
    }

    /// Cuts `input` and `output` alike.
    ///
    /// # Panics
    ///
    /// As [`in_place`](Self::in_place), and where the two differ in length.
    #[must_use]
    pub fn apart(input: &'a [u8], output: &'a mut [u8], part_bytes: usize) -> Self {
        assert!(input.len() == output.len(), "input and output have one length");
        Self::cut(input.as_ptr(), output.as_mut_ptr(), input.len(), part_bytes)
    }

    fn cut(input: *const u8, output: *mut u8, len: usize, part_bytes: usize) -> Self {
        let count = len.div_ceil(part_bytes);
        let fates = (0..count).map(|_| Word::new(OPEN)).collect();
        let back_first = count;
        Self {
            claims: Claims::new(count),
            back_first,
            fates,
            input,
            output,
            len,
            part_bytes,
            lent: PhantomData,
        }
    }

    /// Lets claimants at the back begin with the part `first` and go upwards. Memory is read faster that way: of two
    /// threads on halves of 64 MiB, the one that went downwards took a tenth longer (AMD Zen 4).
    ///
    /// # Panics
    ///
    /// Where there are fewer parts than `first`.
    pub fn let_back_begin_at(&mut self, first: usize) {
        assert!(first <= self.count(), "{first} of {}", self.count());
        self.back_first = first;
    }

    /// Number of parts.
    #[must_use]
    pub fn count(&self) -> usize {
        self.fates.len()
    }

    /// Length of every part but the last.
    #[must_use]
    pub fn part_bytes(&self) -> usize {
        self.part_bytes
    }

    /// Claims the first part that is left.
    #[inline]
    pub fn front(&self) -> Option<Part<'_>> {
        // SAFETY: the claim gives the number out once, and no other number is of the same part.
        self.claims.front().map(|number| unsafe { self.part(self.part_of(number)) })
    }

    /// Claims the next part of those at the back: the last that is left, unless set [otherwise](Self::let_back_begin_at).
    #[inline]
    pub fn back(&self) -> Option<Part<'_>> {
        // SAFETY: as above.
        self.claims.back().map(|number| unsafe { self.part(self.part_of(number)) })
    }

    /// The part that a claimed number is of: those from `back_first` on in reverse.
    const fn part_of(&self, number: usize) -> usize {
        if number < self.back_first { number } else { self.fates.len() - 1 - (number - self.back_first) }
    }

    /// Gives each part that no claimant has done to `work`, in order: those that were never claimed and those that failed, but
    /// not those that were spoilt.
    pub fn undone(&mut self, mut work: impl FnMut(Part<'_>)) {
        for index in 0..self.count() {
            // Relaxed: `&mut self` says that all claimants have left and are seen.
            if self.fates[index].load(Relaxed) == OPEN {
                // SAFETY: `&mut self` leaves no other part alive, and one at a time is made here.
                work(unsafe { self.part(index) });
            }
        }
    }

    /// Returns whether every part is done.
    #[must_use]
    pub fn is_done(&mut self) -> bool {
        self.fates.iter().all(|fate| fate.load(Relaxed) == DONE)
    }

    /// The part `index`.
    ///
    /// # Safety
    ///
    /// No other `Part` of this number is alive while this one is.
    unsafe fn part(&self, index: usize) -> Part<'_> {
        let offset = index * self.part_bytes;
        let len = self.part_bytes.min(self.len - offset);
        // SAFETY: a part begins inside the buffer, for its number is below the count.
        let output = unsafe { self.output.add(offset) };
        // SAFETY: offset and length stay inside what was borrowed mutably, parts do not overlap, and this is the only one
        // of its number.
        let output = unsafe { slice::from_raw_parts_mut(output, len) };
        let bytes = if ptr::eq(self.input, self.output) {
            PartBytes::InPlace(output)
        } else {
            // SAFETY: as for the output; the input is as long.
            let input = unsafe { self.input.add(offset) };
            // SAFETY: it was borrowed, so no thread writes it, and the output, which was borrowed mutably, lies elsewhere.
            PartBytes::Apart(unsafe { slice::from_raw_parts(input, len) }, output)
        };
        Part { index, offset, bytes, fate: &self.fates[index] }
    }
}

impl Part<'_> {
    /// What is to be worked on and where the result goes. In place, the part counts as spoilt from here on until it is
    /// [done](Self::done), also where its claimant panics: done again, bytes that are output already would come out wrong.
    #[inline]
    pub fn bytes(&mut self) -> PartBytes<'_> {
        match &mut self.bytes {
            PartBytes::InPlace(data) => {
                // Relaxed: the end of the claimant's work carries it to the owner.
                self.fate.store(SPOILT, Relaxed);
                PartBytes::InPlace(data)
            }
            PartBytes::Apart(input, output) => PartBytes::Apart(input, output),
        }
    }

    /// Says that the output stands where it belongs.
    pub fn done(self) {
        // Relaxed: as above.
        self.fate.store(DONE, Relaxed);
    }
}

/// Its input is what it was.
const OPEN: u32 = 0;
const DONE: u32 = 1;
/// Of no use: input in part, output in part.
const SPOILT: u32 = 2;
