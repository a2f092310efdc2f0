//! A trial: requests of a class that go to a module one after the other, to find out what they take there.
//!
//! | state | until | what a request teaches |
//! |---|---|---|
//! | cold | [`COLD_COUNT`] requests or [`COLD_TIME`] | nothing: the module is still waking up |
//! | warm | [`RUN_TAUGHT`] requests | what it took |
//! | over | | what it took; at any time, once [`RUN_LOSS`] is lost |

use evener_core::Nanos;

/// A try is a run of requests, of which the first teach nothing: so many, or those of so much time. What stands behind a module sleeps
/// deeper after some milliseconds of rest than between two requests (docs/results/guest-afalg.md: 350 to 440 us each at first, 280 of
/// 1000 in a row).
const COLD_COUNT: u32 = 12;
const COLD_TIME: Nanos = Nanos::from_millis(5);

/// Requests after those, which teach.
const RUN_TAUGHT: u32 = 4;

/// A run ends once its requests have taken so much longer than on a core, all together: one that takes 2 ms where a core takes 0.3 may be
/// the first after a rest, or one whose thread was kept from its core. Below [`evener_core::guard::LOSS_ALLOWED`], so that the guard does
/// not lock for a try.
const RUN_LOSS: Nanos = Nanos::from_millis(4);

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
        if self.lost >= RUN_LOSS {
            return Step { teaches: true, is_over: true };
        }
        if self.cold < COLD_COUNT && now - self.began < COLD_TIME {
            self.cold += 1;
            return Step { teaches: cfg!(mutant = "cold_requests_teach"), is_over: false };
        }
        self.taught += 1;
        Step { teaches: true, is_over: self.taught >= RUN_TAUGHT }
    }
}
