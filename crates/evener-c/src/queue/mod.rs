//! A queue: one thread hands over jobs over raw memory and gets them back.
//!
//! Each job of the program becomes a job of the runtime in a box that is used again ([`Slots`]), over the memory that it lends
//! (`raw.rs`), with a session that is kept as long as a job needs it (`kept_sessions.rs`). The program's struct is read when a job is handed
//! over and written when it is given back, both by the calling thread; workers see the memory alone.

mod event;
mod kept_sessions;
mod raw;
mod slots;

use std::mem::{self, ManuallyDrop};
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use evener::QueuePair;
use evener::core::{Job, Nanos};

use self::event::OwnEvent;
use self::slots::Slots;
use crate::abi;
use crate::runtime::{Runtime, Ways};
use crate::{Error, Failure};

/// Jobs that [`Queue::crypt`] runs together at most.
const BURST_MAX: usize = 1_024;

/// A queue. It may go from thread to thread, and is used by one at a time.
pub struct Queue {
    runtime: Arc<Runtime>,
    /// In a child it is left alone: locks and counts in it are the parent's threads'.
    ways: ManuallyDrop<Ways>,
    /// Jobs under way.
    slots: Slots,
    /// Jobs of a burst that is waited for.
    burst_slots: Slots,
    /// A burst, kept for its memory.
    burst: Vec<Box<Job<'static>>>,
    /// Without worker threads: jobs that are finished.
    finished: Vec<Box<Job<'static>>>,
    /// As the ways.
    event: ManuallyDrop<Option<Event>>,
    /// A call panicked: nothing is known of the jobs of this queue but that the runtime may have them.
    is_broken: bool,
}

/// What tells a poller of finished jobs.
enum Event {
    /// The queue pair's.
    Pair(Arc<OwnedFd>),
    /// Without worker threads.
    Own(OwnEvent),
}

// SAFETY: the pointers in it are to memory that who submits jobs has lent to whichever thread has the queue; of it one has at a time.
unsafe impl Send for Queue {}

impl Queue {
    /// Opens one with space for `depth` jobs under way.
    ///
    /// # Errors
    ///
    /// Where the depth is not one, or the runtime has no space or thread for it.
    pub fn open(runtime: &Arc<Runtime>, depth: usize) -> Result<Self, Failure> {
        if !(1..=abi::DEPTH_MAX as usize).contains(&depth) {
            return Err(Failure::new(
                Error::Invalid,
                format_args!("a queue is 1 to {} jobs deep, not {depth}", abi::DEPTH_MAX),
            ));
        }
        runtime.check_usable()?;
        Ok(Self {
            ways: ManuallyDrop::new(runtime.ways(depth)?),
            runtime: Arc::clone(runtime),
            slots: Slots::new(depth),
            burst_slots: Slots::new(BURST_MAX),
            burst: Vec::new(),
            finished: Vec::new(),
            event: ManuallyDrop::new(None),
            is_broken: false,
        })
    }

    /// Hands over jobs from the front, as many as fit; returns how many. Where the runtime has worker threads it does not wait.
    ///
    /// # Errors
    ///
    /// In a child of the process, after the runtime was closed, after a panic: then nothing was taken.
    ///
    /// # Safety
    ///
    /// Each pointer is to a whole [`abi::Job`] that no other job under way has, whose session is open, and whose spans are memory of these
    /// lengths that may be read and, at `dst`, written. From this call until the job is given back by [`Queue::reap`] or the queue is closed, no one
    /// else writes to the struct or its spans or reads `dst`.
    pub unsafe fn submit(&mut self, jobs: &[*mut abi::Job]) -> Result<usize, Error> {
        self.begin()?;
        let taken = jobs.len().min(self.slots.free());
        let mut burst = mem::take(&mut self.burst);
        for &job in &jobs[..taken] {
            // SAFETY: as the caller promised.
            burst.push(unsafe { self.slots.arm(job, &self.runtime) });
        }
        let taken = match &mut self.ways.pair {
            Some(pair) => pair.submit(&mut burst),
            None => self.run_here(&mut burst),
        };
        burst.drain(..).for_each(|job| self.slots.take_back(job));
        self.burst = burst;
        for &job in &jobs[..taken] {
            // SAFETY: as the caller promised. No reference to the struct is made: a worker may be reading what lies in it as source.
            let status = unsafe { &raw mut (*job).status };
            // SAFETY: as above.
            unsafe { status.write(crate::error::PENDING) };
        }
        Ok(taken)
    }

    /// Without worker threads: runs them now and keeps them for [`Queue::reap`].
    fn run_here(&mut self, burst: &mut Vec<Box<Job<'static>>>) -> usize {
        let taken = burst.len();
        self.ways.caller.crypt(burst);
        self.finished.append(burst);
        self.tell();
        taken
    }

