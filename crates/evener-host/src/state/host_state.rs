//! What the threads of a host share.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evener_core::{Algorithm, Profile, Session};
use evener_driver_emulated::Control;
use evener_wire::CONFIG_BYTES;
use rustix::event::{EventfdFlags, epoll, eventfd};

use crate::error::HostError;
use crate::limits::Limits;
use crate::module::Module;
use crate::state::client::Client;
use crate::state::report::{ClientReport, Count, Counts, ModuleReport, Report};
use crate::state::ring::RINGS_MAX;
use crate::state::sessions::config;

/// Everything but the module itself, which is its thread's alone.
pub(crate) struct HostState {
    pub(crate) limits: Limits,
    pub(crate) does: Vec<Algorithm>,
    pub(crate) config: [u8; CONFIG_BYTES],
    pub(crate) control: Option<Control>,
    profile: Profile,
    /// What the module's thread sleeps on.
    pub(crate) watch: Arc<OwnedFd>,
    wake: OwnedFd,
    clients: Mutex<Vec<Arc<Client>>>,
    /// How often the list of clients was changed.
    pub(crate) changes: AtomicU64,
    /// How often the module was to be reset.
    pub(crate) resets: AtomicU64,
    /// Sessions that were closed. Their last jobs may still be in the module.
    ended: Mutex<Vec<Arc<Session>>>,
    pub(crate) is_gone: AtomicBool,
    /// Whether a client could make the module's thread wait by not reading its calls.
    pub(crate) calls_may_wait: AtomicBool,
    is_stopping: AtomicBool,
    pub(crate) totals: Counts,
    pub(crate) submitted: Count,
    pub(crate) completed: Count,
    pub(crate) connections: Count,
    pub(crate) turned_away: Count,
    broken_off: Count,
    last_broken: Mutex<Option<String>>,
}

impl HostState {
    pub(crate) fn new(module: &Module, limits: Limits) -> Result<Self, HostError> {
        let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let each = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&watch, &wake, epoll::EventData::new_u64(0), each)?;
        let rings_max = u32::try_from(RINGS_MAX).expect("a few");
        Ok(Self {
            does: module.does.clone(),
            config: config(&module.does, rings_max, limits.request_bytes_max as u64).to_bytes(),
            control: module.control.clone(),
            profile: module.profile.clone(),
            limits,
            watch: Arc::new(watch),
            wake,
            clients: Mutex::default(),
            changes: AtomicU64::new(0),
            resets: AtomicU64::new(0),
            ended: Mutex::default(),
            is_gone: AtomicBool::new(false),
            calls_may_wait: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
            totals: Counts::default(),
            submitted: Count::default(),
            completed: Count::default(),
            connections: Count::default(),
            turned_away: Count::default(),
            broken_off: Count::default(),
            last_broken: Mutex::default(),
        })
    }

    /// Lets the module's thread look around.
    pub(crate) fn wake(&self) {
        // It fails only where 2^64 wake-ups are outstanding, and then it is awake.
        rustix::io::write(&self.wake, &1_u64.to_ne_bytes()).ok();
    }

    /// Adds a client, unless there are too many.
    pub(crate) fn enter(&self, client: &Arc<Client>) -> bool {
        let mut clients = self.list();
        if clients.len() >= self.limits.clients_max && !cfg!(mutant = "host_clients_unlimited") {
            return false;
        }
        clients.push(Arc::clone(client));
        self.changes.fetch_add(1, Relaxed);
        true
    }

    /// Removes a client and all that it had.
    pub(crate) fn leave(&self, client: &Client) {
        self.end_sessions(client.clear().close_all());
        self.list().retain(|known| known.id != client.id);
        self.changes.fetch_add(1, Relaxed);
        self.wake();
    }

    /// Has the module forget sessions that were closed, as soon as no job needs them any more.
    pub(crate) fn end_sessions(&self, closed: impl IntoIterator<Item = Arc<Session>>) {
        self.ended().extend(closed);
        self.wake();
    }

    /// Sessions that were closed and that no job has.
    pub(crate) fn take_ended(&self) -> Vec<Arc<Session>> {
        let mut ended = self.ended();
        let (over, used) = ended.drain(..).partition(|session| Arc::strong_count(session) == 1);
        *ended = used;
        over
    }

    /// Ends a connection whose client broke the protocol.
    pub(crate) fn break_off(&self, client: &Client, reason: impl fmt::Display) {
        if !client.is_over() {
            self.broken_off.add(1);
            *self.last_broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_string());
        }
        client.end();
    }

    pub(crate) fn clients(&self) -> Vec<Arc<Client>> {
        self.list().clone()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        // Relaxed: nothing is read through it; the thread that stops them wakes them afterwards.
        self.is_stopping.load(Relaxed)
    }

    /// Ends all connections and the module's thread.
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
        Report {
            module,
            calls_may_wait: self.calls_may_wait.load(Relaxed),
            connections: self.connections.value(),
            turned_away: self.turned_away.value(),
            broken_off: self.broken_off.value(),
            last_broken: self.last_broken.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            clients: self.clients().iter().map(|client| report_of(client)).collect(),
            totals: self.totals.totals(),
        }
    }

    fn ended(&self) -> MutexGuard<'_, Vec<Arc<Session>>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The list is whole between any two statements, so a panic elsewhere does not spoil it.
    fn list(&self) -> MutexGuard<'_, Vec<Arc<Client>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
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
