//! Input without pattern.

/// Bytes that look random, always the same for the same `seed` (xorshift, after Marsaglia).
#[must_use]
pub fn noise(seed: usize, bytes: usize) -> Vec<u8> {
    let mut state = (seed as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut made = Vec::with_capacity(bytes + 8);
    while made.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        made.extend_from_slice(&state.to_le_bytes());
    }
    made.truncate(bytes);
    made
}
