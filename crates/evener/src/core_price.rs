//! The price of core time: what a thread's share of a core says about how much others want it.

use std::time::Duration;

use evener_core::Nanos;

/// Part of a new sample in the mean share of a core that a worker gets.
pub(crate) const SHARE_WEIGHT: f64 = 1.0 / 16.0;

/// The price of a core where a thread that computes gets this share of one: others want it too, and who gets half of one
/// competes with one other program. Below a tenth it is noise.
pub(crate) fn contested(share: f64) -> f64 {
    let contested = ((1.0 - share) * 2.0).clamp(0.0, 1.0);
    if contested > 0.2 { contested } else { 0.0 }
}

/// Core time at a price from 0 to 1.
pub(crate) fn scaled(time: Nanos, by: f64) -> Nanos {
    Nanos::from(Duration::from(time).mul_f64(by.clamp(0.0, 1.0)))
}
