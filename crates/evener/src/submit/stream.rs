//! An ordered stream: jobs go in at one end, are finished by any worker, and come out at the other
//! end in the order in which they went in. A failed job comes out in its turn like any other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use evener_core::Job;
use evener_core::job::Ticket;

use crate::queue::completions::{Completions, count};
use crate::state::Shared;
use crate::submit::caller::submit;

/// The end where jobs go in. Dropping it ends the stream.
pub struct StreamSender<'r, 'm> {
    shared: &'r Shared<'m>,
    position: u32,
    /// A job on its own, kept for its memory.
    single: Vec<Box<Job<'m>>>,
    ends: Arc<Ends<'r, 'm>>,
}

/// The end where jobs come out, in order.
pub struct StreamReceiver<'r, 'm> {
    shared: &'r Shared<'m>,
    position: u32,
    /// Jobs that came before their position; slot `i` is for position `self.position + i`.
    early: VecDeque<Option<Box<Job<'m>>>>,
    /// Jobs in `early`.
    early_count: u32,
    came: Vec<Box<Job<'m>>>,
    ends: Arc<Ends<'r, 'm>>,
}

/// What both ends know of each other. The last one to go gives the completions back.
struct Ends<'r, 'm> {
    completions: &'r Completions<'m>,
    owner: u32,
    /// The sender was dropped.
    no_more: AtomicBool,
    /// The receiver was dropped, so that no thread would ever make space.
    nobody_listens: AtomicBool,
}

impl Drop for Ends<'_, '_> {
    fn drop(&mut self) {
        self.completions.vacate();
    }
}

/// Whether a job was taken.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Submitted {
    /// It will come out of the receiver.
    Yes,
    /// The receiver was dropped, and with it the job.
    NobodyListens,
}

pub(crate) fn open<'r, 'm>(
    shared: &'r Shared<'m>,
    owner: usize,
) -> (StreamSender<'r, 'm>, StreamReceiver<'r, 'm>) {
    let ends = Arc::new(Ends {
        completions: &shared.completions[owner],
        owner: count(owner),
        no_more: AtomicBool::new(false),
        nobody_listens: AtomicBool::new(false),
    });
    let sender = StreamSender { shared, position: 0, single: Vec::new(), ends: Arc::clone(&ends) };
    let (early, came) = (VecDeque::new(), Vec::new());
    (sender, StreamReceiver { shared, position: 0, early, early_count: 0, came, ends })
}

impl<'m> StreamSender<'_, 'm> {
    /// Submits one armed job; waits while the stream or the backlog is full.
    ///
    /// # Panics
    ///
    /// As [`submit_all`](Self::submit_all).
    pub fn submit(&mut self, job: Box<Job<'m>>) -> Submitted {
        let mut single = std::mem::take(&mut self.single);
        single.push(job);
        let submitted = self.submit_all(&mut single);
        self.single = single;
        submitted
    }

    /// Submits armed jobs in order; waits while the stream or the backlog is full. Leaves `jobs` empty.
    ///
    /// A stream is full with [`Setup::home_jobs`](crate::Setup::home_jobs) jobs that went in and did not come out:
    /// a thread that has both ends must take jobs out before it puts more in.
    ///
    /// # Panics
    ///
    /// Where a worker panicked, with which jobs are lost: a bug.
    pub fn submit_all(&mut self, jobs: &mut Vec<Box<Job<'m>>>) -> Submitted {
        let (completions, owner) = (self.ends.completions, self.ends.owner);
        for job in jobs.iter_mut() {
            job.ticket = Ticket { owner, position: self.position };
            self.position = self.position.wrapping_add(1);
        }
        while !jobs.is_empty() {
            self.shared.assert_whole();
            if self.ends.nobody_listens.load(Ordering::Acquire) {
                jobs.clear();
                return Submitted::NobodyListens;
            }
            if submit(self.shared, owner as usize, jobs) > 0 {
                continue;
            }
            if completions.free_slots() == 0 {
                completions
                    .wait_for_space(|| self.ends.nobody_listens.load(Ordering::Acquire) || self.is_broken());
            } else {
                self.shared.backlog.wait_for_space();
            }
        }
        Submitted::Yes
    }

    fn is_broken(&self) -> bool {
        self.shared.backlog.is_broken()
    }
}

impl Drop for StreamSender<'_, '_> {
    fn drop(&mut self) {
        // Release pairs with the Acquire in `next`: all submissions are counted before.
        self.ends.no_more.store(true, Ordering::Release);
        self.ends.completions.wake_all();
    }
}

impl<'m> StreamReceiver<'_, 'm> {
    /// The next job in order; waits for it. `None` when the sender was dropped and all jobs have come out.
    ///
    /// # Panics
    ///
    /// Where a worker panicked, with which jobs are lost: a bug.
    #[expect(clippy::should_implement_trait, reason = "an iterator would hide that this waits")]
    #[inline]
    pub fn next(&mut self) -> Option<Box<Job<'m>>> {
        match self.early.front() {
            Some(Some(_)) => self.take_front(),
            _ => self.wait_for_next(),
        }
    }

    /// The same where the next one was not collected yet.
    #[inline(never)]
    fn wait_for_next(&mut self) -> Option<Box<Job<'m>>> {
        let completions = self.ends.completions;
        loop {
            if let Some(Some(_)) = self.early.front() {
                return self.take_front();
            }
            // Read before looking for jobs: if there are to be no more, all that were are counted.
            let no_more = self.ends.no_more.load(Ordering::Acquire);
            if completions.drain(&mut self.came) > 0 {
                self.sort_in();
            } else if no_more && completions.in_flight() == 0 {
                return None;
            } else {
                self.shared.assert_whole();
                completions.wait_for_jobs(1, None, || {
                    let is_end = self.ends.no_more.load(Ordering::Acquire) && completions.in_flight() == 0;
                    is_end || self.shared.backlog.is_broken()
                });
            }
        }
    }

    /// Sleeps until all jobs that went in so far are finished, without taking any out: for measuring, so that this
    /// thread does not compete with the workers.
    ///
    /// # Panics
    ///
    /// Where a worker panicked, with which jobs are lost: a bug.
    pub fn wait_for_all(&self) {
        let completions = self.ends.completions;
        while completions.finished() < (completions.in_flight() - self.early_count) as usize {
            self.shared.assert_whole();
            completions.wait_for_jobs(completions.in_flight() - self.early_count, None, || {
                self.shared.backlog.is_broken()
            });
        }
    }

    fn take_front(&mut self) -> Option<Box<Job<'m>>> {
        self.position = self.position.wrapping_add(1);
        self.early_count -= 1;
        self.ends.completions.release(1);
        self.early.pop_front().flatten()
    }

    fn sort_in(&mut self) {
        self.early_count += count(self.came.len());
        for job in self.came.drain(..) {
            let ahead = job.ticket.position.wrapping_sub(self.position) as usize;
            match self.early.get_mut(ahead) {
                Some(place) => *place = Some(job),
                None => {
                    // Most come in order, and then there is nothing to be put in between.
                    if self.early.len() < ahead {
                        self.early.resize_with(ahead, || None);
                    }
                    self.early.push_back(Some(job));
                }
            }
        }
    }
}

impl Drop for StreamReceiver<'_, '_> {
    fn drop(&mut self) {
        // Jobs that came back and were not taken out are dropped here, and are no longer on their way.
        self.ends.completions.release(self.early_count);
        self.ends.nobody_listens.store(true, Ordering::Release);
        self.ends.completions.wake_all();
    }
}
