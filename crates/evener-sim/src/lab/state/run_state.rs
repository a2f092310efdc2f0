//! The state of a run: backlog, chooser, what each worker does, and the record of every job.

use std::collections::VecDeque;

use evener_core::Nanos;
use evener_core::plan::Dispatch;

use super::backlog::{Backlog, JobId};
use super::driver_queue::DriverQueue;
use super::request::{KeyState, ModulePort, Request};
use crate::engine::{Context, EventId, Step, ThreadId, World};
use crate::lab::chooser::{Busy, Choice, Chooser, Path, Sample, View, Worker, WorkerView};
use crate::lab::report::JobReport;
use crate::lab::workload::Job;
use crate::lab::{CpuCap, Setup, Workload};
use crate::random::Random;
use crate::rounding::round;

/// What a worker gets when it asks for jobs.
pub(crate) enum Answer {
    /// These.
    Jobs(VecDeque<JobId>),
    /// Nothing until it is woken.
    Rest,
    /// Nothing until it is woken, or this time has passed.
    RestAtMost(Nanos),
    /// Nothing for this long.
    Later(Nanos),
}

/// The least time after which a worker asks again, so that no chooser stops the clock.
const ASK_AGAIN_MIN: Nanos = Nanos::from_micros(1);

pub(crate) struct RunState<'a> {
    pub(crate) setup: &'a Setup,
    jobs: &'a [Job],
    chooser: &'a mut dyn Chooser,
    backlog: Backlog,
    random: Random,
    /// Jobs that have come so far.
    arrived: usize,
    ended: usize,
    pub(crate) records: Vec<JobReport>,
    pub(crate) workers: Vec<WorkerView>,
    /// Requests that the kernel's thread of each module has not taken yet.
    pub(crate) inboxes: Vec<VecDeque<Request>>,
    /// Between each module's worker and the threads of its driver.
    pub(crate) driver_queues: Vec<DriverQueue>,
    /// Of each module whose driver has threads.
    pub(crate) keys: Vec<KeyState>,
    /// By worker: the job that the monitor has assigned to it.
    pub(crate) assigned: Vec<Option<JobId>>,
    /// Requests that failed, by module.
    pub(crate) failed: Vec<u32>,
    crypto: Vec<ThreadId>,
    wakes: Vec<EventId>,
    doorbell: Option<EventId>,
}

impl<'a> RunState<'a> {
    pub(crate) fn new(setup: &'a Setup, workload: &'a Workload, chooser: &'a mut dyn Chooser) -> Self {
        let cpu = (0..setup.cpu.workers).map(|index| Worker { path: Path::Cpu, index });
        let modules = (0u32..).zip(&setup.modules).map(|(index, _)| Worker { path: Path::Module, index });
        let view = |worker| WorkerView { worker, busy: Vec::new(), is_lost: false };
        let workers: Vec<WorkerView> = cpu.chain(modules).map(view).collect();
        let lists = if chooser.dispatch() == Dispatch::RoundRobin { workers.len() } else { 1 };
        let record = |job: &Job| JobReport { class: job.class, arrived: job.at, ended: None };
        let mut state = Self {
            setup,
            jobs: workload.jobs(),
            backlog: Backlog::new(&setup.classes, lists),
            chooser,
            random: Random::new(setup.seed),
            arrived: 0,
            ended: 0,
            records: workload.jobs().iter().map(record).collect(),
            inboxes: vec![VecDeque::new(); setup.modules.len()],
            driver_queues: Vec::new(),
            keys: vec![KeyState::default(); setup.modules.len()],
            assigned: vec![None; workers.len()],
            failed: vec![0; setup.modules.len()],
            workers,
            crypto: Vec::new(),
            wakes: Vec::new(),
            doorbell: None,
        };
        state.admit_arrivals(Nanos::ZERO);
        state
    }

    /// Learns which threads there are: whose core time is crypto's, what wakes each worker, where drivers' threads find
    /// their work, and what the monitor listens to.
    pub(crate) fn set_threads(
        &mut self,
        crypto: Vec<ThreadId>,
        wakes: Vec<EventId>,
        driver_queues: Vec<DriverQueue>,
        doorbell: Option<EventId>,
    ) {
        self.crypto = crypto;
        self.wakes = wakes;
        self.driver_queues = driver_queues;
        self.doorbell = doorbell;
    }

    /// The place of a worker among all, CPU workers first.
    pub(crate) const fn at(&self, worker: Worker) -> usize {
        match worker.path {
            Path::Cpu => worker.index as usize,
            Path::Module => (self.setup.cpu.workers + worker.index) as usize,
        }
    }

    /// What `worker` is to do; at most `jobs_max` jobs.
    pub(crate) fn next_jobs(&mut self, worker: Worker, now: Nanos, jobs_max: usize) -> Answer {
        let list = self.backlog.list_of(self.at(worker));
        let view = View {
            now,
            classes: self.backlog.view(list),
            workers: &self.workers,
            cores: self.setup.cores,
            competing: self.setup.hogs,
        };
        let choice = match worker.path {
            Path::Cpu => self.chooser.cpu_takes(worker.index, &view),
            Path::Module => self.chooser.module_takes(worker.index, &view),
        };
        match choice {
            Choice::Take { which, jobs } => {
                let taken =
                    std::iter::from_fn(|| self.backlog.pop(list, which)).take(jobs_max.min(jobs as usize));
                let taken: VecDeque<JobId> = taken.collect();
                if taken.is_empty() { Answer::Rest } else { Answer::Jobs(taken) }
            }
            Choice::Rest => Answer::Rest,
            Choice::RestAtMost(time) => Answer::RestAtMost(time.max(ASK_AGAIN_MIN)),
            Choice::AskAgainIn(time) => Answer::Later(time.max(ASK_AGAIN_MIN)),
        }
    }

