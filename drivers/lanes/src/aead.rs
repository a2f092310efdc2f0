//! AES-GCM: one message after the other, for one alone fills the units of a core.

use evener_core::job::Memory;
use evener_core::{Direction, HasEnded, Job, JobError, Session, SessionCache};
use evener_kernels::Level;
use evener_kernels::gcm::{Key, Message};

/// Sessions whose keys are kept. Assumed, not measured: 32, as of libcrypto's contexts.
const SESSIONS_MAX: usize = 32;

/// Longest message in bytes (SP 800-38D, 5.2.1.1); all that there is where addresses do not reach as far.
pub(crate) fn bytes_max() -> usize {
    usize::try_from((1_u64 << 36) - 32).unwrap_or(usize::MAX)
}

const NONCE_BYTES: usize = 12;

/// Prepared keys, and the instructions that they are used by.
pub(crate) struct Aead {
    level: Level,
    keys: SessionCache<Box<Key>, SESSIONS_MAX>,
}

impl Aead {
    pub(crate) fn new(level: Level) -> Self {
        Self { level, keys: SessionCache::default() }
    }

    /// Runs one job; where it decrypts, compares the tag and clears what is not authentic.
    pub(crate) fn run(&mut self, job: &mut Job<'_>) {
        if job.shared_span().is_some() {
            // Text of which it is not yet known whether it is authentic would be seen.
            return job.fail(JobError::Unsupported);
        }
        if !job.lengths_fit() || job.input_bytes() > bytes_max() {
            return job.fail(JobError::BadLength);
        }
        let level = self.level;
        match self.keys.prepared(job.session(), |session| prepared(level, session)) {
            Ok(key) => finish(job, key),
            Err(error) => job.fail(error),
        }
    }

    pub(crate) fn evict(&mut self, has_ended: HasEnded<'_>) {
        self.keys.evict(has_ended);
    }
}

fn prepared(level: Level, session: &Session) -> Result<Box<Key>, JobError> {
    // It is made where it stays: one that is moved leaves a copy on the stack.
    let mut key = Box::new(Key::new(level));
    key.set(session.key()).then_some(key).ok_or(JobError::Unsupported)
}

fn finish(job: &mut Job<'_>, key: &mut Key) {
    let (bytes, direction) = (job.input_bytes(), job.session().direction());
    let parts = job.parts();
    let mut message = Message::new(key, &parts.iv[..NONCE_BYTES]);
    message.aad(key, parts.aad);
    match (direction, parts.memory) {
        (Direction::Encrypt, Memory::InPlace { space, input_bytes }) => {
            message.encrypt(key, &mut space[..input_bytes]);
        }
        (Direction::Decrypt, Memory::InPlace { space, input_bytes }) => {
            message.decrypt(key, &mut space[..input_bytes]);
        }
        (Direction::Encrypt, Memory::Apart { src, dst }) => {
            message.encrypt_to(key, src, &mut dst[..bytes]);
        }
        (Direction::Decrypt, Memory::Apart { src, dst }) => {
            message.decrypt_to(key, src, &mut dst[..bytes]);
        }
    }
    let made = message.tag(key);
    job.done_with_tag(bytes, &made);
}
