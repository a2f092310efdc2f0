//! How many rounds a visit has: until its budget is used up, or too much time beside it has passed.

use evener::SystemClock;
use evener::core::driver::Clock as _;
use evener_core::Nanos;

/// A visit takes at most so many times its budget by the clock on the wall. What is between rounds (the barrier, the
/// memory that is filled anew) takes about as long as the shortest rounds that are worth measuring; on a machine that others
/// keep busy it takes a hundred times as long, and rounds that wait for that say nothing anyway.
const VISIT_BUDGETS_MAX: u64 = 10;

/// The budget of a visit, and what of it is used. There is always one round.
pub(crate) struct RoundBudget {
    budget: Nanos,
    used: Nanos,
    began: Nanos,
    pub(crate) rounds: Vec<Nanos>,
    pub(crate) crowded: usize,
}

impl RoundBudget {
    pub(crate) fn new(budget: Nanos) -> Self {
        Self { budget, used: Nanos::ZERO, began: SystemClock.now(), rounds: Vec::new(), crowded: 0 }
    }

    pub(crate) fn wants_more(&self) -> bool {
        let has_time = || SystemClock.now() - self.began < Nanos(self.budget.0 * VISIT_BUDGETS_MAX);
        self.rounds.is_empty() || self.used < self.budget && has_time()
    }

    /// A round of so many turns; each says how long it took and whether its workers had cores of their own.
    pub(crate) fn round(&mut self, turns: usize, mut turn: impl FnMut() -> (Nanos, bool)) {
        let turns: Vec<(Nanos, bool)> = (0..turns).map(|_| turn()).collect();
        let round = turns.iter().map(|(time, _)| *time).sum();
        self.crowded += usize::from(turns.iter().any(|(_, is_spread)| !is_spread));
        self.used += round;
        self.rounds.push(round);
    }
}
