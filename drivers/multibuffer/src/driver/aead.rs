//! AES-GCM and ChaCha20-Poly1305: job by job, for a message alone fills the units of a core.

use evener_core::{Direction, Family, InlineDriver as _, Job, JobError};
use zeroize::Zeroizing;

use super::Multibuffer;
use super::padding_in_place::front;
use crate::ffi::AeadMessage;

/// Length of a tag in bytes.
const TAG_BYTES: usize = 16;

impl Multibuffer {
    /// Runs one job; where it decrypts, compares the tag and clears what is not authentic.
    pub(crate) fn run_aead(&mut self, job: &mut Job<'_>) {
        let (algorithm, direction) = (job.session().algorithm(), job.session().direction());
        let bytes = job.input_bytes();
        if job.shared_span().is_some() {
            // Text of which it is not yet known whether it is authentic would be seen.
            return job.fail(JobError::Unsupported);
        }
        if !job.lengths_fit() || bytes > self.job_bytes_max(algorithm, direction) {
            return job.fail(JobError::BadLength);
        }
        let made = match algorithm.family() {
            Family::ChaCha20Poly1305 => self.run_chacha(job, direction),
            _ => self.run_gcm(job, direction),
        };
        job.done_with_tag(bytes, &made);
    }

    fn run_gcm(&mut self, job: &mut Job<'_>, direction: Direction) -> [u8; TAG_BYTES] {
        let manager = &self.manager;
        let keys = self.gcm.keys(job.session(), |session| manager.gcm_keys(session.key()));
        self.manager.gcm(keys, message(job, direction))
    }

    fn run_chacha(&mut self, job: &mut Job<'_>, direction: Direction) -> [u8; TAG_BYTES] {
        let mut key = Zeroizing::new([0; 32]);
        key.copy_from_slice(job.session().key());
        self.manager.chacha20_poly1305(&key, message(job, direction))
    }
}

fn message<'m>(job: &'m mut Job<'_>, direction: Direction) -> AeadMessage<'m> {
    let (bytes, parts) = (job.input_bytes(), job.parts());
    let nonce = parts.iv.first_chunk().expect("12 of 16 bytes");
    AeadMessage { direction, nonce, aad: parts.aad, span: front(parts.memory, bytes) }
}
