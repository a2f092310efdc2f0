//! A core's worker, and what any thread does as a core, a module's worker without its module and a caller that helps, too: it
//! [claims](Shared::claim_for_core) what the plan leaves to cores, runs it, records what it took, and completes it.

use evener_core::plan::Take;
use evener_core::{Class, Job, JobError, Nanos};

use crate::CoreDrivers;
use crate::adaptive::{AdaptivePolicy, AskAgainWithin, WorkerKind};
use crate::state::{CoreTimeMeter, Shared};

/// A core that has nothing to do.
#[derive(Default)]
pub(crate) struct IdleSpan {
    /// The queue that it leaves to modules.
    left_to_modules: Option<usize>,
    since: Nanos,
    /// Core time of modules' paths until then.
    paths: Nanos,
}

/// Takes jobs as the plan says until nothing is left and nothing more will come.
pub(crate) fn cpu_worker(shared: &Shared<'_>, worker: usize, mut core_drivers: CoreDrivers) {
    shared.work_as_core(worker, &shared.plan.cpu, &mut core_drivers);
    shared.backlog.leave_as_core();
    shared.report(cpu_worker_name(worker), &mut core_drivers, None);
}

/// The name of a core's worker in reports.
pub(crate) fn cpu_worker_name(worker: usize) -> String {
    format!("cpu {worker}")
}

impl<'m> Shared<'m> {
    /// Takes jobs as `take` says and runs them on the calling thread's core, until nothing is left and nothing
    /// more will come.
    pub(crate) fn work_as_core(&self, worker: usize, take: &Take, core_drivers: &mut CoreDrivers) {
        let (mut burst, mut meter) = (Vec::new(), CoreTimeMeter::default());
        loop {
            self.backlog.poll_ended(worker, |has_ended| core_drivers.evict(has_ended));
            self.backlog.stop_at_barrier(worker);
            self.wait_for_budget(&mut meter);
            match self.run_claim(worker, take, core_drivers, &mut burst) {
                Ok(()) => {}
                Err(_) if self.backlog.is_over(worker) => return,
                Err(timeout) => self.wait_for_work(worker, timeout),
            }
        }
    }

    /// Runs what the plan gives a core; where it gives nothing now, says how long to wait at most.
    pub(crate) fn run_claim(
        &self,
        worker: usize,
        take: &Take,
        core_drivers: &mut CoreDrivers,
        burst: &mut Vec<Box<Job<'m>>>,
    ) -> Result<(), Option<Nanos>> {
        self.claim_for_core(Some(worker), take, burst)?;
        // Asked after each burst, and of lines that all cores write to: only where the answer can be yes.
        let class = self.takes_turns().then(|| class_of_all(burst)).flatten();
        self.run_on_core(core_drivers, burst);
        self.offer_to_module(class, burst);
        if !burst.is_empty() {
            self.run_on_core(core_drivers, burst);
        }
        Ok(())
    }

    /// Sleeps until there may be work for a core.
    fn wait_for_work(&self, worker: usize, timeout: Option<Nanos>) {
        let idle = self.begin_idle(worker);
        let has_news = || {
            self.adaptive.as_ref().is_some_and(|adaptive| adaptive.alternation.has_changed(WorkerKind::Core))
        };
        self.backlog.wait_for_work(worker, timeout, has_news);
        self.end_idle(&idle);
    }

    /// The core of `worker` has nothing to do.
    pub(crate) fn begin_idle(&self, worker: usize) -> IdleSpan {
        let Some(adaptive) = &self.adaptive else { return IdleSpan::default() };
        adaptive.set_idle(worker);
        adaptive.alternation.set_core_working(false);
        let queues = self.backlog.class_queues();
        let left_to_modules = queues.first_waiting().filter(|_| queues.modules_matter());
        IdleSpan { left_to_modules, since: self.clock.now(), paths: adaptive.path_time() }
    }

    /// It looks again.
    pub(crate) fn end_idle(&self, rest: &IdleSpan) {
        if let (Some(adaptive), Some(queue)) = (&self.adaptive, rest.left_to_modules) {
            let now = self.clock.now();
            adaptive.record_idle(queue, now - rest.since, rest.paths, now);
        }
    }

