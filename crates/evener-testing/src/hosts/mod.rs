//! Hosts: in a thread of the test's process, or in a process of its own.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

use evener::{Cancel, CoreDrivers};
use evener_core::{Algorithm, InlineDriver};
use evener_driver_emulated::{Emulated, Preset};
use evener_host::{Access, HostError, Limits, Module, Report, Setup, Socket};
use serde_json::Value;

use crate::drivers::libcrypto;
use crate::folder::Folder;
use crate::waiting::{TIMEOUT, soon};

mod process;

pub use process::{AT_ONCE, HostProcess, serve};

/// A module that is a core with libcrypto.
#[must_use]
pub fn core() -> Module {
    core_by(libcrypto())
}

/// A module that is a core with this driver.
pub fn core_by(driver: impl InlineDriver + 'static) -> Module {
    let profile = driver.profile().clone();
    Module::core(profile, CoreDrivers::new(Box::new(driver), None), Algorithm::ALL.to_vec())
}

/// An emulated module of this name, which takes no core time.
#[must_use]
pub fn emulated(name: &str) -> Module {
    emulated_by(name, libcrypto())
}

/// An emulated module of this name, which computes by `driver` and takes no core time.
pub fn emulated_by(name: &str, driver: impl InlineDriver + 'static) -> Module {
    let preset: Preset = name.parse().unwrap();
    Module::emulated(Emulated::new(preset.without_core_time(), Box::new(driver)))
}

fn setup(folder: &Path, socket: Socket, module: Module, limits: Limits) -> Setup {
    Setup { socket, control: Some(folder.join("control")), access: Access::default(), limits, module }
}

/// The socket of a host whose files are in `folder`.
fn socket_in(folder: &Path) -> Socket {
    Socket::Path(folder.join("host"))
}

/// A host in a thread of this process.
#[derive(Debug)]
pub struct Host {
    folder: PathBuf,
    /// Removed with the host.
    temporary: Option<Folder>,
    cancel: Cancel,
    thread: Option<JoinHandle<Result<Report, HostError>>>,
}

impl Host {
    /// One that listens before this returns.
    #[must_use]
    pub fn start(module: Module) -> Self {
        Self::with(module, Limits::default())
    }

    /// One with other limits.
    #[must_use]
    pub fn with(module: Module, limits: Limits) -> Self {
        let temporary = Folder::temporary();
        let mut host = Self::begin(temporary.path(), module, limits);
        host.temporary = Some(temporary);
        host
    }

    /// One with other limits, to which users come who are named.
    #[must_use]
    pub fn for_users(folder: &Path, module: Module, limits: Limits, uids: &[u32]) -> Self {
        let access = Access { uids: uids.to_owned(), ..Access::default() };
        Self::serve(folder, Setup { access, ..setup(folder, socket_in(folder), module, limits) })
    }

    /// One with its sockets in a folder that is there.
    #[must_use]
    pub fn at(folder: &Path, module: Module) -> Self {
        Self::begin(folder, module, Limits::default())
    }

    /// One at a socket of this kind, which is `host` in that folder.
    #[must_use]
    pub fn over(folder: &Path, socket: Socket, module: Module) -> Self {
        Self::run(folder, socket, module, Limits::default())
    }

    fn begin(folder: &Path, module: Module, limits: Limits) -> Self {
        Self::run(folder, socket_in(folder), module, limits)
    }

    fn run(folder: &Path, socket: Socket, module: Module, limits: Limits) -> Self {
        Self::serve(folder, setup(folder, socket, module, limits))
    }

    fn serve(folder: &Path, setup: Setup) -> Self {
        let cancel = Cancel::default();
        let (started, ready) = channel();
        let of_thread = cancel.clone();
        let thread =
            thread::spawn(move || evener_host::run(setup, &of_thread, move || started.send(()).unwrap()));
        ready.recv_timeout(TIMEOUT).unwrap();
        Self { folder: folder.to_owned(), temporary: None, cancel, thread: Some(thread) }
    }

    /// Where clients connect.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.join("host")
    }

    /// A connection for orders.
    #[must_use]
    pub fn control(&self) -> UnixStream {
        UnixStream::connect(self.folder.join("control")).unwrap()
    }

    /// Gives an order; the answer.
    pub fn order(&self, line: &str) -> Value {
        order(&self.folder.join("control"), line)
    }

    /// Waits until the report says so.
    pub fn wait_for(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut report = Value::Null;
        let came = soon(|| {
            report = self.order("report");
            is_so(&report)
        });
        assert!(came, "never {what}: {report:#}");
        report
    }

    /// Ends it; what it did.
    pub fn stop(self) -> Report {
        self.cancel.cancel();
        self.ended()
    }

    /// Waits for its end, which comes by itself; what it did.
    pub fn ended(mut self) -> Report {
        self.thread.take().unwrap().join().unwrap().unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Gives an order to the host that takes them at `control`; the answer.
pub fn order(control: &Path, line: &str) -> Value {
    let mut stream = UnixStream::connect(control).unwrap();
    writeln!(stream, "{line}").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap()
}

/// Requests that a host did so far.
#[must_use]
pub fn requests(control: &Path) -> u64 {
    order(control, "report")["totals"]["requests"].as_u64().unwrap()
}

/// Keys that a host holds, of all its clients.
#[must_use]
pub fn sessions(control: &Path) -> u64 {
    let report = order(control, "report");
    report["clients"].as_array().unwrap().iter().map(|client| client["sessions"].as_u64().unwrap()).sum()
}
