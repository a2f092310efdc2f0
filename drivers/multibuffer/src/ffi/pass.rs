//! Many jobs in one call: slots are filled one by one, then all of them run.
//!
//! The library gets an address only inside [`Pass::run`], and has forgotten all of them when that returns, so
//! a pass that is dropped or leaked before it ran leaves nothing behind in the library.

use std::marker::PhantomData;
use std::ptr;

use evener_core::{BLOCK_BYTES, Hash, TAG_BYTES_MAX};

use crate::ffi::keys::{AesKeys, HmacKeys, KeySize, address};
use crate::ffi::layout::{BURST_JOBS_MAX, COMPLETED, ImbJob, LANE_BYTES_MAX, cipher, direction, hash, order};
use crate::ffi::manager::{CHECKED, Manager};
use crate::ffi::memory::Memory;

/// What all jobs of a pass do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    CbcEncrypt(KeySize),
    CbcDecrypt(KeySize),
    Ctr(KeySize),
    EcbEncrypt(KeySize),
    EcbDecrypt(KeySize),
    Digest(Hash),
    Hmac(Hash),
}

impl Work {
    /// Longest job in bytes. The library counts the bytes of a lane in 16 bits.
    const fn bytes_max(self) -> usize {
        match self {
            Self::CbcDecrypt(_) | Self::Ctr(_) => usize::MAX,
            Self::CbcEncrypt(_) | Self::EcbEncrypt(_) | Self::EcbDecrypt(_) => {
                LANE_BYTES_MAX / BLOCK_BYTES * BLOCK_BYTES
            }
            Self::Digest(_) | Self::Hmac(_) => LANE_BYTES_MAX,
        }
    }

    /// Whether the library takes a job of that length.
    pub(crate) const fn takes(self, bytes: usize) -> bool {
        let whole = match self {
            Self::Ctr(_) | Self::Hmac(_) => bytes > 0,
            Self::Digest(_) => true,
            _ => bytes > 0 && bytes % BLOCK_BYTES == 0,
        };
        whole && bytes <= self.bytes_max()
    }

    const fn is_cipher(self) -> bool {
        !matches!(self, Self::Digest(_) | Self::Hmac(_))
    }

    /// Cipher, direction and key length, as the library numbers them.
    pub(super) const fn cipher(self) -> (u32, u32, u32) {
        match self {
            Self::CbcEncrypt(size) => (cipher::CBC, direction::ENCRYPT, size.bytes()),
            Self::CbcDecrypt(size) => (cipher::CBC, direction::DECRYPT, size.bytes()),
            Self::Ctr(size) => (cipher::CTR, direction::ENCRYPT, size.bytes()),
            Self::EcbEncrypt(size) => (cipher::ECB, direction::ENCRYPT, size.bytes()),
            Self::EcbDecrypt(size) => (cipher::ECB, direction::DECRYPT, size.bytes()),
            Self::Digest(_) | Self::Hmac(_) => (cipher::NULL, direction::ENCRYPT, 0),
        }
    }

    /// Hash, as the library numbers it, and length of its tag.
    const fn hash(self) -> (u32, usize) {
        match self {
            Self::Digest(Hash::Sha1) => (hash::SHA1, 20),
            Self::Digest(_) => (hash::SHA256, 32),
            Self::Hmac(Hash::Sha1) => (hash::HMAC_SHA1, 20),
            Self::Hmac(Hash::Sha256) => (hash::HMAC_SHA256, 32),
            Self::Hmac(Hash::Md5) => (hash::HMAC_MD5, 16),
            _ => (hash::NULL, 0),
        }
    }

    /// A slot with everything in it that is the same for all jobs.
    fn template(self) -> ImbJob {
        let (cipher_mode, cipher_direction, key_bytes) = self.cipher();
        let (hash_algorithm, tag_bytes) = self.hash();
        let has_iv = matches!(self, Self::CbcEncrypt(_) | Self::CbcDecrypt(_) | Self::Ctr(_));
        ImbJob {
            key_bytes: u64::from(key_bytes),
            iv_bytes: if has_iv { BLOCK_BYTES as u64 } else { 0 },
            tag_bytes: tag_bytes as u64,
            cipher_mode,
            cipher_direction,
            hash_algorithm,
            chain_order: if self.is_cipher() { order::CIPHER_HASH } else { order::HASH_CIPHER },
            ..ImbJob::EMPTY
        }
    }
}

