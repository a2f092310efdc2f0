//! Jobs that wait: one queue that workers pull from, one private queue per worker for the policies that deal jobs
//! out, and one per class for the policy that weighs them (`class_queues.rs`). What no module takes of those goes through the
//! first, as under `cpu_only`.
//!
//! What it is in the literature: a bounded buffer of many producers and many consumers, with one discipline of dispatch per policy: a
//! central queue (self-scheduling), queues per worker that are filled in turn or by a dispatcher, queues per class.
//!
//! One job: [`submit`](Backlog::submit) -> shared queue (-> [`serve`](Backlog::serve), the monitor's hand: `dealing.rs`) or a worker's own queue
//! (`worker_queue.rs`; a module's: `module_jobs.rs`) -> [`claim`](Backlog::claim) (`claim_size.rs`). A worker that finds nothing sleeps
//! (`sleep.rs`); a measurement holds all of them (`pause.rs`).
//!
//! | state (`end.rs`) | jobs come | workers | next |
//! |---|---|---|---|
//! | open | from submitters | claim, or sleep | [`close`](Backlog::close): closed; a panic: broken |
//! | closed | from the monitor only | claim, or sleep | at once without a monitor, else when it has handed out the last: over |
//! | over | no more | claim what is left, then end | |
//! | broken, beside any of these | as before | no thread waits for space any more | |

mod claim_size;
mod dealing;
mod end;
mod module_jobs;
mod pause;
mod sleep;
mod worker_queue;

use std::sync::atomic::{AtomicBool, AtomicU32};

use evener_core::Job;
use evener_core::plan::{CLAIM_JOBS_MAX, Dispatch, Plan, Take};
use evener_ring::{CachePadded, Doorbell, Ring};

use self::claim_size::{claim_from, sort_longest_first};
use self::worker_queue::WorkerQueue;
use crate::queue::barrier::Barrier;
use crate::queue::class_queues::ClassQueues;
use crate::queue::ended_sessions::EndedSessions;

/// All jobs that wait.
pub(crate) struct Backlog<'m> {
    dispatch: Dispatch,
    /// Whether jobs that are submitted together are queued by length: where only cores take them. The papers'
    /// policies for modules keep the order of submission.
    longest_first: bool,
    /// CPU workers.
    cpu_workers: usize,
    shared: Ring<Box<Job<'m>>>,
    /// Where workers choose by class.
    class_queues: Option<ClassQueues<'m>>,
    worker_queues: Vec<WorkerQueue<'m>>,
    /// Rung when jobs were put into the shared queue that workers pull from.
    work: Doorbell,
    /// Rung when jobs were taken out.
    space: Doorbell,
    /// Next worker when dealing. Relaxed: several submitters may deal at once and only the counts matter.
    deal_next: CachePadded<AtomicU32>,
    /// No more jobs will be submitted.
    closed: AtomicBool,
    /// No more jobs will reach worker_queues either: with a monitor this comes later than `closed`.
    over: AtomicBool,
    /// A core's worker has ended in order.
    core_left: AtomicBool,
    /// A thread of the run panicked: no thread waits for space any more.
    broken: AtomicBool,
    barrier: Barrier,
    /// Sessions that ended. They are no jobs, but workers that sleep for jobs are woken for them.
    ended: EndedSessions,
}

impl<'m> Backlog<'m> {
    /// Queues are the CPU workers' first, then the modules'.
    pub(crate) fn new(plan: &Plan, jobs: usize, cpu_workers: usize, modules: usize) -> Self {
        let workers = cpu_workers + modules;
        let dispatch = plan.dispatch;
        let queue = |worker| WorkerQueue::new(dispatch, jobs, worker >= cpu_workers);
        Self {
            dispatch,
            longest_first: plan.is_cpu_only(),
            cpu_workers,
            shared: Ring::with_capacity(jobs),
            class_queues: (dispatch == Dispatch::ByCost).then(|| ClassQueues::new(jobs)),
            worker_queues: (0..workers).map(queue).collect(),
            work: Doorbell::new(),
            space: Doorbell::new(),
            deal_next: CachePadded::new(AtomicU32::new(0)),
            closed: AtomicBool::new(false),
            over: AtomicBool::new(false),
            core_left: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            barrier: Barrier::new(workers).led_by(cpu_workers),
            ended: EndedSessions::default(),
        }
    }

    pub(crate) fn worker_count(&self) -> usize {
        self.worker_queues.len()
    }

    /// Moves as many jobs as there is space for; returns how many.
    pub(crate) fn submit(&self, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
        self.submit_by(jobs, ClassQueues::push_all)
    }

    /// The same from the front: those that stay are the end of what came, as they came.
    pub(crate) fn submit_front(&self, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
        let overtakes = cfg!(mutant = "front_overtaken");
        self.submit_by(jobs, if overtakes { ClassQueues::push_all } else { ClassQueues::push_front })
    }

