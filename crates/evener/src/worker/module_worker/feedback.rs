//! Feedback: what the adaptive policy learns of a module.
//!
//! `results -> `[`Feedback::record`]` -> a group of samples that waits (pending_samples.rs) -> all groups to the policy at once`, with
//! the core time since the last look divided among them and what no clock shows of them (`costs/overhead/`). A time that was none of the
//! module's is taken out on the way: a check ([`Feedback::exclude`]), doing again what failed ([`Feedback::redid`]).
//!
//! Little's law: time in the module is requests in it times the time between two results.

use evener_core::cost::Line;
use evener_core::estimate::ModuleSample;
use evener_core::{Job, Nanos, Outcome};

use super::is_failed;
use super::pending_samples::{GroupTime, Origin, PendingSamples, SampleGroup};
use crate::SystemClock;
use crate::adaptive::{AdaptivePolicy, Circumstances, Observation};
use crate::costs::overhead::all_of_passed;
use crate::queue::class_queues::ClassQueues;
use crate::state::Shared;
use crate::worker::recent_sessions::RecentSessions;

/// What was measured of the module's results and not passed on yet.
pub(super) struct Feedback<'r, 'm> {
    adaptive: &'r AdaptivePolicy,
    queues: &'r ClassQueues<'m>,
    /// The number of the module among its like.
    module: usize,
    /// What clocks do not show of a request.
    overhead: Line,
    /// Core time of the module's path when results were last taken in.
    core_mark: Nanos,
    /// Core time of this process when results were last taken in; on one core only.
    process_mark: Nanos,
    /// Sessions of which the module has had a request.
    sessions: RecentSessions,
    /// Results since there was nothing for the module.
    since_idle: usize,
    /// How often the only core had changed between work and rest when results last came, where it rested.
    core_rested: Option<u32>,
    /// Results that are not recorded yet.
    pub(super) pending: PendingSamples,
    /// Time since results last came in which the worker redid what the module had failed.
    excluded_time: Nanos,
}

/// Results that have just come back together, and what the module holds still.
#[derive(Clone, Copy)]
pub(super) struct Batch<'j, 'm> {
    pub(super) done: &'j [Box<Job<'m>>],
    pub(super) in_flight: usize,
    /// Requests that the module holds at most.
    pub(super) width: usize,
    /// Time since the results before them.
    pub(super) passed: Nanos,
    pub(super) now: Nanos,
}

impl<'r, 'm> Feedback<'r, 'm> {
    /// Nothing is recorded yet; `None` where no policy learns.
    pub(super) fn new(shared: &'r Shared<'m>, module: usize) -> Option<Self> {
        let adaptive = shared.adaptive.as_ref()?;
        Some(Self {
            adaptive,
            queues: shared.backlog.class_queues(),
            module,
            overhead: adaptive.overhead(module),
            core_mark: Nanos::ZERO,
            process_mark: Nanos::ZERO,
            sessions: RecentSessions::default(),
            since_idle: 0,
            core_rested: None,
            pending: PendingSamples::default(),
            excluded_time: Nanos::ZERO,
        })
    }

    /// The module is given something while it holds nothing.
    pub(super) fn begin(&mut self) {
        self.excluded_time = Nanos::ZERO;
    }

    /// There is nothing for the module.
    pub(super) fn rest(&mut self) {
        self.since_idle = 0;
    }

    /// Tells the adaptive policy what the jobs took that have just come back, some of them together; returns whether cores are to be woken.
    /// Of requests that the module failed nothing is learned but that their core time was lost; nor of what came back with them.
    pub(super) fn record(&mut self, batch: &Batch<'_, '_>, core_time: impl FnOnce() -> Nanos) -> bool {
        let (adaptive, Batch { done, in_flight, now, .. }) = (self.adaptive, *batch);
        let core_rests = adaptive.alternation.core_rest();
        let excluded_time = std::mem::take(&mut self.excluded_time);
        let sound = done.iter().filter(|job| !is_failed(job));
        let opened_key = self.sessions.first_use(sound.map(|job| job.session().id()));
        let is_busy = in_flight > 0;
        let class = done[0].class();
        let is_sound =
            done.iter().all(|job| job.class() == class && matches!(job.outcome(), Outcome::Done { .. }));
        if is_sound {
            // Where turns are taken nothing is believed but of a core that rests.
            let rested = core_rests.is_some() && core_rests == self.core_rested;
            let group = self.group(batch, excluded_time, opened_key, rested);
            self.pending.add(group);
        }
        let may_wait =
            is_sound && is_busy && adaptive.alternation.takes_turns() && !adaptive.alternation.has_turn();
        if !may_wait || self.pending.is_due() {
            self.flush(batch, core_time());
        }
        adaptive.set_oldest(self.module, is_busy.then_some((class, now)));
        let is_drained = !is_busy && adaptive.alternation.has_turn();
        let wakes_cores = is_drained && adaptive.on_module_drained(self.queues, now);
        self.since_idle += done.len();
        self.core_rested = core_rests;
        wakes_cores
    }

