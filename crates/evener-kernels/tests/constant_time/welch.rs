//! Welch's t of two classes of times, as dudect takes it (Reparaz, Balasch and Verbauwhede, "Dude, is my code constant time?", 2017).
//!
//! Times have a long tail of interrupts and of neighbours' work. So t is taken of all of them, and of those below each of some percentiles, which
//! stand closer the longer the times are; the greatest counts.

/// Percentiles below which t is taken.
const CROPS: u32 = 20;
/// Times of a class that a t is taken of, at least.
const LEAST: f64 = 5_000.0;

/// Mean and spread of one class, one time after the other (Welford, 1962).
#[derive(Clone, Copy, Default)]
struct Class {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Class {
    fn take(&mut self, time: f64) {
        self.count += 1.0;
        let off = time - self.mean;
        self.mean += off / self.count;
        self.squares += off * (time - self.mean);
    }

    /// The variance of its mean.
    fn error(self) -> f64 {
        self.squares / (self.count - 1.0) / self.count
    }
}

/// Welch's t of times, each with its class.
pub(crate) fn t(times: impl Iterator<Item = (bool, u64)>, least: f64) -> Option<f64> {
    let mut classes = [Class::default(); 2];
    for (class, time) in times {
        classes[usize::from(class)].take(time as f64);
    }
    let [one, other] = classes;
    let error = one.error() + other.error();
    (one.count >= least && other.count >= least && error > 0.0)
        .then(|| (one.mean - other.mean) / error.sqrt())
}

/// The t that is furthest from zero.
pub(crate) fn greatest_t(times: &[(bool, u64)]) -> f64 {
    let mut sorted: Vec<u64> = times.iter().map(|&(_, time)| time).collect();
    sorted.sort_unstable();
    let crops = (1..=CROPS).map(|crop| {
        let share = 1.0 - 0.5_f64.powf(10.0 * f64::from(crop) / f64::from(CROPS));
        sorted[(share * sorted.len() as f64) as usize]
    });
    let below = |limit| times.iter().copied().filter(move |&(_, time)| time <= limit);
    let all = crops.chain([u64::MAX]).filter_map(|limit| t(below(limit), LEAST));
    all.max_by(|one, other| one.abs().total_cmp(&other.abs())).unwrap_or(f64::NAN)
}

#[test]
fn t_of_known_numbers() {
    // By hand: means 2 and 4, variances 1 and 4, of three each: -2 / sqrt(1/3 + 4/3).
    let times = [(false, 1), (false, 2), (false, 3), (true, 2), (true, 4), (true, 6)];
    let found = t(times.into_iter(), 2.0).expect("there are enough");
    assert!((found - -1.549_193).abs() < 1e-5, "{found}");
}

#[test]
fn a_difference_below_a_long_tail_is_found() {
    // One time in eight is of another world; what differs is one tick of a hundred.
    let times: Vec<(bool, u64)> = (0..40_000_u64)
        .map(|at| {
            let (class, noise) = (at % 2 == 1, at / 2 % 7);
            (class, 100 + noise + u64::from(class) + if at % 16 < 2 { at * 37 % 100_000 } else { 0 })
        })
        .collect();
    let whole = t(times.iter().copied(), LEAST).expect("there are enough");
    assert!(whole.abs() < 4.5 && greatest_t(&times).abs() > 10.0, "{whole}, {}", greatest_t(&times));
}
