//! Observations: what workers measured of jobs that came back, and what of it is news of their class.
//!
//! `worker/module_worker` times results and says what they waited for -> [`Observation::news`], beside what is known -> the estimator. The guard gets
//! all of it, as it was seen.

use std::sync::atomic::Ordering;

use evener_core::estimate::{ModuleSample, OnModule};
use evener_core::guard::Guard;
use evener_core::{Class, Nanos, Objective};

use super::tuning::TUNING;
use super::{AdaptivePolicy, State};
use crate::core_price::scaled;
use crate::costs::CostSample;
use crate::queue::class_queues::ClassQueues;

/// What a module's worker saw of jobs that came back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation {
    pub(crate) sample: ModuleSample,
    /// Of its `h` so much at most was no time of the module: on one core requests wait while jobs run on it.
    pub(crate) waited: Nanos,
    pub(crate) circumstances: Circumstances,
}

/// How jobs came about, as far as that says whether they took what their like take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Circumstances {
    /// A key was opened on the way, as for the first request of a session.
    pub(crate) opened_key: bool,
    /// The module was full before and behind them, and nothing else wanted the core.
    pub(crate) is_alone: bool,
}

impl Observation {
    /// What of it is new beside `known`. `h` is what was measured, or less by up to what was waited: a mean between both is
    /// as good as it was. Where a class is known, what a key takes is no cost of it: the means stay, and no other request is sent to
    /// find them out. But a key only adds: what took less than was known, key and all, is believed.
    pub(super) fn news(&self, known: &OnModule) -> ModuleSample {
        let ModuleSample { jobs, bytes, h, .. } = self.sample;
        let each = usize::try_from(bytes / jobs.max(1)).unwrap_or(usize::MAX);
        let Some((mean_d, mean_h)) = known.at(each) else { return self.sample };
        let [mean_d, mean_h] = [mean_d, mean_h].map(|mean| Nanos(mean.0.saturating_mul(jobs)));
        if self.circumstances.opened_key && !cfg!(mutant = "keys_believed") {
            return ModuleSample { d: mean_d.min(self.sample.d), h: mean_h.min(h), ..self.sample };
        }
        let waited = if cfg!(mutant = "waits_believed") { Nanos::ZERO } else { self.waited };
        ModuleSample { h: mean_h.clamp(h - waited, h), ..self.sample }
    }

    /// The same where core and module take turns: only what the module's path took by itself is news.
    pub(super) fn news_in_turn(&self, known: &OnModule) -> ModuleSample {
        let ModuleSample { jobs, bytes, .. } = self.sample;
        let each = usize::try_from(bytes / jobs.max(1)).unwrap_or(usize::MAX);
        let all = |mean: Nanos| Nanos(mean.0.saturating_mul(jobs));
        match known.at(each).filter(|_| !self.circumstances.is_alone && !cfg!(mutant = "crowd_believed")) {
            Some((d, h)) => ModuleSample { d: all(d), h: all(h), ..self.sample },
            None => self.sample,
        }
    }
}

impl AdaptivePolicy {
    /// Bursts that ran on a core. Their costs are known already (`Costs::record`).
    pub(crate) fn record_core(&self, queues: &ClassQueues<'_>, samples: &[CostSample]) {
        let state = &mut *self.state();
        for sample in samples {
            let queue = queues.queue_of(sample.class);
            self.controls.measured(queue);
            for module in 0..state.modules {
                state.guard.control(state.ledger(queue, module), sample.took.jobs, sample.took.core);
            }
            state.record_share(sample.took.core, sample.took.wall);
            self.core_measured(queue, sample);
        }
        // The table waits for the first cost of a class.
        if samples.iter().any(|sample| sample.stands_for == 1) {
            self.planned_ns.store(0, Ordering::Relaxed);
        }
    }

    /// Jobs that a module did.
    pub(crate) fn record_module(
        &self,
        module: usize,
        queues: &ClassQueues<'_>,
        class: Class,
        observation: &Observation,
    ) {
        let sample = &observation.sample;
        self.paths_ns.fetch_add(sample.d.0, Ordering::Relaxed);
        let lambda = self.current().lambda();
        let state = &mut *self.state();
        let mut known = self.costs.known();
        let before = known.estimator.on_module(module, class);
        let is_first = before.d.samples == 0;
        let news = if self.alternation.takes_turns() {
            observation.news_in_turn(&before)
        } else {
            observation.news(&before)
        };
        known.estimator.saw_module(module, class, &news);
        drop(known);
        let queue = queues.queue_of(class);
        self.module_measured(module, class, queue, observation);
        self.book(state, (queue, module), sample.now, |guard, ledger| {
            guard.routed(ledger, sample.jobs, scaled(sample.d, lambda), sample.now);
        });
        if is_first {
            self.planned_ns.store(0, Ordering::Relaxed);
        }
    }

    /// Books something in a ledger of the guard.
    fn book(
        &self,
        state: &mut State,
        (queue, module): (usize, usize),
        now: Nanos,
        entry: impl FnOnce(&mut Guard, usize),
    ) {
        // What turns cost is bounded by themselves.
        if self.alternation.queue_of_module_turn() == Some(queue) {
            return;
        }
        let ledger = state.ledger(queue, module);
        let was_locked = state.guard.is_locked(ledger, now);
        entry(&mut state.guard, ledger);
        let is_alarm = !was_locked && state.guard.is_locked(ledger, now);
        self.alternation.alarm(is_alarm);
    }

