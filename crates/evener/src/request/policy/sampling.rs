//! Which requests are looked at: of those that stay one in some, the rest unsampled; of those that go one in `sampled` has its core time taken.

use std::collections::BTreeMap;

use evener_core::{Class, Nanos};

use super::tuning::TUNING;

/// What the next looks depend on.
#[derive(Default)]
pub(super) struct Sampling {
    /// Requests of a class that each look stands for.
    unsampled: BTreeMap<Class, u32>,
    /// Requests that went to modules.
    routed: u32,
}

impl Sampling {
    /// Requests of a class that each look stands for, beside the one that is looked at.
    pub(super) fn unsampled(&self, class: Class) -> u32 {
        self.unsampled.get(&class).copied().unwrap_or_default()
    }

    /// A request of the class goes to a module: the next one that stays is looked at.
    pub(super) fn restart(&mut self, class: Class) {
        self.unsampled.remove(&class);
    }

    /// So many more go to modules; whether the core time of the last one is to be taken.
    pub(super) fn count_routed(&mut self, requests: u32) -> bool {
        let before = self.routed;
        self.routed = self.routed.wrapping_add(requests);
        before / TUNING.sampled != self.routed / TUNING.sampled
    }

    /// Requests that are not to be looked at after one that was kept and took so long: twice as many as the last time, as far as they take no
    /// longer than `unsampled_time`, or a part of what their class has worked.
    pub(super) fn next_unsampled(&mut self, class: Class, core: Nanos, worked: Nanos) -> u32 {
        let part = Nanos(worked.0 / u64::from(TUNING.unsampled_part));
        let time = part.clamp(TUNING.unsampled_time, TUNING.unsampled_time_max);
        let most = u32::try_from(time.0 / core.0.max(1)).unwrap_or(u32::MAX);
        let next = self.unsampled.entry(class).or_insert(TUNING.unsampled_first / 2);
        *next = (*next * 2 + 1).min(TUNING.unsampled_max).min(most);
        *next
    }
}
