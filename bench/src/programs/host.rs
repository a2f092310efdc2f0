//! A host that the processes of a measurement share.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// `evener host`, ended when this is dropped.
#[derive(Debug)]
pub struct Host {
    child: Child,
    folder: tempfile::TempDir,
}

impl Host {
    /// Starts a host with these options at a socket of its own. `evener` is the command, with whatever it is to be run by before it.
    ///
    /// # Errors
    ///
    /// Where it cannot be started, or ends or takes no client within ten seconds.
    pub fn start(mut evener: Command, options: &[&str]) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        evener.arg("host").args(options).arg("--socket").arg(folder.path().join("socket"));
        let child = evener.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let mut host = Self { child, folder };
        let until = Instant::now() + Duration::from_secs(10);
        while UnixStream::connect(host.socket()).is_err() {
            if host.child.try_wait()?.is_some() || Instant::now() > until {
                return Err(io::Error::other("the host did not start"));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(host)
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Core time of all its threads so far.
    ///
    /// # Errors
    ///
    /// Where the system tells none.
    pub fn core_time(&self) -> io::Result<Duration> {
        let mut sum = Duration::ZERO;
        for thread in fs::read_dir(format!("/proc/{}/task", self.pid()))? {
            // Its first word is nanoseconds on a core; a thread that ended meanwhile has none.
            let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
            let nanos = text.split_whitespace().next().and_then(|word| word.parse().ok());
            sum += Duration::from_nanos(nanos.unwrap_or_default());
        }
        Ok(sum)
    }

    /// Where clients come.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
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
