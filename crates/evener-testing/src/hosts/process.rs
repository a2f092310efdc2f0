//! A host in a process of its own, as `evener host` is one: this program once more.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{env, thread};

use evener::Cancel;
use evener_host::Limits;

use super::{emulated, setup, socket_in};
use crate::folder::Folder;
use crate::programs::Process;

/// Names the folder of the sockets, in the host's process.
const FOLDER: &str = "TESTING_HOST";

/// Costs of the module, in the host's process.
const PRESET: &str = "TESTING_PRESET";

/// What the process says once it listens.
const SERVING: &str = "serving";

/// A module that takes no time of its own.
pub const AT_ONCE: &str = "emulated:d=0+0,h=0+0";

/// The host's process.
pub struct HostProcess {
    process: Process,
    folder: Folder,
}

impl HostProcess {
    /// Starts one with an emulated module. `test` is a test of the calling program that does nothing but [`serve`], and is ignored.
    #[must_use]
    pub fn start(test: &str, preset: &str) -> Self {
        let folder = Folder::temporary();
        let variables = [(FOLDER, folder.path().as_os_str()), (PRESET, OsStr::new(preset))];
        let mut process = Process::start(test, &variables);
        let mut lines = process.lines();
        assert!(lines.any(|line| line.contains(SERVING)), "the host does not come up");
        // No process may block on a pipe that is full.
        thread::spawn(move || lines.for_each(drop));
        Self { process, folder }
    }

    /// The module's name in a configuration.
    #[must_use]
    pub fn module(&self) -> String {
        format!("hosted:{},offer=all", self.folder.join("host").display())
    }

    /// Its control socket.
    #[must_use]
    pub fn control(&self) -> PathBuf {
        self.folder.join("control")
    }

    /// Its number among processes.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }
}

/// The host's process: serves until it is killed. Does nothing in any other.
pub fn serve() {
    let Some(folder) = env::var_os(FOLDER) else { return };
    let module = emulated(&env::var(PRESET).unwrap());
    let folder = Path::new(&folder);
    let setup = setup(folder, socket_in(folder), module, Limits::default());
    evener_host::run(setup, &Cancel::default(), || println!("{SERVING}")).unwrap();
}
