//! CBC encryption: serial inside a job, so jobs go side by side, one per SIMD lane.
//!
//! Jobs of about one length that fit a lane run in one pass. Otherwise each job becomes a stream of slices:
//! the longest first, one slice of every active stream per pass, and a finished one makes space at once,
//! so that lanes stay filled and no lane gets more bytes than the library counts.

use std::ops::DerefMut;

use evener_core::{BLOCK_BYTES, Job};

use super::Multibuffer;
use super::padding_blocks::Chain;
use super::padding_in_place::iv_and_front;
use super::survey::Survey;
use crate::ffi::{AesKeys, BURST_JOBS_MAX, KeySize, LANE_BYTES_MAX, Pass, Refused, Span, Work};

/// Longest slice in bytes: all that a lane takes in whole blocks. Shorter ones (8, 16, 32 KiB were tried) stay in
/// the second-level cache and are up to a quarter slower all the same, for each pass ends with lanes running dry.
const SLICE_BYTES_MAX: usize = LANE_BYTES_MAX / BLOCK_BYTES * BLOCK_BYTES;

/// Bytes in one pass of slices, about: 32 full ones, two fills of 16 lanes. Twice as many were slower.
const PASS_BYTES: usize = 32 * SLICE_BYTES_MAX;

impl Multibuffer {
    /// Encrypts jobs that were surveyed.
    pub(crate) fn encrypt_cbc<'m, J>(&mut self, size: KeySize, jobs: &mut [J])
    where
        J: DerefMut<Target = Job<'m>>,
    {
        let result = match is_even(&self.survey) {
            true => self.run_even(size, jobs),
            false => self.run_streams(size, jobs),
        };
        let result = result.and_then(|()| self.run_tails(Chain::Chained, size, jobs));
        self.finish_group(jobs, result);
    }

    /// One lane per job.
    fn run_even<'m, J>(&mut self, size: KeySize, jobs: &mut [J]) -> Result<(), Refused>
    where
        J: DerefMut<Target = Job<'m>>,
    {
        let keys = self.aes.held();
        let mut pass = Pass::new(&mut self.manager, Work::CbcEncrypt(size));
        for (job, need) in jobs.iter_mut().zip(&self.survey.needs).filter(|(_, need)| need.bytes > 0) {
            match iv_and_front(job, need.bytes) {
                (_, Span::InPlace([]) | Span::Apart([], _) | Span::Shared([], _)) => {}
                (iv, front) => pass.span(&keys[need.keys], iv, front),
            }
        }
        pass.finish()
    }

    /// Slices of many jobs side by side.
    fn run_streams<'m, J>(&mut self, size: KeySize, jobs: &mut [J]) -> Result<(), Refused>
    where
        J: DerefMut<Target = Job<'m>>,
    {
        let keys = self.aes.held();
        let busy = jobs.iter_mut().zip(&self.survey.needs).filter(|(_, need)| need.bytes > 0);
        let mut waiting: Vec<Stream<'_>> =
            busy.filter_map(|(job, need)| Stream::new(&keys[need.keys], job, need.bytes)).collect();
        // The longest last, where `pop` takes it.
        waiting.sort_by_key(|stream| stream.rest.len());
        let mut active = Vec::new();
        loop {
            refill(&mut active, &mut waiting);
            if active.is_empty() {
                return Ok(());
            }
            let mut pass = Pass::new(&mut self.manager, Work::CbcEncrypt(size));
            active.iter_mut().for_each(|stream| stream.add_to(&mut pass));
            pass.finish()?;
            active.retain_mut(Stream::advance);
        }
    }
}

/// Whether all jobs fit a lane, none more than twice as long as another: then slices and sorting gain nothing.
const fn is_even(survey: &Survey) -> bool {
    survey.longest <= LANE_BYTES_MAX && survey.longest / 2 <= survey.shortest
}

/// A job that goes slice by slice.
struct Stream<'b> {
    keys: &'b AesKeys,
    iv: [u8; BLOCK_BYTES],
    /// What has not gone yet.
    rest: Span<'b>,
    /// Bytes per slice: as even as whole blocks allow, so that the last one is not a stub.
    slice_bytes: usize,
}

impl<'b> Stream<'b> {
    /// The front of a job, if there is one.
    fn new(keys: &'b AesKeys, job: &'b mut Job<'_>, bytes: usize) -> Option<Self> {
        let (iv, rest) = iv_and_front(job, bytes);
        if rest.is_empty() {
            return None;
        }
        let slices = rest.len().div_ceil(SLICE_BYTES_MAX);
        let slice_bytes = rest.len().div_ceil(slices).next_multiple_of(BLOCK_BYTES);
        Some(Self { keys, iv: *iv, rest, slice_bytes })
    }

    /// Bytes of the next slice.
    fn next_bytes(&self) -> usize {
        self.slice_bytes.min(self.rest.len())
    }

    fn add_to<'p>(&'p mut self, pass: &mut Pass<'p>) {
        let (slice, _) = self.rest.reborrow().split_at(self.slice_bytes);
        pass.span(self.keys, &self.iv, slice);
    }

    /// Goes on to the next slice; false where there is none.
    fn advance(&mut self) -> bool {
        let rest = std::mem::replace(&mut self.rest, Span::InPlace(&mut []));
        let (slice, rest) = rest.split_at(self.slice_bytes);
        self.iv = slice.last_block();
        self.rest = rest;
        !self.rest.is_empty()
    }
}

/// Takes waiting streams until a pass is full.
fn refill<'b>(active: &mut Vec<Stream<'b>>, waiting: &mut Vec<Stream<'b>>) {
    let mut bytes: usize = active.iter().map(Stream::next_bytes).sum();
    while active.len() < BURST_JOBS_MAX && bytes < PASS_BYTES {
        let Some(stream) = waiting.pop() else { return };
        bytes += stream.next_bytes();
        active.push(stream);
    }
}
