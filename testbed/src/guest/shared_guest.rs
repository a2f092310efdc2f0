//! One guest for several programs, for one after the other: a run of all tests boots it once.
//!
//! Steps: [`Builder::lend`](super::Builder::lend) boots it, and QEMU listens at its control port -> a program to which [`GUEST_VARIABLE`] names the boot's folder
//! connects; the first answer is its turn -> what it brings is unpacked from /share -> commands -> what it brought is removed, and
//! the next one's connection is taken. A program that ends in the middle of a command leaves a guest that
//! none takes any more.

use std::io::{self, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs};

use super::{GLANCE, Guest, Holder, Machine};
use crate::error::{Error, at};

/// Names the folder of the guest that is lent.
pub(crate) const GUEST_VARIABLE: &str = "EVENER_TESTBED_GUEST";
/// In the boot's folder: the socket of port 1.
pub(crate) const CONTROL: &str = "control.sock";
/// In the shared folder: what a borrower brings.
pub(super) const PAYLOAD: &str = ".payload";
/// In the boot's folder while a command runs.
const BUSY: &str = "busy";
/// How long a guest may take to power off. Assumed, not measured: many times the second that it takes on an idle machine.
const POWER_OFF_LIMIT: Duration = Duration::from_secs(60);

/// A guest to lend. It ends with this.
#[derive(Debug)]
pub struct SharedGuest(Machine);

impl SharedGuest {
    pub(super) fn of(guest: Guest) -> Self {
        let Holder::We(machine) = guest.holder else { unreachable!("the lender has booted it") };
        Self(machine)
    }

    /// Name and value of the variable by which programs find it.
    #[must_use]
    pub fn variable(&self) -> (&'static str, PathBuf) {
        (GUEST_VARIABLE, self.0.folder.path().to_owned())
    }

    /// Ends it in good order, if it listens.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where it does not listen; it is ended all the same.
    pub fn end(mut self) -> Result<(), Error> {
        connect(self.0.folder.path())?.get_mut().write_all(b"end\n")?;
        let since = Instant::now();
        while self.0.child.try_wait()?.is_none() && since.elapsed() < POWER_OFF_LIMIT {
            std::thread::sleep(GLANCE);
        }
        Ok(())
    }
}

/// The use of a guest that another program ends.
#[derive(Debug)]
pub(super) struct Lease {
    busy: PathBuf,
    brought: Vec<String>,
}

impl Lease {
    /// On the guest in `folder`.
    pub(super) fn on(folder: &Path) -> Self {
        Self { busy: folder.join(BUSY), brought: Vec::new() }
    }

    pub(super) fn brings(&mut self, paths: Vec<String>) {
        self.brought = paths;
    }

    pub(super) fn begin(&self) -> io::Result<()> {
        fs::write(&self.busy, "").map_err(|error| at(&self.busy, error))
    }

    pub(super) fn is_done(&self) -> io::Result<()> {
        fs::remove_file(&self.busy).map_err(|error| at(&self.busy, error))
    }

    /// The command that removes what was brought, and what it left where all may write.
    pub(super) fn release_command(&self) -> String {
        format!("rm -rf /share/* /share/{PAYLOAD} /tmp/* {}", self.brought.join(" "))
    }
}

/// The command that unpacks what was brought. What the kernel logged before is of earlier borrowers.
pub(super) fn welcome(kernel_modules: &[String]) -> String {
    let load = kernel_modules.iter().map(|name| format!(" && modprobe {name}"));
    let unpack = format!(
        "cd / && cpio -idu </share/{PAYLOAD} 2>/dev/null && rm /share/{PAYLOAD} && dmesg -c >/dev/null"
    );
    load.fold(unpack, |line, word| line + &word)
}

/// The folder that host and guest share.
pub(super) fn shared(folder: &Path) -> PathBuf {
    folder.join("share")
}

/// The guest that is lent to this program: none where no program lends one, or where one left it in the middle of a command.
#[allow(clippy::print_stdout, reason = "a boot more than there need be is to be seen")]
pub(super) fn to_borrow() -> Option<PathBuf> {
    let folder = PathBuf::from(env::var_os(GUEST_VARIABLE)?);
    if folder.join(BUSY).exists() {
        println!("a borrower left the guest in common in the middle of a command: another is booted");
        return None;
    }
    Some(folder)
}

pub(super) fn connect(folder: &Path) -> io::Result<BufReader<UnixStream>> {
    let socket = folder.join(CONTROL);
    patient(UnixStream::connect(&socket).map_err(|error| at(&socket, error))?)
}

/// A control port whose reads end soon, to look whether the guest is still there.
pub(super) fn patient(stream: UnixStream) -> io::Result<BufReader<UnixStream>> {
    stream.set_read_timeout(Some(GLANCE * 10))?;
    Ok(BufReader::new(stream))
}
