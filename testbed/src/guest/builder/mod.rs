//! What a guest is made of, and its start.
//!
//! Steps: programs, files and settings -> an initramfs in a folder of this boot -> QEMU, which connects to our socket
//! -> init says `up`.

use std::fs::File;
use std::io::BufReader;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::qmp::Throttle;
use super::shared_guest::{self, Lease, Lent};
use super::{GLANCE, Guest, Holder, Machine, ended};
use crate::error::{Error, at};
use crate::image::initramfs::Payload;
use crate::image::kernel;
use crate::paths;
use crate::profile::{Facts, Profile, WithIommu};
use crate::qemu::Qemu;
use crate::readiness;

/// Seconds after its limit at which QEMU is killed even if no program is there to end it.
const GRACE_S: u64 = 20;
/// Settings that init reads.
const SETTINGS: &str = "etc/testbed";
/// PCI address, in the guest, of the module of [`Builder::user_space_module`]. The slot lies above those that QEMU gives by itself.
pub const USER_SPACE_MODULE: &str = "0000:00:10.0";

/// The crypto module of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Module {
    /// QEMU's own, which computes in QEMU's main thread. Throttles need QEMU 8.
    BuiltIn(Throttle),
    /// A process that serves vhost-user-crypto at this socket. Needs QEMU 8.
    VhostUser {
        /// The socket, on which the process listens already.
        socket: PathBuf,
        /// Whether the device offers VIRTIO_F_RING_EVENT_IDX.
        event_idx: bool,
    },
    /// None: for tests that a suite notices that.
    None,
}

/// Guest time that counts instructions: an instruction takes 2^shift ns. Costs per request are repeatable then, but what
/// runs beside the CPU is not in step with it: never judge overlap by such a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icount {
    /// Binary logarithm of nanoseconds per instruction.
    pub shift: u8,
    /// Whether an idle guest waits for real time.
    pub sleep: bool,
}

impl Icount {
    /// 2 ns, near the AM3358 of paper 002 from 4 KiB on (docs/testbed.md).
    pub const NEAR_AM3358: Self = Self { shift: 1, sleep: true };
}

/// A guest that is not started yet.
#[derive(Debug)]
pub struct Builder {
    profile: Profile,
    module: Module,
    vcpus: u8,
    memory_mib: u32,
    icount: Option<Icount>,
    payload: Payload,
    kernel_modules: Vec<String>,
    share: Option<PathBuf>,
    network: bool,
    user_space_module: bool,
    limit: Duration,
    /// Whether one that others use too will do.
    in_common: bool,
    is_lent: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            profile: Profile::X86_64,
            module: Module::BuiltIn(Throttle::default()),
            vcpus: 1,
            memory_mib: 512,
            icount: None,
            payload: Payload::default(),
            kernel_modules: Vec::new(),
            share: None,
            network: false,
            user_space_module: false,
            limit: Duration::from_secs(300),
            in_common: false,
            is_lent: false,
        }
    }
}

impl Builder {
    /// Sets the kind of machine.
    #[must_use]
    pub fn profile(self, profile: Profile) -> Self {
        Self { profile, ..self }
    }

    /// Sets the crypto module.
    #[must_use]
    pub fn module(self, module: Module) -> Self {
        Self { module, ..self }
    }

    /// Sets how many CPUs the guest has. Two need three free cores of the host to behave.
    #[must_use]
    pub fn vcpus(self, vcpus: u8) -> Self {
        Self { vcpus, ..self }
    }

    /// Sets the guest's memory in MiB, which is its file system, too: programs lie in it twice while it boots.
    #[must_use]
    pub fn memory_mib(self, memory_mib: u32) -> Self {
        Self { memory_mib, ..self }
    }

    /// Lets guest time count instructions.
    #[must_use]
    pub fn icount(self, icount: Icount) -> Self {
        Self { icount: Some(icount), ..self }
    }

