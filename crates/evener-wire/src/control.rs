//! Sessions as a device itself gets them: requests of its control queue (`struct virtio_crypto_op_ctrl_req`, virtio 1.2, 5.9.7.2;
//! Linux `include/uapi/linux/virtio_crypto.h`). All numbers are little-endian.
//!
//! A session is opened by [`CONTROL_BYTES`] and its key, and answered by [`ANSWER_BYTES`]; it is closed by as many bytes, and answered
//! by one, a [`crate::Status`].

use crate::bytes::{le32_at, le64_at, put};
use crate::numbers::service;
use crate::payload::exact;
use crate::{CreateSession, WireError};

/// Bytes of a request without its key.
pub const CONTROL_BYTES: usize = 72;
/// Bytes of the answer to one that opens a session.
pub const ANSWER_BYTES: usize = 16;

/// Behind the header of 16 bytes, where what depends on the service begins.
const PARAMETERS_AT: usize = 16;
/// Where a cipher's session says that it is no chain.
const OP_TYPE_AT: usize = PARAMETERS_AT + 48;

impl<'k> CreateSession<'k> {
    /// The request that opens this session, for the first data queue, and the key that goes behind it.
    #[must_use]
    pub fn to_control(&self) -> ([u8; CONTROL_BYTES], &'k [u8]) {
        let code = code_of(self.op_code);
        let (cipher, hash, direction) = (self.cipher, self.hash, u32::from(self.direction));
        let key = if code >> 8 == service::MAC { self.auth_key } else { self.key };
        let key_bytes = u32::try_from(key.len()).unwrap_or(u32::MAX);
        let mut request = [0; CONTROL_BYTES];
        put(&mut request, 0, code.to_le_bytes());
        let (algorithm, parameters): (u32, &[u32]) = match code >> 8 {
            service::HASH => (hash, &[hash, self.hash_bytes]),
            service::MAC => (hash, &[hash, self.hash_bytes, key_bytes]),
            service::AEAD => (cipher, &[cipher, key_bytes, self.hash_bytes, self.aad_bytes, direction]),
            _ => {
                put(&mut request, OP_TYPE_AT, u32::from(self.op_type).to_le_bytes());
                (cipher, &[cipher, key_bytes, direction])
            }
        };
        put(&mut request, 4, algorithm.to_le_bytes());
        for (place, parameter) in parameters.iter().enumerate() {
            put(&mut request, PARAMETERS_AT + place * 4, parameter.to_le_bytes());
        }
        (request, key)
    }
}

/// The request that closes a session, which a request of code `op_code` opened.
#[must_use]
pub fn close_request(op_code: u64, id: u64) -> [u8; CONTROL_BYTES] {
    let mut request = [0; CONTROL_BYTES];
    // The number of "close" is the next after that of "open", of each service.
    put(&mut request, 0, (code_of(op_code) | 1).to_le_bytes());
    put(&mut request, PARAMETERS_AT, id.to_le_bytes());
    request
}

/// Codes have 16 bits; messages between processes have a wider field for them.
fn code_of(op_code: u64) -> u32 {
    let [low, high, ..] = op_code.to_le_bytes();
    u16::from_le_bytes([low, high]).into()
}

/// A session's id in the answer to the request that opens it, or the number of the status by which it was refused.
///
/// # Errors
///
/// Another length than [`ANSWER_BYTES`].
pub fn opened_id(answer: &[u8]) -> Result<Result<u64, u32>, WireError> {
    exact(answer, "the answer to a session", ANSWER_BYTES)?;
    Ok(match le32_at(answer, 8) {
        0 => Ok(le64_at(answer, 0)),
        status => Err(status),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::{aead, cipher, create, direction, hash, mac, symmetric};

    fn session<'k>(
        op_code: u64,
        cipher: u32,
        hash: u32,
        key: &'k [u8],
        auth_key: &'k [u8],
    ) -> CreateSession<'k> {
        CreateSession {
            op_code,
            cipher,
            hash,
            hash_bytes: 32,
            aad_bytes: 0,
            op_type: symmetric::CIPHER,
            direction: direction::DECRYPT,
            hash_mode: 0,
            chain_order: 0,
            key,
            auth_key,
        }
    }

    /// Words of a request that are not zero, by their offset.
    fn words(request: &[u8; CONTROL_BYTES]) -> Vec<(usize, u32)> {
        let words = (0..CONTROL_BYTES / 4).map(|place| (place * 4, le32_at(request, place * 4)));
        words.filter(|(_, word)| *word != 0).collect()
    }

    /// Offsets as `offsetof` gives them for Linux's structs.
    #[test]
    fn each_service_s_parameters_stand_where_linux_has_them() {
        let (request, key) = session(create::CIPHER, cipher::AES_CBC, 0, &[7; 24], &[]).to_control();
        assert_eq!(words(&request), [(0, 0x002), (4, 3), (16, 3), (20, 24), (24, 2), (64, 1)]);
        assert_eq!(key, [7; 24]);
        let (request, key) = session(create::HASH, 0, hash::SHA256, &[], &[]).to_control();
        assert_eq!((words(&request), key), (vec![(0, 0x102), (4, 4), (16, 4), (20, 32)], &[][..]));
        let (request, key) = session(create::MAC, 0, mac::HMAC_SHA256, &[], b"key").to_control();
        assert_eq!(words(&request), [(0, 0x202), (4, 4), (16, 4), (20, 32), (24, 3)]);
        assert_eq!(key, b"key");
        let (request, _) = session(create::AEAD, aead::GCM, 0, &[1; 16], &[]).to_control();
        assert_eq!(words(&request), [(0, 0x302), (4, 1), (16, 1), (20, 16), (24, 32), (32, 2)]);
    }

    #[test]
    fn a_session_is_closed_by_its_number_and_its_service() {
        let request = close_request(create::MAC, 0x0000_0007_0000_0009);
        assert_eq!(words(&request), [(0, 0x203), (16, 9), (20, 7)]);
    }

    #[test]
    fn an_answer_is_an_id_or_a_refusal() {
        let mut answer = [0; ANSWER_BYTES];
        answer[..8].copy_from_slice(&300_u64.to_le_bytes());
        assert_eq!(opened_id(&answer), Ok(Ok(300)));
        answer[8] = 5;
        assert_eq!(opened_id(&answer), Ok(Err(5)));
        assert!(opened_id(&answer[1..]).is_err());
    }
}
