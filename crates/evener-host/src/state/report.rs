//! What the host counts by itself, and prints when asked and at the end.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::access::Peer;
use crate::limits::Limits;

/// Counts of connections since the host began.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCounts {
    pub(crate) all: Count,
    pub(crate) turned_away: Count,
    broken_off: Count,
    last_broken: Mutex<Option<String>>,
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

/// Writes the counts of requests, as threads add to them and as they are reported.
macro_rules! request_counts {
    ($($(#[$doc:meta])* $field:ident,)+) => {
        /// Counts of one client, or of all.
        #[derive(Debug, Default)]
        pub(crate) struct Counts {
            $(pub(crate) $field: Count,)+
        }

        /// What came of requests. `docs/reference/schemas/host.schema.json` describes it as JSON.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Totals {
            $($(#[$doc])* pub $field: u64,)+
        }

        impl Counts {
            pub(crate) fn totals(&self) -> Totals {
                Totals { $($field: self.$field.value()),+ }
            }
        }
    };
}

request_counts! {
    /// Requests that the module did.
    requests,
    /// Bytes of their input.
    bytes,
    /// Requests and sessions that were refused before the module saw them.
    refused,
    /// Requests that the module failed, data that was not authentic included.
    failed,
    /// Times that a client was called because requests had come back.
    calls,
}

/// Connections since the host began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionReport {
    /// All of them.
    #[serde(rename = "connections")]
    pub all: u64,
    /// Those of processes that may not come, or one too many.
    pub turned_away: u64,
    /// Those that ended because the client broke the protocol.
    pub broken_off: u64,
    /// What the last of these did.
    pub last_broken: Option<String>,
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

/// What the clients of one user have together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserReport {
    /// The user.
    pub uid: u32,
    /// Clients that are connected.
    pub clients: usize,
    /// Sessions that are open.
    pub sessions: u64,
    /// Requests that the module holds.
    pub in_flight: usize,
    /// Bytes of memory that are mapped.
    pub memory_bytes: u64,
    /// Bytes of memory that the host made pages for, or may without looking again.
    pub faulted_bytes: u64,
    /// Clients, sessions and memory that a limit of the user was in the way of.
    pub refused: u64,
}

/// What a user, and all of them, may have: `docs/design/host.md` says of each what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitsReport {
    /// Clients of all users.
    pub clients: usize,
    /// Clients of one user.
    pub user_clients: usize,
    /// Sessions of one user.
    pub user_sessions: usize,
    /// Requests of one user that the module holds, for each of the host's threads.
    pub user_in_flight: usize,
    /// Bytes that one user has mapped.
    pub user_memory_bytes: u64,
    /// Bytes that the host makes pages for, for one user.
    pub user_faulted_bytes: u64,
    /// Silence after which a client that owes a message is put out, in milliseconds.
    pub silence_ms: u64,
}

impl LimitsReport {
    pub(crate) fn of(limits: &Limits) -> Self {
        Self {
            clients: limits.clients_max,
            user_clients: limits.user_clients_max,
            user_sessions: limits.user_sessions_max,
            user_in_flight: limits.user_in_flight_max,
            user_memory_bytes: limits.user_memory_bytes_max,
            user_faulted_bytes: limits.user_faulted_bytes_max,
            silence_ms: limits.silence_max.as_millis().try_into().unwrap_or(u64::MAX),
        }
    }
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
    #[serde(flatten)]
    pub connections: ConnectionReport,
    /// Who is connected.
    pub clients: Vec<ClientReport>,
    /// What users have, of whom something is there.
    pub users: Vec<UserReport>,
    /// What they may have.
    pub limits: LimitsReport,
    /// What came of all requests, of clients that have gone as well.
    pub totals: Totals,
}

impl ConnectionCounts {
    /// Counts one that ended because its client did this.
    pub(crate) fn add_broken(&self, reason: &impl ToString) {
        self.broken_off.add(1);
        *self.last_broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_string());
    }

    pub(crate) fn report(&self) -> ConnectionReport {
        ConnectionReport {
            all: self.all.value(),
            turned_away: self.turned_away.value(),
            broken_off: self.broken_off.value(),
            last_broken: self.last_broken.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}
