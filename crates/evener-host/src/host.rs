//! A host's life: sockets are bound, the module's thread starts, each connection gets a thread, and all of them end.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use evener::Cancel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::access::{Access, Peer};
use crate::error::HostError;
use crate::front::listener::Listener;
use crate::front::{connection, control};
use crate::limits::Limits;
use crate::module::Module;
use crate::service::service_loop::ServiceLoop;
use crate::state::client::Client;
use crate::state::host_state::HostState;
use crate::state::report::Report;

/// What a host is made of.
pub struct Setup {
    /// Where clients come.
    pub socket: PathBuf,
    /// Where commands come, if anywhere. For the own user and root only.
    pub control: Option<PathBuf>,
    /// Who may come.
    pub access: Access,
    /// What they may have.
    pub limits: Limits,
    /// What they come for.
    pub module: Module,
}

/// Serves until `cancel` is set, and says what was done. `ready` is called once clients can come.
///
/// # Errors
///
/// A [`HostError`] before anybody was served, or the end of the module's thread.
pub fn run(setup: Setup, cancel: &Cancel, ready: impl FnOnce()) -> Result<Report, HostError> {
    let shared = Arc::new(HostState::new(&setup.module, setup.limits.clone())?);
    let clients = Listener::bind(&setup.socket, setup.access.socket_mode())?;
    let control = setup.control.as_deref().map(|path| Listener::bind(path, 0o600)).transpose()?;
    let service_loop = ServiceLoop::new(Arc::clone(&shared), setup.module.into_runner());
    let mut threads = vec![spawn("module", move || service_loop.run())?];
    ready();
    let outcome = listen(&shared, &setup.access, [Some(&clients), control.as_ref()], cancel, &mut threads);
    shared.stop();
    let mut whole = true;
    for thread in threads {
        whole &= thread.join().is_ok();
    }
    outcome?;
    if whole { Ok(shared.report()) } else { Err(HostError::Module) }
}

/// Accepts connections until the host is to stop. The first of the threads is the module's.
fn listen(
    shared: &Arc<HostState>,
    access: &Access,
    listeners: [Option<&Listener>; 2],
    cancel: &Cancel,
    threads: &mut Vec<JoinHandle<()>>,
) -> Result<(), HostError> {
    let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK_NS };
    let mut next_id = 0;
    while !cancel.is_cancelled() {
        let mut watched: Vec<PollFd<'_>> = listeners
            .iter()
            .flatten()
            .map(|listener| PollFd::from_borrowed_fd(listener.socket.as_fd(), PollFlags::IN))
            .collect();
        match poll(&mut watched, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [clients, control] = listeners;
        while let Some(stream) = accept(clients) {
            next_id += 1;
            threads.extend(receive_client(shared, access, next_id, stream));
        }
        while let Some(stream) = accept(control) {
            threads.extend(receive_command(shared, stream));
        }
        // The module's thread ends last, unless it has panicked.
        if threads[0].is_finished() {
            return Err(HostError::Module);
        }
        threads.retain(|thread| !thread.is_finished());
    }
    Ok(())
}

/// A connection that fails before it is one (the client has gone already, no descriptor is left) is none; others may come.
fn accept(listener: Option<&Listener>) -> Option<UnixStream> {
    listener?.accept().ok().flatten()
}

/// Looks who it is and gives the connection a thread.
fn receive_client(
    shared: &Arc<HostState>,
    access: &Access,
    id: u64,
    stream: UnixStream,
) -> Option<JoinHandle<()>> {
    shared.connections.add(1);
    let peer = Peer::of(&stream).filter(|peer| access.admits(*peer));
    let is_there = !shared.is_gone.load(std::sync::atomic::Ordering::Relaxed);
    let (Some(peer), Ok(second), true) = (peer, stream.try_clone(), is_there) else {
        shared.turned_away.add(1);
        return None;
    };
    let client = Arc::new(Client::new(id, peer, second));
    if !shared.enter(&client) {
        shared.turned_away.add(1);
        return None;
    }
    let (shared, of_thread) = (Arc::clone(shared), Arc::clone(&client));
    let shared_of_thread = Arc::clone(&shared);
    let thread = spawn("client", move || connection::serve(&shared_of_thread, &of_thread, stream));
    thread.inspect_err(|_| shared.leave(&client)).ok()
}

fn receive_command(shared: &Arc<HostState>, stream: UnixStream) -> Option<JoinHandle<()>> {
    let peer = Peer::of(&stream)?;
    let shared = Arc::clone(shared);
    let is_own = Access::default().admits(peer);
    is_own.then(|| spawn("control", move || control::serve(&shared, stream)).ok()).flatten()
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(format!("evener-{name}")).spawn(body)
}

/// How soon a wish to stop is noticed that comes without a signal, in nanoseconds.
const LOOK_NS: i64 = 100_000_000;
