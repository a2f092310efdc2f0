//! Counts of times in buckets that grow with them, 3 % wide.

/// Buckets per doubling.
const PER_DOUBLING: usize = 32;
/// Doublings: up to 2^41 ns, half an hour.
const DOUBLINGS: usize = 36;

/// How often which time was taken, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Vec<u64>,
    sum_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: vec![0; PER_DOUBLING * (DOUBLINGS + 1)], sum_ns: 0 }
    }
}

impl Histogram {
    /// Counts one time.
    pub fn add(&mut self, ns: u64) {
        self.buckets[bucket_of(ns)] += 1;
        self.sum_ns += ns;
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(own, others)| *own += others);
        self.sum_ns += other.sum_ns;
    }

    /// How many were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The mean in microseconds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "three digits are enough")]
    pub fn mean_us(&self) -> f64 {
        self.sum_ns as f64 / self.count() as f64 / 1e3
    }

    /// The time in microseconds that so many per mille do not exceed; the lower end of its bucket.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "three digits are enough")]
    pub fn quantile_us(&self, per_mille: u64) -> f64 {
        let wanted = (self.count() * per_mille).div_ceil(1000);
        let mut seen = 0;
        let found = self.buckets.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        found.map_or(f64::NAN, |bucket| start_of(bucket) as f64 / 1e3)
    }
}

fn bucket_of(ns: u64) -> usize {
    let exponent = ns.max(1).ilog2() as usize;
    if exponent < 5 {
        return usize::try_from(ns).unwrap_or(0);
    }
    let within = usize::try_from(ns >> (exponent - 5)).unwrap_or(0) - PER_DOUBLING;
    ((exponent - 4) * PER_DOUBLING + within).min(PER_DOUBLING * (DOUBLINGS + 1) - 1)
}

fn start_of(bucket: usize) -> u64 {
    match bucket / PER_DOUBLING {
        0 => bucket as u64,
        doubling => ((PER_DOUBLING + bucket % PER_DOUBLING) as u64) << (doubling - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_at_most_a_thirty_second_wide_and_holds_what_falls_into_it() {
        for ns in (0..2_000).chain((11..40).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1])) {
            let bucket = bucket_of(ns);
            assert!(start_of(bucket) <= ns && ns < start_of(bucket + 1), "{ns}");
            assert!(start_of(bucket + 1) - start_of(bucket) <= 1 + ns / 32, "{ns}");
        }
    }

    #[test]
    fn a_quantile_is_the_time_that_as_many_do_not_exceed() {
        let mut times = Histogram::default();
        (0..99).for_each(|_| times.add(1_000));
        times.add(64_000);
        assert_eq!([500, 990, 999].map(|per_mille| times.quantile_us(per_mille)), [0.992, 0.992, 63.488]);
        assert_eq!(times.mean_us().to_bits(), 1.63_f64.to_bits());
    }
}