    /// Jobs that a module failed, on which its path spent so much core time: a loss, and no news of what the class costs.
    pub(crate) fn record_failed(
        &self,
        module: usize,
        queues: &ClassQueues<'_>,
        class: Class,
        core: Nanos,
        now: Nanos,
    ) {
        self.paths_ns.fetch_add(core.0, Ordering::Relaxed);
        let (lambda, queue) = (self.current().lambda(), queues.queue_of(class));
        let core = if cfg!(mutant = "failures_are_free") { Nanos::ZERO } else { scaled(core, lambda) };
        self.book(&mut self.state(), (queue, module), now, |guard, ledger| guard.failed(ledger, core, now));
    }

    /// A burst of a core was measured.
    fn core_measured(&self, queue: usize, sample: &CostSample) {
        let Some(mut turns) = self.alternation.turns() else { return };
        let took = &sample.took;
        let (each, worked) = (took.wall.0 / took.jobs.max(1), took.core.0 * sample.stands_for);
        // By itself: not beside the module's path, nor another program.
        let is_alone = took.wall - took.core <= Nanos(took.wall.0 / TUNING.beside_parts)
            || cfg!(mutant = "core_in_crowd");
        if let Some((module, core)) = turns.record_core(queue, is_alone.then_some(Nanos(each)), Nanos(worked))
        {
            drop(turns);
            self.costs.known().estimator.record_pair(0, sample.class, &module, core);
            self.planned_ns.store(0, Ordering::Relaxed);
        }
    }

    /// Results of the module were measured.
    fn module_measured(&self, module: usize, class: Class, queue: usize, observation: &Observation) {
        let Some(mut turns) = self.alternation.turns() else { return };
        if let Some((sum, core)) =
            turns.record_module(queue, &observation.sample, observation.circumstances.is_alone)
        {
            drop(turns);
            self.costs.known().estimator.record_pair(module, class, &sum, core);
            self.planned_ns.store(0, Ordering::Relaxed);
        }
    }

    /// Core time of modules' paths so far.
    pub(crate) fn path_time(&self) -> Nanos {
        // Relaxed: a sum that is sampled.
        Nanos(self.paths_ns.load(Ordering::Relaxed))
    }

    /// A core had nothing to do for so long because it left a class to modules; since `paths` they have used more. Each
    /// that takes the class has its part in what is lost.
    pub(crate) fn record_idle(&self, queue: usize, time: Nanos, paths: Nanos, now: Nanos) {
        let table = self.current();
        // Under `cpu` a core that rests is the aim. Otherwise it loses what is beyond the job that it would have done.
        let beyond = time - table.expected(queue, None);
        if self.fixed.objective == Objective::Cpu || beyond == Nanos::ZERO || queue >= table.classes() {
            return;
        }
        let state = &mut *self.state();
        let beyond = state.unused(beyond, self.path_time() - paths);
        let takers: Vec<usize> =
            (0..state.modules).filter(|&module| table.is_open_to(queue, module)).collect();
        for &module in &takers {
            let ledger = state.ledger(queue, module);
            state.guard.idled(ledger, Nanos(beyond.0 / takers.len() as u64), now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{adaptive, sample};
    use super::*;

    /// `h` in microseconds after so many results of this kind, of which `waited` went to cores.
    fn h_after(results: u32, h: u64, waited: u64, opened_key: bool) -> u64 {
        let (adaptive, queues, class) = adaptive(1);
        let observation = Observation {
            sample: sample(240, h),
            waited: Nanos::from_micros(waited),
            circumstances: Circumstances { opened_key, is_alone: false },
        };
        (0..results).for_each(|_| adaptive.record_module(0, &queues, class, &observation));
        adaptive.costs.learned().on_module(0, class).h.at(16_384).unwrap().0 / 1_000
    }

    #[test]
    fn what_requests_wait_for_a_core_that_works_is_no_time_of_the_module() {
        // Five milliseconds, of which cores had all but 300 us: any time between is as likely.
        assert_eq!(h_after(3, 5_000, 4_700, false), 480);
        // All of it the module's.
        assert_eq!(h_after(3, 5_000, 0, false), 5_000);
        // At least two milliseconds of it the module's: that is what is known for sure.
        assert_eq!(h_after(3, 5_000, 3_000, false), 2_000);
        // Faster than known, whatever cores did.
        assert_eq!(h_after(3, 100, 90, false), 100);
    }

    #[test]
    fn a_request_that_opened_a_key_says_nothing_of_a_class_that_is_known() {
        assert_eq!((h_after(3, 5_000, 0, true), h_after(3, 5_000, 0, false)), (480, 5_000));
        assert_eq!(h_after(2, 100, 0, true), 100, "unless it took less than was known, key and all");
    }

    #[test]
    fn a_request_that_opened_a_key_is_a_try_all_the_same() {
        let (adaptive, queues, class) = adaptive(1);
        let now = Nanos::from_millis(10_000);
        let observation = Observation {
            sample: ModuleSample { now, ..sample(900, 480) },
            waited: Nanos::ZERO,
            circumstances: Circumstances { opened_key: true, is_alone: false },
        };
        let tries = || adaptive.costs.learned().tries_left(0, class, now);
        assert_eq!(tries(), 1);
        adaptive.record_module(0, &queues, class, &observation);
        assert_eq!(tries(), 0);
    }
}
