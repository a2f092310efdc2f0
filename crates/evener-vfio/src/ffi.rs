//! VFIO's calls (`linux/vfio.h`, type 1 of its IOMMUs, version 2) and the mapping of a function's registers.

use std::ffi::{CStr, c_int, c_ulong, c_void};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::ptr::{self, NonNull};

use libc::Ioctl;

/// The only version of the interface that there is (`VFIO_API_VERSION`).
const VERSION: c_int = 0;
/// `VFIO_TYPE1v2_IOMMU`.
const TYPE_1_V2: c_ulong = 3;
/// `VFIO_PCI_MSIX_IRQ_INDEX`.
const MSI_X: u32 = 2;

/// `_IO(';', 100 + n)`.
const fn call(number: Ioctl) -> Ioctl {
    ((b';' as Ioctl) << 8) + 100 + number
}

const GET_API_VERSION: Ioctl = call(0);
const CHECK_EXTENSION: Ioctl = call(1);
const SET_IOMMU: Ioctl = call(2);
const GROUP_GET_STATUS: Ioctl = call(3);
const GROUP_SET_CONTAINER: Ioctl = call(4);
const GROUP_GET_DEVICE_FD: Ioctl = call(6);
const DEVICE_GET_REGION_INFO: Ioctl = call(8);
const DEVICE_GET_IRQ_INFO: Ioctl = call(9);
const DEVICE_SET_IRQS: Ioctl = call(10);
const IOMMU_MAP_DMA: Ioctl = call(13);
const IOMMU_UNMAP_DMA: Ioctl = call(14);

/// `struct vfio_group_status`.
#[derive(Default)]
#[repr(C)]
struct GroupStatus {
    size: u32,
    flags: u32,
}

/// `struct vfio_region_info`.
#[derive(Default)]
#[repr(C)]
struct RegionInfo {
    struct_bytes: u32,
    flags: u32,
    index: u32,
    capabilities_at: u32,
    bytes: u64,
    offset: u64,
}

/// `struct vfio_irq_info`.
#[derive(Default)]
#[repr(C)]
struct InterruptInfo {
    struct_bytes: u32,
    flags: u32,
    index: u32,
    count: u32,
}

/// `struct vfio_irq_set` with space for descriptors.
#[repr(C)]
struct Interrupts {
    struct_bytes: u32,
    flags: u32,
    index: u32,
    start: u32,
    count: u32,
    events: [i32; EVENTS_MAX],
}

/// `struct vfio_iommu_type1_dma_map`.
#[repr(C)]
struct MapDma {
    struct_bytes: u32,
    flags: u32,
    here: u64,
    there: u64,
    bytes: u64,
}

/// `struct vfio_iommu_type1_dma_unmap`.
#[repr(C)]
struct UnmapDma {
    struct_bytes: u32,
    flags: u32,
    there: u64,
    bytes: u64,
}

/// Most events that one call hands over here.
const EVENTS_MAX: usize = 4;

/// A part of a function: configuration or a base address register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) bytes: u64,
    /// Where it begins in the function's file.
    pub(crate) offset: u64,
    pub(crate) can_map: bool,
}

/// Whether a container's file speaks this version and has an IOMMU of type 1.
pub(crate) fn has_iommu(container: BorrowedFd<'_>) -> io::Result<bool> {
    // SAFETY: the call takes a number only.
    let version = unsafe { libc::ioctl(container.as_raw_fd(), GET_API_VERSION) };
    // SAFETY: as above.
    let has = unsafe { libc::ioctl(container.as_raw_fd(), CHECK_EXTENSION, TYPE_1_V2) };
    if version < 0 || has < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(version == VERSION && has == 1)
}

/// Whether all functions of a group are bound to drivers for user space.
pub(crate) fn is_viable(group: BorrowedFd<'_>) -> io::Result<bool> {
    const VIABLE: u32 = 1;
    let mut status = GroupStatus { size: bytes_of::<GroupStatus>(), ..GroupStatus::default() };
    // SAFETY: the struct lives through the call, which writes so many bytes as it says it has.
    done(unsafe { libc::ioctl(group.as_raw_fd(), GROUP_GET_STATUS, &raw mut status) })?;
    Ok(status.flags & VIABLE != 0)
}

/// Puts a group into a container, and gives that its IOMMU.
pub(crate) fn join(group: BorrowedFd<'_>, container: BorrowedFd<'_>) -> io::Result<()> {
    let fd: c_int = container.as_raw_fd();
    // SAFETY: the call reads one descriptor, which lives through it.
    done(unsafe { libc::ioctl(group.as_raw_fd(), GROUP_SET_CONTAINER, &raw const fd) })?;
    // SAFETY: the call takes a number.
    done(unsafe { libc::ioctl(container.as_raw_fd(), SET_IOMMU, TYPE_1_V2) })
}

