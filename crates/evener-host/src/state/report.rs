//! What the host counts by itself, and prints when asked and at the end.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::Serialize;

use crate::access::Peer;

/// Counts of one client, or of all.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) requests: Count,
    pub(crate) bytes: Count,
    pub(crate) refused: Count,
    pub(crate) failed: Count,
    pub(crate) calls: Count,
}

/// A count that several threads add to. Relaxed throughout: nothing else is read through it.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What came of requests. `docs/schemas/host.schema.json` describes it as JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Requests that the module did.
    pub requests: u64,
    /// Bytes of their input.
    pub bytes: u64,
    /// Requests and sessions that were refused before the module saw them.
    pub refused: u64,
    /// Requests that the module failed, data that was not authentic included.
    pub failed: u64,
    /// Times that a client was called because requests had come back.
    pub calls: u64,
}

/// One client that is connected.
#[derive(Clone, Debug, Serialize)]
pub struct ClientReport {
    /// Its number since the host began.
    pub id: u64,
    /// Who it is.
    pub peer: Peer,
    /// Sessions that are open.
    pub sessions: usize,
    /// Requests that the module holds.
    pub in_flight: usize,
    /// Bytes of its memory that are mapped.
    pub memory_bytes: u64,
    /// What came of its requests.
    pub totals: Totals,
}

/// The module.
#[derive(Clone, Debug, Serialize)]
pub struct ModuleReport {
    /// Its name, as in `--module`.
    pub name: String,
    /// What stands behind it.
    pub detail: String,
    /// Whether its times are programmed.
    pub emulated: bool,
    /// Whether it was removed, or given up because it hung.
    pub gone: bool,
    /// Jobs that were handed to it.
    pub submitted: u64,
    /// Jobs that it gave back, with whatever outcome.
    pub completed: u64,
    /// Jobs of an emulated module that met a fault.
    pub faults: u64,
}

/// All that the host knows of itself.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The module.
    pub module: ModuleReport,
    /// Whether a client that does not read its calls could hold up the others: on a system without asynchronous reads.
    pub calls_may_wait: bool,
    /// Connections since the host began.
    pub connections: u64,
    /// Connections of processes that may not come, or one too many.
    pub turned_away: u64,
    /// Connections that ended because the client broke the protocol.
    pub broken_off: u64,
    /// What the last of them did.
    pub last_broken: Option<String>,
    /// Who is connected.
    pub clients: Vec<ClientReport>,
    /// What came of all requests, of clients that have gone as well.
    pub totals: Totals,
}

impl Counts {
    pub(crate) fn totals(&self) -> Totals {
        Totals {
            requests: self.requests.value(),
            bytes: self.bytes.value(),
            refused: self.refused.value(),
            failed: self.failed.value(),
            calls: self.calls.value(),
        }
    }
}
