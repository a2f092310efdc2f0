//! A module that works by itself on what it takes: the queue before it, whose turn it is there, and whether it hangs.

use std::time::{Duration, Instant};

use evener::{SystemClock, Turn, Turns};
use evener_core::driver::Clock as _;
use evener_core::{Job, JobError, Nanos, Outcome, QueuedDriver, Refusal, SessionId};

/// What a host has of such a module.
pub(super) struct Queue {
    pub(super) driver: Box<dyn QueuedDriver<'static>>,
    /// Silence after which it is taken for dead; none for one that is to hang until it is reset.
    pub(super) silence: Option<Duration>,
    /// When it last finished something, or was given something while it held nothing.
    pub(super) progress: Instant,
    /// Sessions that were closed, for the driver to evict.
    pub(super) over: Vec<SessionId>,
    /// Where other processes have it, too.
    pub(super) turns: Turns,
}

impl Queue {
    /// How long it has held something and finished nothing. Where it holds nothing that time begins now.
    pub(super) fn silent(&mut self) -> Duration {
        if self.driver.in_flight() == 0 {
            self.progress = Instant::now();
        }
        self.progress.elapsed()
    }

    /// Whether something may be handed over, where something waits for that. Sleeps for the turn while the module holds nothing.
    pub(super) fn has_turn(&mut self) -> bool {
        if cfg!(mutant = "host_takes_no_turns") {
            return true;
        }
        let holds_nothing = self.driver.in_flight() == 0;
        let mut turn = self.turns.ask(holds_nothing, SystemClock.now());
        if turn == Turn::Others && holds_nothing {
            turn = self.turns.wait(SystemClock.now(), WAIT_MAX);
        }
        turn == Turn::Mine
    }

    /// Closes keys of sessions that are over. Not while it may hang: a call for that may hang with it, and this thread has answers to
    /// give.
    pub(super) fn evict(&mut self) {
        let over = std::mem::take(&mut self.over);
        if !over.is_empty() {
            self.driver.evict(&|id| over.contains(&id));
        }
    }

    /// Whether it hangs, having been silent for so long before it was asked once more: a thread that the system kept from running
    /// blames neither.
    pub(super) fn is_dead_after(&self, silent: Duration) -> bool {
        let is_over =
            self.silence.is_some_and(|most| silent >= most) && !cfg!(mutant = "host_waits_for_ever");
        is_over && self.driver.in_flight() > 0
    }
}

/// Longest sleep for a turn; who comes and goes waits for its end. Assumed, not measured: 50 ms, ten times a run's, because a run's cores do what waits meanwhile, and a host
/// that looks up loses its place in the queue.
const WAIT_MAX: Nanos = Nanos::from_millis(50);

pub(super) fn is_lost(job: &Job<'_>) -> bool {
    job.outcome() == Outcome::Failed(JobError::ModuleLost)
}

/// Hands over what the module takes; `false` where some has to wait. A module that is gone fails all.
pub(super) fn submit(
    driver: &mut dyn QueuedDriver<'static>,
    waiting: &mut Vec<Box<Job<'static>>>,
    spare: &mut Vec<Box<Job<'static>>>,
    done: &mut Vec<Box<Job<'static>>>,
    is_gone: &mut bool,
) -> bool {
    spare.append(waiting);
    for mut job in spare.drain(..) {
        if !job.lengths_fit() {
            // As in the runtime, no module is asked then.
            job.fail(JobError::BadLength);
            done.push(job);
            continue;
        }
        let refused = if waiting.is_empty() { driver.submit(job) } else { Err((job, Refusal::Full)) };
        match refused {
            Ok(()) => {}
            Err((mut job, Refusal::Lost)) => {
                *is_gone = true;
                job.fail(JobError::ModuleLost);
                done.push(job);
            }
            Err((job, _)) => waiting.push(job),
        }
    }
    waiting.is_empty()
}
