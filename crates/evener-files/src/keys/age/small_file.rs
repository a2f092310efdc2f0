//! Small age files under a passphrase, whole in memory: identity files, and the identity of a tree.

use std::io::Read as _;

use chacha20poly1305::aead::{Aead as _, KeyInit as _};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use secrecy::SecretString;
use zeroize::Zeroizing;

use super::facts::identity;
use super::file_key::{FileKey, Unwrap as _, Wrap as _, hkdf, random};
use super::header::{Header, NONCE_BYTES};
use super::native::{Passphrase, WorkFactors};
use crate::armor::{dearmored, is_armored};
use crate::error::FormatError;

/// Bytes of a chunk, and its tag.
const CHUNK_BYTES: usize = (64 << 10) + 16;
/// What the passphrase of such a file may cost: up to what age allows, 4 GiB, for the user named the file.
pub(super) const FACTORS: WorkFactors = WorkFactors { new: 18, most: 22 };

/// A file that was taken apart.
pub(super) struct Sealed {
    header: Header,
    payload: Vec<u8>,
}

impl Sealed {
    /// Takes a file apart, armored or not.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, FormatError> {
        let damaged = || identity("the encrypted file is damaged");
        let mut binary = Vec::new();
        if is_armored(bytes) {
            dearmored(bytes).and_then(|mut file| file.read_to_end(&mut binary)).map_err(|_| damaged())?;
        } else {
            binary.extend_from_slice(bytes);
        }
        let (header, payload) = Header::read(&binary).map_err(|_| damaged())?;
        if !header.is_of_passphrase() {
            return Err(identity("the encrypted file is not encrypted with a passphrase"));
        }
        Ok(Self { payload: payload.to_vec(), header })
    }

    /// What it holds; `None` where the passphrase is another.
    pub(super) fn open(
        &self,
        passphrase: SecretString,
        factors: WorkFactors,
    ) -> Result<Option<Zeroizing<Vec<u8>>>, FormatError> {
        let damaged = || identity("the encrypted file is damaged");
        let Some(file_key) = Passphrase::new(passphrase, factors).unwrap(self.header.stanzas())? else {
            return Ok(None);
        };
        self.header.check(&file_key).map_err(|_| damaged())?;
        let (nonce, chunks) = self.payload.split_at_checked(NONCE_BYTES).ok_or_else(damaged)?;
        let cipher = cipher(nonce, &file_key);
        let count = chunks.len().div_ceil(CHUNK_BYTES).max(1);
        let mut plain = Zeroizing::new(Vec::with_capacity(chunks.len()));
        for (index, chunk) in chunks.chunks(CHUNK_BYTES).enumerate() {
            let nonce = chunk_nonce(index, index + 1 == count);
            let opened = cipher.decrypt(Nonce::from_slice(&nonce), chunk).map_err(|_| damaged())?;
            plain.extend_from_slice(&Zeroizing::new(opened));
        }
        if chunks.is_empty() { Err(damaged()) } else { Ok(Some(plain)) }
    }
}

/// A file of one chunk under a passphrase.
pub(super) fn seal(
    plain: &[u8],
    passphrase: SecretString,
    factors: WorkFactors,
) -> Result<Vec<u8>, FormatError> {
    let file_key = random()?;
    let wrapped = Passphrase::new(passphrase, factors).wrap(&file_key)?;
    let mut file = Header::new(wrapped.stanzas).written(&file_key);
    let nonce = random::<NONCE_BYTES>()?;
    file.extend_from_slice(&*nonce);
    let sealed = cipher(&*nonce, &file_key).encrypt(Nonce::from_slice(&chunk_nonce(0, true)), plain);
    file.extend_from_slice(&sealed.map_err(|_| FormatError::Library("a file too long".into()))?);
    Ok(file)
}

fn cipher(nonce: &[u8], file_key: &FileKey) -> ChaCha20Poly1305 {
    ChaCha20Poly1305::new((&*hkdf(nonce, b"payload", &**file_key)).into())
}

fn chunk_nonce(index: usize, last: bool) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[3..11].copy_from_slice(&(index as u64).to_be_bytes());
    nonce[11] = last.into();
    nonce
}
