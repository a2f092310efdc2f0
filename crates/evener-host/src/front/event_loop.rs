//! The front: one thread that sees who connects, reads what clients say and ends their connections; it never waits for one of them.
//!
//! `accept -> who is it? -> a client (connection.rs), or one too many (refusal.rs) -> a message at a time from each that has one -> gone`. Administrators
//! have threads of their own (control.rs): there are few, and they are trusted.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use evener::Cancel;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use crate::access::{Access, Peer};
use crate::error::HostError;
use crate::front::connection::{Connection, End};
use crate::front::control;
use crate::front::listener::Listener;
use crate::front::refusal::Refusal;
use crate::state::host_state::HostState;

/// What the front has.
pub(crate) struct EventLoop<'h> {
    shared: &'h Arc<HostState>,
    access: &'h Access,
    watch: OwnedFd,
    clients: Listener,
    control: Option<Listener>,
    connections: HashMap<u64, Connection>,
    refusals: HashMap<u64, Refusal>,
    /// Clients of which a message waits for the module.
    stopping: Vec<u64>,
    next_id: u64,
    /// Nobody is let in before the next look, for there are no descriptors.
    is_paused: bool,
    administrators: Vec<JoinHandle<()>>,
    /// Since when there is no client.
    empty_since: Instant,
}

/// What an event stands for: one of these, or twice the number of a connection, and 1 more for its process.
const CLIENTS: u64 = 0;
const CONTROL: u64 = 1;
const MOVED: u64 = 2;
const FIRST_ID: u64 = 2;

