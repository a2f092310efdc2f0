//! The front: one thread that sees who connects, reads what clients say and ends their connections; it never waits for one of them (a reactor: Schmidt, 1995).
//!
//! `accept -> who is it? (arrivals.rs) -> a client (connection.rs), or one too many (refusal.rs) -> a message at a time from each that has one -> gone`. Administrators
//! have threads of their own (control.rs): there are few, and they are trusted.
//!
//! | event | what is done |
//! |---|---|
//! | a client connects | let in, refused, or turned away |
//! | a client says something, or takes what it is told | its connection takes a step |
//! | a client's process ends | its connection ends, whatever it sent |
//! | a ring that was to stop holds nothing any more | its connection answers |
//! | nothing, every 100 ms | a look at what no event tells: clients that are silent, refusals that are late, memory to unmap, threads that have ended |

mod arrivals;

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use evener::Cancel;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use crate::access::Access;
use crate::error::HostError;
use crate::front::connection::{Connection, End};
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
    /// Neither clients nor administrators are let in before the next look, for there are no descriptors, or too many wait to be closed.
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

    /// Serves until `cancel` is set, no client came for so long as was said, or a thread of the module has ended.
    pub(crate) fn run(
        mut self,
        cancel: &Cancel,
        is_whole: impl Fn() -> bool,
    ) -> Result<Vec<JoinHandle<()>>, HostError> {
        let mut looked = Instant::now();
        while !cancel.is_cancelled() && !self.is_over() {
            let mut space = [const { MaybeUninit::uninit() }; EVENTS_MAX];
            let events: Vec<u64> = match epoll::wait(&self.watch, &mut space, Some(&LOOK)) {
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
            MOVED => {
                self.shared.take_moved().into_iter().for_each(|id| self.advance(id, Connection::try_stop));
            }
            _ => {
                let id = event / 2;
                if event % 2 == 1 {
                    // What the process sent before it ended does not matter any more: no client waits for it.
                    self.end(id, End::Left);
                } else if let Some(refusal) = self.refusals.get_mut(&id) {
                    if !refusal.step() {
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
        self.stopping.clone().into_iter().for_each(|id| self.advance(id, Connection::try_stop));
        self.end_silent();
        self.refusals.retain(|_, refusal| !refusal.is_late());
        self.administrators.retain(|thread| !thread.is_finished());
        self.shared.unmap_unused();
        self.shared.users.forget_gone();
        if std::mem::take(&mut self.is_paused) {
            self.watch_clients(EventFlags::IN);
            self.watch_administrators(EventFlags::IN);
        }
        if !self.connections.is_empty() {
            self.empty_since = Instant::now();
        }
    }

    /// Puts out who says nothing, whether its process lives or not.
    fn end_silent(&mut self) {
        let most = self.shared.limits.silence_max;
        let check =
            |(id, connection): (&u64, &Connection)| Some((*id, connection.check_silence(most).err()?));
        let silent: Vec<(u64, End)> = self.connections.iter().filter_map(check).collect();
        silent.into_iter().for_each(|(id, end)| self.end(id, end));
    }

    fn is_over(&self) -> bool {
        let most = self.shared.limits.idle_max;
        self.connections.is_empty() && most.is_some_and(|most| self.empty_since.elapsed() >= most)
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
}

impl Drop for EventLoop<'_> {
    fn drop(&mut self) {
        self.connections.drain().for_each(|(_, connection)| self.shared.leave(&connection.client));
    }
}

/// Events that one look reports at most; others are reported by the next.
const EVENTS_MAX: usize = 64;

/// How soon a wish to stop is noticed that comes without a signal, and what no event tells.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
