//! What `openssl enc` reads and writes.
//!
//! File = `Salted__` || salt (8 bytes) || ciphertext, or ciphertext alone (`-nosalt`, read only). PBKDF2, or what openssl did before it ([`Kdf`]), makes key and IV of passphrase and
//! salt. AES in CBC, CTR and ECB is cut here into slices that are jobs; in CBC encryption goes slice by slice
//! ([`super::Iv::PreviousBlock`]), decryption takes all slices at once. Every other cipher that libcrypto has goes through it from the
//! first byte to the last ([`super::SerialCipher`]).
//!
//! **Not authenticated**: a change of such a file changes what comes out of it, and a wrong passphrase is
//! found out by the padding only, which fits by chance once in 256 times, and not at all where there is none.

use std::num::NonZeroU32;
use std::sync::Arc;

use evener_core::{Algorithm, Direction, Family};
use evener_evp::{Cipher, Digest, Mode, Refused};
use zeroize::Zeroizing;

use super::KeyFacts;
use super::body::{Body, CipherKey, Ivs, Opened, Sealing};
use super::segmentation::{Cut, Growth};
use super::serial::SerialCipher;
use crate::armor::Armor;
use crate::error::FormatError;
use crate::random::fill_random;

pub(super) const MAGIC: &[u8; 8] = b"Salted__";
pub(super) const HEADER_BYTES: usize = 16;
/// Rounds of PBKDF2 where none are given, as in openssl.
pub const ITERATIONS: NonZeroU32 = NonZeroU32::new(10_000).expect("not zero");
/// Bytes of a slice. Assumed, not measured: long enough to hide the cost of a job, short enough to stay in cache.
const SLICE_BYTES: u64 = 256 << 10;
/// Bytes of an AES block.
const BLOCK_BYTES: u64 = 16;
/// openssl cuts longer passphrases here.
const PASSPHRASE_BYTES_MAX: usize = 1023;

/// How key and IV follow from passphrase and salt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kdf {
    /// PBKDF2 with so many rounds: `-pbkdf2`, `-iter`.
    Pbkdf2(NonZeroU32),
    /// One round of EVP_BytesToKey, which openssl does unless told otherwise: fast to guess passphrases with.
    Legacy,
}

/// A passphrase and the cipher that its key is for. The passphrase is wiped when it is dropped.
pub struct OpensslEnc {
    cipher: Arc<Cipher>,
    /// Where drivers have the cipher.
    algorithm: Option<Algorithm>,
    passphrase: Zeroizing<Vec<u8>>,
    kdf: Kdf,
    digest: Digest,
    has_salt: bool,
    /// Of cipher and digest, as they were asked for.
    names: [String; 2],
}

impl OpensslEnc {
    /// Checks that openssl would take ciphers, digest and passphrase as they are. The format stores neither of them nor
    /// `kdf`: reading needs the same.
    ///
    /// # Errors
    ///
    /// [`FormatError::Unsupported`] where libcrypto has no such cipher for files, or no such digest; [`FormatError::Passphrase`].
    pub fn new(
        cipher: &str,
        passphrase: Zeroizing<Vec<u8>>,
        kdf: Kdf,
        digest: &str,
    ) -> Result<Self, FormatError> {
        let unsupported = |what: &str, known: &str| {
            FormatError::Unsupported(format!("the {what} in the openssl enc format; {known}"))
        };
        let ciphers = "aes-256-cbc and what else `openssl enc -list` names are";
        let digests = "sha256 and what else `openssl list -digest-algorithms` names are";
        let names = [cipher, digest].map(str::to_ascii_lowercase);
        let found = Cipher::fetch(cipher).filter(|found| found.mode() != Mode::Other);
        let found = found.ok_or_else(|| unsupported(&format!("cipher {cipher:?}"), ciphers))?;
        let digest =
            Digest::fetch(digest).ok_or_else(|| unsupported(&format!("digest {digest:?}"), digests))?;
        if passphrase.is_empty() {
            return Err(FormatError::Passphrase("it is empty"));
        }
        if passphrase.contains(&0) {
            return Err(FormatError::Passphrase("it holds a zero byte, where openssl would end it"));
        }
        if passphrase.len() > PASSPHRASE_BYTES_MAX {
            return Err(FormatError::Passphrase("it is longer than 1023 bytes, where openssl would cut it"));
        }
        let (cipher, algorithm) = (Arc::new(found), algorithm(cipher));
        Ok(Self { cipher, algorithm, passphrase, kdf, digest, has_salt: true, names })
    }

    /// The same for files that were made with `-nosalt`, which begin with their ciphertext. For reading: each file under one passphrase has
    /// the same key and IV.
    #[must_use]
    pub fn without_salt(self) -> Self {
        Self { has_salt: false, ..self }
    }

    /// Its text form.
    pub(super) const fn armor(&self) -> Armor {
        if self.has_salt { Armor::Base64 } else { Armor::UnsaltedBase64 }
    }

