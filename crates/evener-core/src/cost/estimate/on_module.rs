//! What is known of a class on a module, and when it is tried there again.

use super::tuning::TUNING;
use super::{Learned, nanos};
use crate::units::Nanos;

/// What is known of a class on a module.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OnModule {
    /// `d`: all core time of the module path.
    pub d: Learned,
    /// `h`: time in which the module works and the core is free.
    pub h: Learned,
    /// Jobs sent there while nothing, or nothing new, was known.
    pub tries: u32,
    /// When it was last sampled or tried.
    pub last: Nanos,
    /// It was tried since it was sampled.
    pub is_tried: bool,
    /// What `d + h` is of `c`, in millionths, where core and module took turns ([`Estimator::record_pair`]).
    pub in_turn: Learned,
}

impl OnModule {
    /// What another process knows of it at `now`.
    #[must_use]
    pub fn kept(d: Learned, h: Learned, now: Nanos) -> Self {
        Self { d, h, last: now, ..Self::default() }
    }

    /// `d` and `h` of a job of `bytes`, or `None` before the first sample.
    #[must_use]
    pub fn at(&self, bytes: usize) -> Option<(Nanos, Nanos)> {
        self.d.at(bytes).zip(self.h.at(bytes))
    }

    /// Time from one try to the next.
    pub(super) fn pause(&self) -> Nanos {
        let latency = nanos(self.d.ns + self.h.ns);
        let is_shaken = self.d.is_shaken() || self.h.is_shaken() && self.h.ns >= self.d.ns;
        match is_shaken {
            true => Nanos(latency.0.saturating_mul(TUNING.retry_parts_shaken)),
            false => TUNING.retry_after.max(Nanos(latency.0.saturating_mul(TUNING.retry_parts))),
        }
    }

    /// Whether the last sample was so far below a mean that much of a request's time may not be there any more. One that took
    /// longer is no reason to look again: what did not pay before does not pay for that.
    pub(super) fn may_be_less(&self) -> bool {
        self.d.may_be_less() || self.h.may_be_less() && self.h.ns >= self.d.ns
    }
}

/// What jobs on a module took, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModuleSample {
    /// Jobs.
    pub jobs: u64,
    /// Their input in bytes.
    pub bytes: u64,
    /// `d`: core time of the path.
    pub d: Nanos,
    /// `h`: time in which the module worked and the core was free.
    pub h: Nanos,
    /// When the last of them ended.
    pub now: Nanos,
}
