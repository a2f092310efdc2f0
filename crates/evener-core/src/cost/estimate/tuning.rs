//! The numbers of what is learned: L1 mean, L2 surprise, L3 pairs of turns, and how often the plan's rule R6 tries.

use crate::tuning;
use crate::units::Nanos;

tuning! {
    /// The numbers of the estimator.
    pub struct Tuning;

    /// A new sample is so much of the mean.
    ["L1"] weight: f64 = 1.0 / 8.0, 0.01, 1.0, "part of the mean", "RFC 6298: alpha of the smoothed round trip time";
    /// Samples that such a mean is worth at most.
    ["L1"] samples_worth_max: u32 = 15, 1, 1_000, "samples", "2 / weight - 1, the variance of an exponential mean";
    /// Mean deviation of a sample from the mean before there were any.
    ["L1"] spread_first: f64 = 0.1, 0.0, 1.0, "part of the mean",
        "Assumed, not measured: 0.1, because core times of bursts on the virtual machine of docs/results stray by 3 to 12 %";
    /// A job's fixed cost is worth so many bytes, about, when a cost is carried to another size of the class. Within a class sizes differ by
    /// two at most, so its error stays small.
    ["L1"] fixed_bytes: f64 = 100.0, 0.0, 10_000.0, "bytes", "Assumed, not measured: 100, because 100 ns of a request are that at one nanosecond per byte";
    /// A sample that is this many times above or below the mean is a surprise.
    ["L2"] surprise: f64 = 2.0, 1.1, 100.0, "times the mean", "docs/design/adaptive.md: with two in a row a module that slows down is known after two jobs";
    /// Surprises in a row that make a new mean: one may be a thread that was kept from its core.
    ["L2"] surprises_max: u32 = 2, 1, 100, "samples in a row", "the least that is more than one";
    /// Samples after which a mean is settled.
    ["L2"] settled: u32 = 8, 1, 1_000, "samples", "Assumed, not measured: 8, because a mean of weight 1/8 has replaced two thirds of its first value by then";
    /// Pairs before which a ratio is doubted.
    ["L3"] pairs_min: u32 = 4, 1, 1_000, "pairs", "Assumed, not measured: 4, because the mean error of four pairs is half of that of one";
    /// Pairs that a calibration of some ten passes, or what an earlier run knew, is worth against those of today.
    ["L3"] pairs_kept: u32 = 3, 1, 1_000, "pairs", "Assumed, not measured: 3, because after as many pairs of a run half of its error is to be gone";
    /// By so many standard errors a ratio must differ from where the decision turns.
    ["L3"] sure: f64 = 2.0, 0.0, 10.0, "standard errors", "statistics: 19 of 20 cases";
    /// Core and module whose ratio differs from even by less are taken for even.
    ["L3"] near: f64 = 0.04, 0.0, 0.5, "part of the ratio", "Assumed, not measured: 0.04, because a wrong choice then loses 4 % at most";
    /// Jobs of a class that are sent to a module of which nothing is known.
    ["R6"] tries_max: u32 = 4, 1, 100, "jobs", "Assumed, not measured: 4, because two that agree settle a mean (L2) and two may fail";
    /// Least time after which a class that does not pay on a module is tried there once more.
    ["R6"] retry_after: Nanos = Nanos::from_millis(1_000), Nanos::from_millis(10), Nanos::from_millis(60_000), "time",
        "Assumed, not measured: 1 s, because a module that recovered is then used again within a second";
    /// Such a try takes the module for at most one in so many parts of its time.
    ["R6"] retry_parts: u64 = 100, 2, 10_000, "parts of the module's time", "Assumed, not measured: 100, because 1 % of the module's time is within the noise of a run";
    /// A try that is known to come last of all that waits is due only after so many times the usual time: the time for which it delays the end is
    /// one in a thousand parts of that time.
    ["R6"] late_try_pauses: u64 = 10, 1, 1_000, "times the usual time", "Assumed, not measured: 10, because with retry_parts, 100, a delay of one part in a thousand follows";
    /// The same of a class of which something sudden is believed on few samples.
    ["R6"] retry_parts_shaken: u64 = 10, 2, 10_000, "parts of the module's time", "Assumed, not measured: 10, because what was sudden may be over soon";
}