    /// Cipher, derivation and digest, on which the key depends beside the passphrase, which is in none of them.
    pub(super) fn key_facts(&self, direction: &str) -> KeyFacts {
        let about = [
            format!("cipher {}", self.names[0]),
            format!("{:?}", self.kdf),
            format!("digest {}{}", self.names[1], if self.has_salt { "" } else { ", no salt" }),
        ];
        let names = about.iter().map(String::as_str);
        KeyFacts { is_by_passphrase: true, ..KeyFacts::public("openssl", direction, names) }
    }

    /// The algorithm of its segments, where drivers have it.
    #[must_use]
    pub const fn algorithm(&self) -> Option<Algorithm> {
        self.algorithm
    }

    pub(super) fn slot_bytes(&self) -> u64 {
        self.cut().slot_bytes()
    }

    pub(super) fn seal(&self) -> Result<Sealing, FormatError> {
        let mut header = MAGIC.to_vec();
        header.resize(HEADER_BYTES, 0);
        fill_random(&mut header[MAGIC.len()..])?;
        let body = self.body(&header, Direction::Encrypt)?;
        Ok(Sealing { header, body })
    }

    pub(super) fn open(&self, start: &[u8]) -> Result<Opened, FormatError> {
        match self.cuts(start)? {
            Opened::Ready(_) => {
                Ok(Opened::Ready(vec![self.body(&start[..self.header_bytes()], Direction::Decrypt)?]))
            }
            Opened::NeedMore { start_bytes } => Ok(Opened::NeedMore { start_bytes }),
        }
    }

    fn body(&self, header: &[u8], direction: Direction) -> Result<Body, FormatError> {
        let (key_bytes, iv_bytes) = (self.cipher.key_bytes(), self.cipher.iv_bytes());
        let mut derived = Zeroizing::new(vec![0; key_bytes + iv_bytes]);
        let salt = header.get(MAGIC.len()..).unwrap_or_default();
        let made = match self.kdf {
            Kdf::Pbkdf2(iterations) => {
                self.digest.pbkdf2(&self.passphrase, salt, iterations.get(), &mut derived)
            }
            Kdf::Legacy => self.digest.bytes_to_key(&self.passphrase, salt, &mut derived),
        };
        made.map_err(|error: Refused| FormatError::Library(format!("no key from the passphrase: {error}")))?;
        let (key, iv) = derived.split_at(key_bytes);
        let Some(algorithm) = self.algorithm else {
            let cipher = SerialCipher::new(Arc::clone(&self.cipher), direction, key, iv);
            return Ok(Body::serial(self.cut(), cipher));
        };
        let iv = || <[u8; 16]>::try_from(iv).expect("AES has blocks of 16 bytes");
        let key = CipherKey { algorithm, direction, key };
        match algorithm.family() {
            Family::Ctr => {
                let ivs = Ivs::Blocks(iv(), SLICE_BYTES / BLOCK_BYTES);
                Body::unpadded(self.cut(), ivs, key)
            }
            Family::Cbc => Body::padded(self.cut(), Ivs::Chained(iv()), key),
            _ => Body::padded(self.cut(), Ivs::None, key),
        }
    }

    /// The cut of a file that begins with `start`: it is always the same.
    pub(super) fn cuts(&self, start: &[u8]) -> Result<Opened<Cut>, FormatError> {
        if !self.has_salt {
            // Nothing tells such a file from any other, and it may be a byte long.
            return Ok(Opened::Ready(vec![self.cut()]));
        }
        let compared = start.len().min(MAGIC.len());
        if start[..compared] != MAGIC[..compared] {
            return Err(FormatError::Header {
                format: "openssl enc",
                fact: "it does not start with Salted__",
            });
        }
        match start.len() {
            HEADER_BYTES.. => Ok(Opened::Ready(vec![self.cut()])),
            _ => Ok(Opened::NeedMore { start_bytes: HEADER_BYTES }),
        }
    }

    fn header_bytes(&self) -> usize {
        if self.has_salt { HEADER_BYTES } else { 0 }
    }

    pub(super) fn cut(&self) -> Cut {
        let growth = if self.cipher.mode() == Mode::Blocks { Growth::Padding } else { Growth::None };
        Cut::new(self.header_bytes() as u64, SLICE_BYTES, SLICE_BYTES, growth)
            .with_block_bytes(self.cipher.block_bytes() as u64)
    }
}

/// The algorithm of a cipher that drivers have, under openssl's name or its short one.
fn algorithm(name: &str) -> Option<Algorithm> {
    let name = match name.to_ascii_lowercase().as_str() {
        short @ ("aes128" | "aes192" | "aes256") => format!("AES-{}-CBC", &short[3..]),
        name => name.to_ascii_uppercase(),
    };
    let algorithm: Algorithm = name.parse().ok()?;
    matches!(algorithm.family(), Family::Cbc | Family::Ctr | Family::Ecb).then_some(algorithm)
}

/// The passphrase in a file: its first line without the line feed, as `openssl -pass file:` takes it. A carriage
/// return belongs to it.
#[must_use]
pub fn first_line(file: &[u8]) -> Zeroizing<Vec<u8>> {
    let line = file.split(|&byte| byte == b'\n').next().unwrap_or_default();
    Zeroizing::new(line.to_vec())
}