/// The file of a group's function.
pub(crate) fn function(group: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the call reads a C string.
    let fd = unsafe { libc::ioctl(group.as_raw_fd(), GROUP_GET_DEVICE_FD, name.as_ptr()) };
    done(fd)?;
    // SAFETY: the call made this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A function's part of that number.
pub(crate) fn part(function: BorrowedFd<'_>, index: u32) -> io::Result<Part> {
    const MAPPABLE: u32 = 4;
    let mut info = RegionInfo { struct_bytes: bytes_of::<RegionInfo>(), index, ..RegionInfo::default() };
    // SAFETY: as in `is_viable`.
    done(unsafe { libc::ioctl(function.as_raw_fd(), DEVICE_GET_REGION_INFO, &raw mut info) })?;
    Ok(Part { bytes: info.bytes, offset: info.offset, can_map: info.flags & MAPPABLE != 0 })
}

/// How many interrupts of kind MSI-X a function has.
pub(crate) fn interrupt_count(function: BorrowedFd<'_>) -> io::Result<u32> {
    let mut info =
        InterruptInfo { struct_bytes: bytes_of::<InterruptInfo>(), index: MSI_X, ..InterruptInfo::default() };
    // SAFETY: as in `is_viable`.
    done(unsafe { libc::ioctl(function.as_raw_fd(), DEVICE_GET_IRQ_INFO, &raw mut info) })?;
    Ok(info.count)
}

/// Has the first interrupts (MSI-X) ring these events, of which the kernel keeps what it needs.
pub(crate) fn ring_events(function: BorrowedFd<'_>, events: &[BorrowedFd<'_>]) -> io::Result<()> {
    const BY_EVENT: u32 = 1 << 2;
    const TRIGGER: u32 = 1 << 5;
    if events.len() > EVENTS_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut raw = [-1; EVENTS_MAX];
    events.iter().zip(&mut raw).for_each(|(event, raw)| *raw = event.as_raw_fd());
    let count = u32::try_from(events.len()).expect("a few");
    let (flags, index) = (BY_EVENT | TRIGGER, MSI_X);
    let set =
        Interrupts { struct_bytes: bytes_of::<Interrupts>(), flags, index, start: 0, count, events: raw };
    // SAFETY: the struct lives through the call, which reads as many bytes as it says it has.
    done(unsafe { libc::ioctl(function.as_raw_fd(), DEVICE_SET_IRQS, &raw const set) })
}

/// Lets the functions of a container read and write `bytes` bytes at `here`, which are `there` for them. The pages are pinned.
///
/// # Safety
///
/// The functions change these bytes at any time until they are unmapped or the container's last file is closed.
pub(crate) unsafe fn map_dma(
    container: BorrowedFd<'_>,
    here: NonNull<u8>,
    there: u64,
    bytes: usize,
) -> io::Result<()> {
    const READ_AND_WRITE: u32 = 3;
    let map = MapDma {
        struct_bytes: bytes_of::<MapDma>(),
        flags: READ_AND_WRITE,
        here: here.as_ptr().expose_provenance() as u64,
        there,
        bytes: bytes as u64,
    };
    // SAFETY: the struct lives through the call; what it permits is the caller's word.
    done(unsafe { libc::ioctl(container.as_raw_fd(), IOMMU_MAP_DMA, &raw const map) })
}

/// Takes back what [`map_dma`] gave.
pub(crate) fn unmap_dma(container: BorrowedFd<'_>, there: u64, bytes: usize) -> io::Result<()> {
    let mut unmap = UnmapDma { struct_bytes: bytes_of::<UnmapDma>(), flags: 0, there, bytes: bytes as u64 };
    // SAFETY: the struct lives through the call, which writes its length.
    done(unsafe { libc::ioctl(container.as_raw_fd(), IOMMU_UNMAP_DMA, &raw mut unmap) })
}

/// Maps a function's registers, not into forked children and not into core dumps.
pub(crate) fn map(function: BorrowedFd<'_>, part: Part) -> io::Result<(NonNull<u8>, usize)> {
    let too_large = |_| io::Error::from(io::ErrorKind::OutOfMemory);
    let (bytes, offset) =
        (usize::try_from(part.bytes).map_err(too_large)?, part.offset.try_into().map_err(too_large)?);
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at a place that the kernel chooses touches no memory of ours.
    let memory =
        unsafe { libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, function.as_raw_fd(), offset) };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the range is the new mapping's.
    let code = unsafe { libc::madvise(memory, bytes, libc::MADV_DONTFORK) };
    let first = NonNull::new(memory.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
    done(code).inspect_err(|_| unmap(first, bytes))?;
    Ok((first, bytes))
}

/// Ends a mapping of [`map`], of which nothing is used any more.
pub(crate) fn unmap(first: NonNull<u8>, bytes: usize) {
    // SAFETY: this is the range that was mapped.
    unsafe { libc::munmap(first.as_ptr().cast::<c_void>(), bytes) };
}

fn bytes_of<T>() -> u32 {
    u32::try_from(size_of::<T>()).expect("these structs are small")
}

fn done(code: c_int) -> io::Result<()> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const _: () =
    assert!(size_of::<RegionInfo>() == 32 && size_of::<MapDma>() == 32 && size_of::<UnmapDma>() == 24);
