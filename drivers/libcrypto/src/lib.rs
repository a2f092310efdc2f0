//! Driver for OpenSSL's libcrypto: one job after the other on the calling core.
//!
//! Path of one job: [`Libcrypto`] finds the context that belongs to its session (`evener_core::cache`) or
//! prepares one with the key set, sets the IV, and runs the span (`cipher.rs`). What is fetched from libcrypto
//! is fetched once per process (`primitive.rs`); everything unsafe stands in `ffi.rs` and below `ffi/`. [`service`] tells which provider
//! serves an algorithm.
#![allow(unsafe_code, reason = "room: libcrypto is C; all of it in ffi.rs and below ffi/")]

mod cipher;
mod ffi;
mod primitive;
pub mod service;

use evener_core::job::{Memory, Parts, SharedSpan};
use evener_core::{
    Algorithm, Direction, HasEnded, InlineDriver, Job, JobError, Profile, Session, SessionCache,
};

pub use crate::cipher::CipherContext;
use crate::ffi::{DigestContext, HmacContext, Input, Refused};
use crate::primitive::{Primitive, primitive};

/// Why libcrypto cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LibcryptoError {
    /// OpenSSL's configuration leaves nothing of what Evener knows.
    #[error("OpenSSL offers none of the algorithms (its configuration loads no provider)")]
    NothingOffered,
    /// OpenSSL does not offer this algorithm, or it is a hash where a cipher was wanted.
    #[error("OpenSSL offers no cipher {0}")]
    NotOffered(Algorithm),
    /// OpenSSL does not take the key.
    #[error("OpenSSL refused the key for {0}")]
    KeyRefused(Algorithm),
}

/// Contexts kept. Assumed, not measured: as many sessions as a wide burst has jobs, because each job may have its own.
const SESSIONS_MAX: usize = 32;

/// libcrypto on one thread.
///
/// Keys live in its contexts, which libcrypto wipes when they are freed: when their session is
/// [evicted](InlineDriver::evict), when 32 newer ones came, or when the driver is dropped.
pub struct Libcrypto {
    profile: Profile,
    prepared: SessionCache<Prepared, SESSIONS_MAX>,
}

impl Libcrypto {
    /// A driver of its own for the calling thread.
    ///
    /// # Errors
    ///
    /// [`LibcryptoError::NothingOffered`].
    pub fn new() -> Result<Self, LibcryptoError> {
        match Algorithm::ALL.iter().any(|&algorithm| primitive(algorithm).is_some()) {
            true => Ok(Self::put_off()),
            false => Err(LibcryptoError::NothingOffered),
        }
    }

    /// The same, and OpenSSL is asked what it offers only when a job comes: setting it up and reading its configuration takes 2 ms, more
    /// than a small file. What it does not offer comes back as failed.
    #[must_use]
    pub fn put_off() -> Self {
        let profile = Profile {
            name: "libcrypto".to_owned(),
            detail: format!("OpenSSL {}", ffi::version()),
            width: 1,
            emulated: false,
        };
        Self { profile, prepared: SessionCache::default() }
    }
}

impl InlineDriver for Libcrypto {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn supports(&self, algorithm: Algorithm, direction: Direction) -> bool {
        (direction == Direction::Encrypt || algorithm.is_cipher()) && primitive(algorithm).is_some()
    }

    fn takes_shared(&self) -> bool {
        true
    }

    fn run(&mut self, burst: &mut [Box<Job<'_>>]) {
        for job in burst {
            match self.prepared.prepared(job.session(), Prepared::new) {
                Ok(prepared) => prepared.run(job),
                Err(error) => job.fail(error),
            }
        }
    }

    fn evict(&mut self, has_ended: HasEnded<'_>) {
        self.prepared.evict(has_ended);
    }
}

impl CipherContext {
    /// A context for the session of a cipher, with its key set.
    ///
    /// # Errors
    ///
    /// [`LibcryptoError::NotOffered`] and [`LibcryptoError::KeyRefused`].
    pub fn new(session: &Session) -> Result<Self, LibcryptoError> {
        let algorithm = session.algorithm();
        let Some(Primitive::Cipher(cipher)) = primitive(algorithm) else {
            return Err(LibcryptoError::NotOffered(algorithm));
        };
        Self::with_cipher(cipher, session).map_err(|Refused| LibcryptoError::KeyRefused(algorithm))
    }
}

/// What the driver makes of a session.
enum Prepared {
    Cipher(CipherContext),
    Digest(DigestContext),
    Hmac(HmacContext),
}

impl Prepared {
    fn new(session: &Session) -> Result<Self, JobError> {
        let made = match primitive(session.algorithm()).ok_or(JobError::Unsupported)? {
            Primitive::Cipher(cipher) => CipherContext::with_cipher(cipher, session).map(Self::Cipher),
            Primitive::Digest(digest) => DigestContext::new(digest).map(Self::Digest),
            Primitive::Hmac(hmac, hash) => HmacContext::new(hmac, *hash, session.key()).map(Self::Hmac),
        };
        Ok(made?)
    }

    fn run(&mut self, job: &mut Job<'_>) {
        let outcome = match job.shared_span() {
            None => self.run_parts(job.parts()),
            Some(span) => self.run_shared(job, span),
        };
        match outcome {
            Ok(written) => job.done(written),
            Err(error) => job.fail(error),
        }
    }

