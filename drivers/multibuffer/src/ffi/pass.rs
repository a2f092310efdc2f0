//! Many jobs in one call: slots are filled one by one, then all of them run.
//!
//! The library gets an address only inside [`Pass::run`], and has forgotten all of them when that returns, so
//! a pass that is dropped or leaked before it ran leaves nothing behind in the library.

use std::marker::PhantomData;
use std::ptr;

use evener_core::{Hash, TAG_BYTES_MAX};

use crate::ffi::keys::{AesKeys, HmacKeys, address};
use crate::ffi::layout::{BURST_JOBS_MAX, COMPLETED, ImbJob};
use crate::ffi::manager::{CHECKED, Manager};
use crate::ffi::span::{Input, Span};
use crate::ffi::work::Work;

/// The library refused a pass. What the outputs hold is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

/// Jobs of one kind that run together. Borrows keys, IVs and memory until it has run.
pub(crate) struct Pass<'p> {
    manager: &'p mut Manager,
    work: Work,
    /// Slots filled since the library was called last.
    count: usize,
    /// Whether the library has refused anything.
    refused: bool,
    /// [`Work::bytes_max`] and [`Work::partial_bits`], at hand for the check of each job.
    bytes_max: usize,
    partial_bits: usize,
    borrowed: PhantomData<(&'p [u8], &'p mut [u8])>,
}

impl<'p> Pass<'p> {
    pub(crate) fn new(manager: &'p mut Manager, work: Work) -> Self {
        manager.job_slots.prepare(work);
        let (bytes_max, partial_bits) = (work.bytes_max(), work.partial_bits());
        Self { manager, work, count: 0, refused: false, bytes_max, partial_bits, borrowed: PhantomData }
    }

    /// Longest job that it takes, in bytes.
    pub(crate) const fn lane_bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Adds a cipher job whose output replaces its input; it may run now or later. ECB looks at no IV.
    ///
    /// # Panics
    ///
    /// Where the length is not one that the library takes: a bug of this crate.
    #[inline]
    pub(crate) fn in_place(&mut self, keys: &'p AesKeys, iv: &'p [u8; 16], space: &'p mut [u8]) {
        let start = space.as_mut_ptr();
        self.cipher_at(keys, iv, start, start, space.len());
    }

    /// As [`Pass::in_place`], with the output at the start of `dst`.
    ///
    /// # Panics
    ///
    /// As [`Pass::in_place`], or where `dst` is shorter than `src`.
    #[inline]
    pub(crate) fn apart(&mut self, keys: &'p AesKeys, iv: &'p [u8; 16], src: &'p [u8], dst: &'p mut [u8]) {
        assert!(src.len() <= dst.len(), "output has space for the input");
        self.cipher_at(keys, iv, src.as_ptr(), dst.as_mut_ptr(), src.len());
    }

    /// As [`Pass::in_place`] or [`Pass::apart`].
    pub(crate) fn span(&mut self, keys: &'p AesKeys, iv: &'p [u8; 16], span: Span<'p>) {
        match span {
            Span::InPlace(space) => self.in_place(keys, iv, space),
            Span::Apart(src, dst) => self.apart(keys, iv, src, dst),
            shared @ Span::Shared(..) => {
                let (src, dst, bytes) = shared.addresses();
                self.cipher_at(keys, iv, src, dst, bytes);
            }
        }
    }

    #[inline]
    fn cipher_at(&mut self, keys: &'p AesKeys, iv: &'p [u8; 16], src: *const u8, dst: *mut u8, bytes: usize) {
        let fits = bytes > 0 && bytes <= self.bytes_max && bytes & self.partial_bits == 0;
        assert!(fits, "{bytes} bytes do not fit a lane");
        let slot = self.next_slot();
        slot.enc_keys = address(&keys.encrypt);
        slot.dec_keys = address(&keys.decrypt);
        slot.src = src;
        slot.dst = dst;
        slot.cipher_bytes = bytes as u64;
        slot.iv = iv.as_ptr();
    }

    /// Whether the library takes a message of that length to hash. It refuses HMAC of an empty one.
    pub(crate) const fn takes_hash(&self, bytes: usize) -> bool {
        bytes <= self.bytes_max && (bytes > 0 || matches!(self.work, Work::Digest(_)))
    }

