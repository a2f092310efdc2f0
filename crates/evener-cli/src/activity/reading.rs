//! All that is known at one moment.

use std::path::PathBuf;
use std::time::Instant;

use evener::counts_file::{DIRECTORY_VARIABLE, Directories, Record, RecordError, of_process, of_user};
use evener_arbiter::{Arbiter, ModuleView, NoArbiter, Options, Snapshot};

use super::directory;
use super::host::{self, Host};
use super::process::Process;

/// Where to look.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    pub(crate) places: Directories,
    pub(crate) uid: u32,
    /// Control sockets that were named.
    hosts: Vec<PathBuf>,
    /// Where the arbiter's segment is named.
    arbiter: Directories,
}

/// What was read. Each file is as it was when it was read; together they may never have been.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) at: Instant,
    /// Why no directory of statistics was read; none where all were.
    pub(crate) refused_directory: Option<String>,
    pub(crate) processes: Vec<Process>,
    pub(crate) unreadable: Vec<Unreadable>,
    pub(crate) hosts: Vec<Host>,
    /// What processes have and want of modules that they share; none where no process shares any.
    pub(crate) arbiter: Result<Option<Snapshot>, NoArbiter>,
}

/// A statistics file that cannot be told.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) pid: u32,
    pub(crate) reason: String,
}

impl Sources {
    /// Those of this user, and hosts that were named.
    pub(crate) fn of_this_user(hosts: &[PathBuf]) -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let [places, arbiter] =
            [DIRECTORY_VARIABLE, evener_arbiter::DIRECTORY_VARIABLE].map(Directories::from_environment);
        Self { places, uid, hosts: hosts.to_vec(), arbiter }
    }

    /// All processes of the user, and all hosts: those that were named, and those that listen at the usual places. Where the environment names a
    /// directory in which no program counts, only what does not lie there.
    pub(crate) fn read(&self) -> Reading {
        if let Some(why) = directory::refusal(self.uid) {
            return self.read_without_statistics(why);
        }
        let mut reading = Reading::of(of_user(&self.places, self.uid));
        reading.hosts = self.named_hosts();
        let usual = host::control_sockets(&self.places.of(self.uid), self.uid);
        let others = usual.into_iter().filter(|socket| !self.hosts.contains(socket)).map(Host::ask);
        reading.hosts.extend(others.filter(|host| !host.is_left_over()));
        reading.arbiter = Arbiter::look(&self.arbiter_options());
        reading
    }

    /// What does not lie with the statistics: hosts that were named, and modules that processes share. `why` says why no more is read.
    fn read_without_statistics(&self, why: String) -> Reading {
        let mut reading = Reading::of(Vec::new());
        reading.refused_directory = Some(why);
        reading.hosts = self.named_hosts();
        reading.arbiter = Arbiter::look(&self.arbiter_options());
        reading
    }

    fn named_hosts(&self) -> Vec<Host> {
        self.hosts.iter().cloned().map(Host::ask).collect()
    }

    /// Takes the arbiter's segment away; whether there was one.
    ///
    /// # Errors
    ///
    /// Why what lies there was left alone.
    pub(crate) fn remove_arbiter(&self) -> Result<bool, NoArbiter> {
        Arbiter::remove(&self.arbiter_options())
    }

    fn arbiter_options(&self) -> Options {
        Options { directories: self.arbiter.clone(), ..Options::default() }
    }

    /// One process, of whichever user; none where it has no statistics.
    pub(crate) fn read_process(&self, pid: u32) -> Option<Reading> {
        of_process(&self.places, self.uid, pid).map(|found| Reading::of(vec![(pid, found)]))
    }
}

impl Reading {
    fn of(found: Vec<(u32, Result<Record, RecordError>)>) -> Self {
        let mut reading = Self {
            at: Instant::now(),
            refused_directory: None,
            processes: Vec::new(),
            unreadable: Vec::new(),
            hosts: Vec::new(),
            arbiter: Ok(None),
        };
        for (pid, record) in found {
            match record {
                Ok(record) => reading.processes.push(Process::new(&record)),
                Err(error) => reading.unreadable.push(Unreadable { pid, reason: error.to_string() }),
            }
        }
        reading
    }
}

impl Reading {
    /// The modules that processes share.
    pub(crate) fn shared_modules(&self) -> &[ModuleView] {
        self.arbiter.as_ref().ok().and_then(Option::as_ref).map_or(&[], |snapshot| &snapshot.modules)
    }
}