    /// Puts a program of the host with its libraries on the guest's search path, under its own name.
    #[must_use]
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.payload.programs.push(path.into());
        self
    }

    /// Puts a shared library that programs open at run time, with what it needs, where the guest's loader looks.
    #[must_use]
    pub fn library(mut self, path: impl Into<PathBuf>) -> Self {
        self.payload.libraries.push(path.into());
        self
    }

    /// Puts a file with these contents at `path` in the guest. Everybody may run it.
    #[must_use]
    pub fn file(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.payload.files.push((path.to_owned(), bytes.into()));
        self
    }

    /// Loads a kernel module besides the usual ones, as `cuse` or `tls`.
    #[must_use]
    pub fn kernel_module(mut self, name: &str) -> Self {
        self.kernel_modules.push(name.to_owned());
        self
    }

    /// Shows a folder of the host at /share in the guest (9p), for both to read and write.
    #[must_use]
    pub fn share(self, folder: impl Into<PathBuf>) -> Self {
        Self { share: Some(folder.into()), ..self }
    }

    /// Lets the guest reach the loopback of the host, as 10.0.2.2, and nothing else.
    #[must_use]
    pub fn host_loopback(self) -> Self {
        Self { network: true, ..self }
    }

    /// Adds a second built-in module behind an IOMMU, at [`USER_SPACE_MODULE`] and bound to vfio-pci, for programs of the guest
    /// to drive themselves. What [`Builder::module`] says is the kernel's.
    #[must_use]
    pub fn user_space_module(self) -> Self {
        Self { user_space_module: true, ..self }
    }

    /// Sets how long the guest may live, its boot included.
    #[must_use]
    pub fn limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Takes the guest of [`Builder::lend`], where there is one: programs, files and kernel modules are brought into it, and
    /// what else was said goes for a guest of its own only. A folder is shared with either ([`Guest::shared_folder`]).
    #[must_use]
    pub fn in_common(self) -> Self {
        Self { in_common: true, ..self }
    }

    /// Starts the guest and waits until commands can be run.
    ///
    /// # Errors
    ///
    /// [`Error::NoQemu`] and [`Error::NotUp`] where the test bed is not there, [`Error::OldQemu`] where a newer QEMU is needed for
    /// what was asked: tests print these as the reason for which they are skipped ([`Error::is_absence`]).
    /// [`Error::NotOfProfile`] where no guest of its profile can be that. [`Error::TimeLimit`] and [`Error::Ended`] where the guest
    /// does not come up, [`Error::Protocol`] where vfio-pci has not taken the module for user space.
    pub fn boot(self) -> Result<Guest, Error> {
        if let Some(folder) = shared_guest::to_borrow().filter(|_| self.in_common) {
            return self.borrow(&folder);
        }
        self.boot_own()
    }

    /// Starts a guest that is then lent to programs to which [`Lent::variable`] names it, to one after the other.
    ///
    /// # Errors
    ///
    /// As of [`Builder::boot`].
    pub fn lend(self) -> Result<Lent, Error> {
        let guest = Self { in_common: true, is_lent: true, ..self }.boot_own()?;
        Ok(Lent::of(guest))
    }

    fn boot_own(self) -> Result<Guest, Error> {
        let qemu = self.qemu()?;
        self.start(&qemu)
    }

    /// The QEMU for this guest, where the test bed is set up for it.
    fn qemu(&self) -> Result<Qemu, Error> {
        self.iommu()?;
        let qemu = Qemu::find(self.profile)?;
        readiness::check(self.profile)?;
        Ok(qemu)
    }

    /// The machine with an IOMMU, where this guest needs one.
    fn iommu(&self) -> Result<Option<&'static WithIommu>, Error> {
        let Facts { name: profile, with_iommu, .. } = *self.profile.facts();
        match (self.user_space_module, with_iommu) {
            (false, _) => Ok(None),
            (true, Some(machine)) => Ok(Some(machine)),
            (true, None) => Err(Error::NotOfProfile { what: "module for user space", profile }),
        }
    }

    /// Takes the guest that lies in `folder`, as soon as no other program has it.
    fn borrow(self, folder: &Path) -> Result<Guest, Error> {
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
            _ => Err(Error::Protocol { who: "the guest", said: unpacked.stderr }),
        }
    }

    /// Starts the guest for a test; where there is no test bed, or its QEMU is too old for such a guest, says that the test is
    /// skipped, and for which reason.
    ///
    /// # Panics
    ///
    /// Where there is a test bed and the guest does not come up.
    #[must_use]
    pub fn boot_or_skip(self) -> Option<Guest> {
        or_skip(self.boot())
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
        guest.boot_s = boot_s.ok_or(Error::Protocol { who: "the guest", said: line })?;
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

    fn check(&self, qemu: &Qemu) -> Result<(), Error> {
        match &self.module {
            Module::BuiltIn(throttle) if *throttle != Throttle::default() => {
                qemu.must_be_full("throttle of the module")
            }
            Module::VhostUser { .. } => qemu.must_be_full("usable vhost-user module"),
            _ => Ok(()),
        }
    }

    /// Adds openssl with its afalg engine, and the settings for init.
    fn complete_payload(&mut self) -> Result<(), Error> {
        let root = self.profile.userland();
        let openssl = root.join("usr/bin/openssl");
        if openssl.is_file() {
            self.payload.programs.push(openssl);
            self.add_engine(&root)?;
        }
        let facts = self.profile.facts();
        let network = if self.network { "virtio_net" } else { "" };
        let share = if self.share.is_some() { "9pnet_virtio 9p" } else { "" };
        let modules = format!("{} {network} {share} {}", facts.modules, self.kernel_modules.join(" "));
        let user_space = if self.user_space_module { USER_SPACE_MODULE } else { "" };
        let yes = |on: bool| if on { "yes" } else { "" };
        self.setting(&format!(
            "modules='{modules}'\nnetwork={}\nshare={}\nlent={}\nconsole={}\nuser_space={user_space}\n",
            yes(self.network),
            yes(self.share.is_some()),
            yes(self.is_lent),
            facts.console
        ));
        Ok(())
    }

    /// The engine is opened at run time, and OpenSSL wants a configuration, be it an empty one.
    fn add_engine(&mut self, root: &Path) -> Result<(), Error> {
        let path = self.profile.facts().afalg_engine;
        let engine = root.join(path.trim_start_matches('/'));
        if engine.is_file() {
            let bytes = std::fs::read(&engine).map_err(|error| at(&engine, error))?;
            self.payload.files.push((path.to_owned(), bytes));
        }
        self.payload.files.push(("usr/lib/ssl/openssl.cnf".to_owned(), b"openssl_conf = d\n[d]\n".to_vec()));
        Ok(())
    }

    fn setting(&mut self, lines: &str) {
        match self.payload.files.iter_mut().find(|(path, _)| path == SETTINGS) {
            Some((_, text)) => text.extend_from_slice(lines.as_bytes()),
            None => self.payload.files.push((SETTINGS.to_owned(), lines.as_bytes().to_vec())),
        }
    }

    /// All of QEMU's arguments for a guest without a terminal; names of files are relative to the boot's folder.
    fn arguments(&self) -> Result<Vec<String>, Error> {
        let mut words = self.machine()?;
        let listens = if self.is_lent { ",server=on,wait=off" } else { "" };
        let more = format!(
            "-serial file:console -qmp unix:qmp.sock,server=on,wait=off -device virtio-serial-pci \
            -chardev socket,id=control,path={}{listens} -device virtserialport,chardev=control,nr=1 \
            -chardev file,id=stdout,path=stdout -device virtserialport,chardev=stdout,nr=2 \
            -chardev file,id=stderr,path=stderr -device virtserialport,chardev=stderr,nr=3",
            shared_guest::CONTROL
        );
        words.extend(more.split_whitespace().map(str::to_owned));
        Ok(words)
    }

    /// Machine, kernel, module, share and network.
    fn machine(&self) -> Result<Vec<String>, Error> {
        let facts = self.profile.facts();
        let iommu = self.iommu()?;
        let machine = iommu.map_or(facts.machine, |with| with.machine);
        let mut words: Vec<String> = machine.iter().map(|&word| word.to_owned()).collect();
        let mut add = |text: String| words.extend(text.split(' ').map(str::to_owned));
        add(format!("-accel tcg -smp {} -m {}", self.vcpus, self.memory_mib));
        add("-nodefaults -no-user-config -display none -no-reboot -initrd initrd".to_owned());
        match &self.module {
            Module::BuiltIn(throttle) => {
                add(format!(
                    "-object cryptodev-backend-builtin,id=cryptodev0,queues=1{}",
                    throttled(*throttle)
                ));
                add("-device virtio-crypto-pci,id=crypto0,cryptodev=cryptodev0".to_owned());
            }
            Module::VhostUser { event_idx, .. } => {
                // The module reads and writes the guest's memory, which must be a shared file.
                add(format!("-object memory-backend-memfd,id=ram0,size={}M,share=on", self.memory_mib));
                add("-machine memory-backend=ram0 -object cryptodev-vhost-user,id=cryptodev0,chardev=module"
                    .to_owned());
                let event_idx = if *event_idx { "on" } else { "off" };
                add(format!(
                    "-device virtio-crypto-pci,id=crypto0,cryptodev=cryptodev0,event_idx={event_idx}"
                ));
            }
            Module::None => {}
        }
        if iommu.is_some() {
            add(user_space_words());
        }
        if let Some(Icount { shift, sleep }) = self.icount {
            add(format!("-icount shift={shift},sleep={}", if sleep { "on" } else { "off" }));
        }
        if self.network {
            add("-netdev user,id=net0,ipv6=off -device virtio-net-pci,netdev=net0,romfile=".to_owned());
        }
        // Paths may hold spaces, so they are words of their own; QEMU wants commas doubled.
        let path = |path: &Path| {
            Ok::<_, Error>(
                path.canonicalize()
                    .map_err(|error| at(path, error))?
                    .display()
                    .to_string()
                    .replace(',', ",,"),
            )
        };
        if let Some(folder) = &self.share {
            let share =
                format!("local,path={},mount_tag=share,security_model=none,multidevs=remap", path(folder)?);
            words.extend(["-virtfs".to_owned(), share]);
        }
        if let Module::VhostUser { socket, .. } = &self.module {
            words.extend(["-chardev".to_owned(), format!("socket,id=module,path={}", path(socket)?)]);
        }
        let more = iommu.map_or_else(String::new, |with| format!(" {}", with.kernel_words));
        words.extend(["-kernel".to_owned(), kernel::image(self.profile)?.display().to_string()]);
        words.extend([
            "-append".to_owned(),
            format!("console={} quiet panic=-1 {}{more}", facts.console, facts.kernel_words),
        ]);
        Ok(words)
    }
}

