//! What the adaptive policy remembers of a run: the ledgers of the guard, and when modules may be kept awake for a try.

use evener_core::Nanos;
use evener_core::guard::Guard;
use evener_core::plan::adaptive;

use super::tuning::TUNING;
use crate::core_price;
use crate::queue::class_queues::CLASS_QUEUES_MAX;

/// Written under one lock.
pub(super) struct State {
    /// One ledger for each queue and module.
    pub(super) guard: Guard,
    /// The same for single requests of callers, whose costs are times and not core time alone.
    pub(super) singles: Guard,
    pub(super) modules: usize,
    pub(super) lost: Vec<bool>,
    /// Part of a core that a CPU worker gets.
    pub(super) share: f64,
    /// What modules' paths used beyond the rests of cores.
    used_before: Nanos,
    /// When the first plan was made.
    pub(super) begun: Option<Nanos>,
    /// When modules' workers began to be kept awake for a try.
    pub(super) trying_since: Option<Nanos>,
    /// When they may be again.
    try_after: Nanos,
}

impl State {
    pub(super) fn new(modules: usize) -> Self {
        Self {
            guard: Guard::new(CLASS_QUEUES_MAX * modules),
            singles: Guard::new(CLASS_QUEUES_MAX * modules),
            modules,
            lost: vec![false; modules],
            share: 1.0,
            used_before: Nanos::ZERO,
            begun: None,
            trying_since: None,
            try_after: Nanos::ZERO,
        }
    }

    pub(super) fn ledger(&self, queue: usize, module: usize) -> usize {
        queue * self.modules + if cfg!(mutant = "modules_share_ledgers") { 0 } else { module }
    }

    /// A worker got this much of a core in that time.
    pub(super) fn record_share(&mut self, core: Nanos, wall: Nanos) {
        let share = (core.as_secs_f64() / wall.as_secs_f64().max(1e-9)).clamp(0.0, 1.0);
        self.share += core_price::TUNING.share_weight * (share - self.share);
    }

    /// Whether the guard has locked a queue for a module.
    pub(super) fn is_locked(&self, queue: usize, module: usize, now: Nanos) -> bool {
        queue < CLASS_QUEUES_MAX && self.guard.is_locked(self.ledger(queue, module), now)
    }

    /// What of a rest modules' paths did not use. What they used beyond it offsets the next one, for a request is booked at
    /// its end, wherever that falls.
    pub(super) fn unused(&mut self, rest: Nanos, paths: Nanos) -> Nanos {
        if cfg!(mutant = "paths_not_offset") {
            return rest;
        }
        let used = paths + self.used_before;
        self.used_before = (used - rest).min(adaptive::TUNING.credit_max);
        rest - used
    }

    /// Whether modules may be kept awake for a try, where one is `wanted`.
    pub(super) fn may_try(&mut self, wanted: bool, now: Nanos) -> bool {
        if !wanted || now < self.try_after {
            self.trying_since = None;
            return false;
        }
        let since = *self.trying_since.get_or_insert(now);
        if now - since > TUNING.try_window && !cfg!(mutant = "window_stays_open") {
            (self.trying_since, self.try_after) = (None, now + TUNING.try_pause);
        }
        self.trying_since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Nanos {
        Nanos::from_millis(millis)
    }

    #[test]
    fn modules_are_kept_awake_for_a_try_only_for_a_while_and_again_after_a_pause() {
        let mut state = State::new(1);
        assert!(!state.may_try(false, ms(5)));
        let at = |state: &mut State, times: [u64; 4]| times.map(|time| state.may_try(true, ms(time)));
        assert_eq!(at(&mut state, [10, 50, 60, 61]), [true, true, true, false]);
        assert_eq!(at(&mut state, [70, 310, 312, 350]), [false, false, true, true]);
        // One that is not wanted any more begins anew.
        assert!(!state.may_try(false, ms(355)));
        assert_eq!(at(&mut state, [360, 365, 410, 411]), [true, true, true, false]);
    }

    #[test]
    fn what_modules_use_of_a_rest_is_not_lost_and_what_they_use_beyond_it_offsets_little() {
        let mut state = State::new(1);
        let us = Nanos::from_micros;
        assert_eq!(state.unused(us(1_000), us(700)), us(300));
        // A request of 800 us ended in a rest of 500.
        assert_eq!(
            (state.unused(us(500), us(800)), state.unused(us(500), Nanos::ZERO)),
            (Nanos::ZERO, us(200))
        );
        // Not more than a millisecond is remembered.
        assert_eq!(state.unused(Nanos::ZERO, us(9_000)), Nanos::ZERO);
        assert_eq!(state.unused(us(3_000), Nanos::ZERO), us(2_000));
    }

    #[test]
    fn each_lane_and_module_has_a_ledger_of_its_own() {
        let state = State::new(3);
        let mut all: Vec<usize> = (0..CLASS_QUEUES_MAX)
            .flat_map(|queue| (0..3).map(move |module| (queue, module)))
            .map(|(queue, module)| state.ledger(queue, module))
            .collect();
        all.sort_unstable();
        assert_eq!(all, (0..3 * CLASS_QUEUES_MAX).collect::<Vec<_>>());
    }
}
