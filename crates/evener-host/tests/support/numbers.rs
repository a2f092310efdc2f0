//! How each algorithm is asked for, by the numbers of the specification.

use evener_core::{Algorithm, Direction, Family};
use evener_testing::noise;

use super::{Raw, header};

/// How an algorithm is asked for: operation to create, number, and whether the key stands in the second field.
pub(crate) fn numbers(algorithm: Algorithm) -> (u64, u32) {
    match algorithm.family() {
        Family::Ecb => (0x002, 2),
        Family::Cbc => (0x002, 3),
        Family::Ctr => (0x002, 4),
        Family::Xts => (0x002, 13),
        Family::Gcm => (0x302, 1),
        Family::ChaCha20Poly1305 => (0x302, 3),
        Family::Digest(_) => (0x102, hash_number(algorithm)),
        Family::Hmac(_) => (0x202, hash_number(algorithm)),
    }
}

fn hash_number(algorithm: Algorithm) -> u32 {
    match algorithm.tag_bytes() {
        16 => 1,
        20 => 2,
        _ => 4,
    }
}

/// A session for an algorithm.
pub(crate) fn open(raw: &mut Raw, algorithm: Algorithm, decrypt: bool, key: &[u8]) -> u64 {
    let (op_code, number) = numbers(algorithm);
    let (key_bytes, tag) = (key.len() as u32, algorithm.tag_bytes() as u32);
    let marks = [1, 1 + u8::from(decrypt), 0, 0];
    let id = match op_code {
        0x102 => raw.open(op_code, [0, 0, number, tag, 0, 0], marks, &[], &[]),
        0x202 => raw.open(op_code, [0, 0, number, tag, key_bytes, 0], marks, &[], key),
        _ => raw.open(op_code, [number, key_bytes, 0, tag, 0, 0], marks, key, &[]),
    };
    u64::try_from(id).unwrap_or_else(|_| panic!("{algorithm} was refused"))
}

/// A key as long as it takes.
pub(crate) fn key_of(algorithm: Algorithm) -> Vec<u8> {
    noise(77, algorithm.key_bytes().unwrap_or(40))
}

/// The header of a request of a session without a tag that is checked, over `bytes`.
pub(crate) fn request_header(
    algorithm: Algorithm,
    direction: Direction,
    session: u64,
    bytes: usize,
) -> Vec<u8> {
    let (src, tag, code) =
        (bytes as u32, algorithm.tag_bytes() as u32, u32::from(direction == Direction::Decrypt));
    match numbers(algorithm).0 {
        0x002 => header(code, session, &[algorithm.iv_bytes() as u32, src, src], 1),
        0x102 => header(0x100, session, &[src, tag], 0),
        _ => header(0x200, session, &[src, tag], 0),
    }
}