#[allow(clippy::print_stdout, clippy::panic, reason = "only tests call it, and that is how they speak")]
fn or_skip(booted: Result<Guest, Error>) -> Option<Guest> {
    match booted {
        Ok(guest) => Some(guest),
        Err(error) if error.is_absence() => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The second module. Without `iommu_platform` QEMU would let it reach all of the guest's memory, past the IOMMU.
fn user_space_words() -> String {
    let slot = USER_SPACE_MODULE.trim_start_matches("0000:00:");
    format!(
        "-object cryptodev-backend-builtin,id=cryptodev1,queues=1 \
        -device virtio-crypto-pci,id=crypto1,cryptodev=cryptodev1,iommu_platform=on,disable-legacy=on,addr={slot}"
    )
}

fn throttled(throttle: Throttle) -> String {
    let word = |name, value: u64| if value == 0 { String::new() } else { format!(",{name}={value}") };
    word("throttle-bps", throttle.bytes_per_s) + &word("throttle-ops", throttle.ops_per_s)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qemu::tests::qemu_that_says;

    #[test]
    fn a_test_whose_guest_this_qemu_cannot_be_is_skipped_and_another_fails() {
        let folder = tempfile::tempdir().unwrap();
        let old =
            qemu_that_says(folder.path(), "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)");
        let throttle = Throttle { bytes_per_s: 1, ops_per_s: 0 };
        let socket = folder.path().join("socket");
        for module in [Module::BuiltIn(throttle), Module::VhostUser { socket, event_idx: true }] {
            assert!(or_skip(Guest::builder().module(module).start(&old)).is_none());
        }
        let starts = Guest::builder().module(Module::BuiltIn(Throttle::default())).check(&old);
        assert!(starts.is_ok(), "it has the module itself");
        let ended =
            || Err(Error::Ended { status: "1".into(), reason: String::new(), console: String::new() });
        assert!(std::panic::catch_unwind(|| or_skip(ended())).is_err(), "only what is not there is skipped");
    }

    #[test]
    fn a_module_for_user_space_is_refused_where_no_guest_of_the_profile_can_have_one() {
        let refused = Guest::builder().profile(Profile::Armv7).user_space_module().boot();
        assert!(matches!(refused, Err(Error::NotOfProfile { profile: "armv7", .. })), "{refused:?}");
        assert!(refused.is_err_and(|error| !error.is_absence()), "no package would make it possible");
    }
}