impl<'h> EventLoop<'h> {
    pub(crate) fn new(
        shared: &'h Arc<HostState>,
        access: &'h Access,
        clients: Listener,
        control: Option<Listener>,
    ) -> Result<Self, HostError> {
        let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&watch, &clients.socket, EventData::new_u64(CLIENTS), EventFlags::IN)?;
        if let Some(control) = &control {
            epoll::add(&watch, &control.socket, EventData::new_u64(CONTROL), EventFlags::IN)?;
        }
        let each = EventFlags::IN | EventFlags::ET;
        epoll::add(&watch, &shared.front_wake, EventData::new_u64(MOVED), each)?;
        Ok(Self {
            shared,
            access,
            watch,
            clients,
            control,
            connections: HashMap::new(),
            refusals: HashMap::new(),
            stopping: Vec::new(),
            next_id: FIRST_ID,
            is_paused: false,
            administrators: Vec::new(),
            empty_since: Instant::now(),
        })
    }

    /// Serves until `cancel` is set, nobody came for so long as was said, or a thread of the module has ended.
    pub(crate) fn run(
        mut self,
        cancel: &Cancel,
        is_whole: impl Fn() -> bool,
    ) -> Result<Vec<JoinHandle<()>>, HostError> {
        let mut looked = Instant::now();
        while !cancel.is_cancelled() && !self.is_over() {
            let mut room = [const { MaybeUninit::uninit() }; EVENTS_MAX];
            let events: Vec<u64> = match epoll::wait(&self.watch, &mut room, Some(&LOOK)) {
                Ok((events, _)) => events.iter().map(|event| event.data.u64()).collect(),
                Err(Errno::INTR) => Vec::new(),
                Err(error) => return Err(error.into()),
            };
            events.into_iter().for_each(|event| self.handle(event));
            if looked.elapsed() >= LOOK_EVERY {
                looked = Instant::now();
                self.look();
                // They end last, unless one has panicked.
                if !is_whole() {
                    return Err(HostError::Module);
                }
            }
        }
        Ok(std::mem::take(&mut self.administrators))
    }

    fn handle(&mut self, event: u64) {
        match event {
            CLIENTS => self.accept_clients(),
            CONTROL => self.accept_administrators(),
            MOVED => self
                .shared
                .take_moved()
                .into_iter()
                .for_each(|id| self.advance(id, |connection, _| connection.try_stop())),
            _ => {
                let id = event / 2;
                if event % 2 == 1 {
                    // What the process sent before it ended does not matter any more: nobody waits for it.
                    self.end(id, End::Left);
                } else if let Some(refusal) = self.refusals.get_mut(&id) {
                    if !refusal.step(self.shared.limits.clients_max) {
                        self.refusals.remove(&id);
                    }
                } else {
                    self.advance(id, Connection::step);
                }
            }
        }
    }

    /// What no event tells.
    fn look(&mut self) {
        self.stopping
            .clone()
            .into_iter()
            .for_each(|id| self.advance(id, |connection, _| connection.try_stop()));
        self.refusals.retain(|_, refusal| !refusal.is_late());
        self.administrators.retain(|thread| !thread.is_finished());
        self.shared.unmap_unused();
        if std::mem::take(&mut self.is_paused) {
            self.watch_clients(EventFlags::IN);
        }
        if !self.connections.is_empty() {
            self.empty_since = Instant::now();
        }
    }

    fn is_over(&self) -> bool {
        let most = self.shared.limits.idle_max;
        self.connections.is_empty() && most.is_some_and(|most| self.empty_since.elapsed() >= most)
    }

    fn accept_clients(&mut self) {
        // Some at a time: those who are there already are heard in between.
        for _ in 0..EVENTS_MAX {
            match self.clients.accept() {
                Ok(Some(stream)) => self.receive(stream),
                Ok(None) => break,
                // It fails for one that has gone already; and where no descriptor is left, which asking again and again would not mend.
                Err(_) => {
                    self.is_paused = true;
                    self.watch_clients(EventFlags::empty());
                    break;
                }
            }
        }
    }

    fn watch_clients(&self, flags: EventFlags) {
        // It fails for want of memory only; then nobody comes, or is asked again too often.
        epoll::modify(&self.watch, &self.clients.socket, EventData::new_u64(CLIENTS), flags).ok();
    }

    /// Looks who it is and lets it in, or says why not.
    fn receive(&mut self, stream: UnixStream) {
        self.shared.connections.all.add(1);
        let peer = Peer::of(&stream).filter(|peer| self.access.admits(*peer));
        let is_there = !self.shared.is_gone.load(Relaxed);
        let Some(peer) = peer.filter(|_| is_there) else { return self.shared.connections.turned_away.add(1) };
        let id = self.next_id;
        self.next_id += 1;
        match self.shared.enter(id, peer, self.access.weight_of(peer), stream) {
            Ok(client) => {
                self.empty_since = Instant::now();
                let Ok(process) = peer.watch() else { return self.shared.leave(&client) };
                let process = process.filter(|_| !cfg!(mutant = "host_process_unwatched"));
                let connection = Connection::new(client, process);
                let stream = self.watch_for(connection.stream().as_fd(), 2 * id);
                let process = connection
                    .process
                    .as_ref()
                    .map_or(Ok(()), |file| self.watch_for(file.as_fd(), 2 * id + 1));
                self.connections.insert(id, connection);
                // A module that went meanwhile has ended those whom it knew.
                if stream.and(process).is_err() || self.shared.is_gone.load(Relaxed) {
                    self.end(id, End::Left);
                }
            }
            Err(stream) => {
                self.shared.connections.turned_away.add(1);
                let is_watched = self.watch_for(stream.as_fd(), 2 * id).is_ok();
                if is_watched && self.refusals.len() < REFUSALS_MAX {
                    self.refusals.insert(id, Refusal::new(stream));
                }
            }
        }
    }

    fn watch_for(&self, file: BorrowedFd<'_>, event: u64) -> Result<(), Errno> {
        epoll::add(&self.watch, file, EventData::new_u64(event), EventFlags::IN)
    }

    /// Lets a connection take a step, and watches it for the next.
    fn advance(&mut self, id: u64, step: impl FnOnce(&mut Connection, &HostState) -> Result<(), End>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let outcome = match connection.client.is_over() {
            true => Err(End::Left),
            false => step(connection, self.shared),
        };
        if let Err(end) = outcome {
            return self.end(id, end);
        }
        let wants = connection.wants();
        if wants != connection.watched {
            connection.watched = wants;
            let watched = epoll::modify(&self.watch, connection.stream(), EventData::new_u64(2 * id), wants);
            if watched.is_err() {
                return self.end(id, End::Left);
            }
        }
        let is_known = self.stopping.contains(&id);
        match connection.is_stopping() {
            true if !is_known => self.stopping.push(id),
            false if is_known => self.stopping.retain(|known| *known != id),
            _ => {}
        }
    }

    fn end(&mut self, id: u64, end: End) {
        let Some(connection) = self.connections.remove(&id) else { return };
        self.stopping.retain(|known| *known != id);
        // Others may have the stream for a while: who serves it, and requests that the module holds.
        epoll::delete(&self.watch, connection.stream()).ok();
        if let End::Broken(reason) = end {
            self.shared.break_off(&connection.client, reason);
        }
        self.shared.leave(&connection.client);
        self.empty_since = Instant::now();
    }

    fn accept_administrators(&mut self) {
        let Some(control) = &self.control else { return };
        while let Ok(Some(stream)) = control.accept() {
            let is_own = Peer::of(&stream).is_some_and(|peer| Access::default().admits(peer));
            let shared = Arc::clone(self.shared);
            if is_own && stream.set_nonblocking(false).is_ok() {
                let thread = thread::Builder::new().name("evener-control".to_owned());
                self.administrators.extend(thread.spawn(move || control::serve(&shared, stream)));
            }
        }
    }
}

impl Drop for EventLoop<'_> {
    fn drop(&mut self) {
        self.connections.drain().for_each(|(_, connection)| self.shared.leave(&connection.client));
    }
}

/// Events that one look reports at most; others are reported by the next.
const EVENTS_MAX: usize = 64;

/// Connections at the same time that are only told why they end; others end at once. Assumed, not measured: 64, as many as one look accepts.
const REFUSALS_MAX: usize = 64;

/// How soon a wish to stop is noticed that comes without a signal, and what no event tells.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
