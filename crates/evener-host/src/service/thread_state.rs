//! What one of the module's threads has: its part of the module, the run queue of its clients, requests that are under way.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use evener_core::Job;
use evener_ring::virtqueue::Chain;

use crate::module::ModuleRunner;
use crate::service::in_flight::InFlightTable;
use crate::service::long_requests::LongRequests;
use crate::service::notify::Notifier;
use crate::service::run_queue::RunQueue;
use crate::state::client::Client;
use crate::state::host_state::HostState;
use crate::state::shard::Shard;

/// What the thread has.
pub(crate) struct ServiceLoop {
    pub(super) shared: Arc<HostState>,
    pub(super) shard: Arc<Shard>,
    pub(super) runner: ModuleRunner,
    pub(super) in_flight: InFlightTable,
    pub(super) run_queue: RunQueue<Arc<Client>>,
    pub(super) long: LongRequests,
    /// Reset that was last done.
    pub(super) resets: u64,
    /// Taken, and come back.
    pub(super) jobs: Vec<Box<Job<'static>>>,
    pub(super) done: Vec<Box<Job<'static>>>,
    pub(super) chain: Chain,
    /// Clients whose rings have something to show.
    pub(super) touched: Vec<Arc<Client>>,
    pub(super) calls: Vec<Arc<OwnedFd>>,
    pub(super) notifier: Notifier,
    /// Rounds in a row in which a module held something and nothing happened.
    pub(super) quiet_rounds: u32,
}

/// What is left of a client's requests where no more is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// It may have more.
    Some,
    None,
    /// Something has to go back first.
    AtLimit,
}

impl ServiceLoop {
    pub(crate) fn new(shared: Arc<HostState>, shard: Arc<Shard>, runner: ModuleRunner) -> Self {
        let user_in_flight_max = shared.limits.user_in_flight_max;
        let notifier = Notifier::new();
        shared.calls_may_wait.fetch_or(notifier.may_wait(), Relaxed);
        Self {
            notifier,
            shared,
            shard,
            runner,
            in_flight: InFlightTable::new(),
            run_queue: RunQueue::new(user_in_flight_max),
            long: LongRequests::default(),
            resets: 0,
            jobs: Vec::new(),
            done: Vec::new(),
            chain: Chain::new(),
            touched: Vec::new(),
            calls: Vec::new(),
            quiet_rounds: 0,
        }
    }
}
