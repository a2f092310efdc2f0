//! What the threads of a host share.

use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evener_core::{Algorithm, Profile};
use evener_driver_emulated::Control;
use evener_wire::CONFIG_BYTES;
use rustix::event::{EventfdFlags, eventfd};

use crate::access::Peer;
use crate::error::HostError;
use crate::limits::Limits;
use crate::module::Module;
use crate::state::client::Client;
use crate::state::faults::{Departed, PAGE};
use crate::state::memory::{Allowance, Memory};
use crate::state::report::{
    ClientReport, ConnectionCounts, Count, Counts, LimitsReport, ModuleReport, Report, UserReport,
};
use crate::state::ring::RINGS_MAX;
use crate::state::sessions::config;
use crate::state::shard::{News, Shard};
use crate::state::users::{User, Users};

/// Why there is no place for a client: so many there are, of all users or of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    pub(crate) clients: usize,
    pub(crate) is_of_user: bool,
}

/// Everything but the module itself, which is its threads' alone.
pub(crate) struct HostState {
    pub(crate) limits: Limits,
    pub(crate) does: Vec<Algorithm>,
    pub(crate) config: [u8; CONFIG_BYTES],
    pub(crate) control: Option<Control>,
    profile: Profile,
    /// One for each thread of the module.
    pub(crate) shards: Vec<Arc<Shard>>,
    pub(crate) users: Users,
    /// By number.
    clients: Mutex<BTreeMap<u64, Arc<Client>>>,
    /// What wakes the front: clients of which something moved that it waits for.
    pub(crate) front_wake: OwnedFd,
    moved: Mutex<Vec<u64>>,
    /// Memory of clients that have gone, for the front to unmap.
    left_memory: Mutex<Vec<Arc<Memory>>>,
    /// What the host made in memory that is unmapped, and that another process may still have.
    departed: Mutex<Departed>,
    /// How often the module was to be reset.
    pub(crate) resets: AtomicU64,
    pub(crate) is_gone: AtomicBool,
    /// Whether a client could make a thread of the module wait by not reading its calls.
    pub(crate) calls_may_wait: AtomicBool,
    is_stopping: AtomicBool,
    pub(crate) totals: Counts,
    pub(crate) submitted: Count,
    pub(crate) completed: Count,
    pub(crate) connections: ConnectionCounts,
}

impl HostState {
    pub(crate) fn new(module: &Module, limits: Limits) -> Result<Self, HostError> {
        let rings_max = u32::try_from(RINGS_MAX).expect("a few");
        let shards = (0..module.threads()).map(|_| Ok(Arc::new(Shard::new()?)));
        Ok(Self {
            does: module.does.clone(),
            config: config(&module.does, rings_max, limits.request_bytes_max as u64).to_bytes(),
            control: module.control.clone(),
            profile: module.profile.clone(),
            shards: shards.collect::<Result<_, HostError>>()?,
            limits,
            users: Users::default(),
            clients: Mutex::default(),
            front_wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            moved: Mutex::default(),
            left_memory: Mutex::default(),
            departed: Mutex::new(Departed::new()),
            resets: AtomicU64::new(0),
            is_gone: AtomicBool::new(false),
            calls_may_wait: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
            totals: Counts::default(),
            submitted: Count::default(),
            completed: Count::default(),
            connections: ConnectionCounts::default(),
        })
    }

    /// Lets the module's threads look around.
    pub(crate) fn wake(&self) {
        self.shards.iter().for_each(|shard| shard.wake());
    }

    /// Adds a client, which is served by the thread that has the fewest; none where there are too many.
    pub(crate) fn enter(
        &self,
        id: u64,
        peer: Peer,
        weight: usize,
        stream: UnixStream,
    ) -> Result<Arc<Client>, (UnixStream, Full)> {
        let mut clients = self.list();
        let user = self.users.of(peer.uid);
        if clients.len() >= self.limits.clients_max && !cfg!(mutant = "host_clients_unlimited") {
            return Err((stream, Full { clients: clients.len(), is_of_user: false }));
        }
        let of_user = user.clients.load(Relaxed);
        if of_user >= self.limits.user_clients_max && !cfg!(mutant = "host_user_clients_unlimited") {
            user.refused.add(1);
            return Err((stream, Full { clients: of_user, is_of_user: true }));
        }
        user.clients.fetch_add(1, Relaxed);
        let least = self.shards.iter().min_by_key(|shard| shard.client_count.load(Relaxed));
        let shard = Arc::clone(least.expect("there is a thread"));
        shard.client_count.fetch_add(1, Relaxed);
        let client = Arc::new(Client::new(id, (peer, user), weight, stream, shard));
        clients.insert(id, Arc::clone(&client));
        client.shard.tell(News::Came(id));
        Ok(client)
    }

