//! Which requests are looked at: of those that stay one in some, the rest unsampled; of those that go one in [`SAMPLED`] has its core time taken.

use std::collections::BTreeMap;

use evener_core::{Class, Nanos};

/// Requests of a class that are not looked at once the policy has kept one from a module, and at most: each time it keeps one
/// more they are doubled. A look takes 0.2 us, a request of 1 KiB 1 us.
const UNSAMPLED_FIRST: u32 = 31;
const UNSAMPLED_MAX: u32 = 255;

/// Nor are they to take longer than this, beside which a look is nothing even on a slow core: there 31 requests of 16 KiB, 33 ms, went by
/// before a module that took a thirteenth was tried.
const UNSAMPLED_TIME: Nanos = Nanos::from_millis(1);

/// Of requests that go to a module one in so many has its core time taken, once there were [`FIRST`]: a thread's clock
/// takes 640 ns.
const SAMPLED: u32 = 16;
pub(super) const FIRST: u32 = 8;

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
        before / SAMPLED != self.routed / SAMPLED
    }

    /// Requests that are not to be looked at after one that was kept and took so long: twice as many as the last time, as far as they take no
    /// longer than [`UNSAMPLED_TIME`].
    pub(super) fn next_unsampled(&mut self, class: Class, core: Nanos) -> u32 {
        let most = u32::try_from(UNSAMPLED_TIME.0 / core.0.max(1)).unwrap_or(u32::MAX);
        let next = self.unsampled.entry(class).or_insert(UNSAMPLED_FIRST / 2);
        *next = (*next * 2 + 1).min(UNSAMPLED_MAX).min(most);
        *next
    }
}
