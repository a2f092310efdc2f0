//! The payload that opens a session: 1072 bytes, as QEMU sends them since version 8. Shorter, older layouts are refused.
//!
//! QEMU fills it for ciphers (and chains of cipher and hash, which this wire names and no host of ours serves). It has no field
//! for the other services, so between Evener's own client and host:
//!
//! | service | `op_code` | `cipher` | `hash` | `hash_len` | key |
//! |---|---|---|---|---|---|
//! | AEAD | 0x302 | AEAD number | 0 | bytes of the tag | `key` |
//! | hash | 0x102 | 0 | hash number | bytes of the digest | none |
//! | MAC | 0x202 | 0 | MAC number | bytes of the digest | `auth_key` |

use crate::WireError;
use crate::bytes::{at, put, u32_at, u64_at};
use crate::payload::exact;

/// Bytes of the payload.
pub const SESSION_BYTES: usize = 1072;
/// Longest cipher key in bytes.
pub const KEY_BYTES_MAX: usize = 64;
/// Longest MAC key in bytes.
pub const AUTH_KEY_BYTES_MAX: usize = 512;

/// The algorithm and its key. Keys are borrowed: the holder of the payload wipes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CreateSession<'k> {
    /// One of [`crate::numbers::create`].
    pub op_code: u64,
    /// Number of the cipher, or of the AEAD algorithm.
    pub cipher: u32,
    /// Number of the hash or MAC.
    pub hash: u32,
    /// Length of the digest or tag in bytes.
    pub hash_bytes: u32,
    /// Length of the associated data of each request, where it is fixed; 0 otherwise.
    pub aad_bytes: u32,
    /// One of [`crate::numbers::symmetric`], for ciphers.
    pub op_type: u8,
    /// One of [`crate::numbers::direction`].
    pub direction: u8,
    /// How the hash is used in a chain.
    pub hash_mode: u8,
    /// Which of cipher and hash comes first in a chain.
    pub chain_order: u8,
    /// Key of the cipher or AEAD algorithm.
    pub key: &'k [u8],
    /// Key of the MAC.
    pub auth_key: &'k [u8],
}

impl<'k> CreateSession<'k> {
    /// Reads the payload of a request.
    ///
    /// # Errors
    ///
    /// Another length than [`SESSION_BYTES`], or a key that claims to be longer than its field.
    pub fn parse(payload: &'k [u8]) -> Result<Self, WireError> {
        exact(payload, "a session", SESSION_BYTES)?;
        let key = |offset: usize, len: u32, bytes_max: usize| {
            let bytes = usize::try_from(len).ok().filter(|bytes| *bytes <= bytes_max);
            Ok(&payload[offset..offset + bytes.ok_or(WireError::KeyLength(len))?])
        };
        let [op_type, direction, hash_mode, chain_order] = at(payload, 32);
        Ok(Self {
            op_code: u64_at(payload, 0),
            cipher: u32_at(payload, 8),
            hash: u32_at(payload, 16),
            hash_bytes: u32_at(payload, 20),
            aad_bytes: u32_at(payload, 28),
            op_type,
            direction,
            hash_mode,
            chain_order,
            key: key(KEY_AT, u32_at(payload, 12), KEY_BYTES_MAX)?,
            auth_key: key(AUTH_KEY_AT, u32_at(payload, 24), AUTH_KEY_BYTES_MAX)?,
        })
    }

    /// Writes the payload of a request over `payload`, whole; the session's id is 0 in it. The pointers of the C struct stay
    /// empty: the peer has no use for an address.
    ///
    /// # Errors
    ///
    /// A key longer than its field; nothing is written then.
    pub fn write(&self, payload: &mut [u8; SESSION_BYTES]) -> Result<(), WireError> {
        let bytes_of = |key: &[u8], bytes_max: usize| {
            let len = u32::try_from(key.len()).unwrap_or(u32::MAX);
            if key.len() <= bytes_max { Ok(len) } else { Err(WireError::KeyLength(len)) }
        };
        let (key_bytes, auth_key_bytes) =
            (bytes_of(self.key, KEY_BYTES_MAX)?, bytes_of(self.auth_key, AUTH_KEY_BYTES_MAX)?);
        payload.fill(0);
        put(payload, 0, self.op_code.to_ne_bytes());
        let fields = [self.cipher, key_bytes, self.hash, self.hash_bytes, auth_key_bytes, self.aad_bytes];
        for (place, field) in fields.iter().enumerate() {
            put(payload, 8 + place * 4, field.to_ne_bytes());
        }
        put(payload, 32, [self.op_type, self.direction, self.hash_mode, self.chain_order]);
        payload[KEY_AT..KEY_AT + self.key.len()].copy_from_slice(self.key);
        payload[AUTH_KEY_AT..AUTH_KEY_AT + self.auth_key.len()].copy_from_slice(self.auth_key);
        Ok(())
    }
}

