//! A trial: requests of a class that go to a module one after the other, to find out what they take there.
//!
//! | state | until | what a request teaches |
//! |---|---|---|
//! | cold | `cold_requests` requests or `cold_time` | nothing: the module is still waking up |
//! | warm | `taught` requests | what it took |
//! | over | | what it took; at any time, once `trial_loss_max` is lost |

use evener_core::Nanos;

use super::tuning::TUNING;

/// Requests of a class that go to a module one after the other, to find out what they take there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub(super) module: usize,
    pub(super) began: Nanos,
    cold: u32,
    taught: u32,
    /// What its requests took longer than on a core.
    lost: Nanos,
}

/// What one request of a trial says.
pub(super) struct Step {
    /// What it took is what requests take there.
    pub(super) teaches: bool,
    /// It was the last of the trial.
    pub(super) is_over: bool,
}

impl Trial {
    /// None went yet.
    pub(super) const fn new(module: usize, now: Nanos) -> Self {
        Self { module, began: now, cold: 0, taught: 0, lost: Nanos::ZERO }
    }

    /// A request took `wall`, where a core takes `c`.
    pub(super) fn record(&mut self, wall: Nanos, c: Nanos, now: Nanos) -> Step {
        self.lost += wall - c;
        if self.lost >= TUNING.trial_loss_max {
            return Step { teaches: true, is_over: true };
        }
        if self.cold < TUNING.cold_requests && now - self.began < TUNING.cold_time {
            self.cold += 1;
            return Step { teaches: cfg!(mutant = "cold_requests_teach"), is_over: false };
        }
        self.taught += 1;
        Step { teaches: true, is_over: self.taught >= TUNING.taught }
    }
}
