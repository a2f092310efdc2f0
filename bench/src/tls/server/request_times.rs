//! What the server saw of each measured request: phases by its clock, and its own core time.

use std::collections::VecDeque;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use crate::tls::page::Seen;

/// Requests that are remembered: more than one page makes.
const ROWS_MAX: usize = 20_000;

/// What the latest requests took, by the names that clients gave them.
#[derive(Default)]
pub(super) struct Ledger(VecDeque<(String, Seen)>);

impl Ledger {
    pub(super) fn enter(&mut self, id: &str, seen: Seen) {
        if self.0.len() == ROWS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((id.to_owned(), seen));
    }

    /// Those whose names begin with `session` and a point, by their names.
    pub(super) fn of(&self, session: &str) -> serde_json::Map<String, serde_json::Value> {
        let is_of = |id: &str| id.strip_prefix(session).is_some_and(|rest| rest.starts_with('.'));
        let rows = self.0.iter().filter(|(id, _)| is_of(id));
        rows.filter_map(|(id, seen)| Some((id.clone(), serde_json::to_value(seen).ok()?))).collect()
    }
}

/// Clock of one connection.
pub(super) struct Clock {
    at: Instant,
    core_ms: f64,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { at: Instant::now(), core_ms: core_ms() }
    }

    /// Milliseconds since the last lap.
    pub(super) fn lap(&mut self) -> f64 {
        let now = Instant::now();
        let lap = now.duration_since(self.at).as_secs_f64() * 1e3;
        self.at = now;
        lap
    }

    /// Core time of the process since the start.
    pub(super) fn core_ms(&self) -> f64 {
        core_ms() - self.core_ms
    }
}

#[expect(clippy::cast_precision_loss, reason = "below 2^53")]
fn core_ms() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 * 1e-6
}
