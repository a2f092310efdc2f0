//! A host's life: sockets are bound, the module's threads start, the front serves those who come, and all of them end.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use evener::Cancel;

use crate::access::Access;
use crate::error::HostError;
use crate::front::event_loop::EventLoop;
use crate::front::listener::Listener;
use crate::limits::Limits;
use crate::module::Module;
use crate::service::thread_state::ServiceLoop;
use crate::state::host_state::HostState;
use crate::state::report::Report;

/// What a host is made of.
pub struct Setup {
    /// Where clients come.
    pub socket: Socket,
    /// Where commands come, if anywhere. For the own user and root only.
    pub control: Option<PathBuf>,
    /// Who may come.
    pub access: Access,
    /// What they may have.
    pub limits: Limits,
    /// What they come for.
    pub module: Module,
}

/// Where clients come.
#[derive(Debug)]
pub enum Socket {
    /// A place in the file system, which is bound when the host begins and removed with it.
    Path(PathBuf),
    /// One that another process has bound and keeps ([`listener_of_activation`](crate::listener_of_activation)).
    Inherited(UnixListener),
}

/// Serves until `cancel` is set or no client came for [`Limits::idle_max`], and says what was done. `ready` is called once clients can come.
///
/// # Errors
///
/// A [`HostError`] before any client was served, or the end of one of the module's threads.
pub fn run(setup: Setup, cancel: &Cancel, ready: impl FnOnce()) -> Result<Report, HostError> {
    let shared = Arc::new(HostState::new(&setup.module, setup.limits.clone())?);
    let clients = match setup.socket {
        Socket::Path(path) => Listener::bind(&path, setup.access.socket_mode())?,
        Socket::Inherited(socket) => Listener::inherited(socket)?,
    };
    let control = setup.control.as_deref().map(|path| Listener::bind(path, 0o600)).transpose()?;
    let front = EventLoop::new(&shared, &setup.access, clients, control)?;
    let threads = module_threads(&shared, setup.module);
    let outcome = threads.and_then(|threads| {
        ready();
        let administrators = front.run(cancel, || !threads.iter().any(JoinHandle::is_finished));
        Ok((threads, administrators?))
    });
    shared.stop();
    let (threads, administrators) = outcome?;
    let mut is_whole = true;
    for thread in threads.into_iter().chain(administrators) {
        is_whole &= thread.join().is_ok();
    }
    if is_whole { Ok(shared.report()) } else { Err(HostError::Module) }
}

/// Starts a thread for each part of the module.
fn module_threads(shared: &Arc<HostState>, module: Module) -> Result<Vec<JoinHandle<()>>, HostError> {
    let parts = shared.shards.iter().zip(module.into_runners());
    let threads = parts.map(|(shard, runner)| {
        let service_loop = ServiceLoop::new(Arc::clone(shared), Arc::clone(shard), runner);
        let thread = thread::Builder::new().name("evener-module".to_owned());
        thread.spawn(move || service_loop.run())
    });
    Ok(threads.collect::<io::Result<_>>()?)
}