    /// Adds a hash; `keys` belong to HMAC.
    ///
    /// # Panics
    ///
    /// As [`Pass::in_place`], or where keys are missing.
    pub(crate) fn hash(
        &mut self,
        keys: Option<&'p HmacKeys>,
        src: Input<'p>,
        tag: &'p mut [u8; TAG_BYTES_MAX],
    ) {
        let (src, bytes) = src.address();
        assert!(!self.work.is_cipher() && self.takes_hash(bytes), "{bytes} bytes do not fit");
        assert!(keys.is_some() || matches!(self.work, Work::Digest(_)), "HMAC has keys");
        let slot = self.next_slot();
        slot.inner = keys.map_or(ptr::null(), |keys| address(&keys.inner));
        slot.outer = keys.map_or(ptr::null(), |keys| address(&keys.outer));
        slot.src = src;
        slot.hash_bytes = bytes as u64;
        slot.tag = tag.as_mut_ptr();
    }

    /// Runs what has not run yet.
    ///
    /// # Errors
    ///
    /// [`Refused`] where the library refused any job of the pass.
    pub(crate) fn finish(mut self) -> Result<(), Refused> {
        self.run();
        if self.refused { Err(Refused) } else { Ok(()) }
    }

    /// A free slot; runs the others first where there is none.
    #[inline]
    fn next_slot(&mut self) -> &mut ImbJob {
        if self.count == BURST_JOBS_MAX {
            self.run();
        }
        let place = self.count;
        self.count += 1;
        self.manager.job_slots.slot(place)
    }

    fn run(&mut self) {
        if self.count == 0 {
            return;
        }
        let completed = match self.work {
            Work::CbcEncrypt(_) | Work::CbcDecrypt(_) | Work::Ctr(_) => self.run_ciphers(),
            Work::Hmac(Hash::Sha1 | Hash::Sha256) => self.run_hashes(),
            Work::EcbEncrypt(_) | Work::EcbDecrypt(_) | Work::Digest(_) | Work::Hmac(_) => self.run_queue(),
        };
        if completed != self.count {
            self.refused = true;
            self.manager.restart();
        }
        self.count = 0;
    }

    fn run_ciphers(&self) -> usize {
        let (cipher, direction, key_bytes) = self.work.cipher();
        let burst = self.manager.table.cipher_burst.expect(CHECKED);
        let (manager, jobs, count) =
            (self.manager.address(), self.manager.job_slots.first(), self.count_u32());
        // SAFETY: the first `count` slots were filled for this work; what they point to is borrowed for 'p, and
        // their lengths were checked against the library's limits. Bytes of shared memory that change meanwhile are bytes: the library takes
        // none of them for an address or a length, and each lane writes to its own output only.
        unsafe { burst(manager, jobs, count, cipher, direction, key_bytes) as usize }
    }

    fn run_hashes(&self) -> usize {
        let burst = self.manager.table.hash_burst.expect(CHECKED);
        let (manager, jobs, count) =
            (self.manager.address(), self.manager.job_slots.first(), self.count_u32());
        // SAFETY: as in `run_ciphers`.
        unsafe { burst(manager, jobs, count, self.work.hash().0) as usize }
    }

    /// For what has no synchronous burst in every release: the library's own queue, filled and emptied.
    fn run_queue(&self) -> usize {
        let (next, submit) =
            (self.manager.table.next_job.expect(CHECKED), self.manager.table.submit_job.expect(CHECKED));
        let flush = self.manager.table.flush_job.expect(CHECKED);
        let manager = self.manager.address();
        let mut completed = 0;
        for place in 0..self.count {
            // SAFETY: the manager is set up and its queue, twice as long as a pass, has a free slot.
            let slot = unsafe { next(manager) };
            // SAFETY: the slot is the library's, free, and at least as long as our part of a job.
            unsafe { slot.write(self.manager.job_slots.read(place)) };
            // SAFETY: the slot was filled, as in `run_ciphers`.
            completed += is_completed(unsafe { submit(manager) });
        }
        loop {
            // SAFETY: the manager is set up.
            let job = unsafe { flush(manager) };
            if job.is_null() {
                return completed;
            }
            completed += is_completed(job);
        }
    }

    fn count_u32(&self) -> u32 {
        u32::try_from(self.count).expect("a pass has at most 128 jobs")
    }
}

/// 1 where the queue gave back a job that went well.
fn is_completed(job: *const ImbJob) -> usize {
    // SAFETY: null, or a job in the library's queue that stays there until the next call.
    let job = unsafe { job.as_ref() };
    usize::from(job.is_some_and(|job| job.status == COMPLETED))
}
