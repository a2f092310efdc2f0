//! A guest that runs, and commands in it.
//!
//! Steps of a command: one line to port 1 (`run`, base64) -> a shell in the guest; what it writes goes to files of the
//! host through ports 2 and 3 -> `done STATUS ...` and an archive of /out come back on port 1. Whatever takes longer
//! than the guest's limit ends the guest.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::Serialize;
use tempfile::TempDir;

use crate::error::{Error, at};
use crate::image::cpio;

mod builder;
mod kernel_log;
mod pinning;
mod qmp;
mod shared_guest;

pub use builder::{Builder, Icount, Module, USER_SPACE_MODULE};
pub use kernel_log::KernelLog;
pub use qmp::{ModuleCounts, Qmp, Throttle};
pub use shared_guest::SharedGuest;

/// How often what we wait for is looked at.
const GLANCE: Duration = Duration::from_millis(10);
/// Characters of the console that an error shows.
const CONSOLE_END: usize = 2000;

/// What a command in the guest came to.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Its exit status, as a shell gives it.
    pub status: i32,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
    /// Seconds that it took by the guest's clock, to 10 ms.
    pub guest_s: f64,
    /// Files that it left in /out, by their paths below it.
    #[serde(skip)]
    pub files: BTreeMap<String, Vec<u8>>,
    /// The kernel's log from boot on, of a guest that is lent from the beginning of our turn on.
    #[serde(skip)]
    pub kernel_log: KernelLog,
}

impl Outcome {
    /// Standard output.
    ///
    /// # Panics
    ///
    /// With all that is known where the status is not 0: for tests.
    pub fn expect_success(&self) -> &str {
        let Self { status, stdout, stderr, .. } = self;
        assert!(*status == 0, "status {status} in the guest\n{stdout}\n{stderr}");
        stdout
    }
}

/// A guest that runs. It ends when this is dropped, unless it is lent.
#[derive(Debug)]
pub struct Guest {
    holder: Holder,
    control: BufReader<UnixStream>,
    /// Of its boot.
    folder: PathBuf,
    ends: Instant,
    limit: Duration,
    stdout_at: usize,
    stderr_at: usize,
    /// Seconds from the start of its kernel until the first command could be run, by the guest's clock; 0 where it is lent.
    pub boot_s: f64,
}

/// What ends it.
#[derive(Debug)]
enum Holder {
    We(Machine),
    Lender(shared_guest::Lease),
}

/// QEMU as a process. It ends when this is dropped.
#[derive(Debug)]
struct Machine {
    /// Holds the other end of QEMU's standard input, which ends QEMU when this process ends.
    child: Child,
    /// Group of QEMU and of the program that bounds its life.
    group: Pid,
    folder: TempDir,
}

impl Guest {
    /// Describes a guest: profile x86-64, one CPU, 512 MiB, the built-in module without throttle, five minutes.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Runs a line of shell as root and waits for its end.
    ///
    /// # Errors
    ///
    /// [`Error::TimeLimit`] or [`Error::Ended`]; the guest has ended then. A status other than 0 is no error.
    pub fn run(&mut self, command: &str) -> Result<Outcome, Error> {
        self.start(command)?;
        self.finish()
    }

    /// Starts a line of shell; [`Guest::finish`] waits for it. One runs at a time.
    ///
    /// # Errors
    ///
    /// As of [`Guest::run`].
    pub fn start(&mut self, command: &str) -> Result<(), Error> {
        if let Holder::Lender(lease) = &self.holder {
            lease.begin()?;
        }
        let line = format!("run {}\n", base64(command.as_bytes()));
        let sent = self.control.get_mut().write_all(line.as_bytes());
        sent.map_err(|error| self.ended().unwrap_or(Error::Io(error)))
    }

    /// Waits for the end of what was started.
    ///
    /// # Errors
    ///
    /// As of [`Guest::run`].
    pub fn finish(&mut self) -> Result<Outcome, Error> {
        let line = self.line()?;
        let odd = || Error::Protocol { peer: "the guest", answer: line.clone() };
        let words: Vec<&str> = line.split(' ').collect();
        let ["done", status, before, after, len] = words[..] else { return Err(odd()) };
        let seconds = |text: &str| text.parse::<f64>().map_err(|_| odd());
        let mut archive = vec![0; len.parse().map_err(|_| odd())?];
        self.read_exact(&mut archive)?;
        if let Holder::Lender(lease) = &self.holder {
            lease.is_done()?;
        }
        let mut files = cpio::files(&archive)?;
        let log = files.remove("kernel.log").unwrap_or_default();
        let out = |(path, bytes): (String, Vec<u8>)| Some((path.strip_prefix("out/")?.to_owned(), bytes));
        Ok(Outcome {
            status: status.parse().map_err(|_| odd())?,
            stdout: take_new(&self.folder.join("stdout"), &mut self.stdout_at)?,
            stderr: take_new(&self.folder.join("stderr"), &mut self.stderr_at)?,
            guest_s: seconds(after)? - seconds(before)?,
            files: files.into_iter().filter_map(out).collect(),
            kernel_log: KernelLog(String::from_utf8_lossy(&log).into_owned()),
        })
    }

