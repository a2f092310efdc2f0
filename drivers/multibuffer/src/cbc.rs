//! CBC encryption: serial inside a job, so jobs go side by side, one per SIMD lane.
//!
//! Jobs of about one length that fit a lane run in one pass. Otherwise each job becomes a stream of slices:
//! the longest first, one slice of every active stream per pass, and whoever is finished makes room at once,
//! so that lanes stay filled and no lane gets more bytes than the library counts.

use std::ops::DerefMut;

use evener_core::{BLOCK_BYTES, Job};

use crate::Multibuffer;
use crate::blocks::{Need, end, work_of};
use crate::ffi::{AesKeys, BURST_JOBS_MAX, Manager, Pass, Refused, Span, Work};
use crate::keyring::Keyring;
use crate::ready::Ready;

/// Longest slice in bytes. Small enough that the slices of all lanes stay in a core's second-level cache.
const SLICE_BYTES_MAX: usize = 16 * 1024;

/// Bytes in one pass of slices, about: 32 full slices.
const PASS_BYTES: usize = 32 * SLICE_BYTES_MAX;

impl Multibuffer {
    /// Encrypts jobs of one key length.
    pub(crate) fn encrypt_cbc<'m, J>(&mut self, jobs: &mut [J])
    where
        J: DerefMut<Target = Job<'m>>,
    {
        let Some(work) = jobs.first().map(|job| work_of(job)) else { return };
        self.survey(jobs);
        let result = match is_even(&self.needs) {
            true => run_even(&mut self.manager, work, &self.aes, jobs, &self.needs),
            false => run_streams(&mut self.manager, work, &self.aes, jobs, &self.needs),
        };
        for (job, need) in jobs.iter_mut().zip(&self.needs).filter(|(_, need)| need.bytes > 0) {
            end(job, need.bytes, result);
        }
        self.aes.release();
    }
}

/// Whether all jobs fit a slice, none more than twice as long as another: then sorting gains nothing.
fn is_even(needs: &[Need]) -> bool {
    let lengths = || needs.iter().map(|need| need.bytes).filter(|&bytes| bytes > 0);
    let (longest, shortest) = (lengths().max().unwrap_or(0), lengths().min().unwrap_or(0));
    longest <= SLICE_BYTES_MAX && longest <= 2 * shortest
}

/// One lane per job, then one for each padded end that lies apart.
fn run_even<'m, J>(
    manager: &mut Manager,
    work: Work,
    keys: &Keyring<AesKeys>,
    jobs: &mut [J],
    needs: &[Need],
) -> Result<(), Refused>
where
    J: DerefMut<Target = Job<'m>>,
{
    let mut tails = false;
    let mut pass = Pass::new(manager, work);
    for (job, need) in jobs.iter_mut().zip(needs).filter(|(_, need)| need.bytes > 0) {
        let parts = job.parts();
        let ready = Ready::new(parts.memory, need.bytes);
        pass.cipher(&keys.held()[need.keys], parts.iv, ready.front);
        tails |= ready.tail.is_some();
    }
    pass.finish()?;
    match tails {
        true => run_tails(manager, work, keys, jobs, needs),
        false => Ok(()),
    }
}

/// The last block of each job whose padded end [`Ready`] has laid into the output.
fn run_tails<'m, J>(
    manager: &mut Manager,
    work: Work,
    keys: &Keyring<AesKeys>,
    jobs: &mut [J],
    needs: &[Need],
) -> Result<(), Refused>
where
    J: DerefMut<Target = Job<'m>>,
{
    let mut pass = Pass::new(manager, work);
    for (job, need) in jobs.iter_mut().zip(needs).filter(|(_, need)| need.bytes > 0) {
        if let Some((iv, tail)) = Ready::tail_of(job.parts().memory, need.bytes) {
            pass.cipher(&keys.held()[need.keys], iv, Span::InPlace(tail));
        }
    }
    pass.finish()
}

/// A job that goes slice by slice.
struct Stream<'b> {
    keys: &'b AesKeys,
    iv: [u8; BLOCK_BYTES],
    rest: Span<'b>,
    tail: Option<&'b mut [u8]>,
    /// Bytes per slice: as even as whole blocks allow, so that the last one is not a stub.
    slice_bytes: usize,
}

impl<'b> Stream<'b> {
    fn new(keys: &'b AesKeys, job: &'b mut Job<'_>, bytes: usize) -> Self {
        let parts = job.parts();
        let Ready { front, tail } = Ready::new(parts.memory, bytes);
        let slices = front.len().div_ceil(SLICE_BYTES_MAX);
        let slice_bytes = front.len().div_ceil(slices).next_multiple_of(BLOCK_BYTES);
        Self { keys, iv: *parts.iv, rest: front, tail, slice_bytes }
    }

    /// Bytes of the next slice.
    fn next_bytes(&self) -> usize {
        self.slice_bytes.min(self.rest.len())
    }

    fn add_to<'p>(&'p mut self, pass: &mut Pass<'p>) {
        let bytes = self.next_bytes();
        let (slice, _) = self.rest.reborrow().split_at(bytes);
        pass.cipher(self.keys, &self.iv, slice);
    }

    /// Goes on to the next slice; false where there is none.
    fn advance(&mut self) -> bool {
        let bytes = self.next_bytes();
        let rest = std::mem::replace(&mut self.rest, Span::InPlace(&mut []));
        let (done, rest) = rest.split_at(bytes);
        self.iv.copy_from_slice(done.last_block());
        self.rest = match (rest.len(), self.tail.take()) {
            (0, Some(tail)) => Span::InPlace(tail),
            (_, tail) => {
                self.tail = tail;
                rest
            }
        };
        !self.rest.is_empty()
    }
}

/// Slices of many streams side by side.
fn run_streams<'m, J>(
    manager: &mut Manager,
    work: Work,
    keys: &Keyring<AesKeys>,
    jobs: &mut [J],
    needs: &[Need],
) -> Result<(), Refused>
where
    J: DerefMut<Target = Job<'m>>,
{
    let busy = jobs.iter_mut().zip(needs).filter(|(_, need)| need.bytes > 0);
    let mut waiting: Vec<Stream<'_>> =
        busy.map(|(job, need)| Stream::new(&keys.held()[need.keys], job, need.bytes)).collect();
    // The longest last, where `pop` takes it.
    waiting.sort_by_key(|stream| stream.rest.len());
    let mut active: Vec<Stream<'_>> = Vec::new();
    loop {
        refill(&mut active, &mut waiting);
        if active.is_empty() {
            return Ok(());
        }
        let mut pass = Pass::new(manager, work);
        active.iter_mut().for_each(|stream| stream.add_to(&mut pass));
        pass.finish()?;
        active.retain_mut(Stream::advance);
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
