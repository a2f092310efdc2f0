//! One large piece of a message by a kernel of ours, shared between the thread that brought it and threads that help it (`evener::split`).
//!
//! Path: [`Split::of`] (may it be split, and does that pay now?) -> who has the message says where each part starts, before anything is
//! overwritten -> [`Cut::share`] gives the parts out -> [`Split::end`]: what it took is learned. Every thread reads the same key, takes no
//! memory of libcrypto's and can fail at nothing, so that a part that was begun is done.

use std::slice;
use std::sync::atomic::Ordering::Relaxed;

use evener::split::{Call, Helpers, PartWorker, helper_pool};
use evener_core::Direction;
use evener_core::counts::Count;
use evener_core::splits::RequestSize;
use evener_kernels::clear_registers;
use evener_ring::Parts;

use super::kernel_check::direction;
use super::prov;
use crate::cipher::split::{hands, kind, without_stolen_end};
use crate::counters;
use crate::state::rows::CipherRow;

/// Where input lies, where output is to lie, and so many bytes of both.
pub(super) type Place = (*const u8, *mut u8, usize);

/// A piece that may be split.
pub(super) struct Split<'p> {
    call: Call,
    row: &'p CipherRow,
    direction: Direction,
    place: Place,
}

/// What does one part, given its number and its place.
type PartKernel<'w> = dyn Fn(usize, Place) + Sync + 'w;

impl<'p> Split<'p> {
    /// Whether input and output lie so that any part may be worked on before any other.
    pub(super) fn fits((from, to, bytes): Place) -> bool {
        from.addr() == to.addr() || from.addr().abs_diff(to.addr()) >= bytes
    }

    /// A piece of a message of `row`; `None` where it is too short, or lies in no way in which it could be cut.
    pub(super) fn of(row: &'p CipherRow, encrypts: bool, place: Place) -> Option<Self> {
        let bytes = place.2;
        let kind = kind(row.native.as_ref()?.family)?;
        if bytes < row.native_split_from() || !Self::fits(place) {
            return None;
        }
        let settings = &prov(row).settings;
        let size = RequestSize { kind, bytes };
        // The first call starts threads, by functions of libc that the dynamic linker looks up.
        clear_registers();
        let call = helper_pool()?.begin(size, settings.threads, settings.split_threshold());
        Some(Self { call, row, direction: direction(encrypts), place })
    }

    /// How it is cut; `None` where it is to be worked on whole.
    pub(super) fn cut(&self) -> Option<Cut<'_>> {
        let (helpers, bytes) = (self.call.helpers()?, self.place.2);
        let part_bytes = without_stolen_end(bytes, helpers.part_bytes(bytes));
        (part_bytes < bytes).then_some(Cut { split: self, helpers, part_bytes })
    }

    /// Has it learned what the piece took.
    pub(super) fn end(self) {
        let statistics = prov(self.row).statistics;
        let count = |event| {
            counters::count_event(statistics, self.row.kind, self.direction, self.place.2, event);
        };
        count((Count::TakenBack, self.call.helpers().map_or(0, Helpers::taken_back)));
        count((Count::Locked, self.call.end().into()));
    }
}

/// A piece that is split.
pub(super) struct Cut<'s> {
    split: &'s Split<'s>,
    helpers: &'s Helpers,
    /// Of every part but the last.
    pub(super) part_bytes: usize,
}

impl Cut<'_> {
    /// Has every part done by `kernel`, which takes its number and its place; whether they are. The piece is input and output in part where not.
    ///
    /// # Safety
    /// The place is good for reading and writing; `kernel` writes as many bytes as the part has.
    pub(super) unsafe fn share(&self, kernel: &PartKernel<'_>) -> bool {
        let Split { row, direction, place: (from, to, bytes), .. } = *self.split;
        // SAFETY: the caller's word.
        let output = unsafe { slice::from_raw_parts_mut(to, bytes) };
        let mut parts = if from.addr() == to.addr() {
            Parts::in_place(output, self.part_bytes)
        } else {
            // SAFETY: the caller's word, and apart from the output, as `of` has seen.
            Parts::apart(unsafe { slice::from_raw_parts(from, bytes) }, output, self.part_bytes)
        };
        let prov = prov(row);
        prov.counts.split.fetch_add(1, Relaxed);
        counters::count_request(prov.statistics, row.kind, direction, bytes, Count::Split);
        let others = hands(self.helpers.count(), || Some(Worker { kernel }));
        self.helpers.share(&mut parts, Worker { kernel }, &others)
    }
}

struct Worker<'w> {
    kernel: &'w PartKernel<'w>,
}

impl PartWorker for Worker<'_> {
    fn begin(&mut self, _: usize) -> bool {
        true
    }

    fn out_of_place(&mut self, index: usize, input: &[u8], output: &mut [u8]) -> bool {
        (self.kernel)(index, (input.as_ptr(), output.as_mut_ptr(), input.len()));
        true
    }

    fn in_place(&mut self, index: usize, data: &mut [u8]) -> bool {
        let place = data.as_mut_ptr();
        (self.kernel)(index, (place.cast_const(), place, data.len()));
        true
    }
}
