//! ECB, CBC decryption and CTR: a job alone fills the units of a core, so jobs run whole, one lane each.

use std::ops::DerefMut;

use evener_core::padding::text_bytes;
use evener_core::{BLOCK_BYTES, Direction, Family, Job, JobError, Padding};

use crate::Multibuffer;
use crate::ffi::{AesKeys, KeySize, Manager, Pass, Refused, Span, Work};
use crate::ready::Ready;

/// What a job needs from the library.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    /// Place of its keys among those held.
    pub(crate) keys: usize,
    /// Bytes to work on, padding included; 0 where the job has its outcome already.
    pub(crate) bytes: usize,
}

impl Multibuffer {
    /// Checks lengths, holds keys and notes what each AES job needs. Ends the jobs that need nothing.
    pub(crate) fn survey<'m, J>(&mut self, jobs: &mut [J])
    where
        J: DerefMut<Target = Job<'m>>,
    {
        let (aes, manager) = (&mut self.aes, &self.manager);
        self.needs.clear();
        self.needs.extend(jobs.iter_mut().map(|job| {
            let keys = aes.hold(job.session(), |session| manager.aes_keys(session.key()));
            Need { keys, bytes: needed_bytes(job) }
        }));
    }

    /// Runs jobs of one algorithm and direction.
    pub(crate) fn run_blocks<'m, J>(&mut self, jobs: &mut [J])
    where
        J: DerefMut<Target = Job<'m>>,
    {
        let Some(work) = jobs.first().map(|job| work_of(job)) else { return };
        self.survey(jobs);
        let mut pass = Pass::new(&mut self.manager, work);
        for (job, need) in jobs.iter_mut().zip(&self.needs) {
            if runs_whole(work, job, need.bytes) {
                add_whole(&mut pass, &self.aes.held()[need.keys], job, need.bytes);
            }
        }
        let result = pass.finish();
        for (job, need) in jobs.iter_mut().zip(&self.needs).filter(|(_, need)| need.bytes > 0) {
            let result = match runs_whole(work, job, need.bytes) {
                true => result,
                false => count_over(&mut self.manager, work, &self.aes.held()[need.keys], job),
            };
            end(job, need.bytes, result);
        }
        self.aes.release();
    }
}

/// Bytes that the library has to work on. A job that does not fit, or has nothing in it, ends here.
fn needed_bytes(job: &mut Job<'_>) -> usize {
    if !job.lengths_fit() {
        job.fail(JobError::BadLength);
        return 0;
    }
    let bytes = job.session().output_bytes_max(job.input_bytes());
    if bytes == 0 {
        job.done(0);
    }
    bytes
}

/// What the library has to do for an AES job.
pub(crate) fn work_of(job: &Job<'_>) -> Work {
    let session = job.session();
    let size = KeySize::of(session.key().len());
    match (session.algorithm().family(), session.direction()) {
        (Family::Ecb, Direction::Encrypt) => Work::EcbEncrypt(size),
        (Family::Ecb, Direction::Decrypt) => Work::EcbDecrypt(size),
        (Family::Cbc, Direction::Encrypt) => Work::CbcEncrypt(size),
        (Family::Cbc, Direction::Decrypt) => Work::CbcDecrypt(size),
        _ => Work::Ctr(size),
    }
}

fn add_whole<'p>(pass: &mut Pass<'p>, keys: &'p AesKeys, job: &'p mut Job<'_>, bytes: usize) {
    let parts = job.parts();
    let ready = Ready::new(parts.memory, bytes);
    // ECB is cut where a lane ends; CBC decryption and CTR have no such limit and stay whole.
    for span in ready.front.cut(pass.lane_bytes_max()) {
        pass.cipher(keys, parts.iv, span);
    }
    // Only ECB is padded here, and its blocks do not depend on each other.
    if let Some(tail) = ready.tail {
        pass.cipher(keys, parts.iv, Span::InPlace(tail));
    }
}

/// Sets the outcome of a job of which `bytes` were worked on.
pub(crate) fn end(job: &mut Job<'_>, bytes: usize, result: Result<(), Refused>) {
    if result.is_err() {
        return job.fail(JobError::Library);
    }
    match (job.session().padding(), job.session().direction()) {
        (Padding::Pkcs7, Direction::Decrypt) => match text_bytes_of(&job.output_span()[..bytes]) {
            Some(text) => job.done(text),
            None => job.fail(JobError::BadPadding),
        },
        _ => job.done(bytes),
    }
}

fn text_bytes_of(decrypted: &[u8]) -> Option<usize> {
    let (before, last) = decrypted.split_last_chunk::<BLOCK_BYTES>()?;
    Some(before.len() + text_bytes(last)?)
}

/// Whether a job goes to the library in one piece.
///
/// The library counts in the last 32 bits of the counter block and drops the carry; SP 800-38A (B.1) and
/// OpenSSL carry through all 128. A counter that runs over is cut there, which with random counter blocks
/// happens to one in 65536 jobs of 1 MiB.
fn runs_whole(work: Work, job: &Job<'_>, bytes: usize) -> bool {
    bytes > 0 && (!matches!(work, Work::Ctr(_)) || bytes <= bytes_before_carry(job.iv()))
}

fn bytes_before_carry(counter: &[u8; 16]) -> usize {
    let low = u32::from_be_bytes([counter[12], counter[13], counter[14], counter[15]]);
    // At most 2^36.
    ((1 << 32) - low as usize) * BLOCK_BYTES
}

/// Runs a CTR job in pieces, each up to where the library would drop a carry.
fn count_over(manager: &mut Manager, work: Work, keys: &AesKeys, job: &mut Job<'_>) -> Result<(), Refused> {
    let mut counter = *job.iv();
    let bytes = job.input_bytes();
    let mut rest = Ready::new(job.parts().memory, bytes).front;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(bytes_before_carry(&counter));
        let mut pass = Pass::new(manager, work);
        pass.cipher(keys, &counter, piece);
        pass.finish()?;
        rest = after;
        counter = carried(counter);
    }
    Ok(())
}

/// The counter block at which the last 32 bits are zero again.
fn carried(counter: [u8; 16]) -> [u8; 16] {
    (((u128::from_be_bytes(counter) >> 32).wrapping_add(1)) << 32).to_be_bytes()
}