/// The memory of one cipher job.
pub(crate) enum Span<'p> {
    /// Output replaces input.
    InPlace(&'p mut [u8]),
    /// Input, and output of at least the same length.
    Apart(&'p [u8], &'p mut [u8]),
}

impl<'p> Span<'p> {
    /// Length of the input in bytes.
    pub(crate) const fn len(&self) -> usize {
        match self {
            Self::InPlace(room) => room.len(),
            Self::Apart(src, _) => src.len(),
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Both sides of `bytes`, or all of it and an empty one.
    pub(crate) fn split_at(self, bytes: usize) -> (Self, Self) {
        let bytes = bytes.min(self.len());
        match self {
            Self::InPlace(room) => {
                let (front, rest) = room.split_at_mut(bytes);
                (Self::InPlace(front), Self::InPlace(rest))
            }
            Self::Apart(src, dst) => {
                let ((front, rest), (to_front, to_rest)) = (src.split_at(bytes), dst.split_at_mut(bytes));
                (Self::Apart(front, to_front), Self::Apart(rest, to_rest))
            }
        }
    }

    /// Pieces of at most `bytes`.
    pub(crate) fn cut(self, bytes: usize) -> impl Iterator<Item = Self> {
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let (front, after) = rest.take().filter(|rest| !rest.is_empty())?.split_at(bytes);
            rest = Some(after);
            Some(front)
        })
    }

    /// The last bytes of the output, a block of them.
    pub(crate) fn last_block(&self) -> &[u8] {
        let output = match self {
            Self::InPlace(room) => &**room,
            Self::Apart(src, dst) => &dst[..src.len()],
        };
        &output[output.len() - BLOCK_BYTES..]
    }

    /// The same span for a shorter time.
    pub(crate) const fn reborrow(&mut self) -> Span<'_> {
        match self {
            Self::InPlace(room) => Span::InPlace(room),
            Self::Apart(src, dst) => Span::Apart(src, dst),
        }
    }

    /// Input, output, length.
    pub(super) fn addresses(self) -> (*const u8, *mut u8, usize) {
        match self {
            Self::InPlace(room) => {
                let start = room.as_mut_ptr();
                (start.cast_const(), start, room.len())
            }
            Self::Apart(src, dst) => {
                assert!(src.len() <= dst.len(), "output has room for the input");
                (src.as_ptr(), dst.as_mut_ptr(), src.len())
            }
        }
    }
}

/// The library refused a pass. What the outputs hold is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

/// The slots that passes fill, kept between passes.
pub(super) struct Lanes {
    slots: Memory,
    stride: usize,
    /// The first slots hold the template of this work.
    work: Option<Work>,
    /// How many do.
    templated: usize,
}

impl Lanes {
    /// Slots for the largest pass, each of `stride` bytes.
    pub(super) fn new(stride: usize) -> Self {
        assert!(stride >= size_of::<ImbJob>() && stride % align_of::<ImbJob>() == 0, "a known release");
        Self { slots: Memory::zeroed(BURST_JOBS_MAX * stride), stride, work: None, templated: 0 }
    }

    /// Slot number `place`, ready but for what is of this job.
    pub(super) fn slot(&mut self, place: usize, work: Work) -> &mut ImbJob {
        assert!(place < BURST_JOBS_MAX, "a pass has at most {BURST_JOBS_MAX} jobs");
        // SAFETY: below the assertion's limit the slot lies within the memory.
        let slot: *mut ImbJob = unsafe { self.slots.start().add(place * self.stride) }.as_ptr().cast();
        // SAFETY: zeroed memory, aligned to 64 with a stride that is a multiple of 8; no other reference exists.
        let job = unsafe { &mut *slot };
        if self.work != Some(work) {
            (self.work, self.templated) = (Some(work), 0);
        }
        if place >= self.templated {
            *job = work.template();
            self.templated = place + 1;
        }
        job
    }

