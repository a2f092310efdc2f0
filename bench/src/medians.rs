//! Medians and their bounds, without assumptions about the distribution.
//!
//! The bounds of a median are order statistics: between the k-th smallest and the k-th largest of n values the
//! median of the distribution lies with probability `1 - 2 P(B < k)`, B binomial with n and 1/2 (Conover,
//! Practical Nonparametric Statistics, 3.2).

use evener_core::Nanos;

/// Least probability that is asked of bounds where n allows it.
const LEVEL: f64 = 0.95;

/// The median of some values with bounds.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Spread {
    /// The middle one, or the mean of the middle two.
    pub median: f64,
    /// Lower bound of the median.
    pub low: f64,
    /// Upper bound of the median.
    pub high: f64,
    /// Probability that the bounds hold, 0 to 1; below 0.95 where there are fewer than six values.
    pub level: f64,
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
}

impl Spread {
    /// The spread of `values`; `None` where there are none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let median = f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]);
        let (rank, level) = bounds_rank(count);
        Some(Self { median, low: sorted[rank - 1], high: sorted[count - rank], level, min, max })
    }
}

impl Spread {
    /// The spread of all values times `factor`, which is positive.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        let [median, low, high, min, max] =
            [self.median, self.low, self.high, self.min, self.max].map(|v| v * factor);
        Self { median, low, high, level: self.level, min, max }
    }

    /// The spread of `amount` divided by each value: a rate from times. All are positive.
    #[must_use]
    pub fn inverse(self, amount: f64) -> Self {
        let [median, high, low, max, min] =
            [self.median, self.low, self.high, self.min, self.max].map(|v| amount / v);
        Self { median, low, high, level: self.level, min, max }
    }
}

/// The median of some values and the quartiles beside it: half of the values lie between them.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Quartiles {
    /// A quarter of the values is less.
    pub lower: f64,
    /// The middle one, or the mean of the middle two.
    pub median: f64,
    /// A quarter of the values is greater.
    pub upper: f64,
}

impl Quartiles {
    /// Of these values, between two of them by the straight line (Hyndman and Fan's seventh definition, 1996, which R and numpy use); `None` where there are none.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let at = |quarter: usize| {
            let (whole, rest) = (last * quarter / 4, last * quarter % 4);
            let next = sorted[(whole + 1).min(last)];
            sorted[whole] + (next - sorted[whole]) * [0.0, 0.25, 0.5, 0.75][rest]
        };
        Some(Self { lower: at(1), median: at(2), upper: at(3) })
    }
}

/// How long things took of which only the order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantiles {
    /// Half of them took no longer.
    pub median: Nanos,
    /// 99 of 100 took no longer.
    pub p99: Nanos,
    /// The longest.
    pub max: Nanos,
}

impl Quantiles {
    /// Of these times; `None` where there are none.
    #[must_use]
    pub fn of(mut times: Vec<Nanos>) -> Option<Self> {
        times.sort_unstable();
        let at = |percent: usize| times.get((times.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        Some(Self { median: at(50)?, p99: at(99)?, max: at(100)? })
    }
}

/// The greatest k whose bounds hold with [`LEVEL`], else 1; with the probability.
fn bounds_rank(count: usize) -> (usize, f64) {
    let level = |rank: usize| 1.0 - 2.0 * below(count, rank);
    let rank = (1..=count.div_ceil(2)).take_while(|&rank| level(rank) >= LEVEL).last().unwrap_or(1);
    (rank, level(rank).max(0.0))
}

/// P(B < rank) for B binomial with `count` throws of a coin.
#[expect(clippy::cast_precision_loss, reason = "counts of runs are small")]
fn below(count: usize, rank: usize) -> f64 {
    let mut term = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut sum = 0.0;
    for k in 0..rank {
        sum += term;
        term *= (count - k) as f64 / (k + 1) as f64;
    }
    sum
}

/// Jain's index of fairness: the square of the sum by their number times the sum of squares. 1 where all have as much, one by their number where one
/// has all (Jain, Chiu and Hawe, DEC-TR-301, 1984).
#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
#[must_use]
pub fn jain_index(counts: &[usize]) -> f64 {
    let sum: f64 = counts.iter().map(|count| *count as f64).sum();
    let squares: f64 = counts.iter().map(|count| (*count as f64).powi(2)).sum();
    if squares > 0.0 { sum * sum / (counts.len() as f64 * squares) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts all outcomes of `count` coins.
    fn below_by_counting(count: u32, rank: u32) -> f64 {
        let hits = (0..1_u32 << count).filter(|coins| coins.count_ones() < rank).count();
        hits as f64 / f64::from(1_u32 << count)
    }

    #[test]
    fn the_probability_of_the_bounds_is_that_of_counting_coins() {
        for count in 1..=12_u32 {
            for rank in 1..=count.div_ceil(2) {
                let ours = below(count as usize, rank as usize);
                assert!((ours - below_by_counting(count, rank)).abs() < 1e-12, "{count} {rank}");
            }
        }
    }

    #[test]
    fn five_values_are_bounded_by_their_extremes_and_twenty_by_the_sixth() {
        let five = Spread::of(&[3.0, 1.0, 2.0, 5.0, 4.0]).unwrap();
        assert_eq!((five.median, five.low, five.high, five.level), (3.0, 1.0, 5.0, 0.9375));
        let twenty: Vec<f64> = (1..=20).map(f64::from).collect();
        let twenty = Spread::of(&twenty).unwrap();
        assert_eq!((twenty.median, twenty.low, twenty.high), (10.5, 6.0, 15.0));
        assert!(Spread::of(&[]).is_none());
    }

    #[test]
    fn ninety_nine_of_a_hundred_took_no_longer_than_the_99th_percentile() {
        let times = |count: u64| (1..=count).rev().map(Nanos).collect();
        let of = |count| Quantiles::of(times(count)).map(|known| (known.median.0, known.p99.0, known.max.0));
        assert_eq!(
            [0, 1, 2, 100, 1_000].map(of),
            [None, Some((1, 1, 1)), Some((1, 2, 2)), Some((50, 99, 100)), Some((500, 990, 1_000))]
        );
    }

    #[test]
    fn quartiles_are_those_of_r_and_numpy() {
        let of = |values: &[f64]| Quartiles::of(values).map(|it| [it.lower, it.median, it.upper]);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[7.0]), Some([7.0; 3]));
        assert_eq!(of(&[5.0, 1.0, 4.0, 2.0, 3.0]), Some([2.0, 3.0, 4.0]));
        // numpy.percentile([1, 2, 4, 8], [25, 50, 75])
        assert_eq!(of(&[8.0, 4.0, 2.0, 1.0]), Some([1.75, 3.0, 5.0]));
    }

    #[test]
    fn equal_processes_have_an_index_of_one_and_one_that_does_all_has_the_least() {
        assert!((jain_index(&[7; 512]) - 1.0).abs() < 1e-9);
        assert!((jain_index(&[0, 0, 0, 9]) - 0.25).abs() < 1e-9);
        assert!((jain_index(&[1, 3]) - 0.8).abs() < 1e-9);
        assert!(jain_index(&[0, 0]).abs() < 1e-9);
    }
}
