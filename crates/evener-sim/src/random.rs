//! Chance that repeats itself: one small generator, the same numbers on every machine.

/// SplitMix64 (Steele, Lea, Flood: *Fast splittable pseudorandom number generators*, 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

/// Parts of a whole that [`Random::unit`] tells apart.
const PARTS: u64 = 1 << 53;

impl Random {
    /// A stream of numbers; equal seeds give equal streams.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / PARTS as f64
    }

    /// A whole number below `end`, which is above 0. Slightly uneven above 2^32.
    ///
    /// # Panics
    ///
    /// Where `end` is 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "nothing is below 0");
        self.bits() % end
    }

    /// A number around 1, evenly from `1 - spread` to `1 + spread`.
    pub fn around_one(&mut self, spread: f64) -> f64 {
        1.0 + spread * (2.0 * self.unit() - 1.0)
    }

    /// An exponentially distributed number of mean 1, by von Neumann's comparisons (1951): no logarithm, whose
    /// last bit differs between machines.
    pub fn exponential(&mut self) -> f64 {
        let mut whole = 0.0;
        loop {
            let first = self.unit();
            let (mut last, mut length) = (first, 1);
            loop {
                let next = self.unit();
                if next >= last {
                    break;
                }
                (last, length) = (next, length + 1);
            }
            if length % 2 == 1 {
                return whole + first;
            }
            whole += 1.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // First outputs of SplitMix64 for seed 1234567, as in the reference C code's known answers.
        let mut random = Random::new(1_234_567);
        let first = [random.bits(), random.bits(), random.bits()];
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn exponential_numbers_have_mean_one_and_the_right_tail() {
        let mut random = Random::new(3);
        let drawn: Vec<f64> = (0..100_000).map(|_| random.exponential()).collect();
        let mean = drawn.iter().sum::<f64>() / 1e5;
        let beyond = |x: f64| drawn.iter().filter(|&&one| one > x).count() as f64 / 1e5;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        for x in [0.5, 1.0, 2.5] {
            assert!((beyond(x) - f64::exp(-x)).abs() < 0.005, "{x}: {}", beyond(x));
        }
    }
}