    /// Runs a burst on a core, or gives up what was cancelled of it; those come to stand in front.
    pub(crate) fn work_on(&self, core_drivers: &mut CoreDrivers, burst: &mut [Box<Job<'m>>]) {
        let given_up = if self.is_cancelled() { burst.len() } else { self.sort_given_up(burst) };
        let (given_up, rest) = burst.split_at_mut(given_up);
        if !given_up.is_empty() {
            core_drivers.fail_all(given_up, JobError::Cancelled);
        }
        core_drivers.run(rest, &*self.clock);
        core_drivers.publish();
    }

    /// Runs a claimed burst on a core and completes it.
    pub(crate) fn run_on_core(&self, core_drivers: &mut CoreDrivers, burst: &mut Vec<Box<Job<'m>>>) {
        self.work_on(core_drivers, burst);
        self.learn_from(core_drivers, 0);
        self.complete(burst);
    }

    /// Runs jobs that a module failed and completes them. What they take is a cost of a core, but no measure for what modules take: they are
    /// run one by one, and beside the module.
    pub(crate) fn redo(&self, core_drivers: &mut CoreDrivers, failed: &mut Vec<Box<Job<'m>>>) {
        self.work_on(core_drivers, failed);
        if cfg!(mutant = "redone_jobs_are_control") {
            self.learn_from(core_drivers, 0);
        }
        core_drivers.drop_samples();
        self.complete(failed);
    }

    /// Gives the adaptive policy what a set of drivers measured, and lets it look whether modules matter where no worker queries it. `brought` jobs were run where
    /// their caller stood and did not wait: as many may come next.
    #[inline]
    pub(crate) fn learn_from(&self, core_drivers: &mut CoreDrivers, brought: u32) {
        if let Some(adaptive) = &self.adaptive {
            let modules_matter = self.backlog.class_queues().modules_matter();
            if modules_matter || core_drivers.has_news() {
                self.record_samples(adaptive, modules_matter, core_drivers, brought);
            }
        }
    }

    #[inline(never)]
    fn record_samples(
        &self,
        adaptive: &AdaptivePolicy,
        modules_matter: bool,
        core_drivers: &mut CoreDrivers,
        brought: u32,
    ) {
        let queues = self.backlog.class_queues();
        core_drivers.flush_samples(modules_matter, |samples| adaptive.record_core(queues, samples));
        if !modules_matter && core_drivers.take_look_due() {
            let brought = if cfg!(mutant = "bursts_of_callers_unseen") { 0 } else { brought };
            adaptive.replan(queues, self.backlog.waiting_for_cores() + brought, self.clock.now());
        }
    }

    /// Whether the only core and the only module take turns.
    fn takes_turns(&self) -> bool {
        self.adaptive.as_ref().is_some_and(|adaptive| adaptive.alternation.takes_turns())
    }

    /// Where core and module take turns: gives the module its turn with jobs like those that were just run, where it is due. Those that no queue
    /// has space for are left in `jobs`.
    fn offer_to_module(&self, class: Option<Class>, jobs: &mut Vec<Box<Job<'m>>>) {
        let (Some(adaptive), Some(class)) = (&self.adaptive, class) else { return };
        let (queues, waiting) = (self.backlog.class_queues(), self.backlog.waiting_for_cores());
        if let Some(count) = adaptive.offer_to_module(queues, class, waiting, self.clock.now()) {
            self.backlog.publish_some(count, jobs);
            queues.let_modules(true);
        }
    }

    /// Claims what the plan gives a core; where it gives nothing now, says how long to wait at most.
    pub(crate) fn claim_for_core(
        &self,
        worker: Option<usize>,
        take: &Take,
        burst: &mut Vec<Box<Job<'m>>>,
    ) -> Result<(), Option<Nanos>> {
        let Some(adaptive) = &self.adaptive else {
            return if self.backlog.claim(worker, take, burst) > 0 { Ok(()) } else { Err(None) };
        };
        let queues = self.backlog.class_queues();
        adaptive.alternation.set_core_working(true);
        if adaptive.alternation.has_turn() {
            // Only what is used below.
        } else if queues.modules_matter() {
            self.backlog.publish_to_modules(burst);
        } else {
            self.backlog.claim(worker, take, burst);
        }
        if !burst.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        let claim = adaptive.next_for_core(queues, now).map_err(|AskAgainWithin(time)| Some(time))?;
        let claimed = self.backlog.claim_of(claim.queue, take, claim.jobs_max, burst);
        if let (1.., Some(worker)) = (claimed, worker) {
            adaptive.set_busy(worker, &claim, claimed, now);
        }
        // Where another was faster, the next look finds something else.
        if claimed > 0 { Ok(()) } else { Err(Some(Nanos::ZERO)) }
    }
}

/// The class of the jobs, where they are all of one.
fn class_of_all(jobs: &[Box<Job<'_>>]) -> Option<Class> {
    let first = jobs.first()?.class();
    (jobs.last()?.class() == first).then_some(first)
}
