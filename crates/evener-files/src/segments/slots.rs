//! The memory of a run: one allocation, page aligned, cut into slots that are jobs; used again and again.
//!
//! A slot holds one segment in either form. First touch of fresh pages costs as much as encrypting them, and
//! threads stay with their slots, so nothing here is ever given back before the end.

use evener_core::Job;

use crate::request::{Request, RequestError};

const PAGE_BYTES: usize = 4_096;

/// Bytes that one thread reads in one go. A core's second-level cache holds it while it is worked on.
pub(crate) const SPAN_BYTES: usize = 1 << 20;

/// Most segments in one system call: `UIO_MAXIOV` is 1024, and a header and tags want entries too.
const SLOTS_MAX: usize = 256;

/// Least slots per thread, so that small files are worked on by the burst.
const SLOTS_MIN: usize = 32;

/// How a run's memory is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Bytes of one slot that a segment may use.
    pub(crate) slot_bytes: usize,
    /// From one slot to the next.
    stride: usize,
    /// Slots of each thread.
    pub(crate) slots: usize,
    threads: usize,
}

/// The limit is below what a run needs at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLittle {
    pub(crate) needed_bytes: u64,
}

impl Plan {
    /// Cuts for `threads` threads and segments of at most `slot_bytes`, within `memory_bytes`.
    pub(crate) fn new(slot_bytes: u64, threads: usize, memory_bytes: u64) -> Result<Self, TooLittle> {
        let least = |bytes: u64| TooLittle { needed_bytes: bytes.saturating_mul(threads as u64) };
        let slot_bytes = usize::try_from(slot_bytes).map_err(|_| least(slot_bytes))?;
        let stride = stride(slot_bytes);
        let affordable = usize::try_from(memory_bytes).unwrap_or(usize::MAX) / threads / stride;
        let wanted = SPAN_BYTES.div_ceil(slot_bytes).clamp(SLOTS_MIN, SLOTS_MAX);
        let slots = wanted.min(affordable);
        if slots == 0 { Err(least(stride as u64)) } else { Ok(Self { slot_bytes, stride, slots, threads }) }
    }

    /// Slots that hold about [`SPAN_BYTES`] together.
    pub(crate) fn slots_per_span(&self) -> usize {
        (SPAN_BYTES / self.slot_bytes).clamp(1, self.slots)
    }

    /// The memory itself; pages are touched only when they are used.
    fn allocate(&self) -> Vec<u8> {
        vec![0; self.bytes()]
    }

    const fn bytes(&self) -> usize {
        self.threads * self.slots * self.stride + PAGE_BYTES
    }

    /// Idle jobs over `memory`, one vector per thread.
    pub(crate) fn cut<'m>(&self, memory: &'m mut [u8]) -> Vec<Vec<Box<Job<'m>>>> {
        let start = memory.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        let mut slots = memory[start..]
            .chunks_exact_mut(self.stride)
            .map(|slot| Job::in_place(&mut slot[..self.slot_bytes]));
        (0..self.threads).map(|_| slots.by_ref().take(self.slots).collect()).collect()
    }
}

/// Distance between slots. Short ones lie side by side; long ones an odd number of pages apart, so that the
/// same place in many slots does not fall on the same sets of a cache.
fn stride(slot_bytes: usize) -> usize {
    if slot_bytes < 16 * PAGE_BYTES {
        return slot_bytes.next_multiple_of(64);
    }
    let pages = slot_bytes.div_ceil(PAGE_BYTES);
    (pages | 1) * PAGE_BYTES
}

/// Takes the memory of a run and cuts it; where the system has not so much (`ulimit -v`), less of it.
pub(crate) fn plan_slots(request: &Request, threads: usize) -> Result<(Plan, Vec<u8>), RequestError> {
    let mut memory_bytes = request.options.memory_bytes;
    let mut plan = None;
    loop {
        match (Plan::new(request.task.slot_bytes(), threads, memory_bytes), plan) {
            (Ok(next), _) if can_be_had(next.bytes()) => return Ok((next, next.allocate())),
            (Ok(next), _) => plan = Some(next),
            // The least that would do.
            (Err(_), Some(plan)) => return Err(RequestError::NoMemory { needed_bytes: plan.bytes() as u64 }),
            (Err(TooLittle { needed_bytes }), None) => return Err(RequestError::Memory { needed_bytes }),
        }
        memory_bytes /= 2;
    }
}

/// Whether the system has so much memory, and some for all else. Asked first, for a program that is refused what it takes ends.
fn can_be_had(bytes: usize) -> bool {
    Vec::<u8>::new().try_reserve_exact(bytes.saturating_add(REST_BYTES)).is_ok()
}

/// Memory of a run besides its slots: stacks and tables. Assumed, not measured: 16 MiB.
const REST_BYTES: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_stay_within_the_memory_that_was_given() {
        for slot_bytes in [41, 4_096, 65_552, 1 << 20, (1 << 20) + 16, 8 << 20] {
            for threads in [1, 2, 64] {
                let Ok(plan) = Plan::new(slot_bytes, threads, 192 << 20) else {
                    assert!(slot_bytes * threads as u64 > 128 << 20, "{slot_bytes} x {threads} fit");
                    continue;
                };
                assert!((plan.stride * plan.slots * threads) as u64 <= 192 << 20, "{plan:?}");
                assert!(plan.stride as u64 >= slot_bytes && plan.slots_per_span() <= plan.slots);
            }
        }
        assert!(Plan::new(64 << 20, 4, 192 << 20).is_err());
    }

    #[test]
    fn every_thread_gets_its_slots() {
        let plan = Plan::new(5_000, 3, 1 << 20).unwrap();
        let mut memory = plan.allocate();
        let slots = plan.cut(&mut memory);
        assert_eq!(slots.iter().map(Vec::len).collect::<Vec<_>>(), [plan.slots; 3]);
    }
}
