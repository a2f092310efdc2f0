//! What `openssl enc -aes-{128,192,256}-cbc -pbkdf2` reads and writes.
//!
//! File = `Salted__` || salt (8 bytes) || ciphertext. PBKDF2-HMAC-SHA-256 over passphrase and salt gives key and
//! IV; the ciphertext is one CBC chain with PKCS#7 padding, cut here into slices. Encryption goes slice by slice
//! ([`super::Iv::PreviousBlock`]); decryption takes all slices at once.
//!
//! **Not authenticated**: a change of such a file changes what comes out of it, and a wrong passphrase is
//! found out by the padding only, which fits by chance once in 256 times.

use std::num::NonZeroU32;

use evener_core::{Algorithm, Direction, Family};
use zeroize::Zeroizing;

use super::KeyFacts;
use super::body::{Body, Opened, Sealing};
use super::segmentation::{Cut, Growth};
use crate::error::FormatError;
use crate::random::fill_random;

const MAGIC: &[u8; 8] = b"Salted__";
const HEADER_BYTES: usize = 16;
const IV_BYTES: usize = 16;
/// Rounds of PBKDF2 where none are given, as in openssl.
pub const ITERATIONS: NonZeroU32 = NonZeroU32::new(10_000).expect("not zero");
/// Bytes of a slice. Assumed, not measured: long enough to hide the cost of a job, short enough to stay in cache.
const SLICE_BYTES: u64 = 256 << 10;
/// openssl cuts longer passphrases here.
const PASSPHRASE_BYTES_MAX: usize = 1023;

/// A passphrase and the cipher that its key is for. The passphrase is wiped when it is dropped.
pub struct OpensslEnc {
    algorithm: Algorithm,
    passphrase: Zeroizing<Vec<u8>>,
    iterations: NonZeroU32,
}

impl OpensslEnc {
    /// Checks that openssl would take cipher and passphrase as they are. The format stores neither cipher nor
    /// `iterations` ([`ITERATIONS`] where the user says nothing): reading needs the same.
    ///
    /// # Errors
    ///
    /// [`FormatError::Unsupported`] where `algorithm` is not AES-CBC; [`FormatError::Passphrase`].
    pub fn new(
        algorithm: Algorithm,
        passphrase: Zeroizing<Vec<u8>>,
        iterations: NonZeroU32,
    ) -> Result<Self, FormatError> {
        if algorithm.family() != Family::Cbc {
            return Err(FormatError::Unsupported(format!(
                "{algorithm} in the openssl enc format; AES-CBC is"
            )));
        }
        if passphrase.is_empty() {
            return Err(FormatError::Passphrase("it is empty"));
        }
        if passphrase.contains(&0) {
            return Err(FormatError::Passphrase("it holds a zero byte, where openssl would end it"));
        }
        if passphrase.len() > PASSPHRASE_BYTES_MAX {
            return Err(FormatError::Passphrase("it is longer than 1023 bytes, where openssl would cut it"));
        }
        Ok(Self { algorithm, passphrase, iterations })
    }

    /// The cipher and the rounds; the passphrase is in neither part.
    pub(super) fn key_facts(&self, direction: &str) -> KeyFacts {
        let about = [self.algorithm.to_string(), self.iterations.to_string()];
        let names = about.iter().map(String::as_str);
        KeyFacts { is_by_passphrase: true, ..KeyFacts::public("openssl", direction, names) }
    }

    pub(super) fn slot_bytes() -> u64 {
        cut().slot_bytes()
    }

    pub(super) fn seal(&self) -> Result<Sealing, FormatError> {
        let mut header = MAGIC.to_vec();
        header.resize(HEADER_BYTES, 0);
        fill_random(&mut header[MAGIC.len()..])?;
        let body = self.body(&header, Direction::Encrypt)?;
        Ok(Sealing { header, body })
    }

    pub(super) fn open(&self, start: &[u8]) -> Result<Opened, FormatError> {
        match cuts(start)? {
            Opened::Ready(_) => {
                Ok(Opened::Ready(vec![self.body(&start[..HEADER_BYTES], Direction::Decrypt)?]))
            }
            Opened::NeedMore { start_bytes } => Ok(Opened::NeedMore { start_bytes }),
        }
    }

    fn body(&self, header: &[u8], direction: Direction) -> Result<Body, FormatError> {
        let key_bytes = self.algorithm.key_bytes().expect("AES has a key length");
        let mut derived = Zeroizing::new(vec![0; key_bytes + IV_BYTES]);
        let (salt, iterations) = (&header[MAGIC.len()..], self.iterations.get());
        pbkdf2::pbkdf2_hmac::<sha2::Sha256>(&self.passphrase, salt, iterations, &mut derived);
        let (key, iv) = derived.split_at(key_bytes);
        Body::chained(cut(), iv.try_into().expect("16 bytes"), self.algorithm, direction, key)
    }
}

/// The passphrase in a file: its first line without the line feed, as `openssl -pass file:` takes it. A carriage
/// return belongs to it.
#[must_use]
pub fn first_line(file: &[u8]) -> Zeroizing<Vec<u8>> {
    let line = file.split(|&byte| byte == b'\n').next().unwrap_or_default();
    Zeroizing::new(line.to_vec())
}

/// The cut of a file that begins with `start`: it is always the same.
pub(super) fn cuts(start: &[u8]) -> Result<Opened<Cut>, FormatError> {
    let compared = start.len().min(MAGIC.len());
    if start[..compared] != MAGIC[..compared] {
        return Err(FormatError::Header { format: "openssl enc", fact: "it does not start with Salted__" });
    }
    match start.len() {
        HEADER_BYTES.. => Ok(Opened::Ready(vec![cut()])),
        _ => Ok(Opened::NeedMore { start_bytes: HEADER_BYTES }),
    }
}

pub(super) fn cut() -> Cut {
    Cut::new(HEADER_BYTES as u64, SLICE_BYTES, SLICE_BYTES, Growth::Padding)
}
