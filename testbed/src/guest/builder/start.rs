//! The start of a guest: QEMU in a folder of this boot, or the guest that another program lends.

use std::fs::File;
use std::io::BufReader;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::{Builder, Module};
use crate::error::{Error, at};
use crate::guest::qmp::Throttle;
use crate::guest::shared_guest::{self, Lease};
use crate::guest::{GLANCE, Guest, Holder, Machine, ended};
use crate::paths;
use crate::qemu::Qemu;
use crate::readiness;

impl Builder {
    pub(super) fn boot_own(self) -> Result<Guest, Error> {
        let qemu = self.qemu()?;
        self.start(&qemu)
    }

    /// The QEMU for this guest, where the test bed is set up for it.
    pub(super) fn qemu(&self) -> Result<Qemu, Error> {
        self.iommu()?;
        let qemu = Qemu::find(self.profile)?;
        readiness::check(self.profile)?;
        Ok(qemu)
    }

    /// Takes the guest that lies in `folder`, as soon as no other program has it.
    pub(super) fn borrow(self, folder: &Path) -> Result<Guest, Error> {
        let limit = self.limit;
        let control = shared_guest::connect(folder)?;
        let holder = Holder::Lender(Lease::on(folder));
        let (folder, ends) = (folder.to_owned(), Instant::now() + limit);
        let mut guest =
            Guest { holder, control, folder, ends, limit, stdout_at: 0, stderr_at: 0, boot_s: 0.0 };
        // Its answer is the turn.
        guest.run("true")?;
        let archive = guest.shared_folder().join(shared_guest::PAYLOAD);
        self.payload.write_alone(self.profile, &self.profile.userland(), &archive)?;
        let brought = self.payload.paths();
        if let Holder::Lender(lease) = &mut guest.holder {
            lease.brings(brought);
        }
        let unpacked = guest.run(&shared_guest::welcome(&self.kernel_modules))?;
        match unpacked.status {
            0 => Ok(guest),
            _ => Err(Error::Protocol { peer: "the guest", answer: unpacked.stderr }),
        }
    }

    /// Starts the guest before it is known that it is as it must be.
    pub(crate) fn start(mut self, qemu: &Qemu) -> Result<Guest, Error> {
        self.check(qemu)?;
        let folder = tempfile::Builder::new().prefix("boot").tempdir_in(paths::folder("boots")?)?;
        if self.in_common {
            let shared = shared_guest::shared(folder.path());
            std::fs::create_dir(&shared).map_err(|error| at(&shared, error))?;
            self.share = Some(shared);
        }
        self.complete_payload()?;
        self.payload.write(self.profile, &self.profile.userland(), &folder.path().join("initrd"))?;
        let socket = folder.path().join(shared_guest::CONTROL);
        // One that is lent listens itself.
        let listener = (!self.is_lent).then(|| UnixListener::bind(&socket)).transpose();
        let listener = listener.map_err(|error| at(&socket, error))?;
        let log = File::create(folder.path().join("qemu.log"))?;
        let mut command = qemu.bounded_command(self.limit.as_secs() + GRACE_S);
        command.args(self.arguments()?).current_dir(folder.path());
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log).process_group(0);
        let child = command.spawn().map_err(|error| at(Path::new(command.get_program()), error))?;
        let ends = Instant::now() + self.limit;
        let group = Pid::from_raw(i32::try_from(child.id()).expect("process numbers are small"));
        let machine = Machine { child, group, folder };
        let mut guest = machine.answers(listener.as_ref(), ends, self.limit)?;
        let line = guest.line()?;
        let boot_s = line.strip_prefix("up ").and_then(|seconds| seconds.parse().ok());
        guest.boot_s = boot_s.ok_or(Error::Protocol { peer: "the guest", answer: line })?;
        Ok(guest)
    }

    /// Runs a shell on the guest's console, which is this terminal, until it is left. Ctrl-A X ends QEMU.
    ///
    /// # Errors
    ///
    /// As of [`Builder::boot`].
    pub fn shell(mut self) -> Result<(), Error> {
        let qemu = self.qemu()?;
        self.check(&qemu)?;
        let folder = tempfile::Builder::new().prefix("boot").tempdir_in(paths::folder("boots")?)?;
        self.complete_payload()?;
        self.setting("shell=yes\n");
        self.payload.write(self.profile, &self.profile.userland(), &folder.path().join("initrd"))?;
        let mut command = qemu.command();
        command.args(self.machine()?).args(["-serial", "mon:stdio"]).current_dir(folder.path());
        let status = command.status().map_err(|error| at(Path::new(command.get_program()), error))?;
        match status.success() {
            true => Ok(()),
            false => Err(ended(folder.path(), &status.to_string())),
        }
    }

    pub(super) fn check(&self, qemu: &Qemu) -> Result<(), Error> {
        match &self.module {
            Module::BuiltIn(throttle) if *throttle != Throttle::default() => {
                qemu.must_be_full("throttle of the module")
            }
            Module::VhostUser { .. } => qemu.must_be_full("usable vhost-user module"),
            _ => Ok(()),
        }
    }
}

/// Seconds after its limit at which QEMU is killed even if no program is there to end it.
const GRACE_S: u64 = 20;

#[allow(clippy::print_stdout, clippy::panic, reason = "only tests call it, and that is how they speak")]
pub(super) fn or_skip(booted: Result<Guest, Error>) -> Option<Guest> {
    match booted {
        Ok(guest) => Some(guest),
        Err(error) if error.is_absence() => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

impl Machine {
    /// Waits until QEMU has come to our socket, or listens at its own.
    fn answers(
        mut self,
        listener: Option<&UnixListener>,
        ends: Instant,
        limit: Duration,
    ) -> Result<Guest, Error> {
        let folder = self.folder.path().to_owned();
        let control = loop {
            let came = match listener {
                Some(listener) => accepted(listener),
                None => shared_guest::connect(&folder),
            };
            if let Ok(control) = came {
                break control;
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(ended(&folder, &status.to_string()));
            }
            if Instant::now() > ends {
                return Err(ended(&folder, "no connection"));
            }
            thread::sleep(GLANCE);
        };
        let holder = Holder::We(self);
        Ok(Guest { holder, control, folder, ends, limit, stdout_at: 0, stderr_at: 0, boot_s: 0.0 })
    }
}

fn accepted(listener: &UnixListener) -> std::io::Result<BufReader<UnixStream>> {
    listener.set_nonblocking(true)?;
    let (stream, _) = listener.accept()?;
    stream.set_nonblocking(false)?;
    shared_guest::patient(stream)
}
