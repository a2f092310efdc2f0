//! Jobs that wait: one queue that workers pull from, and one private queue per worker for the policies that
//! deal jobs out.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use evener_core::Job;
use evener_core::plan::{Dispatch, Take};
use evener_ring::{Doorbell, Ring};

/// The private side of one worker.
pub(crate) struct Desk<'m> {
    /// Jobs dealt to this worker and nobody else.
    dealt: Ring<Box<Job<'m>>>,
    /// Under the monitor: whether the worker waits for a job. The worker sets it, the monitor clears it.
    pub(crate) free: AtomicBool,
}

/// All jobs that wait.
pub(crate) struct Backlog<'m> {
    dispatch: Dispatch,
    shared: Ring<Box<Job<'m>>>,
    desks: Vec<Desk<'m>>,
    /// Rung when jobs were put anywhere here, and at the end.
    work: Doorbell,
    /// Rung when jobs were taken out of a full queue.
    room: Doorbell,
    /// Next desk when dealing. Relaxed: several submitters may deal at once and only the counts matter.
    deal_next: AtomicU32,
    /// No more jobs will be submitted.
    closed: AtomicBool,
    /// No more jobs will reach desks either: with a monitor this comes later than `closed`.
    over: AtomicBool,
    /// Measuring only: while set, workers wait on the spot, busily, before they claim.
    held: AtomicBool,
}

impl<'m> Backlog<'m> {
    pub(crate) fn new(dispatch: Dispatch, jobs: usize, workers: usize) -> Self {
        let desk =
            |_| Desk { dealt: Ring::with_capacity(desk_jobs(dispatch, jobs)), free: AtomicBool::new(false) };
        Self {
            dispatch,
            shared: Ring::with_capacity(jobs),
            desks: (0..workers).map(desk).collect(),
            work: Doorbell::new(),
            room: Doorbell::new(),
            deal_next: AtomicU32::new(0),
            closed: AtomicBool::new(false),
            over: AtomicBool::new(false),
            held: AtomicBool::new(false),
        }
    }

    /// Moves as many jobs as there is room for, from the front; returns how many.
    pub(crate) fn submit(&self, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
        let came = match self.dispatch {
            Dispatch::Pull | Dispatch::Monitor => self.shared.push_all(jobs),
            Dispatch::Deal => self.deal(jobs),
        };
        if came > 0 {
            self.work.ring_all();
        }
        came
    }

    /// Claims jobs for the worker at `desk`, or from the shared queue for a caller that helps.
    pub(crate) fn claim(&self, desk: Option<usize>, take: &Take, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
        let queue = match desk {
            Some(desk) => self.queue_of(desk),
            None => &self.shared,
        };
        let claimed = queue.pop_many(jobs, take.claim(queue.len()));
        if claimed > 0 {
            self.room.ring_all();
        }
        claimed
    }

    /// Hands one waiting job to a desk; for the monitor. `false` where none waits.
    pub(crate) fn hand_to(&self, desk: usize) -> bool {
        let Some(job) = self.shared.pop() else { return false };
        let handed = self.desks[desk].dealt.push(job);
        assert!(handed.is_ok(), "the monitor hands a free worker one job");
        self.work.ring_all();
        self.room.ring_all();
        true
    }

    pub(crate) fn desks(&self) -> &[Desk<'m>] {
        &self.desks
    }

    /// Whether the worker at `desk` has nothing left and will get nothing more.
    pub(crate) fn is_over(&self, desk: usize) -> bool {
        // Acquire pairs with the Release in `end`: what was put anywhere before is seen by `is_empty`.
        self.over.load(Ordering::Acquire) && self.queue_of(desk).is_empty()
    }

    /// No more jobs will be submitted; workers end when nothing is left.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        if self.dispatch == Dispatch::Monitor {
            self.room.ring_all();
        } else {
            self.end();
        }
    }

    /// No more jobs will reach desks: said by `close`, or by the monitor when it has handed out the last one.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.work.ring_all();
        self.room.ring_all();
    }

    /// Whether jobs wait that the monitor has not handed out.
    pub(crate) fn is_drained(&self) -> bool {
        self.is_closed() && self.shared.is_empty()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Sleeps until there may be work for `desk`.
    pub(crate) fn wait_for_work(&self, desk: usize) {
        let ticket = self.work.listen();
        let nothing_else = !self.over.load(Ordering::Acquire) && !self.is_held();
        if self.queue_of(desk).is_empty() && nothing_else {
            self.work.wait(ticket, None);
        }
    }

    /// Sleeps until there may be room, at most `timeout`.
    pub(crate) fn wait_for_room(&self, timeout: Duration) {
        let ticket = self.room.listen();
        self.room.wait(ticket, Some(timeout));
    }

    /// Stops workers before their next claim; they wait busily, as at a barrier. For measuring.
    pub(crate) fn hold(&self, held: bool) {
        self.held.store(held, Ordering::Release);
        self.work.ring_all();
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire)
    }

    /// The queue that the worker at `desk` takes from.
    fn queue_of(&self, desk: usize) -> &Ring<Box<Job<'m>>> {
        match self.dispatch {
            Dispatch::Pull => &self.shared,
            Dispatch::Deal | Dispatch::Monitor => &self.desks[desk].dealt,
        }
    }

    /// One job each in turn, without regard to how fast a worker is.
    fn deal(&self, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
        let before = jobs.len();
        let mut rest = Vec::new();
        for job in jobs.drain(..) {
            let desk = self.deal_next.fetch_add(1, Ordering::Relaxed) as usize % self.desks.len();
            rest.extend(self.desks[desk].dealt.push(job).err());
        }
        *jobs = rest;
        before - jobs.len()
    }
}

/// A desk holds one job under the monitor and up to the whole backlog when jobs are dealt out.
fn desk_jobs(dispatch: Dispatch, jobs: usize) -> usize {
    match dispatch {
        Dispatch::Pull | Dispatch::Monitor => 1,
        Dispatch::Deal => jobs,
    }
}
