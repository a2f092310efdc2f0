//! What a pass computes, as the library numbers it: cipher, direction, key length, hash, and the limits of a length.

use evener_core::{BLOCK_BYTES, Hash};

use crate::ffi::keys::KeySize;
use crate::ffi::layout::{ImbJob, LANE_BYTES_MAX, cipher, direction, hash, order};

/// What all jobs of a pass do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    CbcEncrypt(KeySize),
    CbcDecrypt(KeySize),
    Ctr(KeySize),
    EcbEncrypt(KeySize),
    EcbDecrypt(KeySize),
    Digest(Hash),
    Hmac(Hash),
}

impl Work {
    /// Longest job in bytes. The library counts the bytes of a lane in 16 bits.
    #[inline]
    pub(super) const fn bytes_max(self) -> usize {
        match self {
            Self::CbcDecrypt(_) | Self::Ctr(_) => usize::MAX,
            Self::CbcEncrypt(_) | Self::EcbEncrypt(_) | Self::EcbDecrypt(_) => {
                LANE_BYTES_MAX / BLOCK_BYTES * BLOCK_BYTES
            }
            Self::Digest(_) | Self::Hmac(_) => LANE_BYTES_MAX,
        }
    }

    /// Bits of a length that no cipher job may have: a part of a block, or any where there is no cipher.
    pub(super) const fn partial_bits(self) -> usize {
        match self {
            Self::Ctr(_) => 0,
            Self::Digest(_) | Self::Hmac(_) => usize::MAX,
            Self::CbcEncrypt(_) | Self::CbcDecrypt(_) | Self::EcbEncrypt(_) | Self::EcbDecrypt(_) => {
                BLOCK_BYTES - 1
            }
        }
    }

    pub(super) const fn is_cipher(self) -> bool {
        !matches!(self, Self::Digest(_) | Self::Hmac(_))
    }

    /// Cipher, direction and key length, as the library numbers them.
    pub(super) const fn cipher(self) -> (u32, u32, u32) {
        match self {
            Self::CbcEncrypt(size) => (cipher::CBC, direction::ENCRYPT, size.bytes()),
            Self::CbcDecrypt(size) => (cipher::CBC, direction::DECRYPT, size.bytes()),
            Self::Ctr(size) => (cipher::CTR, direction::ENCRYPT, size.bytes()),
            Self::EcbEncrypt(size) => (cipher::ECB, direction::ENCRYPT, size.bytes()),
            Self::EcbDecrypt(size) => (cipher::ECB, direction::DECRYPT, size.bytes()),
            Self::Digest(_) | Self::Hmac(_) => (cipher::NULL, direction::ENCRYPT, 0),
        }
    }

    /// Hash, as the library numbers it, and length of its tag.
    pub(super) const fn hash(self) -> (u32, usize) {
        match self {
            Self::Digest(Hash::Sha1) => (hash::SHA1, 20),
            Self::Digest(_) => (hash::SHA256, 32),
            Self::Hmac(Hash::Sha1) => (hash::HMAC_SHA1, 20),
            Self::Hmac(Hash::Sha256) => (hash::HMAC_SHA256, 32),
            Self::Hmac(Hash::Md5) => (hash::HMAC_MD5, 16),
            _ => (hash::NULL, 0),
        }
    }

    /// A slot with everything in it that is the same for all jobs.
    pub(super) fn template(self) -> ImbJob {
        let (cipher_mode, cipher_direction, key_bytes) = self.cipher();
        let (hash_algorithm, tag_bytes) = self.hash();
        let has_iv = matches!(self, Self::CbcEncrypt(_) | Self::CbcDecrypt(_) | Self::Ctr(_));
        ImbJob {
            key_bytes: u64::from(key_bytes),
            iv_bytes: if has_iv { BLOCK_BYTES as u64 } else { 0 },
            tag_bytes: tag_bytes as u64,
            cipher_mode,
            cipher_direction,
            hash_algorithm,
            chain_order: if self.is_cipher() { order::CIPHER_HASH } else { order::HASH_CIPHER },
            ..ImbJob::EMPTY
        }
    }
}