    fn run_parts(&mut self, parts: Parts<'_>) -> Result<usize, JobError> {
        match self {
            // Refuses lengths that do not fit before it touches anything.
            Self::Cipher(context) => context.run_parts(parts),
            Self::Digest(context) => digested(context.run(&input(&parts.memory).into(), parts.tag)),
            Self::Hmac(context) => digested(context.run(&input(&parts.memory).into(), parts.tag)),
        }
    }

    fn run_shared(&mut self, job: &mut Job<'_>, span: SharedSpan<'_>) -> Result<usize, JobError> {
        let input = Input::from(span.src);
        match self {
            Self::Cipher(context) => context.run_shared(job.iv(), span),
            Self::Digest(context) => digested(context.run(&input, job.tag_mut())),
            Self::Hmac(context) => digested(context.run(&input, job.tag_mut())),
        }
    }
}

/// A hash writes its tag and no output.
fn digested(hashed: Result<(), Refused>) -> Result<usize, JobError> {
    Ok(hashed.map(|()| 0)?)
}

fn input<'j>(memory: &'j Memory<'_>) -> &'j [u8] {
    match memory {
        Memory::InPlace { space, input_bytes } => &space[..*input_bytes],
        Memory::Apart { src, .. } => src,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evener_core::{Outcome, Padding};

    const IV: [u8; 16] = [16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31];
    /// Three slices of a unit test and five bytes.
    const TEXT_BYTES: usize = 12_293;

    /// Expected: SHA-256 of what `openssl enc` 3.0 wrote, and of what Python's `cryptography` wrote, with tag.
    #[test]
    fn a_session_that_is_forgotten_leaves_no_context() {
        let mut driver = Libcrypto::new().unwrap();
        let keyed = |key| Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[key; 16]);
        let [over, open] = [1, 2].map(|key| keyed(key).unwrap());
        let encrypt = |driver: &mut Libcrypto, session: &Session| {
            let mut space = [7; 64];
            let mut burst = [Job::in_place(&mut space)];
            burst[0].arm(session, &IV, 64);
            driver.run(&mut burst);
            burst[0].output().to_vec()
        };
        let before = [&over, &open].map(|session| encrypt(&mut driver, session));
        assert!(driver.prepared.keeps(over.id()) && driver.prepared.keeps(open.id()));
        driver.evict(&|id| id == over.id());
        assert!(!driver.prepared.keeps(over.id()) && driver.prepared.keeps(open.id()));
        assert_eq!([&over, &open].map(|session| encrypt(&mut driver, session)), before);
    }

    #[test]
    fn input_of_several_slices_is_one_message() {
        let cases = [
            (Algorithm::Aes128Cbc, "c413f5aa50e534d9ed744fa22c70098c3656a7309d2edcb74fabb5e8f7a51877", ""),
            (Algorithm::Aes128Ctr, "cbdea04d79a05f0d8d3fac3c215dda4285c52e98ae16ba958c40ade41060ec5f", ""),
            (
                Algorithm::Aes128Gcm,
                "3c3517c15e23355c3a11dcc57a2df3d4b3d1d0ec9a7a31843160768735caf3f1",
                "159874969094ce24d7fb2a4d77b594d5",
            ),
            (
                Algorithm::ChaCha20Poly1305,
                "95e9fe2fc65ce0d0e4758d2b63bb0bb97807c16d5fb33b4dd4c5a2ee107689d4",
                "47204482953f43b12abd14f85cc94ecc",
            ),
        ];
        let text: Vec<u8> =
            (0..=u8::MAX).cycle().map(|i| i.wrapping_mul(31).wrapping_add(7)).take(TEXT_BYTES).collect();
        for (algorithm, digest, tag) in cases {
            let (encrypted, made) = run(algorithm, Direction::Encrypt, &text, &[]);
            assert_eq!(sha256(&encrypted), digest, "{algorithm}");
            assert_eq!(hex(&made), tag, "{algorithm}");
            assert_eq!(run(algorithm, Direction::Decrypt, &encrypted, &made).0, text, "{algorithm}");
        }
    }

    fn run(algorithm: Algorithm, direction: Direction, src: &[u8], tag: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let padding = if algorithm.needs_whole_blocks() { Padding::Pkcs7 } else { Padding::None };
        let key: Vec<u8> = (0..16).cycle().take(algorithm.key_bytes().unwrap_or(0)).collect();
        let session = Session::new(algorithm, direction, padding, &key).unwrap();
        let aad: Vec<u8> =
            (0..=u8::MAX).cycle().map(|i| i.wrapping_mul(31).wrapping_add(7)).take(5_000).collect();
        let mut space = [src, &[0; 16]].concat();
        let mut dst = vec![0; src.len() + 16];
        let mut burst = [Job::in_place(&mut space), Job::apart(src, &mut dst)];
        for job in &mut burst {
            job.arm(&session, &IV[..algorithm.iv_bytes()], src.len());
            job.set_aad(&aad);
            job.set_tag(tag);
        }
        Libcrypto::new().unwrap().run(&mut burst);
        assert!(matches!(burst[0].outcome(), Outcome::Done { .. }), "{:?}", burst[0]);
        assert_eq!(burst[0].output(), burst[1].output(), "in place and apart");
        (burst[0].output().to_vec(), burst[0].tag().to_vec())
    }

    fn sha256(data: &[u8]) -> String {
        let session = Session::new(Algorithm::Sha256, Direction::Encrypt, Padding::None, &[]).unwrap();
        let mut burst = [Job::apart(data, &mut [])];
        burst[0].arm(&session, &[], data.len());
        Libcrypto::new().unwrap().run(&mut burst);
        hex(burst[0].tag())
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
