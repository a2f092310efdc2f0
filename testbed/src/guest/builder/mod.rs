//! What a guest is made of, and its start: a builder (Gamma et al., 1994) whose product is a running virtual machine.
//!
//! Steps: what the guest is to have (here) -> programs, files and settings (`payload.rs`) -> an initramfs in a folder of this boot -> QEMU's command
//! line (`qemu_words.rs`) -> QEMU connects to our socket, and init says `up` (`start.rs`).
//!
//! | guest | made by | ends by |
//! |---|---|---|
//! | own | [`Builder::boot`] | its owner, its limit, QEMU's grace |
//! | lent, to one program after the other | [`Builder::lend`] | as an own one |
//! | borrowed | [`Builder::boot`] after [`Builder::in_common`], where one is lent | given back, and lives on |

mod payload;
mod qemu_words;
mod start;

use std::path::PathBuf;
use std::time::Duration;

use self::start::or_skip;
use super::Guest;
use super::qmp::Throttle;
use super::shared_guest::{self, SharedGuest};
use crate::error::Error;
use crate::image::initramfs::Payload;
use crate::profile::Profile;

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
    /// 2 ns, near the AM3358 of paper 002 from 4 KiB on (docs/design/testbed.md).
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

/// Setters of fields.
macro_rules! sets {
    ($($(#[$about:meta])* $field:ident: $type:ty;)*) => {$(
        $(#[$about])*
        #[must_use]
        pub fn $field(self, $field: $type) -> Self {
            Self { $field, ..self }
        }
    )*};
}

impl Builder {
    sets! {
        /// Sets the kind of machine.
        profile: Profile;
        /// Sets the crypto module.
        module: Module;
        /// Sets how many CPUs the guest has. Two need three free cores of the host to behave.
        vcpus: u8;
        /// Sets the guest's memory in MiB, which is its file system, too: programs lie in it twice while it boots.
        memory_mib: u32;
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
    /// other settings hold for a guest of its own only. A folder is shared with either ([`Guest::shared_folder`]).
    #[must_use]
    pub fn in_common(self) -> Self {
        Self { in_common: true, ..self }
    }

    /// Starts the guest and waits until commands can be run.
    ///
    /// # Errors
    ///
    /// [`Error::NoQemu`] and [`Error::NotUp`] where the test bed is not there, [`Error::OldQemu`] where a newer QEMU is needed for
    /// what it is to have: tests print these as the reason for which they are skipped ([`Error::is_absence`]).
    /// [`Error::NotOfProfile`] where no guest of its profile can be that. [`Error::TimeLimit`] and [`Error::Ended`] where the guest
    /// does not come up, [`Error::Protocol`] where vfio-pci has not taken the module for user space.
    pub fn boot(self) -> Result<Guest, Error> {
        if let Some(folder) = shared_guest::to_borrow().filter(|_| self.in_common) {
            return self.borrow(&folder);
        }
        self.boot_own()
    }

    /// Starts a guest that is then lent to programs to which [`SharedGuest::variable`] names it, to one after the other.
    ///
    /// # Errors
    ///
    /// As of [`Builder::boot`].
    pub fn lend(self) -> Result<SharedGuest, Error> {
        let guest = Self { in_common: true, is_lent: true, ..self }.boot_own()?;
        Ok(SharedGuest::of(guest))
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
}

#[cfg(test)]
mod tests;