    fn submit_by(
        &self,
        jobs: &mut Vec<Box<Job<'m>>>,
        push: impl FnOnce(&ClassQueues<'m>, &mut Vec<Box<Job<'m>>>) -> usize,
    ) -> usize {
        match self.dispatch {
            Dispatch::RoundRobin => self.deal(jobs),
            // The monitor is busy and needs no doorbell.
            Dispatch::Monitor => self.shared.push_all(jobs),
            Dispatch::SharedQueue => self.submit_to_all(jobs, self.longest_first),
            Dispatch::ByCost => {
                if let Some(are_alike) = self.are_alike_for_cores(jobs) {
                    return self.submit_to_all(jobs, !are_alike);
                }
                let came = push(self.class_queues(), jobs);
                if came > 0 {
                    // The worker that hears it first may not be the one that takes it.
                    self.work.ring_all();
                    if self.class_queues().modules_matter() {
                        self.class_queues().modules.ring_all();
                    }
                }
                came
            }
        }
    }

    /// Where cores alone do all jobs: whether these are alike, as mostly, for then one class was to be looked up, and none is longer.
    fn are_alike_for_cores(&self, jobs: &[Box<Job<'m>>]) -> Option<bool> {
        let is_for_cores = |job: &Job<'_>| self.class_queues().is_alone(job.class());
        let first = jobs.first().filter(|first| is_for_cores(first))?;
        let are_alike = jobs.iter().all(|job| job.is_like(first));
        (are_alike || jobs.iter().all(|job| is_for_cores(job))).then_some(are_alike)
    }

    /// Into the queue that all cores pull from.
    fn submit_to_all(&self, jobs: &mut Vec<Box<Job<'m>>>, is_by_length: bool) -> usize {
        // Of those that fit, so that what is left is the end of what came.
        let came = match is_by_length {
            true => self.shared.push_all_arranged(jobs, sort_longest_first),
            false => self.shared.push_all(jobs),
        };
        match came {
            0 => {}
            1 => self.work.ring_one(),
            _ => self.work.ring_all(),
        }
        came
    }

    /// Moves what waits for cores alone to the queues by class, where modules see it. What finds no space there is left
    /// in `jobs`.
    pub(crate) fn publish_to_modules(&self, jobs: &mut Vec<Box<Job<'m>>>) {
        let mut has_moved = false;
        while jobs.is_empty() && self.shared.pop_many(jobs, CLAIM_JOBS_MAX as usize) > 0 {
            self.class_queues().push_all(jobs);
            has_moved = true;
        }
        if has_moved {
            self.class_queues().modules.ring_all();
            self.space.ring_all();
        }
    }

    /// Moves so many of them, about. What finds no space there, and none where it was, for others were faster, is left in `jobs`.
    pub(crate) fn publish_some(&self, count: usize, jobs: &mut Vec<Box<Job<'m>>>) {
        self.shared.pop_many(jobs, count);
        self.class_queues().push_all(jobs);
        self.shared.push_all(jobs);
        self.class_queues().modules.ring_all();
    }

    /// Jobs that wait for cores alone.
    pub(crate) fn waiting_for_cores(&self) -> u32 {
        u32::try_from(self.shared.len()).unwrap_or(u32::MAX)
    }

    /// Wakes cores that rest.
    pub(crate) fn wake_cores(&self) {
        self.work.ring_all();
    }

    /// The queues by class.
    ///
    /// # Panics
    ///
    /// Under a policy that has none: a bug.
    pub(crate) fn class_queues(&self) -> &ClassQueues<'m> {
        self.class_queues.as_ref().expect("the policy chooses by class")
    }

    /// Claims jobs of one queue, at most `max`; returns how many.
    pub(crate) fn claim_of(
        &self,
        queue: usize,
        take: &Take,
        max: u32,
        jobs: &mut Vec<Box<Job<'m>>>,
    ) -> usize {
        let take = Take { jobs_max: take.jobs_max.min(max), jobs_min: take.jobs_min.min(max), ..*take };
        let claimed = claim_from(self.class_queues().ring(queue), &take, jobs);
        if claimed > 0 {
            self.space.ring_all();
        }
        claimed
    }

    /// Claims jobs for the worker numbered `worker`, or from the shared queue for a caller that helps.
    pub(crate) fn claim(&self, worker: Option<usize>, take: &Take, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
        let queue = worker.map_or(&self.shared, |worker| self.queue_of(worker));
        let claimed = claim_from(queue, take, jobs);
        if claimed > 0 {
            self.space.ring_all();
        }
        if let (1.., Dispatch::Monitor, Some(worker)) = (claimed, self.dispatch, worker) {
            self.worker_queues[worker].set_busy();
        }
        claimed
    }

    /// Takes jobs out of whichever queue has some, when no worker will any more; returns how many.
    pub(crate) fn take_any(&self, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
        let own = self.worker_queues.iter().flat_map(|queue| [&queue.dealt, &queue.module_only]);
        let by_class = self.class_queues.iter().flat_map(ClassQueues::rings);
        let taken: usize =
            own.chain(by_class).chain([&self.shared]).map(|ring| ring.pop_many(jobs, usize::MAX)).sum();
        if taken > 0 {
            self.space.ring_all();
        }
        taken
    }

    /// The queue that the worker numbered `worker` takes from.
    fn queue_of(&self, worker: usize) -> &Ring<Box<Job<'m>>> {
        match self.dispatch {
            Dispatch::SharedQueue | Dispatch::ByCost => &self.shared,
            Dispatch::RoundRobin | Dispatch::Monitor => &self.worker_queues[worker].dealt,
        }
    }
}

#[cfg(test)]
mod tests;