    /// Notes that a worker begins a job; returns the job's class.
    pub(crate) fn start_job(&mut self, worker: Worker, job: JobId, now: Nanos) -> usize {
        let (at, class) = (self.at(worker), self.jobs[job].class);
        self.workers[at].busy.push(Busy { class, since: now });
        class
    }

    /// `time` as it comes out this time.
    pub(crate) fn vary(&self, factor: f64, time: Nanos) -> Nanos {
        if self.setup.jitter > 0.0 { Nanos(round(factor * time.as_secs_f64() * 1e9)) } else { time }
    }

    /// By how much a job differs from the mean.
    pub(crate) fn draw(&mut self) -> f64 {
        self.random.around_one(self.setup.jitter)
    }

    /// Notes that a worker has ended a job well, the `nth` of those that it had begun, and what that took.
    ///
    /// # Panics
    ///
    /// Where a job ends twice.
    pub(crate) fn finish_job(&mut self, worker: Worker, (nth, job): (usize, JobId), now: Nanos, took: Took) {
        assert!(self.records[job].ended.is_none(), "a job ends once");
        let at = self.at(worker);
        let busy = self.workers[at].busy.remove(nth);
        self.records[job].ended = Some((now, worker));
        self.ended += 1;
        let Took { core, interrupt, service } = took;
        let (class, wall) = (busy.class, now - busy.since);
        let bytes = self.setup.classes[class].bytes;
        self.chooser.observe(&Sample { now, class, bytes, worker, core, interrupt, service, wall });
    }

    /// Gives a request to the kernel's thread of module `at`, or to the module itself where there is none.
    pub(crate) fn submit(&mut self, at: usize, port: &ModulePort, request: Request) -> Step {
        if port.kernel.is_none() {
            let Request { work, done, .. } = request;
            return Step::Submit { module: port.module, work, interrupt: Nanos::ZERO, done };
        }
        self.inboxes[at].push_back(request);
        Step::Signal(port.doorbell)
    }

    /// Notes that a job of a worker, the `nth` of those that it had begun, has failed: its module is lost, the job and those of its
    /// `claim` wait again. Returns whom to signal.
    pub(crate) fn fail_job(
        &mut self,
        worker: Worker,
        (nth, job): (usize, JobId),
        claim: VecDeque<JobId>,
    ) -> VecDeque<EventId> {
        let at = self.at(worker);
        let class = self.workers[at].busy.remove(nth).class;
        self.failed[worker.index as usize] += 1;
        if !self.workers[at].is_lost {
            self.workers[at].is_lost = true;
            if self.backlog.list_of(at) == at {
                self.backlog.close(at);
            }
            self.chooser.lose(worker.index);
        }
        for job in claim.into_iter().rev() {
            self.backlog.push_front(job, self.jobs[job].class);
        }
        self.backlog.push_front(job, class);
        self.sleepers().collect()
    }

    /// Assigns the next job to a worker, for the monitor; whether there is one.
    pub(crate) fn assign(&mut self, at: usize, now: Nanos) -> bool {
        let worker = self.workers[at].worker;
        if let Answer::Jobs(mut jobs) = self.next_jobs(worker, now, 1) {
            self.assigned[at] = jobs.pop_front();
        }
        self.assigned[at].is_some()
    }

    /// What wakes the threads that may wait for the backlog to grow.
    fn sleepers(&self) -> impl Iterator<Item = EventId> {
        let resting = self.wakes.iter().copied().filter(|_| self.doorbell.is_none());
        resting.chain(self.doorbell)
    }

    /// Puts jobs whose time has come into the backlog.
    fn admit_arrivals(&mut self, now: Nanos) {
        while let Some(job) = self.jobs.get(self.arrived).filter(|job| job.at <= now) {
            self.backlog.push(self.arrived, job.class);
            self.arrived += 1;
        }
    }
}

/// What a job took; see [`Sample`].
#[derive(Clone, Copy)]
pub(crate) struct Took {
    pub(crate) core: Nanos,
    pub(crate) interrupt: Nanos,
    pub(crate) service: Nanos,
}

impl World for RunState<'_> {
    fn is_over(&self) -> bool {
        self.ended == self.jobs.len()
    }

    fn next_happening(&self) -> Option<Nanos> {
        self.jobs.get(self.arrived).map(|job| job.at)
    }

    fn happen(&mut self, now: Nanos, signals: &mut Vec<EventId>) {
        self.admit_arrivals(now);
        signals.extend(self.sleepers());
    }
}

/// How long a worker must sleep so that crypto stays below its cap; `None`: not at all.
pub(crate) fn pause(context: &Context<'_, RunState<'_>>, path: Path) -> Option<Nanos> {
    let CpuCap { share, holds_module_path, counts_interrupts } = context.world.setup.cpu.cap?;
    if path == Path::Module && !holds_module_path {
        return None;
    }
    let threads = context.world.crypto.iter().map(|&thread| context.core_time(thread));
    let interrupts = if counts_interrupts { context.interrupts } else { Nanos::ZERO };
    let used = (threads.sum::<Nanos>() + interrupts).as_secs_f64();
    let over = used - share * context.now.as_secs_f64();
    (over > 0.0).then(|| Nanos(round(over / share * 1e9).max(1)))
}
