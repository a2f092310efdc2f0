//! Feedback: what the adaptive policy learns of a module. What its results took goes to the policy, some of them together
//! (`pending_samples.rs`), with what no clock shows of them (`costs/overhead/`).

use evener_core::cost::Line;
use evener_core::estimate::ModuleSample;
use evener_core::{Nanos, Outcome};

use super::pending_samples::{PendingSamples, SampleGroup};
use super::{ModuleWorker, is_failed};
use crate::SystemClock;
use crate::adaptive::{AdaptivePolicy, Observation};
use crate::costs::overhead::all_of_passed;
use crate::worker::recent_sessions::RecentSessions;

/// What was measured of the module's results and not passed on yet.
#[derive(Default)]
pub(super) struct FeedbackState {
    /// The thread's clock, less `barrier_time`, when results were last taken in.
    pub(super) core_mark: Nanos,
    /// Core time of this process when results were last taken in; on one core only.
    pub(super) process_mark: Nanos,
    /// Sessions of which the module has had a request.
    pub(super) sessions: RecentSessions,
    /// What clocks do not show of a request.
    pub(super) overhead: Line,
    /// Results since there was nothing for the module.
    pub(super) since_idle: usize,
    /// How often the only core had changed between work and rest when results last came, where it rested.
    pub(super) core_rested: Option<u32>,
    /// Results of which nothing was told yet.
    pub(super) pending: PendingSamples,
    /// Time since results last came in which the worker redid what the module had failed.
    pub(super) excluded_time: Nanos,
}

impl FeedbackState {
    /// Nothing was told yet. `overhead` is what clocks do not show of a request.
    pub(super) fn new(overhead: Line) -> Self {
        Self { overhead, ..Self::default() }
    }
}

impl ModuleWorker<'_, '_> {
    /// Tells the adaptive policy what the jobs took that have just come back, some of them together. Of requests that the module failed
    /// nothing is learned but that their core time was lost; nor of what came back with them.
    pub(super) fn record_results(&mut self, now: Nanos) {
        let shared = self.shared;
        let Some(adaptive) = &shared.adaptive else { return };
        let core_rests = adaptive.alternation.core_rest();
        let excluded_time = std::mem::take(&mut self.feedback.excluded_time);
        let sound = self.done.iter().filter(|job| !is_failed(job));
        let opened_key = self.feedback.sessions.first_use(sound.map(|job| job.session().id()));
        let is_busy = self.driver.in_flight() > 0;
        let held = self.driver.in_flight() + self.done.len();
        let class = self.done[0].class();
        let is_sound =
            self.done.iter().all(|job| job.class() == class && matches!(job.outcome(), Outcome::Done { .. }));
        if is_sound {
            let is_full = held >= self.width() && self.feedback.since_idle >= self.width();
            // Where turns are taken nothing is believed but of a core that rests.
            let rested = core_rests.is_some() && core_rests == self.feedback.core_rested;
            self.feedback.pending.add(SampleGroup {
                class,
                held: held as u64,
                is_alone: is_full && !opened_key && rested && excluded_time == Nanos::ZERO,
                opened_key,
                jobs: self.done.len() as u64,
                bytes: self.done.iter().map(|job| job.input_bytes() as u64).sum(),
                passed: now - self.progress,
                excluded_time,
                overhead: self
                    .done
                    .iter()
                    .map(|job| self.feedback.overhead.at(job.input_bytes() as u64))
                    .sum(),
            });
        }
        let may_wait =
            is_sound && is_busy && adaptive.alternation.takes_turns() && !adaptive.alternation.has_turn();
        if !may_wait || self.feedback.pending.is_due() {
            self.flush_samples(adaptive, now);
        }
        adaptive.set_oldest(self.module(), is_busy.then_some((class, now)));
        let is_drained = !is_busy && adaptive.alternation.has_turn();
        if is_drained && adaptive.on_module_drained(self.shared.backlog.class_queues(), now) {
            self.shared.backlog.wake_cores();
        }
        self.feedback.since_idle += self.done.len();
        self.feedback.core_rested = core_rests;
    }

    /// Tells what was not told yet. Little's law: time in the module is requests in it times the time between two results. What of
    /// that is core time of the path is `d`: what clocks show, and what they miss. One core cannot have spent more than has passed,
    /// less what its own jobs took.
    fn flush_samples(&mut self, adaptive: &AdaptivePolicy, now: Nanos) {
        let failed = self.done.iter().filter(|job| is_failed(job));
        let (failed_class, failed) = (failed.clone().map(|job| job.class()).next(), failed.count() as u64);
        let (core, all_jobs) = (self.mark_core(), (self.feedback.pending.jobs() + failed).max(1));
        let wants_clock = adaptive.cores() == 1 && !adaptive.alternation.takes_turns();
        let beside = if wants_clock { self.mark_process() - core } else { Nanos::ZERO };
        for part in self.feedback.pending.take() {
            let SampleGroup {
                class,
                held,
                is_alone,
                opened_key,
                jobs,
                bytes,
                passed,
                excluded_time,
                overhead,
            } = part;
            let seen = Nanos(core.0 * jobs / all_jobs);
            let all = seen + overhead;
            let most = if adaptive.cores() == 1 { (passed - beside).max(seen) } else { all };
            let d = match adaptive.alternation.takes_turns() {
                _ if cfg!(mutant = "more_than_passed") => all,
                true => all_of_passed(all, passed, held),
                false => all.min(most),
            };
            let h = Nanos(passed.0 * held) - if held == 1 { d } else { Nanos::ZERO };
            let sample = ModuleSample { jobs, bytes, d, h, now };
            let waited = Nanos(beside.max(excluded_time).0 * held);
            let seen = Observation { sample, waited, opened_key, is_alone };
            adaptive.record_module(self.module(), self.shared.backlog.class_queues(), class, &seen);
        }
        if let Some(class) = failed_class {
            let core = Nanos(core.0 * failed / all_jobs);
            adaptive.record_failed(self.module(), self.shared.backlog.class_queues(), class, core, now);
        }
    }

    /// Core time of this thread that was none of the module's path, a check's. Where turns are taken the path had no core meanwhile, and
    /// what was to be told goes on behind it; otherwise the module worked on, for an unknown time.
    pub(super) fn exclude(&mut self, core: Nanos) {
        if self.shared.adaptive.as_ref().is_some_and(|adaptive| adaptive.alternation.takes_turns())
            && !cfg!(mutant = "checks_believed")
        {
            self.progress += core;
            self.feedback.core_mark += core;
        } else {
            self.mark_core();
            self.feedback.pending = PendingSamples::default();
        }
    }

    /// Core time of all threads of this process since the last call.
    fn mark_process(&mut self) -> Nanos {
        let process = SystemClock.process_time();
        process - std::mem::replace(&mut self.feedback.process_mark, process)
    }

    /// Core time of this thread since the last call.
    pub(super) fn mark_core(&mut self) -> Nanos {
        if self.shared.adaptive.is_none() {
            return Nanos::ZERO;
        }
        let core = self.core_time() - self.barrier_time;
        core - std::mem::replace(&mut self.feedback.core_mark, core)
    }
}
