//! Chance that a seed repeats.

use crate::ffi::Octets;

/// Numbers that look random (xorshift, after Marsaglia), the same for the same seed and sequence.
#[derive(Clone)]
pub(super) struct SeededRandom(u64);

impl SeededRandom {
    pub(super) fn new(seed: u64, sequence: u64) -> Self {
        let mut random = Self((seed ^ sequence.wrapping_mul(0x9E37_79B9_7F4A_7C15)) | 1);
        // Neighbouring sequences begin alike: some steps take them apart.
        for _ in 0..8 {
            random.next();
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `end`, which is not 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    /// As `below`, for places in memory.
    pub(super) fn place(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).expect("it is below a usize")
    }

    /// True once in `times`.
    pub(super) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(super) fn one_of<'l>(&mut self, list: &[&'l str]) -> &'l str {
        list[self.place(list.len())]
    }

    /// A length in bytes: mostly short, at times a border, seldom long; `unit` is what most are a multiple of.
    pub(super) fn length(&mut self, unit: usize) -> usize {
        let bytes = match self.below(100) {
            0..30 => return self.place(50),
            30..50 => self.place(512),
            50..75 => self.place(4_096),
            75..95 => self.place(40_000),
            95..99 => self.place(140_000),
            _ => self.place(LENGTH_MAX),
        };
        if self.once_in(4) { bytes } else { bytes / unit * unit }
    }

    pub(super) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut made = Vec::with_capacity(count + 8);
        while made.len() < count {
            made.extend_from_slice(&self.next().to_le_bytes());
        }
        made.truncate(count);
        made
    }

    pub(super) fn octets(&mut self) -> Octets {
        self.bytes(128).try_into().expect("as many as were asked for")
    }
}

/// Of one call. Longer than any threshold of the provider that is not asked for.
pub(super) const LENGTH_MAX: usize = 600_000;
