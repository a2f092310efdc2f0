//! Evener's algorithms in the wire's numbers: the one table that hosts and clients go by.

use evener_core::{Algorithm, Direction, Family, Hash};

use crate::Config;
use crate::numbers::{aead, cipher, create, direction, hash, mac, operation, service};

/// What opens a session, of the numbers in [`create`].
#[must_use]
pub const fn create_code(algorithm: Algorithm) -> u64 {
    match algorithm.family() {
        Family::Ecb | Family::Cbc | Family::Ctr | Family::Xts => create::CIPHER,
        Family::Gcm | Family::ChaCha20Poly1305 => create::AEAD,
        Family::Digest(_) => create::HASH,
        Family::Hmac(_) => create::MAC,
    }
}

/// The algorithm's number within its service. Those of AES stand for all lengths of key.
#[must_use]
pub const fn number_of(algorithm: Algorithm) -> u32 {
    match algorithm.family() {
        Family::Ecb => cipher::AES_ECB,
        Family::Cbc => cipher::AES_CBC,
        Family::Ctr => cipher::AES_CTR,
        Family::Xts => cipher::AES_XTS,
        Family::Gcm => aead::GCM,
        Family::ChaCha20Poly1305 => aead::CHACHA20_POLY1305,
        Family::Digest(Hash::Md5) => hash::MD5,
        Family::Digest(Hash::Sha1) => hash::SHA1,
        Family::Digest(Hash::Sha256) => hash::SHA256,
        Family::Hmac(Hash::Md5) => mac::HMAC_MD5,
        Family::Hmac(Hash::Sha1) => mac::HMAC_SHA1,
        Family::Hmac(Hash::Sha256) => mac::HMAC_SHA256,
    }
}

/// The operation of a request, of the numbers in [`operation`]. Hashes and MACs have one for both directions.
#[must_use]
pub const fn operation_of(algorithm: Algorithm, direction: Direction) -> u32 {
    match (create_code(algorithm), direction) {
        (create::HASH, _) => operation::HASH,
        (create::MAC, _) => operation::MAC,
        (create::AEAD, Direction::Encrypt) => operation::AEAD_ENCRYPT,
        (create::AEAD, Direction::Decrypt) => operation::AEAD_DECRYPT,
        (_, Direction::Encrypt) => operation::CIPHER_ENCRYPT,
        (_, Direction::Decrypt) => operation::CIPHER_DECRYPT,
    }
}

/// A session's direction, of the numbers in [`direction`].
#[must_use]
pub const fn direction_of(way: Direction) -> u8 {
    match way {
        Direction::Encrypt => direction::ENCRYPT,
        Direction::Decrypt => direction::DECRYPT,
    }
}

impl Config {
    /// Adds an algorithm, with its service, to what is done.
    pub const fn add(&mut self, algorithm: Algorithm) {
        let number = number_of(algorithm);
        let service = match create_code(algorithm) {
            create::HASH => {
                self.hashes |= 1 << number;
                service::HASH
            }
            create::MAC => {
                self.macs |= 1 << number;
                service::MAC
            }
            create::AEAD => {
                self.aeads |= 1 << number;
                service::AEAD
            }
            _ => {
                self.ciphers |= 1 << number;
                service::CIPHER
            }
        };
        self.services |= 1 << service;
    }

    /// Whether an algorithm is among what is done.
    #[must_use]
    pub fn does(&self, algorithm: Algorithm) -> bool {
        let mask = match create_code(algorithm) {
            create::HASH => self.hashes.into(),
            create::MAC => self.macs,
            create::AEAD => self.aeads.into(),
            _ => self.ciphers,
        };
        mask >> number_of(algorithm) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of Linux, include/uapi/linux/virtio_crypto.h.
    #[test]
    fn numbers_are_those_of_linux() {
        let numbers = |algorithm| (create_code(algorithm), number_of(algorithm));
        assert_eq!(numbers(Algorithm::Aes128Ecb), (0x002, 2));
        assert_eq!(numbers(Algorithm::Aes256Cbc), (0x002, 3));
        assert_eq!(numbers(Algorithm::Aes128Ctr), (0x002, 4));
        assert_eq!(numbers(Algorithm::Aes256Xts), (0x002, 13));
        assert_eq!(numbers(Algorithm::Md5), (0x102, 1));
        assert_eq!(numbers(Algorithm::Sha1), (0x102, 2));
        assert_eq!(numbers(Algorithm::Sha256), (0x102, 4));
        assert_eq!(numbers(Algorithm::HmacSha256), (0x202, 4));
        assert_eq!(numbers(Algorithm::Aes256Gcm), (0x302, 1));
        assert_eq!(numbers(Algorithm::ChaCha20Poly1305), (0x302, 3));
        assert_eq!(operation_of(Algorithm::Aes128Cbc, Direction::Decrypt), 1);
        assert_eq!(operation_of(Algorithm::HmacSha1, Direction::Encrypt), 0x200);
        assert_eq!(operation_of(Algorithm::Aes128Gcm, Direction::Decrypt), 0x301);
        assert_eq!([Direction::Encrypt, Direction::Decrypt].map(direction_of), [1, 2]);
    }

    #[test]
    fn a_configuration_does_what_was_added_in_all_lengths_of_key_and_nothing_else() {
        for &added in Algorithm::ALL {
            let mut config = Config::default();
            config.add(added);
            assert_eq!(config.services.count_ones(), 1);
            for &other in Algorithm::ALL {
                let is_same = added.family() == other.family();
                assert_eq!(config.does(other), is_same, "{added} and {other}");
            }
        }
    }
}