impl CreateSession<'_> {
    /// Puts the host's answer into a payload, and takes the keys out: they need not travel back.
    pub fn answer(payload: &mut [u8; SESSION_BYTES], id: i64) {
        payload[KEY_AT..AUTH_KEY_AT + AUTH_KEY_BYTES_MAX].fill(0);
        put(payload, ID_AT, id.to_ne_bytes());
    }

    /// The id in the host's answer; negative where it refused.
    ///
    /// # Errors
    ///
    /// Another length than [`SESSION_BYTES`].
    pub fn answered_id(payload: &[u8]) -> Result<i64, WireError> {
        exact(payload, "a session", SESSION_BYTES)?;
        Ok(i64::from_ne_bytes(at(payload, ID_AT)))
    }
}

impl std::fmt::Debug for CreateSession<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "CreateSession({:#x}, cipher {}, hash {}, keys hidden)",
            self.op_code, self.cipher, self.hash
        )
    }
}

const KEY_AT: usize = 56;
const AUTH_KEY_AT: usize = 120;
const ID_AT: usize = 1064;

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::numbers::{cipher, create, direction, symmetric};

    /// What QEMU 10 sends for AES-128-CBC encryption, by the layout of its struct.
    fn image() -> [u8; SESSION_BYTES] {
        let mut image = [0; SESSION_BYTES];
        (image[0], image[8], image[12]) = (2, 3, 16);
        (image[32], image[33]) = (1, 1);
        // Two pointers into QEMU's memory, of no meaning.
        (image[41], image[49]) = (0x55, 0x55);
        image[56..72].fill(0xA5);
        image
    }

    #[test]
    fn a_session_has_the_layout_of_qemus_struct() {
        let image = image();
        let session = CreateSession::parse(&image).unwrap();
        let expected = CreateSession {
            op_code: create::CIPHER,
            cipher: cipher::AES_CBC,
            hash: 0,
            hash_bytes: 0,
            aad_bytes: 0,
            op_type: symmetric::CIPHER,
            direction: direction::ENCRYPT,
            hash_mode: 0,
            chain_order: 0,
            key: &[0xA5; 16],
            auth_key: &[],
        };
        assert_eq!(session, expected);
        let mut written = [9; SESSION_BYTES];
        session.write(&mut written).unwrap();
        let mut without_pointers = image;
        without_pointers[40..56].fill(0);
        assert_eq!(written, without_pointers);
        assert!(!format!("{session:?}").contains("165"));
    }

    #[test]
    fn the_fields_of_hash_and_mac_stand_where_qemus_do() {
        let mut image = [0; SESSION_BYTES];
        // hash_alg, hash_result_len, auth_key_len, add_len; mode and order
        (image[1], image[0], image[16], image[20], image[24], image[28]) = (2, 2, 4, 32, 3, 13);
        (image[34], image[35]) = (2, 1);
        image[120..123].copy_from_slice(b"key");
        let session = CreateSession::parse(&image).unwrap();
        assert_eq!((session.op_code, session.hash, session.hash_bytes), (create::MAC, 4, 32));
        assert_eq!((session.aad_bytes, session.hash_mode, session.chain_order), (13, 2, 1));
        assert_eq!(session.auth_key, b"key");
        let mut written = [0; SESSION_BYTES];
        session.write(&mut written).unwrap();
        assert_eq!(written, image);
    }

    #[test]
    fn layouts_of_older_peers_and_keys_beyond_their_field_are_refused() {
        let mut image = image();
        let error = WireError::Length { what: "a session", needed: 1072, given: 632 };
        assert_eq!(CreateSession::parse(&image[..632]), Err(error));
        image[12] = 65;
        assert_eq!(CreateSession::parse(&image), Err(WireError::KeyLength(65)));
        (image[12], image[15]) = (16, 0x80);
        assert_eq!(CreateSession::parse(&image), Err(WireError::KeyLength(0x8000_0010)));
        (image[15], image[25]) = (0, 3);
        assert_eq!(CreateSession::parse(&image), Err(WireError::KeyLength(768)));
    }

    #[test]
    fn the_answer_carries_the_id_and_no_key() {
        let mut image = image();
        CreateSession::answer(&mut image, -1);
        assert_eq!(image[1064..], [0xFF; 8]);
        assert!(image[56..632].iter().all(|byte| *byte == 0));
        assert_eq!(CreateSession::answered_id(&image), Ok(-1));
    }
}