    /// Gives back finished jobs, as many as `jobs` has space for; returns how many. Waits before until `min` are there, or all that are
    /// under way where those are fewer, or `timeout` is over (`None`: without limit).
    ///
    /// # Errors
    ///
    /// In a child of the process, after a panic.
    pub fn reap(
        &mut self,
        jobs: &mut [*mut abi::Job],
        min: usize,
        timeout: Option<Nanos>,
    ) -> Result<usize, Error> {
        self.runtime.check_process()?;
        self.check_whole()?;
        self.ways.caller.poll_ended();
        let mut burst = mem::take(&mut self.burst);
        match &mut self.ways.pair {
            Some(pair) => {
                if min > 0 {
                    pair.wait(min.min(jobs.len()), timeout);
                }
                pair.reap(&mut burst, jobs.len());
            }
            None => {
                let came = jobs.len().min(self.finished.len());
                burst.extend(self.finished.drain(..came));
                self.tell();
            }
        }
        let came = burst.len();
        for (job, place) in burst.drain(..).zip(jobs) {
            *place = self.slots.settle(job);
        }
        self.burst = burst;
        Ok(came)
    }

    /// Runs jobs and returns when each has its status. On the calling thread, and on modules where that pays.
    ///
    /// # Errors
    ///
    /// As [`Queue::submit`].
    ///
    /// # Safety
    ///
    /// As [`Queue::submit`], for the time of the call.
    pub unsafe fn crypt(&mut self, jobs: &[*mut abi::Job]) -> Result<(), Error> {
        self.begin()?;
        for part in jobs.chunks(BURST_MAX) {
            let mut burst = mem::take(&mut self.burst);
            for &job in part {
                // SAFETY: as the caller promised.
                burst.push(unsafe { self.burst_slots.arm(job, &self.runtime) });
            }
            self.ways.caller.crypt(&mut burst);
            burst.drain(..).for_each(|job| _ = self.burst_slots.settle(job));
            self.burst = burst;
        }
        Ok(())
    }

    /// A descriptor that is readable while finished jobs wait; once in a while it is though none do. It is the queue's.
    ///
    /// # Errors
    ///
    /// As [`Queue::reap`], and where the system has no more descriptors.
    pub fn event(&mut self) -> Result<RawFd, Failure> {
        self.runtime.check_process()?;
        self.check_whole()?;
        if self.event.is_none() {
            let no_fd =
                |error| Failure::new(Error::System, format_args!("no descriptor for an event: {error}"));
            *self.event = Some(match &mut self.ways.pair {
                Some(pair) => Event::Pair(pair.event().map_err(no_fd)?),
                None => Event::Own(OwnEvent::new().map_err(no_fd)?),
            });
            self.tell();
        }
        Ok(match &*self.event {
            Some(Event::Pair(fd)) => fd.as_raw_fd(),
            Some(Event::Own(event)) => event.fd(),
            None => -1,
        })
    }

    /// Without worker threads: lets the descriptor say whether finished jobs wait.
    fn tell(&mut self) {
        if let Some(Event::Own(event)) = &mut *self.event {
            event.set(!self.finished.is_empty());
        }
    }

    /// Gives up jobs under way that no worker has begun.
    ///
    /// # Errors
    ///
    /// As [`Queue::reap`].
    pub fn cancel(&mut self) -> Result<(), Error> {
        self.runtime.check_process()?;
        self.check_whole()?;
        if let Some(pair) = &mut self.ways.pair {
            pair.cancel();
        }
        Ok(())
    }

    /// Jobs handed over and not given back.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.slots.used()
    }

    /// Whose it is.
    #[must_use]
    pub const fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// A call panicked: it takes no more work.
    pub fn set_broken(&mut self) {
        self.is_broken = true;
    }

    /// Waits for what is under way; statuses are written.
    ///
    /// # Errors
    ///
    /// [`Error::Fork`] in a child, where what it holds is left to the parent. [`Error::Panic`] where the runtime had to be closed, because
    /// after a panic it is not known what of it is still in use.
    pub fn close(mut self) -> Result<(), Error> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Error> {
        self.runtime.check_process()?;
        let drained = catch_unwind(AssertUnwindSafe(|| self.check_whole().is_ok() && self.drain()));
        if drained.unwrap_or(false) {
            return Ok(());
        }
        self.runtime.abandon();
        Err(Error::Panic)
    }

    /// Gives back all jobs; `false` where a worker panicked.
    fn drain(&mut self) -> bool {
        let mut jobs = [ptr::null_mut(); 64];
        while self.slots.used() > 0 {
            if self.ways.pair.as_ref().is_some_and(QueuePair::is_broken) {
                return false;
            }
            if self.reap(&mut jobs, 1, None).is_err() {
                return false;
            }
        }
        true
    }

    /// What every call with jobs begins with: drivers wipe what they made of sessions that have ended, also where the runtime was closed.
    fn begin(&mut self) -> Result<(), Error> {
        self.runtime.check_process()?;
        self.check_whole()?;
        self.ways.caller.poll_ended();
        self.runtime.check_usable()
    }

    const fn check_whole(&self) -> Result<(), Error> {
        if self.is_broken { Err(Error::Panic) } else { Ok(()) }
    }
}

impl Drop for Queue {
    /// Memory that was lent is not touched afterwards, whichever way a queue goes.
    fn drop(&mut self) {
        if self.runtime.check_process().is_err() {
            return;
        }
        _ = self.end();
        // SAFETY: it is dropped once, here, and not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.event) };
        // SAFETY: as above.
        unsafe { ManuallyDrop::drop(&mut self.ways) };
    }
}