    /// Results of one class as one group.
    fn group(
        &self,
        batch: &Batch<'_, '_>,
        excluded_time: Nanos,
        opened_key: bool,
        rested: bool,
    ) -> SampleGroup {
        let Batch { done, in_flight, width, passed, .. } = *batch;
        let held = in_flight + done.len();
        let is_full = held >= width && self.since_idle >= width;
        SampleGroup {
            origin: Origin {
                class: done[0].class(),
                held: held as u64,
                circumstances: Circumstances {
                    opened_key,
                    is_alone: is_full && !opened_key && rested && excluded_time == Nanos::ZERO,
                },
            },
            jobs: done.len() as u64,
            bytes: done.iter().map(|job| job.input_bytes() as u64).sum(),
            time: GroupTime {
                passed,
                excluded: excluded_time,
                overhead: done.iter().map(|job| self.overhead.at(job.input_bytes() as u64)).sum(),
            },
        }
    }

    /// Records what is pending. What of the time in the module is core time of the path is `d`: what clocks show, and what they
    /// miss.
    fn flush(&mut self, batch: &Batch<'_, '_>, core_time: Nanos) {
        let (adaptive, now) = (self.adaptive, batch.now);
        let failed = batch.done.iter().filter(|job| is_failed(job));
        let (failed_class, failed) = (failed.clone().map(|job| job.class()).next(), failed.count() as u64);
        let (core, all_jobs) = (self.mark_core(core_time), (self.pending.jobs() + failed).max(1));
        let wants_clock = adaptive.cores() == 1 && !adaptive.alternation.takes_turns();
        let beside = if wants_clock { self.mark_process() - core } else { Nanos::ZERO };
        for group in self.pending.take() {
            let clocked = Nanos(core.0 * group.jobs / all_jobs);
            let observation = self.observation(&group, clocked, beside, now);
            adaptive.record_module(self.module, self.queues, group.origin.class, &observation);
        }
        if let Some(class) = failed_class {
            let core = Nanos(core.0 * failed / all_jobs);
            adaptive.record_failed(self.module, self.queues, class, core, now);
        }
    }

    /// A group of which clocks have `clocked` this core time. One core cannot have spent more than has passed, less what its own jobs took,
    /// `beside`.
    fn observation(&self, group: &SampleGroup, clocked: Nanos, beside: Nanos, now: Nanos) -> Observation {
        let SampleGroup { origin: Origin { held, circumstances, .. }, jobs, bytes, time } = *group;
        let GroupTime { passed, excluded, overhead } = time;
        let all = clocked + overhead;
        let most = if self.adaptive.cores() == 1 { (passed - beside).max(clocked) } else { all };
        let d = match self.adaptive.alternation.takes_turns() {
            _ if cfg!(mutant = "more_than_passed") => all,
            true => all_of_passed(all, passed, held),
            false => all.min(most),
        };
        let h = Nanos(passed.0 * held) - if held == 1 { d } else { Nanos::ZERO };
        let sample = ModuleSample { jobs, bytes, d, h, now };
        let waited = Nanos(beside.max(excluded).0 * held);
        Observation { sample, waited, circumstances }
    }

    /// Core time of this thread that was none of the module's path, a check's. Where turns are taken the path had no core meanwhile, and
    /// what is pending goes on behind it: by so much later, which is returned. Otherwise the module worked on, for an unknown time.
    pub(super) fn exclude(&mut self, core: Nanos, core_time: impl FnOnce() -> Nanos) -> Nanos {
        if self.adaptive.alternation.takes_turns() && !cfg!(mutant = "checks_believed") {
            self.core_mark += core;
            core
        } else {
            self.mark_core(core_time());
            self.pending = PendingSamples::default();
            Nanos::ZERO
        }
    }

    /// The worker has redone for so long what the module had failed. The module may have been done long since with what it held.
    pub(super) fn redid(&mut self, time: Nanos, core_time: Nanos) {
        self.mark_core(core_time);
        self.excluded_time = time;
    }

    /// Core time of the module's path since the last call.
    pub(super) fn mark_core(&mut self, core_time: Nanos) -> Nanos {
        core_time - std::mem::replace(&mut self.core_mark, core_time)
    }

    /// Core time of all threads of this process since the last call.
    fn mark_process(&mut self) -> Nanos {
        let process = SystemClock.process_time();
        process - std::mem::replace(&mut self.process_mark, process)
    }
}
