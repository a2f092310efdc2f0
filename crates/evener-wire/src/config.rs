//! What a device says of itself: `struct virtio_crypto_config` (virtio 1.2, 5.9.4) and the message that carries it.

use crate::WireError;
use crate::bytes::{le32_at, le64_at, put_all, u32_at};
use crate::payload::exact;

/// Bytes of the configuration.
pub const CONFIG_BYTES: usize = 56;

/// What a host does and its limits. Bit `n` of a mask stands for the number `n` in [`crate::numbers`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Bit 0: the module is ready.
    pub status: u32,
    /// Most data rings of a connection.
    pub data_queues_max: u32,
    /// Services: bit 0 ciphers, 1 hashes, 2 MACs, 3 AEAD.
    pub services: u32,
    /// Ciphers, numbers 0 to 63.
    pub ciphers: u64,
    /// Hashes.
    pub hashes: u32,
    /// MACs, numbers 0 to 63.
    pub macs: u64,
    /// AEAD algorithms.
    pub aeads: u32,
    /// Longest cipher key in bytes.
    pub cipher_key_bytes_max: u32,
    /// Longest MAC key in bytes.
    pub auth_key_bytes_max: u32,
    /// Longest content of a request in bytes.
    pub request_bytes_max: u64,
}

impl Config {
    /// The bit of [`Config::status`] that says ready.
    pub const READY: u32 = 1;

    /// Reads the 56 bytes.
    ///
    /// # Errors
    ///
    /// Another length.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        exact(bytes, "a configuration", CONFIG_BYTES)?;
        let field = |place: usize| le32_at(bytes, place * 4);
        let mask = |place: usize| u64::from(field(place)) | u64::from(field(place + 1)) << 32;
        Ok(Self {
            status: field(0),
            data_queues_max: field(1),
            services: field(2),
            ciphers: mask(3),
            hashes: field(5),
            macs: mask(6),
            aeads: field(8),
            cipher_key_bytes_max: field(9),
            auth_key_bytes_max: field(10),
            request_bytes_max: le64_at(bytes, 48),
        })
    }

    /// The 56 bytes. The mask of asymmetric algorithms is empty.
    #[must_use]
    pub fn to_bytes(self) -> [u8; CONFIG_BYTES] {
        let mut bytes = [0; CONFIG_BYTES];
        // Low word before high word: together a little-endian number of eight bytes.
        put_all!(
            bytes, to_le_bytes,
            0: self.status, 4: self.data_queues_max, 8: self.services, 12: self.ciphers, 20: self.hashes,
            24: self.macs, 32: self.aeads, 36: self.cipher_key_bytes_max, 40: self.auth_key_bytes_max,
            48: self.request_bytes_max
        );
        bytes
    }
}

/// Which part of the configuration a message is about; its bytes follow in the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigMessage {
    /// First byte.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// Of no meaning for reading.
    pub flags: u32,
}

impl ConfigMessage {
    /// Bytes of the message in front of the contents.
    pub const HEAD_BYTES: usize = 12;

    /// Reads the head and checks that contents of the size it names follow.
    ///
    /// # Errors
    ///
    /// Another length.
    pub fn parse(payload: &[u8]) -> Result<Self, WireError> {
        if payload.len() < Self::HEAD_BYTES {
            exact(payload, "a part of a configuration", Self::HEAD_BYTES)?;
        }
        let message =
            Self { offset: u32_at(payload, 0), size: u32_at(payload, 4), flags: u32_at(payload, 8) };
        let contents = usize::try_from(message.size).unwrap_or(usize::MAX);
        exact(payload, "a part of a configuration", contents.saturating_add(Self::HEAD_BYTES))?;
        Ok(message)
    }

    /// The requested part of `config`, `None` where it reaches beyond the end.
    #[must_use]
    pub fn part(self, config: &[u8; CONFIG_BYTES]) -> Option<&[u8]> {
        let first = usize::try_from(self.offset).ok()?;
        let end = first.checked_add(usize::try_from(self.size).ok()?)?;
        config.get(first..end)
    }

    /// The message with these contents.
    #[must_use]
    pub fn to_bytes(self, contents: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::HEAD_BYTES + contents.len());
        [self.offset, self.size, self.flags].iter().for_each(|field| bytes.extend(field.to_ne_bytes()));
        bytes.extend_from_slice(contents);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_has_the_layout_of_virtio_crypto_config() {
        let mut image = [0; CONFIG_BYTES];
        // status, max_dataqueues, crypto_services
        (image[0], image[4], image[8]) = (1, 2, 0b1011);
        // cipher_algo_l: CBC (3), CTR (4), XTS (13); cipher_algo_h: bit 0 is number 32
        (image[12], image[13], image[16]) = (0b1_1000, 0b10_0000, 1);
        // hash_algo: SHA-256 (4); mac_algo_l: HMAC-SHA-256 (4); aead_algo: GCM (1)
        (image[20], image[24], image[32]) = (0b1_0000, 0b1_0000, 0b10);
        // max_cipher_key_len 64, max_auth_key_len 512, akcipher_algo none, max_size 1 MiB
        (image[36], image[41], image[50]) = (64, 2, 16);
        let config = Config {
            status: Config::READY,
            data_queues_max: 2,
            services: 0b1011,
            ciphers: 1 << 3 | 1 << 4 | 1 << 13 | 1 << 32,
            hashes: 1 << 4,
            macs: 1 << 4,
            aeads: 1 << 1,
            cipher_key_bytes_max: 64,
            auth_key_bytes_max: 512,
            request_bytes_max: 1 << 20,
        };
        assert_eq!(Config::parse(&image), Ok(config));
        assert_eq!(config.to_bytes(), image);
        assert!(Config::parse(&image[1..]).is_err());
    }

    #[test]
    fn a_part_beyond_the_end_is_refused_and_not_cut() {
        let config = [7; CONFIG_BYTES];
        let part = |offset, size| ConfigMessage { offset, size, flags: 0 }.part(&config).map(<[u8]>::len);
        assert_eq!(part(0, 56), Some(56));
        assert_eq!(part(48, 8), Some(8));
        assert_eq!(part(48, 9), None);
        assert_eq!(part(u32::MAX, u32::MAX), None);
    }

    #[test]
    fn contents_have_the_size_that_their_message_names() {
        let message = ConfigMessage { offset: 4, size: 4, flags: 0 };
        let bytes = message.to_bytes(&[9; 4]);
        assert_eq!(ConfigMessage::parse(&bytes), Ok(message));
        assert!(ConfigMessage::parse(&bytes[..15]).is_err());
        assert!(ConfigMessage::parse(&bytes[..11]).is_err());
    }
}
