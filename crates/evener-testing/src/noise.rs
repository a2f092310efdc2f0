//! Data and decisions without pattern, always the same for the same seed.

/// Bytes that look random, always the same for the same `seed`.
#[must_use]
pub fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut made = Vec::with_capacity(bytes + 8);
    while made.len() < bytes {
        random.step();
        made.extend_from_slice(&random.0.to_le_bytes());
    }
    made.truncate(bytes);
    made
}

/// Numbers that look random (xorshift with 13, 7 and 17, after Marsaglia).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Numbers that follow from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    const fn step(&mut self) {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
    }

    /// 48 bits.
    pub const fn next(&mut self) -> u64 {
        self.step();
        self.0 >> 16
    }

    /// A number less than `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }
}
