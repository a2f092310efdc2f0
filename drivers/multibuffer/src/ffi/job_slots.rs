//! The array of job structures that passes fill: the library reads it as `IMB_JOB[]`.

use crate::Unavailable;
use crate::ffi::keys::KeySize;
use crate::ffi::layout::{BURST_JOBS_MAX, ImbJob};
use crate::ffi::memory::Memory;
use crate::ffi::work::Work;

/// The slots that passes fill, kept between passes.
pub(super) struct JobSlots {
    slots: Memory,
    stride: usize,
    /// What the slots were prepared for.
    work: Work,
    /// How many slots, from the first on, hold what all jobs of that work have in common.
    templated: usize,
}

impl JobSlots {
    /// Slots for the largest pass, each of `stride` bytes.
    pub(super) fn new(stride: usize) -> Result<Self, Unavailable> {
        assert!(stride >= size_of::<ImbJob>() && stride % align_of::<ImbJob>() == 0, "a known release");
        let slots = Memory::zeroed(BURST_JOBS_MAX * stride)?;
        Ok(Self { slots, stride, work: Work::CbcEncrypt(KeySize::Bits128), templated: 0 })
    }

    /// Makes the slots belong to `work`.
    pub(super) fn prepare(&mut self, work: Work) {
        if self.work != work {
            (self.work, self.templated) = (work, 0);
        }
    }

    /// Slot number `place`, counted again from the first after the last, ready but for what is of its job.
    #[inline]
    pub(super) fn slot(&mut self, place: usize) -> &mut ImbJob {
        let job = self.address(place);
        // SAFETY: zeroed memory, aligned to 64 with a stride that is a multiple of 8; no other reference exists.
        let job = unsafe { &mut *job };
        if place >= self.templated {
            *job = self.work.template();
            self.templated = place + 1;
        }
        job
    }

    #[inline]
    const fn address(&self, place: usize) -> *mut ImbJob {
        let offset = place % BURST_JOBS_MAX * self.stride;
        // SAFETY: a slot below the number of slots lies within the memory.
        unsafe { self.slots.start().add(offset) }.cast().as_ptr()
    }

    pub(super) const fn first(&self) -> *mut ImbJob {
        self.slots.start().as_ptr().cast()
    }

    /// A copy of slot number `place`, which was filled.
    pub(super) fn read(&self, place: usize) -> ImbJob {
        // SAFETY: zeroed memory, aligned; any bits are a valid job.
        unsafe { self.address(place).read() }
    }
}
