//! The host whose core all processes share.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

/// `evener host`, ended when this is dropped.
#[derive(Debug)]
pub(super) struct Host {
    child: Child,
    folder: tempfile::TempDir,
}

impl Host {
    /// Starts one of a core, which lets so many clients come.
    pub(super) fn start(evener: &Path, clients: usize) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut command = Command::new(evener);
        command.args(["host", "--module", "cpu", "--clients", &clients.to_string(), "--socket"]);
        command.arg(folder.path().join("socket"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().with_context(|| evener.display().to_string())?;
        let mut host = Self { child, folder };
        let until = Instant::now() + Duration::from_secs(10);
        while std::os::unix::net::UnixStream::connect(host.socket()).is_err() {
            ensure!(host.child.try_wait()?.is_none(), "the host ended");
            ensure!(Instant::now() < until, "the host did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(host)
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
