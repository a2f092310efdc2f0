//! Hashes and HMAC: one job per SIMD lane.
//!
//! What the library leaves out comes from the crates of the hashes themselves: shortening of HMAC keys that are
//! longer than a block, once per session, and HMAC of an empty message, which its checks refuse.

use std::ops::DerefMut;
use std::sync::Arc;

use evener_core::job::{Memory, Parts};
use evener_core::{Hash, Job, JobError, Session, TAG_BYTES_MAX};
use hmac::{Hmac, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::Multibuffer;
use super::survey::Need;
use crate::ffi::{HmacKeys, Input, LANE_BYTES_MAX, Manager, Pass, Refused, Work};

/// Length of a block of MD5, SHA-1 and SHA-256 in bytes.
const HASH_BLOCK_BYTES: usize = 64;

impl Multibuffer {
    /// Runs jobs of one hash or HMAC. A job longer than a lane fails: it belongs elsewhere
    /// ([`job_bytes_max`](evener_core::InlineDriver::job_bytes_max)).
    pub(crate) fn run_hashes<'m, J>(&mut self, work: Work, jobs: &mut [J])
    where
        J: DerefMut<Target = Job<'m>>,
    {
        let result = self.run_hash_pass(work, jobs);
        for job in jobs {
            match (job.input_bytes(), work) {
                (0, Work::Hmac(hash)) => hmac_of_nothing(hash, job),
                (bytes, _) if bytes > LANE_BYTES_MAX => job.fail(JobError::Unsupported),
                _ if result.is_ok() => job.done(0),
                _ => job.fail(JobError::Library),
            }
        }
    }

    /// Runs the jobs that the library takes.
    fn run_hash_pass<'m, J>(&mut self, work: Work, jobs: &mut [J]) -> Result<(), Refused>
    where
        J: DerefMut<Target = Job<'m>>,
    {
        let (hmac, manager) = (&mut self.hmac, &self.manager);
        self.survey.needs.clear();
        self.survey.needs.extend(jobs.iter().map(|job| {
            let keys = match work {
                Work::Hmac(hash) => hmac.hold(job.session(), |session| hmac_keys(manager, hash, session)),
                _ => 0,
            };
            Need { keys, bytes: job.input_bytes() }
        }));
        let mut pass = Pass::new(&mut self.manager, work);
        for (job, need) in jobs.iter_mut().zip(&self.survey.needs) {
            if !pass.takes_hash(need.bytes) {
                continue;
            }
            let keys = self.hmac.held().get(need.keys).map(|keys| &**keys);
            let (input, tag) = input_and_tag(job);
            pass.hash(keys, input, tag);
        }
        let result = pass.finish();
        self.hmac.release();
        result
    }
}

fn input_and_tag<'j>(job: &'j mut Job<'_>) -> (Input<'j>, &'j mut [u8; TAG_BYTES_MAX]) {
    if let Some(span) = job.shared_span() {
        return (Input::Shared(span.src), job.tag_mut());
    }
    let Parts { memory, tag, .. } = job.parts();
    let input: &[u8] = match memory {
        Memory::InPlace { space, input_bytes } => &space[..input_bytes],
        Memory::Apart { src, .. } => src,
    };
    (Input::Own(input), tag)
}

/// The states after the first block of both hashes (RFC 2104).
fn hmac_keys(manager: &Manager, hash: Hash, session: &Session) -> Arc<HmacKeys> {
    let mut key = Zeroizing::new([0; HASH_BLOCK_BYTES]);
    match session.key() {
        short if short.len() <= HASH_BLOCK_BYTES => key[..short.len()].copy_from_slice(short),
        long => shorten(hash, long, &mut key),
    }
    let (inner, outer) =
        (Zeroizing::new(key.map(|byte| byte ^ 0x36)), Zeroizing::new(key.map(|byte| byte ^ 0x5c)));
    manager.hmac_keys(hash, &inner, &outer)
}

/// Writes the digest of a key that is longer than a block to the start of `short`.
fn shorten(hash: Hash, long: &[u8], short: &mut [u8; HASH_BLOCK_BYTES]) {
    let digest = &mut short[..hash.digest_bytes()];
    match hash {
        Hash::Sha1 => digest.copy_from_slice(&Sha1::digest(long)),
        Hash::Sha256 => digest.copy_from_slice(&Sha256::digest(long)),
        Hash::Md5 => digest.copy_from_slice(&Md5::digest(long)),
    }
}

fn hmac_of_nothing(hash: Hash, job: &mut Job<'_>) {
    match hash {
        Hash::Sha1 => finish_empty::<Hmac<Sha1>>(job),
        Hash::Sha256 => finish_empty::<Hmac<Sha256>>(job),
        Hash::Md5 => finish_empty::<Hmac<Md5>>(job),
    }
}

fn finish_empty<M: Mac + hmac::digest::KeyInit>(job: &mut Job<'_>) {
    let mac = <M as Mac>::new_from_slice(job.session().key()).expect("HMAC takes a key of any length");
    let made = mac.finalize().into_bytes();
    job.publish(&[], &made);
}
