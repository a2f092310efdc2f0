//! The key of one file, and what wraps it for a recipient and unwraps it with an identity.

use std::collections::BTreeSet;

use chacha20poly1305::aead::{Aead as _, KeyInit as _};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::stanza::Stanza;
use crate::error::FormatError;

/// Length of a file key in bytes.
pub(crate) const FILE_KEY_BYTES: usize = 16;
/// Length of a file key that is wrapped by ChaCha20-Poly1305.
pub(super) const WRAPPED_BYTES: usize = FILE_KEY_BYTES + 16;

/// The key of one file; wiped when it is dropped.
pub(crate) type FileKey = Zeroizing<[u8; FILE_KEY_BYTES]>;

/// What a recipient makes of a file key.
pub(crate) struct Wrapped {
    pub(crate) stanzas: Vec<Stanza>,
    /// Recipients go together in a file only where their labels are the same.
    pub(crate) labels: BTreeSet<String>,
}

/// A recipient.
pub(crate) trait Wrap: Send + Sync {
    /// Wraps the key of a file.
    fn wrap(&self, file_key: &FileKey) -> Result<Wrapped, FormatError>;
}

/// An identity.
pub(crate) trait Unwrap: Send + Sync {
    /// The key of the file that has these stanzas, `None` where none is for this identity.
    ///
    /// # Errors
    ///
    /// [`FormatError::Header`] where a stanza of its kind cannot be one, and what else kept it from looking.
    fn unwrap(&self, stanzas: &[Stanza]) -> Result<Option<FileKey>, FormatError>;

    /// What it is called where no identity fits; nothing secret.
    fn name(&self) -> String;
}

impl Wrapped {
    pub(super) fn one(stanza: Stanza) -> Self {
        Self { stanzas: vec![stanza], labels: BTreeSet::new() }
    }

    pub(super) fn labelled(self, label: &str) -> Self {
        Self { labels: BTreeSet::from([label.to_owned()]), ..self }
    }
}

/// The first key that `unwrap` gives for a stanza of a kind.
pub(super) fn unwrap_each(
    stanzas: &[Stanza],
    kind: &str,
    unwrap: impl Fn(&Stanza) -> Result<Option<FileKey>, FormatError>,
) -> Result<Option<FileKey>, FormatError> {
    for stanza in stanzas.iter().filter(|stanza| stanza.kind == kind) {
        if let Some(file_key) = unwrap(stanza)? {
            return Ok(Some(file_key));
        }
    }
    Ok(None)
}

/// HKDF-SHA-256 with an output of 32 bytes.
pub(crate) fn hkdf(salt: &[u8], info: &[u8], secret: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    Hkdf::<Sha256>::new(Some(salt), secret).expand(info, &mut *key).expect("32 bytes are not too long");
    key
}

/// A text under a key that is used once.
pub(super) fn seal(key: &[u8; 32], nonce: &[u8; 12], text: &[u8]) -> Vec<u8> {
    let sealed = ChaCha20Poly1305::new(key.into()).encrypt(Nonce::from_slice(nonce), text);
    sealed.expect("a file key is not too long")
}

/// The file key in what [`seal`] made; `None` where the key is another.
pub(super) fn open(key: &[u8; 32], nonce: &[u8; 12], sealed: &[u8]) -> Option<FileKey> {
    let opened = ChaCha20Poly1305::new(key.into()).decrypt(Nonce::from_slice(nonce), sealed).ok();
    let opened = Zeroizing::new(opened?);
    Some(Zeroizing::new((**opened).try_into().ok()?))
}

/// A nonce of zeros, for keys that are used once.
pub(super) const ZERO_NONCE: [u8; 12] = [0; 12];

/// A stanza that its kind does not allow.
pub(super) fn malformed(fact: &'static str) -> FormatError {
    FormatError::Header { format: "age", fact }
}

/// Random bytes from the kernel.
pub(super) fn random<const N: usize>() -> Result<Zeroizing<[u8; N]>, FormatError> {
    let mut bytes = Zeroizing::new([0; N]);
    crate::random::fill_random(&mut *bytes)?;
    Ok(bytes)
}