    pub(super) const fn first(&self) -> *mut ImbJob {
        self.slots.start().as_ptr().cast()
    }

    /// A copy of slot number `place`, which was filled.
    fn read(&self, place: usize) -> ImbJob {
        assert!(place < BURST_JOBS_MAX, "a pass has at most {BURST_JOBS_MAX} jobs");
        // SAFETY: as in `slot`.
        let slot: *const ImbJob = unsafe { self.slots.start().add(place * self.stride) }.as_ptr().cast();
        // SAFETY: zeroed memory, aligned; any bits are a valid job.
        unsafe { slot.read() }
    }
}

/// Jobs of one kind that run together. Borrows keys, IVs and memory until it has run.
pub(crate) struct Pass<'p> {
    manager: &'p mut Manager,
    work: Work,
    /// Slots filled since the library was called last.
    count: usize,
    /// Whether the library has refused anything.
    refused: bool,
    borrowed: PhantomData<(&'p [u8], &'p mut [u8])>,
}

impl<'p> Pass<'p> {
    pub(crate) const fn new(manager: &'p mut Manager, work: Work) -> Self {
        Self { manager, work, count: 0, refused: false, borrowed: PhantomData }
    }

    /// Longest job that it takes, in bytes.
    pub(crate) const fn lane_bytes_max(&self) -> usize {
        self.work.bytes_max()
    }

    /// Adds a cipher job, which may run now or later; ECB looks at no IV.
    ///
    /// # Panics
    ///
    /// Where the length is not one that the library takes: a bug of this crate.
    pub(crate) fn cipher(&mut self, keys: &'p AesKeys, iv: &'p [u8; 16], span: Span<'p>) {
        let (src, dst, bytes) = span.addresses();
        assert!(self.work.is_cipher() && self.work.takes(bytes), "{bytes} bytes of {:?}", self.work);
        let slot = self.next_slot();
        slot.enc_keys = address(&keys.encrypt);
        slot.dec_keys = address(&keys.decrypt);
        slot.src = src;
        slot.dst = dst;
        slot.cipher_bytes = bytes as u64;
        slot.iv = iv.as_ptr();
    }

    /// Adds a hash; `keys` belong to HMAC.
    ///
    /// # Panics
    ///
    /// As [`Pass::cipher`], or where keys are missing.
    pub(crate) fn hash(
        &mut self,
        keys: Option<&'p HmacKeys>,
        src: &'p [u8],
        tag: &'p mut [u8; TAG_BYTES_MAX],
    ) {
        assert!(
            !self.work.is_cipher() && self.work.takes(src.len()),
            "{} bytes of {:?}",
            src.len(),
            self.work
        );
        assert!(keys.is_some() || matches!(self.work, Work::Digest(_)), "HMAC has keys");
        let slot = self.next_slot();
        slot.inner = keys.map_or(ptr::null(), |keys| address(&keys.inner));
        slot.outer = keys.map_or(ptr::null(), |keys| address(&keys.outer));
        slot.src = src.as_ptr();
        slot.hash_bytes = src.len() as u64;
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
    fn next_slot(&mut self) -> &mut ImbJob {
        if self.count == BURST_JOBS_MAX {
            self.run();
        }
        self.count += 1;
        self.manager.lanes.slot(self.count - 1, self.work)
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
        let (manager, jobs, count) = (self.manager.address(), self.manager.lanes.first(), self.count_u32());
        // SAFETY: the first `count` slots were filled for this work; what they point to is borrowed for 'p, and
        // their lengths were checked against the library's limits.
        unsafe { burst(manager, jobs, count, cipher, direction, key_bytes) as usize }
    }

    fn run_hashes(&self) -> usize {
        let burst = self.manager.table.hash_burst.expect(CHECKED);
        let (manager, jobs, count) = (self.manager.address(), self.manager.lanes.first(), self.count_u32());
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
            unsafe { slot.write(self.manager.lanes.read(place)) };
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