    /// Removes a client and all that it had.
    pub(crate) fn leave(&self, client: &Client) {
        client.end();
        client.user.closer.end(client.stream());
        let (mut sessions, memory) = client.clear();
        client.shard.end_sessions(sessions.close_all());
        self.unmap_later(memory);
        let mut clients = self.list();
        if clients.remove(&client.id).is_some() {
            client.shard.client_count.fetch_sub(1, Relaxed);
            client.user.clients.fetch_sub(1, Relaxed);
        }
        drop(clients);
        client.shard.tell(News::Left(client.id));
    }

    /// What a client may map in place of what it has.
    pub(crate) fn allowance(&self, client: &Client) -> Allowance {
        Allowance {
            user: Arc::clone(&client.user),
            bytes_max: self.limits.memory_bytes_max,
            user_bytes_max: self.limits.user_memory_bytes_max,
            replaced_bytes: client.lock().memory.bytes(),
            faulted_bytes_max: self.limits.user_faulted_bytes_max,
        }
    }

    /// Unmaps memory of clients that have gone and that no request has any more; by the front, for it may take long.
    pub(crate) fn unmap_unused(&self) {
        let mut left = self.left_memory.lock().unwrap_or_else(PoisonError::into_inner);
        let (unused, used): (Vec<_>, _) = left.drain(..).partition(|memory| Arc::strong_count(memory) == 1);
        *left = used;
        drop(left);
        let mut departed = self.departed.lock().unwrap_or_else(PoisonError::into_inner);
        unused.iter().for_each(|memory| memory.depart(&mut departed));
        drop(unused);
        departed.settle();
    }

    pub(crate) fn unmap_later(&self, memory: Arc<Memory>) {
        self.left_memory.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
        self.unmap_unused();
    }

    /// Tells the front that something of a client moved that it waits for.
    pub(crate) fn tell_moved(&self, client: u64) {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner).push(client);
        // As in `Shard::wake`.
        rustix::io::write(&self.front_wake, &1_u64.to_ne_bytes()).ok();
    }

    /// Of which clients.
    pub(crate) fn take_moved(&self) -> Vec<u64> {
        std::mem::take(&mut *self.moved.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends a connection whose client broke the protocol.
    pub(crate) fn break_off(&self, client: &Client, reason: impl fmt::Display) {
        if !client.is_over() {
            self.connections.add_broken(&reason);
        }
        client.end();
    }

    /// The client of that number; none where it has gone.
    pub(crate) fn client(&self, id: u64) -> Option<Arc<Client>> {
        self.list().get(&id).cloned()
    }

    pub(crate) fn clients(&self) -> Vec<Arc<Client>> {
        self.list().values().cloned().collect()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        // Relaxed: nothing is read through it; the thread that stops them wakes them afterwards.
        self.is_stopping.load(Relaxed)
    }

    /// Ends all connections and the module's threads.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Relaxed);
        self.clients().iter().for_each(|client| client.end());
        self.wake();
    }

    pub(crate) fn report(&self) -> Report {
        let faults = self.control.as_ref().map_or(0, |control| control.counters().faults);
        let module = ModuleReport {
            name: self.profile.name.clone(),
            detail: self.profile.detail.clone(),
            emulated: self.profile.emulated,
            gone: self.is_gone.load(Relaxed),
            submitted: self.submitted.value(),
            completed: self.completed.value(),
            faults,
        };
        let clients: Vec<ClientReport> = self.clients().iter().map(|client| report_of(client)).collect();
        Report {
            module,
            calls_may_wait: self.calls_may_wait.load(Relaxed),
            connections: self.connections.report(),
            users: self.users.all().iter().map(|user| user_report(user, &clients)).collect(),
            clients,
            limits: LimitsReport::of(&self.limits),
            totals: self.totals.totals(),
        }
    }

    /// The list is whole between any two statements, so a panic elsewhere does not spoil it.
    fn list(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn user_report(user: &User, clients: &[ClientReport]) -> UserReport {
    let own = clients.iter().filter(|client| client.peer.uid == user.uid);
    UserReport {
        uid: user.uid,
        clients: user.clients.load(Relaxed),
        sessions: user.held.sessions.value(),
        in_flight: own.map(|client| client.in_flight).sum(),
        memory_bytes: user.held.mapped_bytes.value(),
        faulted_bytes: user.held.pages.value() * PAGE,
        refused: user.refused.value(),
    }
}

fn report_of(client: &Client) -> ClientReport {
    let state = client.lock();
    ClientReport {
        id: client.id,
        peer: client.peer,
        sessions: state.sessions.count(),
        in_flight: state.load.requests(),
        memory_bytes: state.memory.bytes(),
        totals: client.counts.totals(),
    }
}
