//! A run without a body: it is there until it is closed, and threads come to it as they like.
//!
//! A thread of its own, the keeper, has the run of `run.rs` around it, hands out what its threads share, and sleeps until the
//! [`Resident`] is closed or dropped. Callers and queue pairs hold what is shared and may outlive the run: what they bring then is given up
//! (`state/end.rs`).
//!
//! Without workers there is no keeper either: the program's threads are the only ones.
//!
//! ```text
//! Resident::start ── keeper ── run_around(setup, ...) ──> Arc<Shared> ──> Caller, QueuePair
//! Resident::close ──> keeper wakes: workers finish what was submitted, are joined ──> Shared::end
//! ```

use std::fmt;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use evener_core::SessionId;
use evener_core::plan::Plan;

use crate::run::{Lifetime, run_around};
use crate::state::Shared;
use crate::submit::caller::caller_name;
use crate::submit::queue_pair::QueuePair;
use crate::{Caller, CoreDrivers, NoThread, Report, Setup};

/// A run that goes on until it is closed or dropped. Any thread may use it.
pub struct Resident {
    shared: Arc<Shared<'static>>,
    workers: usize,
    /// The keeper sleeps until it is dropped.
    open: Option<Sender<()>>,
    /// Where there are workers.
    keeper: Option<JoinHandle<()>>,
}

/// What the keeper hands out.
type Started = Result<(Arc<Shared<'static>>, usize), NoThread>;

impl Resident {
    /// Starts the run's threads.
    ///
    /// # Errors
    ///
    /// [`NoThread`] where one that waits for a module, or the keeper, cannot be had.
    ///
    /// # Panics
    ///
    /// Where the keeper ends without a word: a bug.
    pub fn start(setup: Setup<'static>) -> Result<Self, NoThread> {
        if setup.workers.is_empty() && setup.modules.is_empty() {
            let plan = setup.plan();
            let shared = Arc::new(Shared::new(setup, plan, 0, &[]).resident());
            return Ok(Self { shared, workers: 0, open: None, keeper: None });
        }
        let (open, until_closed) = channel();
        let (tell, started) = channel();
        let keeper = thread::Builder::new()
            .name("evener-keeper".to_owned())
            .spawn(move || keep(setup, &tell, &until_closed))
            .map_err(NoThread)?;
        let (shared, workers) = started.recv().expect("the keeper says how it went")?;
        Ok(Self { shared, workers, open: Some(open), keeper: Some(keeper) })
    }

    /// A way in for one thread, with a set of drivers of its own, which waits for its bursts. `None` where [`Setup::homes`] are taken.
    #[must_use]
    pub fn caller(&self, mut core_drivers: CoreDrivers) -> Option<Caller<'static, 'static>> {
        let home = self.shared.acquire_home(self.shared.home_jobs)?;
        let number = self.shared.next_caller();
        self.shared.adopt(&mut core_drivers, || caller_name(number));
        Some(Caller::new(&self.shared, home, number, core_drivers))
    }

    /// A way in and out for one thread that does not wait, with space for `depth` jobs, rounded up to a power of two.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn queue_pair(&self, depth: usize) -> Result<QueuePair<'static>, NoQueuePair> {
        if self.workers == 0 {
            return Err(NoQueuePair::NoWorkers);
        }
        QueuePair::open(&self.shared, depth).ok_or(NoQueuePair::NoHome)
    }

    /// What all threads did so far, those that went included: counts of jobs never fall. Who has a job back finds it counted; times of modules are
    /// known in the end.
    #[must_use]
    pub fn report(&self) -> Report {
        self.shared.report_of_all()
    }

    /// As [`Runtime::end_session`](crate::Runtime::end_session), and after the run's end too, for callers that are left.
    pub fn end_session(&self, session: SessionId) {
        self.shared.backlog.end_session(session);
    }

    /// What tells of sessions that end while another thread has the run, be it to end it.
    #[must_use]
    pub fn session_ends(&self) -> SessionEnds {
        SessionEnds(Arc::clone(&self.shared))
    }

    /// The plan in force.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.shared.plan
    }

    /// Worker threads that there are: of cores, and one for each module.
    #[must_use]
    pub const fn workers(&self) -> usize {
        self.workers
    }

    /// Finishes what was submitted, ends the threads, and returns what they did. Callers and queue pairs that are still there have what
    /// they bring from now on back as [`Cancelled`](evener_core::JobError::Cancelled), and may take out what was finished before.
    ///
    /// # Panics
    ///
    /// Where a worker panicked: a bug.
    #[must_use]
    pub fn close(mut self) -> Report {
        if let Err(cause) = self.stop() {
            resume_unwind(cause);
        }
        self.shared.report_of_all()
    }

    /// The same, and goes on to say what was done, and to tell those that are still there of [sessions that end](Self::end_session).
    ///
    /// # Errors
    ///
    /// The cause where a worker panicked: a bug.
    pub fn stop(&mut self) -> thread::Result<()> {
        drop(self.open.take());
        match self.keeper.take() {
            Some(keeper) => keeper.join(),
            None => {
                // No thread sleeps at the backlog, and an end may come twice.
                self.shared.backlog.close();
                self.shared.end();
                Ok(())
            }
        }
    }
}

/// Tells a run of sessions that end, and waits for nothing that the run does.
pub struct SessionEnds(Arc<Shared<'static>>);

impl SessionEnds {
    /// As [`Resident::end_session`].
    pub fn end_session(&self, session: SessionId) {
        self.0.backlog.end_session(session);
    }
}

impl fmt::Debug for SessionEnds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionEnds").finish_non_exhaustive()
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        // A worker's panic was told to those who had jobs with it.
        _ = self.stop();
    }
}

/// The keeper's life.
fn keep(setup: Setup<'static>, tell: &Sender<Started>, until_closed: &Receiver<()>) {
    let kept = Kept::default();
    let run = run_around(setup, Lifetime::OfHolders, |runtime| {
        let shared = kept.0.get_or_init(|| Arc::clone(runtime.shared()));
        // Where the other end has gone, so has its half of the other channel, and the wait is over at once.
        tell.send(Ok((Arc::clone(shared), runtime.workers()))).ok();
        until_closed.recv().ok();
    });
    if let Err(no_thread) = run {
        tell.send(Err(no_thread)).ok();
    }
}

/// What is shared, which learns of the end of the run, whichever way that comes.
#[derive(Default)]
struct Kept(OnceLock<Arc<Shared<'static>>>);

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(shared) = self.0.get() {
            shared.end();
        }
    }
}

/// Why there is no queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoQueuePair {
    /// No worker thread was set up: jobs would lie there for ever.
    NoWorkers,
    /// As many callers and queue pairs live as [`Setup::homes`] allows.
    NoHome,
}

impl fmt::Display for NoQueuePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoWorkers => "a queue pair needs worker threads",
            Self::NoHome => "there are as many callers and queue pairs as the run has space for",
        })
    }
}

impl std::error::Error for NoQueuePair {}
