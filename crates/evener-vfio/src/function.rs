//! One function that this process has taken, with its group and its container.
//!
//! `address -> the driver it is bound to -> its group's node, reserved -> container and IOMMU -> its file`. Each step that the system refuses is
//! a [`Refused`] with what the administrator can do about it.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;

use evener_fd::{CheckedFd, SystemError, not_in_children};
use evener_ring::Region;

use crate::address::Address;
use crate::ffi;
use crate::registers::Registers;

/// The number of the part that is the function's configuration space (`VFIO_PCI_CONFIG_REGION_INDEX`); base address registers are 0 to 5.
const CONFIGURATION: u32 = 7;

/// The driver that hands functions to programs.
const DRIVER: &str = "vfio-pci";

/// Why a function cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// No such function.
    #[error("there is no PCI function {0}")]
    NoFunction(Address),
    /// The system has no IOMMU that is on, so no program may let a function reach memory.
    #[error("{0} is in no IOMMU group: the machine has no IOMMU, or the kernel was not told to use it")]
    NoIommu(Address),
    /// Another driver has it.
    #[error("{address} is bound to {driver}, not to vfio-pci")]
    OtherDriver {
        /// The function.
        address: Address,
        /// What it is bound to.
        driver: String,
    },
    /// Other functions of its group are bound to drivers of the kernel.
    #[error("IOMMU group {group} of {address} has other functions that are not bound to vfio-pci")]
    GroupShared {
        /// The function.
        address: Address,
        /// The number of its group.
        group: String,
    },
    /// Another process has it.
    #[error("another process has {0}")]
    Taken(Address),
    /// The system refused something else.
    #[error(transparent)]
    System(#[from] SystemError),
}

/// A function that no other process can take from here on, and that is as it was.
#[derive(Debug)]
pub struct Reserved {
    address: Address,
    group: CheckedFd,
    container: CheckedFd,
    /// The process that reserved it.
    process: u32,
}

impl Reserved {
    /// Reserves a function.
    ///
    /// # Errors
    ///
    /// [`Refused`], with the reason.
    pub fn new(address: Address) -> Result<Self, Refused> {
        let folder = folder(address);
        if !folder.exists() {
            return Err(Refused::NoFunction(address));
        }
        let number = target(&folder.join("iommu_group")).ok_or(Refused::NoIommu(address))?;
        let driver = target(&folder.join("driver")).unwrap_or_else(|| "no driver".to_owned());
        if driver != DRIVER {
            return Err(Refused::OtherDriver { address, driver });
        }
        let container = open("/dev/vfio/vfio".as_ref(), address)?;
        let node = PathBuf::from(format!("/dev/vfio/{number}"));
        let group = open(&node, address)?;
        if !container.checked().and_then(ffi::has_iommu).map_err(refused_by("the IOMMU", address))? {
            return Err(Refused::NoIommu(address));
        }
        if !group.checked().and_then(ffi::is_viable).map_err(refused_by("the group", address))? {
            return Err(Refused::GroupShared { address, group: number });
        }
        Ok(Self { address, group, container, process: process::id() })
    }

    /// Returns vendor and device as they stand in its configuration space, without touching it.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn identity(&self) -> io::Result<[u8; 4]> {
        let mut identity = [0; 4];
        File::open(folder(self.address).join("config"))?.read_exact(&mut identity)?;
        Ok(identity)
    }

    /// Takes it, which has the system reset it.
    ///
    /// # Errors
    ///
    /// The system's, and [`Refused::Taken`] in a forked child, for it is the parent's.
    pub fn take(self) -> Result<Function, Refused> {
        let Self { address, group, container, process } = self;
        if process != process::id() {
            return Err(Refused::Taken(address));
        }
        let joined = group.checked().and_then(|group| ffi::join(group, container.checked()?));
        joined.map_err(refused_by("the group", address))?;
        // Digits, colons and a point.
        let name = CString::new(address.to_string()).unwrap_or_default();
        let file = group.checked().and_then(|group| ffi::function(group, &name)).and_then(not_in_children);
        let file = file.map_err(refused_by("the file", address))?;
        Ok(Function { file, _group: group, container, lent: Vec::new(), process })
    }
}

/// The system's folder for a function.
fn folder(address: Address) -> PathBuf {
    PathBuf::from(format!("/sys/bus/pci/devices/{address}"))
}

/// What of a function the system refused.
fn refused_by(what: &str, address: Address) -> impl FnOnce(io::Error) -> Refused {
    let what = format!("{what} of {address}");
    move |error| SystemError::of(what)(error).into()
}

