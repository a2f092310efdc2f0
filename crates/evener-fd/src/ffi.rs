//! Descriptors that a forked child does not keep.
//!
//! A copy in a child holds what belongs to the open file: locks, and the other end of a connection. `exec` closes what is marked so; this closes the rest, before
//! `fork` returns in the child. Only what is safe in a signal handler runs there: atomics, and the calls by which a descriptor is known again and closed.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::{ptr, sync::atomic::AtomicU32};

use crate::{CheckedFd, KnownFd};

/// Has each child that is forked from now on close its copy of `descriptor`, as long as its number leads to the same file.
///
/// # Errors
///
/// `OutOfMemory` where the C library takes no handlers.
pub fn close_in_children(descriptor: &CheckedFd) -> io::Result<()> {
    static IS_REGISTERED: OnceLock<bool> = OnceLock::new();
    // SAFETY: the handler is a function of this library that needs no arguments, and is as safe as one for a signal.
    let register = || unsafe { libc::pthread_atfork(None, None, Some(close_all)) } == 0;
    if !IS_REGISTERED.get_or_init(register) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    // Never freed: a child may look at any time, and there is one for each attachment of a process.
    let entry = Box::leak(Box::new(Entry {
        descriptor: descriptor.known(),
        is_closed: AtomicU32::new(0),
        next: ptr::null_mut(),
    }));
    let mut first = FIRST.load(Acquire);
    loop {
        entry.next = first;
        // AcqRel: a thread that finds the entry sees what is in it.
        match FIRST.compare_exchange(first, entry, AcqRel, Acquire) {
            Ok(_) => return Ok(()),
            Err(now) => first = now,
        }
    }
}

struct Entry {
    descriptor: KnownFd,
    /// 1 in a child that has closed it, and in its children.
    is_closed: AtomicU32,
    next: *mut Self,
}

/// The newest entry.
static FIRST: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());

extern "C" fn close_all() {
    let mut at = FIRST.load(Acquire);
    // SAFETY: null, or an entry that was leaked whole.
    while let Some(entry) = unsafe { at.as_ref() } {
        if entry.is_closed.swap(1, Relaxed) == 0 && entry.descriptor.checked().is_ok() {
            // SAFETY: it is a copy of one that this library opened, and nothing in this child uses it: it is looked at before each use.
            unsafe { libc::close(entry.descriptor.number()) };
        }
        at = entry.next;
    }
}
