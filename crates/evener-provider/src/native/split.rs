//! One large piece of a message by a kernel of ours, shared between the thread that brought it and threads that help it (`evener::split`).
//!
//! Path: [`Split::of`] (may it be split, and does that pay now?) -> who has the message says where each part starts, before anything is
//! overwritten -> [`Split::share`] gives the parts out -> [`Split::end`]: what it took is learned. Every thread reads the same key, takes no memory
//! and can fail at nothing, so that a part that was begun is done.

use std::slice;
use std::sync::atomic::Ordering::Relaxed;

use evener::split::{Call, Helpers, PartWorker, helper_pool};
use evener_core::counts::{Count, Row};
use evener_core::splits::RequestSize;
use evener_core::{Direction, Family};
use evener_ring::Parts;

use super::prov;
use crate::state::rows::{CipherRow, Native};

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
        let kind = kind(row.native.as_ref()?)?;
        if bytes < row.native_split_from() || !Self::fits(place) {
            return None;
        }
        let settings = &prov(row).settings;
        let size = RequestSize { kind, bytes };
        let call = helper_pool()?.begin(size, settings.threads, settings.split_threshold());
        let direction = if encrypts { Direction::Encrypt } else { Direction::Decrypt };
        Some(Self { call, row, direction, place })
    }

    /// Who may help, and how long parts are best; `None` where the piece is to be worked on whole.
    pub(super) fn part_bytes(&self) -> Option<usize> {
        let bytes = self.place.2;
        let part_bytes = self.call.helpers()?.part_bytes(bytes);
        (part_bytes < bytes).then_some(part_bytes)
    }

    /// Has every part done by `kernel`, which takes its number and its place; whether they are. The piece is input and output in part where not.
    ///
    /// # Safety
    /// The place is good for reading and writing; `kernel` writes as many bytes as the part has.
    pub(super) unsafe fn share(&self, part_bytes: usize, kernel: &PartKernel<'_>) -> bool {
        let Some(helpers) = self.call.helpers() else { return false };
        let (from, to, bytes) = self.place;
        // SAFETY: the caller's word.
        let output = unsafe { slice::from_raw_parts_mut(to, bytes) };
        let mut parts = if from.addr() == to.addr() {
            Parts::in_place(output, part_bytes)
        } else {
            // SAFETY: the caller's word, and apart from the output, as `of` has seen.
            Parts::apart(unsafe { slice::from_raw_parts(from, bytes) }, output, part_bytes)
        };
        let prov = prov(self.row);
        prov.counts.split.fetch_add(1, Relaxed);
        prov.statistics
            .into_iter()
            .for_each(|to| to.request(self.row.kind, self.direction, bytes, Count::Split));
        let worker = || Box::new(Worker { kernel }) as Box<dyn PartWorker + '_>;
        helpers.share(&mut parts, worker(), &|| Some(worker()))
    }

    /// Has it learned what the piece took.
    pub(super) fn end(self) {
        let counted = Row::of(self.row.kind, self.direction, self.place.2);
        let taken_back = self.call.helpers().map_or(0, Helpers::taken_back);
        let events = [(Count::TakenBack, taken_back), (Count::Locked, self.call.end().into())];
        let Some(statistics) = prov(self.row).statistics else { return };
        for (event, number) in events.into_iter().filter(|(_, number)| *number > 0) {
            statistics.add(counted, event, number.into());
        }
    }
}

/// The kind of work under which costs are learned, below [`evener::split::KINDS`]; as those of `cipher/split.rs`, for a process has either.
fn kind(native: &Native) -> Option<usize> {
    Some(match native.family {
        Family::Ecb => 0,
        Family::Cbc => 1,
        Family::Ctr => 2,
        Family::Xts => 3,
        Family::Gcm => 4,
        _ => return None,
    })
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
