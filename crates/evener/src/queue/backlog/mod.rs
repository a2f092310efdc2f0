//! Jobs that wait: one queue that workers pull from, one private queue per worker for the policies that deal jobs
//! out, and one per class for the policy that weighs them (`class_queues.rs`). What no module takes of those goes through the
//! first, as under `cpu_only`.
//!
//! One job: [`submit`](Backlog::submit) -> shared queue (-> [`serve`](Backlog::serve), the monitor's
//! hand) or a worker's own queue (`worker_queue.rs`) -> [`claim`](Backlog::claim) (`claim_size.rs`). A worker that finds nothing sleeps (`sleep.rs`); a
//! measurement holds all of them (`pause.rs`).

mod claim_size;
mod pause;
mod sleep;
mod worker_queue;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use evener_core::plan::{CLAIM_JOBS_MAX, Dispatch, Plan, Take};
use evener_core::{HasEnded, Job, SessionId};
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
    room: Doorbell,
    /// Next worker when dealing. Relaxed: several submitters may deal at once and only the counts matter.
    deal_next: CachePadded<AtomicU32>,
    /// No more jobs will be submitted.
    closed: AtomicBool,
    /// No more jobs will reach worker_queues either: with a monitor this comes later than `closed`.
    over: AtomicBool,
    /// A thread of the run panicked: no thread waits for room any more.
    broken: AtomicBool,
    barrier: Barrier,
    /// Sessions that ended. They are no jobs, but who sleeps for jobs is to hear of them.
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
            room: Doorbell::new(),
            deal_next: CachePadded::new(AtomicU32::new(0)),
            closed: AtomicBool::new(false),
            over: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            barrier: Barrier::new(workers).led_by(cpu_workers),
            ended: EndedSessions::default(),
        }
    }

    pub(crate) fn worker_count(&self) -> usize {
        self.worker_queues.len()
    }

    /// Moves as many jobs as there is room for, from the front; returns how many.
    pub(crate) fn submit(&self, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
        match self.dispatch {
            Dispatch::RoundRobin => self.deal(jobs),
            // The monitor is busy and needs no doorbell.
            Dispatch::Monitor => self.shared.push_all(jobs),
            Dispatch::SharedQueue => self.submit_to_all(jobs, self.longest_first),
            Dispatch::ByCost if jobs.iter().all(|job| self.class_queues().is_alone(job.class())) => {
                self.submit_to_all(jobs, true)
            }
            Dispatch::ByCost => {
                let came = self.class_queues().push_all(jobs);
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

    /// Into the queue that all cores pull from.
    fn submit_to_all(&self, jobs: &mut Vec<Box<Job<'m>>>, is_by_length: bool) -> usize {
        if is_by_length {
            sort_longest_first(jobs);
        }
        let came = self.shared.push_all(jobs);
        match came {
            0 => {}
            1 => self.work.ring_one(),
            _ => self.work.ring_all(),
        }
        came
    }

    /// Moves what waits for cores alone to the queues by class, where modules see it. What finds no room there is left
    /// in `jobs`.
    pub(crate) fn publish_to_modules(&self, jobs: &mut Vec<Box<Job<'m>>>) {
        let mut has_moved = false;
        while jobs.is_empty() && self.shared.pop_many(jobs, CLAIM_JOBS_MAX as usize) > 0 {
            self.class_queues().push_all(jobs);
            has_moved = true;
        }
        if has_moved {
            self.class_queues().modules.ring_all();
            self.room.ring_all();
        }
    }

    /// Moves so many of them, about.
    pub(crate) fn publish_some(&self, count: usize) {
        let mut jobs = Vec::new();
        self.shared.pop_many(&mut jobs, count);
        self.class_queues().push_all(&mut jobs);
        // What found no room goes back; where others were faster here, too, cores find it next.
        self.shared.push_all(&mut jobs);
        debug_assert!(jobs.is_empty(), "it came from there");
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

    /// Gives a job to the module of `worker` and to no other worker, or gives it back where that has enough.
    pub(crate) fn push_to(&self, worker: usize, job: Box<Job<'m>>) -> Result<(), Box<Job<'m>>> {
        self.worker_queues[worker].dealt.push(job)?;
        self.class_queues().modules.ring_all();
        Ok(())
    }

    /// The next job that was given to the module of `worker` alone.
    pub(crate) fn pop_given(&self, worker: usize) -> Option<Box<Job<'m>>> {
        self.worker_queues[worker].dealt.pop()
    }

    /// Gives the module of `worker` a job that only a module may do, or gives it back where that has enough.
    pub(crate) fn push_module_only(&self, worker: usize, job: Box<Job<'m>>) -> Result<(), Box<Job<'m>>> {
        self.worker_queues[worker].module_only.push(job)?;
        self.doorbell_of(worker).ring_all();
        Ok(())
    }

    /// The next job that only the module of `worker` may do.
    pub(crate) fn pop_module_only(&self, worker: usize) -> Option<Box<Job<'m>>> {
        self.worker_queues[worker].module_only.pop()
    }

    /// How many of them wait there.
    pub(crate) fn module_only_count(&self, worker: usize) -> usize {
        self.worker_queues[worker].module_only.len()
    }

    /// The module at `worker` is out of service: what is bound to it is to be taken away afterwards.
    pub(crate) fn leave_service(&self, worker: usize) {
        self.worker_queues[worker].leave_service();
    }

    /// Whether the module of `worker` is out of service; to be asked again after a job was put there.
    pub(crate) fn is_out_of_service(&self, worker: usize) -> bool {
        self.worker_queues[worker].is_out_of_service()
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
            self.room.ring_all();
        }
        claimed
    }

    /// Claims jobs for the worker numbered `worker`, or from the shared queue for a caller that helps.
    pub(crate) fn claim(&self, worker: Option<usize>, take: &Take, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
        let queue = worker.map_or(&self.shared, |worker| self.queue_of(worker));
        let claimed = claim_from(queue, take, jobs);
        if claimed > 0 {
            self.room.ring_all();
        }
        if let (1.., Dispatch::Monitor, Some(worker)) = (claimed, self.dispatch, worker) {
            self.worker_queues[worker].set_busy();
        }
        claimed
    }

    /// Hands the next job to each worker that waits for one; for the monitor.
    pub(crate) fn serve(&self) {
        for queue in &self.worker_queues {
            if !self.shared.is_empty() && queue.take_idle() {
                self.hand_to(queue);
            }
        }
    }

    fn hand_to(&self, queue: &WorkerQueue<'m>) {
        match self.shared.pop() {
            Some(job) => {
                let handed = queue.dealt.push(job);
                assert!(handed.is_ok(), "a worker that waits has room for a job");
                queue.work.ring_all();
                self.room.ring_all();
            }
            None => queue.stay_idle(),
        }
    }

    /// Whether the worker numbered `worker` has nothing left and will get nothing more. Where workers leave jobs to each
    /// other, one that panicked may have been the one that jobs are left to.
    pub(crate) fn is_over(&self, worker: usize) -> bool {
        // Acquire pairs with the Release in `end`: what was put anywhere before is seen by `is_empty`.
        let nobody_else_works = self.dispatch == Dispatch::ByCost && self.is_broken();
        self.over.load(Ordering::Acquire) && (self.has_nothing_for(worker) || nobody_else_works)
    }

    /// No more jobs will be submitted; workers end when nothing is left.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        if self.dispatch != Dispatch::Monitor {
            self.end();
        }
    }

    /// No more jobs will reach worker_queues: said by `close`, or by the monitor when it has handed out the last one.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.wake_workers();
    }

    /// Whether the monitor has handed out everything there will ever be, or there is no point in going on.
    pub(crate) fn is_drained(&self) -> bool {
        self.is_closed() && (self.shared.is_empty() || self.is_broken())
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// A thread of the run panicked, with jobs that will never come back.
    pub(crate) fn break_down(&self) {
        self.broken.store(true, Ordering::Release);
        self.room.ring_all();
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// A session has ended: each worker is to hear of it, also who sleeps.
    pub(crate) fn end_session(&self, session: SessionId) {
        self.ended.add(session);
        self.wake_workers();
    }

    /// Tells the worker numbered `worker` of sessions that ended.
    pub(crate) fn poll_ended(&self, worker: usize, forget: impl FnOnce(HasEnded<'_>)) {
        self.ended.poll(&self.worker_queues[worker].cursor, forget);
    }

    /// The same for a thread without a queue of its own.
    pub(crate) const fn ended(&self) -> &EndedSessions {
        &self.ended
    }

    /// The queue that the worker numbered `worker` takes from.
    fn queue_of(&self, worker: usize) -> &Ring<Box<Job<'m>>> {
        match self.dispatch {
            Dispatch::SharedQueue | Dispatch::ByCost => &self.shared,
            Dispatch::RoundRobin | Dispatch::Monitor => &self.worker_queues[worker].dealt,
        }
    }

    /// One job each in turn, without regard to how fast a worker is: where the next queue is full, all wait.
    fn deal(&self, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
        let mut dealt = 0;
        let mut rest = Vec::new();
        for job in jobs.drain(..) {
            if !rest.is_empty() {
                rest.push(job);
                continue;
            }
            let queue = self.next_queue(self.deal_next.fetch_add(1, Ordering::Relaxed));
            match queue.dealt.push(job) {
                Ok(()) => dealt += 1,
                Err(job) => {
                    self.deal_next.fetch_sub(1, Ordering::Relaxed);
                    rest.push(job);
                }
            }
        }
        *jobs = rest;
        self.worker_queues.iter().filter(|_| dealt > 0).for_each(|queue| queue.work.ring_all());
        dealt
    }

    fn next_queue(&self, turn: u32) -> &WorkerQueue<'m> {
        &self.worker_queues[turn as usize % self.worker_queues.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::worker_queue::SINGLES_MAX;
    use super::*;
    use crate::queue::test_support::{returns, unarmed_job as job};

    pub(super) fn job_of(bytes: usize) -> Box<Job<'static>> {
        Job::apart(vec![0; bytes].leak(), &mut [])
    }

    pub(super) fn plan(dispatch: Dispatch) -> Plan {
        Plan { dispatch, cpu: Take::ONE, module: Take::ONE }
    }

    #[test]
    fn nobody_sleeps_over_jobs_or_room_that_are_there() {
        for dispatch in [Dispatch::SharedQueue, Dispatch::RoundRobin] {
            let backlog = Backlog::new(&plan(dispatch), 4, 1, 0);
            assert_eq!(backlog.submit(&mut vec![job()]), 1);
            returns(move || {
                backlog.wait_for_work(0, None, || false);
                backlog.wait_for_room();
            });
        }
    }

    #[test]
    fn what_no_module_takes_goes_the_way_of_cpu_only_until_modules_matter() {
        let session = crate::queue::test_support::session();
        let job = |bytes: usize| {
            let mut job = job_of(bytes);
            job.arm(session, &[0; 16], bytes);
            job
        };
        let backlog = Backlog::new(&plan(Dispatch::ByCost), 8, 1, 1);
        let small = job(100).class();
        let waits = |queue: usize| backlog.class_queues().waiting(queue);
        backlog.submit(&mut vec![job(100)]);
        assert_eq!((backlog.shared.len(), waits(0)), (0, 1), "nothing is known of a new class");
        backlog.class_queues().leave_alone(small, true);
        backlog.submit(&mut vec![job(100), job(90)]);
        assert_eq!((backlog.shared.len(), waits(0)), (2, 1));
        backlog.submit(&mut vec![job(100), job(5_000)]);
        assert_eq!(
            (backlog.shared.len(), waits(0), waits(1)),
            (2, 2, 1),
            "a burst with one that a module may take"
        );
        let mut rest = Vec::new();
        backlog.publish_to_modules(&mut rest);
        assert_eq!((backlog.shared.len(), waits(0), rest.len()), (0, 4, 0));
        backlog.class_queues().leave_alone(small, false);
        backlog.submit(&mut vec![job(100)]);
        assert_eq!((backlog.shared.len(), waits(0)), (0, 5));
    }

    #[test]
    fn a_job_that_was_given_to_a_module_is_seen_by_nobody_else() {
        let backlog = Backlog::new(&plan(Dispatch::ByCost), 8, 1, 2);
        assert!(backlog.push_to(2, job()).is_ok());
        assert!(backlog.has_nothing_for(0) && backlog.has_nothing_for(1) && !backlog.has_nothing_for(2));
        backlog.close();
        assert!(backlog.is_over(1) && !backlog.is_over(2));
        assert!(backlog.pop_given(1).is_none() && backlog.pop_given(2).is_some());
        assert!(
            (0..SINGLES_MAX).all(|_| backlog.push_to(1, job()).is_ok()) && backlog.push_to(1, job()).is_err()
        );
    }

    #[test]
    fn the_end_is_not_before_the_last_job_is_claimed() {
        for dispatch in [Dispatch::SharedQueue, Dispatch::RoundRobin] {
            let backlog = Backlog::new(&plan(dispatch), 4, 1, 0);
            assert_eq!(backlog.submit(&mut vec![job()]), 1);
            assert!(!backlog.is_over(0));
            backlog.close();
            assert!(!backlog.is_over(0));
            assert_eq!(backlog.claim(Some(0), &Take::ONE, &mut Vec::new()), 1);
            assert!(backlog.is_over(0));
        }
    }

    #[test]
    fn a_worker_that_wakes_for_another_reason_is_not_handed_a_second_job() {
        let backlog = Backlog::new(&plan(Dispatch::Monitor), 4, 1, 0);
        let mut jobs = vec![job(), job()];
        assert_eq!(backlog.submit(&mut jobs), 2);
        // Held, so that nothing sleeps here.
        backlog.hold();
        backlog.wait_for_work(0, None, || false);
        assert!(backlog.worker_queues[0].take_idle());
        backlog.wait_for_work(0, None, || false);
        backlog.serve();
        assert_eq!((backlog.worker_queues[0].dealt.len(), backlog.shared.len()), (0, 2));
        backlog.hand_to(&backlog.worker_queues[0]);
        assert_eq!(backlog.claim(Some(0), &Take::ONE, &mut jobs), 1);
        backlog.serve();
        assert!(backlog.worker_queues[0].dealt.is_empty(), "the worker is busy");
        backlog.wait_for_work(0, None, || false);
        backlog.serve();
        assert_eq!(backlog.worker_queues[0].dealt.len(), 1);
    }
}
