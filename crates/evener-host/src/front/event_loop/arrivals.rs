//! Who connects: clients are let in, told that they are one too many, or turned away; administrators get a thread of their own.

use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Instant;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::sockopt;

use super::{CLIENTS, CONTROL, EVENTS_MAX, EventLoop};
use crate::access::{Access, Peer};
use crate::front::connection::{Connection, End};
use crate::front::control;
use crate::front::refusal::Refusal;
use crate::state::closer::WAITING_MAX_OF_ALL;

impl EventLoop<'_> {
    pub(super) fn accept_clients(&mut self) {
        // Some at a time: those who are there already are heard in between.
        for _ in 0..EVENTS_MAX {
            if self.shared.users.closing() >= WAITING_MAX_OF_ALL {
                return self.pause();
            }
            match self.clients.accept() {
                Ok(Some(stream)) => self.receive(stream),
                Ok(None) => break,
                // It fails for one that has gone already; and where no descriptor is left, which asking again and again would not mend.
                Err(_) => return self.pause(),
            }
        }
    }

    /// No client is let in before the next look.
    fn pause(&mut self) {
        self.is_paused = true;
        self.watch_clients(EventFlags::empty());
    }

    pub(super) fn watch_clients(&self, flags: EventFlags) {
        // It fails for want of memory only; then no client comes, or the question comes again too often.
        epoll::modify(&self.watch, &self.clients.socket, EventData::new_u64(CLIENTS), flags).ok();
    }

    pub(super) fn watch_administrators(&self, flags: EventFlags) {
        if let Some(control) = &self.control {
            // As of clients.
            epoll::modify(&self.watch, &control.socket, EventData::new_u64(CONTROL), flags).ok();
        }
    }

    /// Looks who it is and lets it in, or says why not.
    fn receive(&mut self, stream: UnixStream) {
        self.shared.connections.all.add(1);
        // Where there is out-of-band data, the system would close what lies beside it as soon as it is passed over, in this thread. It fails where
        // there is none.
        sockopt::set_socket_oobinline(&stream, true).ok();
        let peer = Peer::of(&stream);
        let user = self.shared.users.of(peer.map_or(u32::MAX, |peer| peer.uid));
        let is_there = !self.shared.is_gone.load(Relaxed) && !user.closer.is_full();
        let Some(peer) = peer.filter(|peer| is_there && self.access.admits(*peer)) else {
            user.closer.end(&stream);
            return self.shared.connections.turned_away.add(1);
        };
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
            Err((stream, full)) => {
                self.shared.connections.turned_away.add(1);
                let is_watched = self.watch_for(stream.as_fd(), 2 * id).is_ok();
                let refusal = Refusal::new(stream, full, Arc::clone(&user.closer));
                if is_watched && self.refusals.len() < REFUSALS_MAX {
                    self.refusals.insert(id, refusal);
                }
            }
        }
    }

    pub(super) fn accept_administrators(&mut self) {
        let Some(control) = &self.control else { return };
        loop {
            let stream = match control.accept() {
                Ok(Some(stream)) => stream,
                Ok(None) => return,
                // As of clients: no administrator is let in before the next look.
                Err(_) => {
                    self.is_paused = true;
                    return self.watch_administrators(EventFlags::empty());
                }
            };
            let is_own = Peer::of(&stream).is_some_and(|peer| Access::default().admits(peer));
            let shared = Arc::clone(self.shared);
            if is_own && stream.set_nonblocking(false).is_ok() {
                let thread = thread::Builder::new().name("evener-control".to_owned());
                self.administrators.extend(thread.spawn(move || control::serve(&shared, stream)));
            }
        }
    }
}

/// Connections at the same time that are only told why they end; others end at once. Assumed, not measured: 64, as many as one look accepts.
const REFUSALS_MAX: usize = 64;
