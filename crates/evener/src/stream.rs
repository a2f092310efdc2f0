//! An ordered stream: jobs go in at one end, are finished by whoever takes them, and come out at the other
//! end in the order in which they went in. A failed job comes out in its turn like any other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use evener_core::Job;
use evener_core::job::Ticket;

use crate::caller::{ROOM_PATIENCE, count, submit};
use crate::runtime::Shared;

/// The end where jobs go in. Dropping it ends the stream.
pub struct Inlet<'r, 'm> {
    shared: &'r Shared<'m>,
    home: usize,
    turn: u32,
    ends: Arc<Ends>,
}

/// The end where jobs come out, in order.
pub struct Outlet<'r, 'm> {
    shared: &'r Shared<'m>,
    home: usize,
    turn: u32,
    /// Jobs that came before their turn; slot `i` is for turn `self.turn + i`.
    early: std::collections::VecDeque<Option<Box<Job<'m>>>>,
    came: Vec<Box<Job<'m>>>,
    ends: Arc<Ends>,
}

/// What both ends know of each other.
#[derive(Default)]
struct Ends {
    /// The inlet is gone.
    no_more: AtomicBool,
    /// The outlet is gone, so that nobody would ever make room.
    nobody_listens: AtomicBool,
}

/// Whether a job was taken.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Submitted {
    /// It will come out of the outlet.
    Yes,
    /// The outlet is gone; the job was dropped.
    NobodyListens,
}

pub(crate) fn open<'r, 'm>(shared: &'r Shared<'m>, home: usize) -> (Inlet<'r, 'm>, Outlet<'r, 'm>) {
    let ends = Arc::new(Ends::default());
    let inlet = Inlet { shared, home, turn: 0, ends: Arc::clone(&ends) };
    (inlet, Outlet { shared, home, turn: 0, early: [].into(), came: Vec::new(), ends })
}

impl<'m> Inlet<'_, 'm> {
    /// Submits one armed job; waits while the stream or the backlog is full.
    pub fn submit(&mut self, job: Box<Job<'m>>) -> Submitted {
        self.submit_all(&mut vec![job])
    }

    /// Submits armed jobs in order; waits while the stream or the backlog is full. Leaves `jobs` empty.
    pub fn submit_all(&mut self, jobs: &mut Vec<Box<Job<'m>>>) -> Submitted {
        for job in jobs.iter_mut() {
            job.ticket = Ticket { home: count(self.home), turn: self.turn };
            self.turn = self.turn.wrapping_add(1);
        }
        while !jobs.is_empty() {
            if self.ends.nobody_listens.load(Ordering::Acquire) {
                jobs.clear();
                return Submitted::NobodyListens;
            }
            if submit(self.shared, self.home, jobs) == 0 {
                self.shared.homes[self.home].wait_for_room(Some(ROOM_PATIENCE));
            }
        }
        Submitted::Yes
    }
}

impl Drop for Inlet<'_, '_> {
    fn drop(&mut self) {
        // Release pairs with the Acquire in `next`: all submissions are counted before.
        self.ends.no_more.store(true, Ordering::Release);
        self.shared.homes[self.home].knock();
    }
}

impl<'m> Outlet<'_, 'm> {
    /// The next job in order; waits for it. `None` when the inlet is gone and everything has come out.
    #[expect(clippy::should_implement_trait, reason = "an iterator would hide that this waits")]
    pub fn next(&mut self) -> Option<Box<Job<'m>>> {
        let home = &self.shared.homes[self.home];
        loop {
            if let Some(Some(_)) = self.early.front() {
                self.turn = self.turn.wrapping_add(1);
                return self.early.pop_front().flatten();
            }
            // Read before looking for jobs: if there are to be no more, all that were are counted.
            let no_more = self.ends.no_more.load(Ordering::Acquire);
            if home.collect(&mut self.came, usize::MAX) > 0 {
                self.sort_in();
            } else if no_more && home.in_flight() == 0 {
                return None;
            } else {
                home.wait_for_jobs_or(|| self.ends.no_more.load(Ordering::Acquire) && home.in_flight() == 0);
            }
        }
    }

    fn sort_in(&mut self) {
        for job in self.came.drain(..) {
            let ahead = job.ticket.turn.wrapping_sub(self.turn) as usize;
            if self.early.len() <= ahead {
                self.early.resize_with(ahead + 1, || None);
            }
            self.early[ahead] = Some(job);
        }
    }
}

impl Drop for Outlet<'_, '_> {
    fn drop(&mut self) {
        self.ends.nobody_listens.store(true, Ordering::Release);
        // The home is not given to anyone else in this run: jobs may still be on their way to it.
    }
}
