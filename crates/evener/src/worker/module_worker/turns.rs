//! A run's turns at a module that other processes have, too, or a host's (docs/design/arbiter.md).
//!
//! A turn is one permit for all that the run has at the module: it begins before jobs are claimed, so that none of them waits for it, and is over when
//! the module holds nothing of this run. While others wait it lasts [`TURN_MAX`] at most: then nothing more is claimed, and what is there is
//! waited for.
//!
//! | state | jobs may be claimed | ends when |
//! |---|---|---|
//! | none | no | a permit is there: within the longest wait, or the worker looks around and asks again |
//! | a turn | yes | the module holds nothing, or another process waits and `TURN_MAX` is over |
//! | drained | no | the module holds nothing |

use std::thread;

use evener_arbiter::{Module, Permit, Refused, Work};
use evener_core::{Job, Nanos, Outcome};

/// A turn while others wait. Assumed, not measured: 2 ms, because handing over takes 23 us on a virtual machine (docs/design/arbiter.md), and that is then
/// about a hundredth.
const TURN_MAX: Nanos = Nanos::from_millis(2);

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// This run's: jobs may be claimed.
    Mine,
    /// This run's was long enough: what is at the module is waited for.
    Over,
    /// Other processes'.
    Others,
}

/// The turns of one worker.
#[derive(Debug)]
pub struct Turns {
    module: Option<Module>,
    permit: Option<Permit>,
    began: Nanos,
    /// The process goes on alone: there is no arbiter, or no place in it.
    is_alone: bool,
}

impl Turns {
    /// Those at a module; without one each moment is the worker's turn.
    #[must_use]
    pub fn new(module: Option<Module>) -> Self {
        Self { is_alone: module.is_none(), module, permit: None, began: Nanos::ZERO }
    }

    /// Whether no other process takes turns at the module.
    #[must_use]
    pub const fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Whether jobs may be claimed at `now` by a worker whose module holds nothing of this run, or something.
    pub fn ask(&mut self, holds_nothing: bool, now: Nanos) -> Turn {
        let Some(module) = &self.module else { return Turn::Mine };
        let is_over = |permit: &Permit| now - self.began >= TURN_MAX && permit.is_wanted();
        match &self.permit {
            Some(permit) if !is_over(permit) => return Turn::Mine,
            Some(_) if !holds_nothing => return Turn::Over,
            _ => self.permit = None,
        }
        let granted = module.try_acquire(TURN_MAX);
        if matches!(granted, Err(Refused::Busy)) {
            return Turn::Others;
        }
        self.begin(granted, now)
    }

    /// Sleeps in the queue of those who wait, for so long at most.
    pub fn wait(&mut self, now: Nanos, longest_wait: Nanos) -> Turn {
        let Some(module) = &self.module else { return Turn::Mine };
        let granted = module.wait_for(TURN_MAX, longest_wait);
        if matches!(granted, Err(Refused::Full)) {
            // There is no queue to sleep in.
            thread::sleep(longest_wait.into());
        }
        self.begin(granted, now)
    }

    fn begin(&mut self, granted: Result<Permit, Refused>, now: Nanos) -> Turn {
        self.is_alone = matches!(granted, Err(Refused::NoPlace));
        (self.permit, self.began) = (granted.ok(), now);
        if self.is_alone || self.permit.is_some() { Turn::Mine } else { Turn::Others }
    }

    /// Counts jobs that the module has done in this turn, for people to look at (`evener top`).
    pub fn count<'j, 'm: 'j>(&self, done: impl IntoIterator<Item = &'j Box<Job<'m>>>) {
        let Some(permit) = &self.permit else { return };
        let mut work = Work::default();
        for job in done.into_iter().filter(|job| matches!(job.outcome(), Outcome::Done { .. })) {
            work.requests += 1;
            work.bytes += job.input_bytes() as u64;
        }
        permit.count(work);
    }

    /// The module holds nothing of this run, and nothing is claimed for it.
    pub fn rest(&mut self) {
        self.permit = None;
    }
}
