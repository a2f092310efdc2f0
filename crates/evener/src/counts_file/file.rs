//! A process's own file: made for its owner only, with all its blocks, and mapped.
//!
//! Other threads of the program may close any descriptor meanwhile, so each is looked at before it is used or closed. Once the file is
//! mapped none is left open.

use std::io;
use std::os::fd::BorrowedFd;

use evener_core::counts::{FILE_WORDS, HEADER_WORDS, Header, MAGIC, VERSION};
use evener_fd::{CheckedFd, Directories, may_begin, may_extend_to};
use evener_ring::Mapping;
use rustix::fs::{self, AtFlags, FallocateFlags, Mode, OFlags};
use rustix::io::{Errno, pwrite, retry_on_intr};
use rustix::process::{geteuid, getpid};

use super::process;
use super::record::{self, FILE_BYTES};

/// Makes this process's file in one of `places` and maps it. A file of the same name is one that this process left when it
/// became another program, or that of an ended one.
pub(super) fn create(places: &Directories) -> io::Result<Mapping> {
    if !may_begin() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    // Before anything is made: a signal would end a program that does not know of the file.
    may_extend_to(FILE_BYTES as u64)?;
    let directory = places.open_or_make(geteuid().as_raw())?;
    let directory = CheckedFd::new(directory)?;
    let pid = getpid().as_raw_nonzero().get().unsigned_abs();
    record::remove_leftovers(directory.checked()?, geteuid().as_raw(), pid);
    let name = record::file_name(pid);
    let file = create_new(directory.checked()?, &name)?;
    let mapped = fill(&file).and_then(|()| Mapping::shared(file.checked()?, FILE_WORDS));
    if let (Err(_), Ok(directory)) = (&mapped, directory.checked()) {
        fs::unlinkat(directory, &name, AtFlags::empty()).ok();
    }
    mapped
}

fn create_new(directory: BorrowedFd<'_>, name: &str) -> io::Result<CheckedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR);
    CheckedFd::new(match open() {
        Err(Errno::EXIST) => {
            fs::unlinkat(directory, name, AtFlags::empty())?;
            open()?
        }
        other => other?,
    })
}

/// Gives the file its length and header. The blocks are taken now: a full file system would otherwise stop the program
/// with a signal at some later count.
fn fill(file: &CheckedFd) -> io::Result<()> {
    match fs::fallocate(file.checked()?, FallocateFlags::empty(), 0, FILE_BYTES as u64) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_first(file, &vec![0; FILE_BYTES])?,
        other => other?,
    }
    let mut words = header();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    write_first(file, &bytes)?;
    words[Header::Magic as usize] = MAGIC;
    write_first(file, &words[Header::Magic as usize].to_ne_bytes())
}

/// Writes all `bytes` from the beginning on.
fn write_first(file: &CheckedFd, bytes: &[u8]) -> io::Result<()> {
    let mut written = 0;
    while written < bytes.len() {
        let file = file.checked()?;
        match retry_on_intr(|| pwrite(file, &bytes[written..], written as u64))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            more => written += more,
        }
    }
    Ok(())
}

/// The header without its first word.
fn header() -> [u32; HEADER_WORDS] {
    let (identity, name) = process::this();
    let halves = [identity.start & u64::from(u32::MAX), identity.start >> 32];
    let [low, high] = halves.map(|half| u32::try_from(half).expect("half of 64 bits"));
    let mut words = [0; HEADER_WORDS];
    words[Header::Version as usize] = VERSION;
    words[Header::Words as usize] = u32::try_from(FILE_WORDS).expect("some thousand");
    words[Header::Pid as usize] = identity.pid;
    words[Header::StartLow as usize] = low;
    words[Header::StartHigh as usize] = high;
    words[Header::Boot as usize] = identity.boot;
    words[Header::Namespace as usize] = identity.namespace;
    for (word, bytes) in words[Header::Name as usize..].iter_mut().zip(name.chunks_exact(4)) {
        *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    words
}
