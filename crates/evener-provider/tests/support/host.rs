//! A host in a process of its own, as `evener host` is one: this executable once more.

#![allow(unreachable_pub, reason = "as the rest of the support")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::{env, thread};

use evener::Cancel;
use evener_driver_emulated::{Emulated, Preset};
use evener_driver_libcrypto::Libcrypto;
use evener_host::{Access, Limits, Module, Setup, Socket};

/// Names the folder of the sockets, in the host's process.
const FOLDER: &str = "PROVIDER_TEST_HOST";

/// Costs of the module, in the host's process.
const PRESET: &str = "PROVIDER_TEST_PRESET";

/// A module that takes no time of its own.
pub const AT_ONCE: &str = "emulated:d=0+0,h=0+0";

/// The host's process.
pub struct Host {
    process: Child,
    folder: tempfile::TempDir,
}

impl Host {
    /// Starts one with an emulated module. `test` is a test of the calling file that does nothing but [`serve`].
    pub fn start(test: &str, preset: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(FOLDER, folder.path()).env(PRESET, preset).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("serving")), "the host does not come up");
        // Nobody may block on a pipe that is full.
        thread::spawn(move || lines.for_each(drop));
        Self { process, folder }
    }

    /// The module's name in a configuration.
    pub fn module(&self) -> String {
        format!("hosted:{},offer=all", self.folder.path().join("host").display())
    }

    /// Its control socket.
    pub fn control(&self) -> PathBuf {
        self.folder.path().join("control")
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may be gone already.
        self.process.kill().unwrap_or_default();
        drop(self.process.wait());
    }
}

/// Sends an order to a host and returns its answer.
pub fn order(control: &str, line: &str) -> String {
    let mut stream = UnixStream::connect(control).unwrap();
    writeln!(stream, "{line}").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    answer
}

/// Requests that a host did so far.
pub fn requests(control: &str) -> u64 {
    let report = order(control, "report");
    // The totals come last.
    let (_, rest) = report.rsplit_once("\"requests\":").unwrap();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// Keys that a host holds, of all its clients.
pub fn sessions(control: &str) -> u64 {
    let report = order(control, "report");
    let each = report.split("\"sessions\":").skip(1);
    each.map(|rest| {
        rest.chars().map_while(|digit| digit.to_digit(10)).fold(0, |all, digit| all * 10 + u64::from(digit))
    })
    .sum()
}

/// The host's process: serves until it is killed. Does nothing in any other.
pub fn serve() {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else { return };
    let preset: Preset = env::var(PRESET).unwrap().parse().unwrap();
    let module =
        Module::emulated(Emulated::new(preset.without_core_time(), Box::new(Libcrypto::new().unwrap())));
    let setup = Setup {
        socket: Socket::Path(folder.join("host")),
        control: Some(folder.join("control")),
        access: Access::default(),
        limits: Limits::default(),
        module,
    };
    evener_host::run(setup, &Cancel::default(), || println!("serving")).unwrap();
}
