//! Opens a host's module or a device by its name, asks what it does and known answers, and hands out drivers for as many runs as there are.

mod lazy;

use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use evener_core::driver::SILENCE_MAX;
use evener_core::driver::SingleDriver;
use evener_core::known::{self, KNOWN, Wrong};
use evener_core::{Algorithm, Direction, Job, Profile, QueuedDriver};

use crate::connection::Connection;
use crate::connection::error::ConnectionError;
use crate::connection::layout;
use crate::connection::shared_connection::SharedConnection;
use crate::module_name::{ModuleName, Place};
use crate::requests::capabilities::Capabilities;
use crate::requests::connector::connect;
use crate::requests::jobs::JobDriver;
use crate::requests::single::SingleRequests;

pub use self::lazy::LazyModule;

/// Requests of one run that are at the host at the same time.
pub const DEPTH: u32 = 32;
/// Requests, or turns of runs, that a host has at a time from all processes that share it: as many as an arbiter's segment has permits for one module.
/// A host takes what waits in bursts of whole lanes, so that fewer would leave lanes empty.
pub const PERMITS: u32 = 64;

const _: () = assert!(DEPTH as usize == layout::DEPTH, "as many as a connection has slots");

/// Why a module cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No connection came about.
    #[error("{name} cannot be used: {error}")]
    Unreachable {
        /// The module.
        name: String,
        /// What went wrong.
        error: ConnectionError,
    },
    /// The host or device does nothing that it is offered: of a host CBC encryption and hashes, of a device everything, unless `offer=` says
    /// otherwise.
    #[error("{name} does nothing that it is offered, which offer= says")]
    NothingForUs {
        /// The module.
        name: String,
    },
    /// It computed something else than the known answer.
    #[error("{name} is refused: {wrong}")]
    WrongAnswer {
        /// The module.
        name: String,
        /// What it got wrong.
        wrong: Box<Wrong>,
    },
}

/// A module that gave all known answers.
#[derive(Debug)]
pub struct Module {
    profile: Profile,
    capabilities: Arc<Capabilities>,
    /// Of a host, the connection by which it was asked, for the first run; of a device, its only one, for all.
    connection: Mutex<Option<Arc<SharedConnection>>>,
    is_device: bool,
    /// The process that opened it.
    process: u32,
}

impl Module {
    /// Connects, asks what the host does and known answers of all that it is offered.
    ///
    /// # Errors
    ///
    /// An [`OpenError`] where no connection comes about, or it does nothing for us, or computes wrong.
    pub fn open(name: &ModuleName) -> Result<Self, OpenError> {
        let module = Self::connect(name)?;
        module.ask_known_answers()?;
        Ok(module)
    }

    /// Connects, asks what the host does and nothing else: for a caller that compares its first results itself.
    ///
    /// # Errors
    ///
    /// An [`OpenError`] where no connection comes about, or it does nothing for us.
    pub fn connect(name: &ModuleName) -> Result<Self, OpenError> {
        let connection = connect(name);
        Self::over(
            name,
            connection.map_err(|error| OpenError::Unreachable { name: name.to_string(), error })?,
        )
    }

    /// A module at the other side of a connection.
    pub(crate) fn over(name: &ModuleName, mut connection: Connection) -> Result<Self, OpenError> {
        let shown = || name.to_string();
        let mut capabilities = Capabilities::new(name.clone(), &connection);
        if matches!(name.place(), Place::Function(_)) {
            let asked = capabilities.probe_each(&mut connection);
            asked.map_err(|error| OpenError::Unreachable { name: shown(), error })?;
        }
        let capabilities = Arc::new(capabilities);
        if capabilities.is_empty() {
            return Err(OpenError::NothingForUs { name: shown() });
        }
        Ok(Self::with(capabilities, Some(connection)))
    }

    /// One that cannot be had: its drivers are lost from the beginning.
    pub(crate) fn lost(name: &ModuleName) -> Self {
        Self::with(Arc::new(Capabilities::nothing(name.clone())), None)
    }

    fn with(capabilities: Arc<Capabilities>, connection: Option<Connection>) -> Self {
        let is_device = matches!(capabilities.name().place(), Place::Function(_));
        let detail = match is_device {
            true => "a virtio-crypto device, driven by this process",
            false => "another process, by vhost-user-crypto",
        };
        let (name, detail) = (capabilities.name().to_string(), detail.to_owned());
        let profile = Profile { name, detail, width: DEPTH, emulated: false };
        let connection = Mutex::new(Some(Arc::new(SharedConnection::new(connection))));
        Self { profile, capabilities, connection, is_device, process: process::id() }
    }

    /// How processes that share it call it ([`ModuleName::shared_name`]).
    #[must_use]
    pub fn shared_name(&self) -> Option<String> {
        self.capabilities.name().shared_name()
    }

    /// What it says of itself.
    #[must_use]
    pub const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Whether it is a device that this process drives, and no host's.
    #[must_use]
    pub const fn is_device(&self) -> bool {
        self.is_device
    }

    /// Whether it does this for us.
    #[must_use]
    pub fn supports(&self, algorithm: Algorithm, direction: Direction) -> bool {
        self.capabilities.has(algorithm, direction)
    }

    /// A driver for one run, with a connection of its own. Where none comes about any more, it is lost from the beginning and
    /// says so to the first job.
    #[must_use]
    pub fn driver<'m>(&self) -> Box<dyn QueuedDriver<'m> + 'm> {
        Box::new(self.job_driver())
    }

    /// A driver for single requests whose callers wait: of a device over the connection of all, of a host over one of its own. Where
    /// none comes about any more, it is lost from the beginning.
    #[must_use]
    pub fn single(&self) -> Box<dyn SingleDriver> {
        Box::new(SingleRequests::new(Arc::clone(&self.capabilities), self.connection()))
    }

    /// The connection that is kept: of a host for one, of a device for all.
    fn shared(&self) -> Option<Arc<SharedConnection>> {
        // In a forked child it may be locked by a thread that is not there, and the connection is its parent's.
        if self.process != process::id() {
            return None;
        }
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_device { connection.clone() } else { connection.take() }
    }

    /// That one where it is this process's, or another.
    fn connection(&self) -> Arc<SharedConnection> {
        let kept = self.shared().filter(|shared| shared.is_ours());
        kept.unwrap_or_else(|| Arc::new(SharedConnection::new(self.capabilities.another_connection())))
    }

    fn job_driver<'m>(&self) -> JobDriver<'m> {
        JobDriver::new(self.profile.clone(), Arc::clone(&self.capabilities), self.connection())
    }

    fn ask_known_answers(&self) -> Result<(), OpenError> {
        for known in KNOWN {
            for direction in known.directions().filter(|&direction| self.supports(known.algorithm, direction))
            {
                let checked = known.check(direction, ANSWERS, |jobs| self.run(jobs));
                let name = || self.profile.name.clone();
                checked.map_err(|wrong| OpenError::WrongAnswer { name: name(), wrong: Box::new(wrong) })?;
            }
        }
        Ok(())
    }

    /// Runs jobs; those that do not come back in time come back as lost.
    fn run(&self, jobs: &mut Vec<Box<Job<'_>>>) {
        let mut driver = self.job_driver();
        let began = Instant::now();
        known::ask(&mut driver, jobs, || began.elapsed() >= SILENCE_MAX.into());
        *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = driver.into_shared();
    }
}

/// Jobs of one question, so that requests are under way side by side.
const ANSWERS: usize = 5;
