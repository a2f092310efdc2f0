//! What authenticates segments whose cipher does not: HMAC of nonce and ciphertext, cut (Tink's AES-CTR-HMAC).

use std::fmt;

use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use zeroize::Zeroizing;

use crate::keys::keyset::TinkHash;

/// The key, the hash and the length of the tags.
pub struct SegmentMac {
    hash: TinkHash,
    key: Zeroizing<Vec<u8>>,
    tag_bytes: usize,
}

impl fmt::Debug for SegmentMac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SegmentMac({:?}, {} bytes, key hidden)", self.hash, self.tag_bytes)
    }
}

impl SegmentMac {
    pub(super) fn new(hash: TinkHash, key: &[u8], tag_bytes: usize) -> Self {
        Self { hash, key: Zeroizing::new(key.to_vec()), tag_bytes }
    }

    /// Length of a tag in bytes.
    #[must_use]
    pub const fn tag_bytes(&self) -> usize {
        self.tag_bytes
    }

    /// Writes the tag of a ciphertext under a nonce; `tag` has its length.
    pub fn authenticate(&self, nonce: &[u8; 16], cipher: &[u8], tag: &mut [u8]) {
        match self.hash {
            TinkHash::Sha1 => made(self.of::<Hmac<sha1::Sha1>>(nonce, cipher), tag),
            TinkHash::Sha256 => made(self.of::<Hmac<sha2::Sha256>>(nonce, cipher), tag),
            TinkHash::Sha512 => made(self.of::<Hmac<sha2::Sha512>>(nonce, cipher), tag),
        }
    }

    /// Whether a tag is that of a ciphertext under a nonce.
    #[must_use]
    pub fn is_authentic(&self, nonce: &[u8; 16], cipher: &[u8], tag: &[u8]) -> bool {
        let fits = match self.hash {
            TinkHash::Sha1 => self.of::<Hmac<sha1::Sha1>>(nonce, cipher).verify_truncated_left(tag),
            TinkHash::Sha256 => self.of::<Hmac<sha2::Sha256>>(nonce, cipher).verify_truncated_left(tag),
            TinkHash::Sha512 => self.of::<Hmac<sha2::Sha512>>(nonce, cipher).verify_truncated_left(tag),
        };
        tag.len() == self.tag_bytes && fits.is_ok()
    }

    fn of<M: Mac + KeyInit>(&self, nonce: &[u8; 16], cipher: &[u8]) -> M {
        let mac = <M as Mac>::new_from_slice(&self.key).expect("a MAC takes a key of any length");
        mac.chain_update(nonce).chain_update(cipher)
    }
}

fn made(mac: impl Mac, tag: &mut [u8]) {
    let whole = mac.finalize().into_bytes();
    tag.copy_from_slice(&whole[..tag.len()]);
}
