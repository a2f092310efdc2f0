//! ECB, CBC decryption and CTR: a job alone fills the units of a core, so jobs run whole, one lane each.

use std::ops::DerefMut;

use evener_core::padding::text_bytes;
use evener_core::{BLOCK_BYTES, Direction, Job, JobError, Outcome, Padding};

use super::Multibuffer;
use super::padding_blocks::Chain;
use super::padding_in_place::iv_and_front;
use crate::ffi::{AesKeys, KeySize, Manager, Pass, Refused, Work};

impl Multibuffer {
    /// Encrypts or decrypts with ECB jobs that were surveyed.
    pub(crate) fn run_ecb<'m, J>(&mut self, size: KeySize, direction: Direction, jobs: &mut [J])
    where
        J: DerefMut<Target = Job<'m>>,
    {
        let result = match direction {
            Direction::Decrypt => self.run_whole(Work::EcbDecrypt(size), jobs),
            Direction::Encrypt => self
                .run_whole(Work::EcbEncrypt(size), jobs)
                .and_then(|()| self.run_tails(Chain::Single, size, jobs)),
        };
        self.finish_group(jobs, result);
        jobs.iter_mut().for_each(|job| unpad(job));
    }

    /// Decrypts with CBC jobs that were surveyed.
    pub(crate) fn decrypt_cbc<'m, J>(&mut self, size: KeySize, jobs: &mut [J])
    where
        J: DerefMut<Target = Job<'m>>,
    {
        let result = self.run_whole(Work::CbcDecrypt(size), jobs);
        self.finish_group(jobs, result);
        jobs.iter_mut().for_each(|job| unpad(job));
    }

    /// Encrypts or decrypts with CTR jobs that were surveyed.
    pub(crate) fn run_ctr<'m, J>(&mut self, size: KeySize, jobs: &mut [J])
    where
        J: DerefMut<Target = Job<'m>>,
    {
        let (work, keys) = (Work::Ctr(size), self.aes.held());
        for (job, need) in
            jobs.iter_mut().zip(&mut self.survey.needs).filter(|(job, need)| carries(job, need.bytes))
        {
            need.bytes = 0;
            if count_over(&mut self.manager, work, &keys[need.keys], job).is_err() {
                job.fail(JobError::Library);
            }
        }
        let result = self.run_whole(work, jobs);
        self.finish_group(jobs, result);
    }

    fn run_whole<'m, J>(&mut self, work: Work, jobs: &mut [J]) -> Result<(), Refused>
    where
        J: DerefMut<Target = Job<'m>>,
    {
        let keys = self.aes.held();
        let mut pass = Pass::new(&mut self.manager, work);
        // ECB is cut where a lane ends; the others have no such limit and stay whole.
        let lane_bytes_max = pass.lane_bytes_max();
        for (job, need) in jobs.iter_mut().zip(&self.survey.needs).filter(|(_, need)| need.bytes > 0) {
            let (iv, front) = iv_and_front(job, need.bytes);
            for span in front.cut(lane_bytes_max) {
                pass.span(&keys[need.keys], iv, span);
            }
        }
        pass.finish()
    }
}

/// Takes the padding of a decrypted job away.
fn unpad(job: &mut Job<'_>) {
    let (session, outcome) = (job.session(), job.outcome());
    let (Outcome::Done { written }, Padding::Pkcs7, Direction::Decrypt) =
        (outcome, session.padding(), session.direction())
    else {
        return;
    };
    match text_bytes_of(&job.output_span()[..written]) {
        Some(text_bytes) => job.done(text_bytes),
        None => job.fail(JobError::BadPadding),
    }
}

fn text_bytes_of(decrypted: &[u8]) -> Option<usize> {
    let (before, last) = decrypted.split_last_chunk::<BLOCK_BYTES>()?;
    Some(before.len() + text_bytes(last)?)
}

/// Whether the counter of a job runs over the 32 bits in which the library counts.
///
/// SP 800-38A (B.1) and OpenSSL carry through all 128 bits; the library drops the carry, in every release and
/// for every instruction set (measured). With random counter blocks that meets one job of 1 MiB in 65536.
fn carries(job: &Job<'_>, bytes: usize) -> bool {
    bytes > bytes_before_carry(job.iv())
}

fn bytes_before_carry(counter: &[u8; 16]) -> usize {
    let low = u32::from_be_bytes([counter[12], counter[13], counter[14], counter[15]]);
    // At most 2^36, which no job has where addresses have 32 bits.
    usize::try_from(((1 << 32) - u64::from(low)) * BLOCK_BYTES as u64).unwrap_or(usize::MAX)
}

/// Runs a CTR job in pieces, each up to where the library would drop a carry.
fn count_over(manager: &mut Manager, work: Work, keys: &AesKeys, job: &mut Job<'_>) -> Result<(), Refused> {
    let mut counter = *job.iv();
    let bytes = job.input_bytes();
    let (_, mut rest) = iv_and_front(job, bytes);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(bytes_before_carry(&counter));
        let mut pass = Pass::new(manager, work);
        pass.span(keys, &counter, piece);
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
