//! A queue pair: a thread submits bursts and goes on, and reaps jobs as they are finished, in any order.
//!
//! What it is in the literature: a pair of submission and completion queue, as of NVMe, RDMA and DPDK's cryptodevs. Neither call waits;
//! who has nothing else to do waits for a number of jobs ([`QueuePair::wait`]) or polls a descriptor ([`QueuePair::event`]).

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;

use evener_core::job::Ticket;
use evener_core::{Job, Nanos};

use crate::queue::completions::{Completions, count};
use crate::state::Shared;
use crate::submit::caller::submit_front;

/// A way in and out for one thread at a time that does not wait for its jobs. Dropped with jobs on their way it leaves them to the run,
/// which drops them when they are back.
pub struct QueuePair<'m> {
    shared: Arc<Shared<'m>>,
    owner: usize,
    /// Of the next job.
    position: u32,
}

impl<'m> QueuePair<'m> {
    /// One with space for so many jobs; `None` where all homes are taken.
    pub(crate) fn open(shared: &Arc<Shared<'m>>, depth: usize) -> Option<Self> {
        let owner = shared.acquire_home(depth)?;
        Some(Self { shared: Arc::clone(shared), owner, position: 0 })
    }

    /// Submits armed jobs from the front, as many as fit, and returns how many; the others stay in order. It never waits: where there is no
    /// space for one, those behind it stay, too. Where workers take jobs by length or class, they may begin with any of them.
    ///
    /// # Panics
    ///
    /// Where a job was never armed, or a worker panicked, with which jobs are lost: bugs.
    pub fn submit(&mut self, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
        self.shared.assert_whole();
        self.completions().forget_mark_behind(self.position);
        let (all, owner) = (jobs.len(), count(self.owner));
        for (position, job) in (0..).zip(jobs.iter_mut()) {
            job.ticket = Ticket { owner, position: self.position.wrapping_add(position) };
        }
        let taken = submit_front(&self.shared, self.owner, jobs);
        debug_assert_eq!(taken + jobs.len(), all, "each is here or there");
        self.position = self.position.wrapping_add(count(taken));
        taken
    }

    /// Moves up to `max` finished jobs to the end of `jobs`, in any order, and returns how many.
    ///
    /// # Panics
    ///
    /// Where none is there and a worker panicked, with which jobs are lost: a bug.
    pub fn reap(&mut self, jobs: &mut Vec<Box<Job<'m>>>, max: usize) -> usize {
        let completions = self.completions();
        let came = completions.drain_some(jobs, max);
        if came == 0 && completions.in_flight() > 0 {
            // Before the event is lowered, which a worker's end has raised too.
            self.shared.assert_whole();
        }
        completions.release(count(came));
        completions.lower_event();
        came
    }

    /// Sleeps until `min` finished jobs wait, or all that are on their way where those are fewer, or `timeout` is over (none: without
    /// limit); returns how many wait, so many at least [`reap`](Self::reap) gives.
    ///
    /// # Panics
    ///
    /// Where a worker panicked, with which jobs are lost: a bug.
    pub fn wait(&mut self, min: usize, timeout: Option<Nanos>) -> usize {
        let completions = self.completions();
        let wanted = completions.in_flight().min(u32::try_from(min).unwrap_or(u32::MAX));
        let start = timeout.map(|timeout| (self.shared.clock.now(), timeout));
        loop {
            let ready = completions.ready(wanted as usize);
            let left = start.map(|(start, timeout)| timeout - (self.shared.clock.now() - start));
            if ready >= wanted as usize {
                return ready;
            }
            self.shared.assert_whole();
            if left == Some(Nanos::ZERO) {
                return ready;
            }
            if completions.finished() >= wanted as usize {
                // A worker is about to move the last in.
                thread::yield_now();
                continue;
            }
            completions.wait_for_jobs(wanted, left, || self.shared.backlog.is_broken());
        }
    }

    /// A descriptor that is readable while finished jobs wait, for poll, epoll or io_uring: until all are [reaped](Self::reap). Once in a
    /// while it is readable though none wait. Only the queue pair reads it; once that is dropped nothing writes it any more.
    ///
    /// # Errors
    ///
    /// Where the system gives no more descriptors.
    pub fn event(&mut self) -> io::Result<Arc<OwnedFd>> {
        let completions = self.completions();
        let fd = completions.ready.open()?;
        completions.lower_event();
        Ok(fd)
    }

    /// Gives up the jobs submitted so far that no worker has begun: they come back as
    /// [`Cancelled`](evener_core::JobError::Cancelled), their memory as it was. The others come back as usual.
    pub fn cancel(&mut self) {
        self.shared.cancel_before(self.owner, self.position);
    }

    /// Jobs that were submitted and not reaped.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.completions().in_flight() as usize
    }

    /// Jobs that it may have on their way.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.completions().capacity()
    }

    /// Whether a worker panicked, so that jobs may be lost and calls panic.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.shared.backlog.is_broken()
    }

    fn completions(&self) -> &Completions<'m> {
        &self.shared.completions[self.owner]
    }
}

impl Drop for QueuePair<'_> {
    fn drop(&mut self) {
        self.completions().vacate();
    }
}
