//! The price of core time: what a thread's share of a core says about how much others want it.

use std::time::Duration;

use evener_core::{Nanos, tuning};

tuning! {
    /// The numbers of the price, for runs and for single requests alike.
    pub(crate) struct Tuning;

    /// A new sample is so much of the mean share of a core that a worker gets.
    ["P1"] share_weight: f64 = 1.0 / 16.0, 0.001, 1.0, "part of the mean", "Assumed, not measured: 1/16, because a share changes with other programs, which run for many samples";
    /// Beyond this price others want the core; below it is noise.
    ["P1"] noise: f64 = 0.2, 0.0, 1.0, "price of a core", "Assumed, not measured: 0.2, because interrupts take a tenth of a share at most";
    /// No thread is thought to get less.
    ["P1"] share_min: f64 = 0.05, 0.001, 1.0, "part of a core", "Assumed, not measured: 0.05, because costs are divided by it";
}

/// The price of a core where a thread that computes gets this share of one: others want it too, and a thread that gets half of one
/// competes with one other program.
pub(crate) fn contested(share: f64) -> f64 {
    let contested = ((1.0 - share) * 2.0).clamp(0.0, 1.0);
    if contested > TUNING.noise { contested } else { 0.0 }
}

/// Core time at a price from 0 to 1.
pub(crate) fn scaled(time: Nanos, by: f64) -> Nanos {
    Nanos::from(Duration::from(time).mul_f64(by.clamp(0.0, 1.0)))
}
