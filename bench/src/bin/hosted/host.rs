//! The host that processes share.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::list;

/// `evener host`, ended when this is dropped.
pub(super) struct Host {
    child: Child,
    folder: tempfile::TempDir,
}

impl Host {
    /// Starts one with so many threads for its module, on these cores.
    pub(super) fn start(
        evener: &Path,
        module: &str,
        threads: usize,
        cores: &[usize],
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut command = Command::new("taskset");
        command.arg("-c").arg(list(cores)).arg(evener).args(["host", "--module", module, "--socket"]);
        command.arg(folder.path().join("socket"));
        if threads > 1 {
            command.args(["--cores", &threads.to_string()]);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let host = Self { child, folder };
        let until = Instant::now() + Duration::from_secs(10);
        while !host.socket().exists() {
            ensure!(Instant::now() < until, "the host did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(host)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // One that has ended already is ended.
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}