    /// Files into which standard output and error of the guest's commands are written while they run.
    #[must_use]
    pub fn live_output(&self) -> [PathBuf; 2] {
        ["stdout", "stderr"].map(|name| self.folder.join(name))
    }

    /// QEMU's monitor. One connection at a time.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where QEMU has ended.
    pub fn qmp(&self) -> Result<Qmp, Error> {
        Qmp::connect(&self.folder.join("qmp.sock"))
    }

    /// The folder that both see, at /share in the guest: of a guest made by [`Builder::in_common`].
    #[must_use]
    pub fn shared_folder(&self) -> PathBuf {
        shared_guest::shared(&self.folder)
    }

    /// Ends the guest in good order; one that is lent goes back as it came.
    ///
    /// # Errors
    ///
    /// [`Error::TimeLimit`] where it does not power off; it is ended then all the same.
    pub fn shut_down(mut self) -> Result<(), Error> {
        if let Holder::Lender(lease) = &self.holder {
            let command = lease.release_command();
            return self.run(&command).map(drop);
        }
        self.control.get_mut().write_all(b"end\n")?;
        loop {
            if self.process()?.is_some() {
                return Ok(());
            }
            self.check_time()?;
            std::thread::sleep(GLANCE);
        }
    }

    /// How QEMU ended, if it did; of one that is lent its lender knows.
    fn process(&mut self) -> io::Result<Option<ExitStatus>> {
        match &mut self.holder {
            Holder::We(machine) => machine.child.try_wait(),
            Holder::Lender(_) => Ok(None),
        }
    }

    /// What the guest's serial console showed until now: firmware, kernel where it is in need, init.
    #[must_use]
    pub fn console(&self) -> String {
        console(&self.folder)
    }

    fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        let mut filled = 0;
        while filled < bytes.len() {
            filled += self.patiently(|control| control.read(&mut bytes[filled..]))?;
        }
        Ok(())
    }

    fn line(&mut self) -> Result<String, Error> {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            // What was read before the socket's own time is over stays in `line`.
            self.patiently(|control| control.read_until(b'\n', &mut line))?;
        }
        Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
    }

    /// Repeats a read that the socket's short time ends, until the guest's limit is reached or QEMU ends.
    fn patiently(
        &mut self,
        mut read: impl FnMut(&mut BufReader<UnixStream>) -> io::Result<usize>,
    ) -> Result<usize, Error> {
        loop {
            match read(&mut self.control) {
                Ok(0) => {
                    let closed =
                        || Error::Protocol { peer: "the guest", answer: "end of the connection".to_owned() };
                    return Err(self.ended().unwrap_or_else(closed));
                }
                Err(error) if is_a_pause(&error) => self.check_time()?,
                other => return other.map_err(|error| self.ended().unwrap_or(Error::Io(error))),
            }
        }
    }

    fn check_time(&self) -> Result<(), Error> {
        match Instant::now() < self.ends {
            true => Ok(()),
            false => Err(Error::TimeLimit { limit: self.limit, console: end_of(&self.console()) }),
        }
    }

    /// The error that says how QEMU ended, where it did.
    fn ended(&mut self) -> Option<Error> {
        // The socket closes a little before the process ends.
        for _ in 0..100 {
            if let Ok(Some(status)) = self.process() {
                return Some(ended(&self.folder, &status.to_string()));
            }
            std::thread::sleep(GLANCE);
        }
        None
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Errors: the group has ended already.
        killpg(self.group, Signal::SIGKILL).unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}

fn is_a_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

fn ended(folder: &Path, status: &str) -> Error {
    let reason = fs::read_to_string(folder.join("qemu.log")).unwrap_or_default().trim().to_owned();
    Error::Ended { status: status.to_owned(), reason, console: end_of(&console(folder)) }
}

fn console(folder: &Path) -> String {
    let bytes = fs::read(folder.join("console")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\r', "")
}

fn end_of(text: &str) -> String {
    let start = text.char_indices().rev().nth(CONSOLE_END).map_or(0, |(at, _)| at);
    text[start..].trim().to_owned()
}

/// What came into the file at `path` behind `read_bytes` bytes.
fn take_new(path: &Path, read_bytes: &mut usize) -> Result<String, Error> {
    let bytes = fs::read(path).map_err(|error| at(path, error))?;
    let new = String::from_utf8_lossy(bytes.get(*read_bytes..).unwrap_or_default()).into_owned();
    *read_bytes = bytes.len();
    Ok(new)
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |bits: u32, index: usize| char::from(DIGITS[(bits >> (18 - 6 * index)) as usize & 63]);
    let group = |three: &[u8]| {
        let bits = three.iter().chain(&[0, 0]).take(3).fold(0, |bits, &byte| bits << 8 | u32::from(byte));
        (0..4)
            .map(move |index| if index <= three.len() { digit(bits, index) } else { '=' })
            .collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        // RFC 4648, section 10.
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }
}
