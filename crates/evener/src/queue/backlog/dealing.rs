//! Jobs dealt out: to each worker in turn, or by the monitor to a worker that waits for one.

use std::sync::atomic::Ordering;

use evener_core::Job;

use super::Backlog;
use super::worker_queue::WorkerQueue;

impl<'m> Backlog<'m> {
    /// Hands the next job to each worker that waits for one; for the monitor.
    pub(crate) fn serve(&self) {
        for queue in &self.worker_queues {
            if !self.shared.is_empty() && queue.take_idle() {
                self.hand_to(queue);
            }
        }
    }

    pub(super) fn hand_to(&self, queue: &WorkerQueue<'m>) {
        match self.shared.pop() {
            Some(job) => {
                let handed = queue.dealt.push(job);
                assert!(handed.is_ok(), "a worker that waits has space for a job");
                queue.work.ring_all();
                self.space.ring_all();
            }
            None => queue.stay_idle(),
        }
    }

    /// One job each in turn, without regard to how fast a worker is: where the next queue is full, all wait.
    pub(super) fn deal(&self, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
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

    pub(super) fn next_queue(&self, turn: u32) -> &WorkerQueue<'m> {
        &self.worker_queues[turn as usize % self.worker_queues.len()]
    }
}
