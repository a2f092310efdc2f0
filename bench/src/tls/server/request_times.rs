//! What the server saw of each measured request: phases by its clock, and its own core time.

use std::collections::VecDeque;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// Requests that are remembered: more than one page makes.
const ROWS_MAX: usize = 20_000;

/// One request, milliseconds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Spent {
    /// As the client named it.
    #[serde(skip)]
    pub(super) id: String,
    /// From the connection to the end of the handshake.
    pub(super) tls_ms: f64,
    /// From there to the first byte of the answer: the head and the body came.
    pub(super) request_ms: f64,
    /// From there to the last byte that the system took.
    pub(super) response_ms: f64,
    /// Of this process, in all that time.
    pub(super) core_ms: f64,
    /// As OpenSSL names it.
    pub(super) cipher: String,
    /// Whether the record's MAC is that of the ciphertext (RFC 7366); in CBC only.
    pub(super) encrypt_then_mac: bool,
}

/// The latest requests.
#[derive(Default)]
pub(super) struct Ledger(VecDeque<Spent>);

impl Ledger {
    pub(super) fn enter(&mut self, spent: Spent) {
        if self.0.len() == ROWS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(spent);
    }

    /// Those whose names begin with `session` and a point, by their names.
    pub(super) fn of(&self, session: &str) -> serde_json::Map<String, serde_json::Value> {
        let is_of = |spent: &&Spent| spent.id.strip_prefix(session).is_some_and(|rest| rest.starts_with('.'));
        let rows = self.0.iter().filter(is_of);
        rows.filter_map(|spent| Some((spent.id.clone(), serde_json::to_value(spent).ok()?))).collect()
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