/// A function of which this process alone disposes, until this is dropped.
#[derive(Debug)]
pub struct Function {
    /// Dropped, and so closed, in this order.
    file: CheckedFd,
    _group: CheckedFd,
    container: CheckedFd,
    /// What is lent: where it begins for the function, its bytes, and what keeps them.
    lent: Vec<(u64, usize, Arc<Region>)>,
    /// The process that took it.
    process: u32,
}

impl Function {
    /// Reads bytes of its configuration space.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn read_configuration(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let file = self.file.checked()?;
        let at = ffi::part(file, CONFIGURATION)?.offset + at;
        let read = rustix::io::retry_on_intr(|| rustix::io::pread(file, &mut *into, at))?;
        if read == into.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Writes bytes of its configuration space; the system guards what programs may not change.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn write_configuration(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let file = self.file.checked()?;
        let at = ffi::part(file, CONFIGURATION)?.offset + at;
        let written = rustix::io::retry_on_intr(|| rustix::io::pwrite(file, bytes, at))?;
        if written == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Maps the memory of a base address register, 0 to 5.
    ///
    /// # Errors
    ///
    /// `Unsupported` where it has none, or none that can be mapped; the system's otherwise.
    pub fn registers(&self, index: u32) -> io::Result<Registers> {
        let file = self.file.checked()?;
        let part = ffi::part(file, index)?;
        if !part.can_map || part.bytes == 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let (first, bytes) = ffi::map(file, part)?;
        Ok(Registers::new(first, bytes))
    }

    /// Lets the function read and write a span of a region, whole pages, where the region begins at `base` for it: a number, no pointer of this
    /// process. These pages stay in memory, which counts as locked memory of the process.
    ///
    /// # Errors
    ///
    /// The system's: `ENOMEM` where the process may lock no more, `EINVAL` or `EEXIST` where such addresses cannot be had.
    pub fn lend(&mut self, region: &Arc<Region>, span: Range<usize>, base: u64) -> io::Result<()> {
        let (bytes, there) = (span.len(), base + span.start as u64);
        let here = region.span(span.start, bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: a region's bytes may change at any time by its contract, and `lent` keeps it until they are taken back.
        unsafe { ffi::map_dma(self.container.checked()?, here, there, bytes) }?;
        self.lent.push((there, bytes, Arc::clone(region)));
        Ok(())
    }

    /// Returns how many interrupts of kind MSI-X it has.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn call_count(&self) -> io::Result<u32> {
        ffi::interrupt_count(self.file.checked()?)
    }

    /// Has its first interrupts ring these events, one each.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where these are more than a few; the system's otherwise.
    pub fn call_by<'e>(&self, events: impl IntoIterator<Item = &'e CheckedFd>) -> io::Result<()> {
        let events: io::Result<Vec<BorrowedFd<'_>>> = events.into_iter().map(CheckedFd::checked).collect();
        ffi::ring_events(self.file.checked()?, &events?)
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        // What a forked child drops is its parent's still. Its copies of the files it has closed: one would keep the device, and what it reaches, beyond the parent's end.
        if process::id() != self.process {
            return;
        }
        // Where the program closed the container's file, the mappings go with the last file of the function.
        let Ok(container) = self.container.checked() else { return };
        for (there, bytes, _region) in &self.lent {
            ffi::unmap_dma(container, *there, *bytes).unwrap_or_default();
        }
    }
}

fn open(path: &Path, address: Address) -> Result<CheckedFd, Refused> {
    let file = OpenOptions::new().read(true).write(true).open(path).map(OwnedFd::from);
    file.and_then(not_in_children).map_err(|error| match error.raw_os_error() {
        Some(libc::EBUSY) => Refused::Taken(address),
        _ => SystemError::of(path.display().to_string())(error).into(),
    })
}

/// The last name of what a link of sysfs leads to.
fn target(link: &Path) -> Option<String> {
    let path = fs::read_link(link).ok()?;
    Some(path.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn what_a_function_is_reached_by_is_not_open_in_a_forked_child() {
        let address = "0000:00:10.0".parse().unwrap();
        let file = open("/dev/null".as_ref(), address).unwrap();
        let number = file.checked().unwrap().as_raw_fd();
        // SAFETY: the child calls what a signal handler may, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: the call takes numbers.
            let is_open = unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0;
            // SAFETY: it ends the process.
            unsafe { libc::_exit(is_open.into()) };
        }
        let mut status = -1;
        // SAFETY: the place lives through the call.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "its copy is open");
        assert!(file.checked().is_ok(), "the parent has it");
    }
}
