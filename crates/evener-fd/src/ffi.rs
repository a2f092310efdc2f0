//! Closes descriptors: in forked children, by `pthread_atfork`, and where the system's word on it counts; and the calls that this takes.
//!
//! A copy in a child holds what belongs to the open file: locks, and the other end of a connection. `exec` closes what is marked so; this closes the rest, before
//! `fork` returns in the child. Only what is safe in a signal handler runs there: atomics, and the calls by which a descriptor is known again and closed.

use std::cell::UnsafeCell;
use std::io;
use std::os::fd::{IntoRawFd as _, OwnedFd};
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};

use crate::{CheckedFd, KnownFd};

/// Takes `fd` as [`CheckedFd::new`] does; what is forked from now on [closes](close_in_children) its copy.
///
/// # Errors
///
/// Those of both.
pub fn not_in_children(fd: OwnedFd) -> io::Result<CheckedFd> {
    let fd = CheckedFd::new(fd)?;
    close_in_children(&fd)?;
    Ok(fd)
}

/// Closes a descriptor, and tells what the system says of it: some file systems tell only then that what was written does not fit.
///
/// # Errors
///
/// The system's. The descriptor is closed nevertheless.
pub fn close(fd: OwnedFd) -> io::Result<()> {
    // SAFETY: the number is this function's own from here on, and nothing uses it afterwards.
    if unsafe { libc::close(fd.into_raw_fd()) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        // On Linux the descriptor is closed by then, and what was written is where it was.
        error if error.raw_os_error() == Some(libc::EINTR) => Ok(()),
        error => Err(error),
    }
}

/// Has each child that is forked from now on close its copy of `descriptor`, as long as its number leads to the same file.
///
/// # Errors
///
/// `OutOfMemory` where the C library takes no handlers.
pub fn close_in_children(descriptor: &CheckedFd) -> io::Result<()> {
    if !has_handler() {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let known = descriptor.known();
    if !entries().any(|entry| entry.takes(known)) {
        // Never freed: a child may look at any time. There are as many as there ever were descriptors at once.
        add(Box::leak(Box::new(Entry {
            state: AtomicU32::new(WATCHED),
            descriptor: UnsafeCell::new(known),
            next: ptr::null_mut(),
        })));
    }
    Ok(())
}

/// Has children call [`close_all`], once it was asked for; whether they do.
///
/// Nothing that blocks: a thread that registers a handler waits in the C library while another forks, and a child that waited in turn for that thread, which it has not,
/// would wait for ever. Two threads may register one each; the second handler finds all closed.
fn has_handler() -> bool {
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
    if IS_REGISTERED.load(Acquire) {
        return true;
    }
    // SAFETY: the handler is a function of this library that needs no arguments, and is as safe as one for a signal.
    let is_registered = unsafe { libc::pthread_atfork(None, None, Some(close_all)) } == 0;
    IS_REGISTERED.fetch_or(is_registered, Release);
    is_registered
}

fn add(entry: &'static mut Entry) {
    let mut first = FIRST.load(Acquire);
    loop {
        entry.next = first;
        // AcqRel: a thread that finds the entry sees what is in it.
        match FIRST.compare_exchange(first, entry, AcqRel, Acquire) {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
}

struct Entry {
    state: AtomicU32,
    /// Touched by who took the entry from WATCHED or from CLOSED.
    descriptor: UnsafeCell<KnownFd>,
    next: *mut Self,
}

/// In a child that has closed it, and in its children; so the entry is free for another.
const CLOSED: u32 = 0;
/// Children close it.
const WATCHED: u32 = 1;
/// A thread of this process looks at it or writes it; in a child, where there is none, it stays so.
const TAKEN: u32 = 2;

// SAFETY: the descriptor is touched by one thread at a time, by the state's order.
unsafe impl Sync for Entry {}

impl Entry {
    /// Has this entry watch that descriptor, where it has none to watch, or one that was closed. Whether it does.
    fn takes(&self, known: KnownFd) -> bool {
        let Some(state) = self.take() else { return false };
        // SAFETY: this thread took the entry.
        let descriptor = unsafe { &mut *self.descriptor.get() };
        let is_free = state == CLOSED || descriptor.checked().is_err();
        if is_free {
            *descriptor = known;
        }
        // Release: pairs with the Acquire of who takes it next.
        self.state.store(WATCHED, Release);
        is_free
    }

    /// Takes the entry from all others; returns its state before.
    fn take(&self) -> Option<u32> {
        let state = self.state.load(Relaxed);
        let is_idle = state != TAKEN;
        (is_idle && self.state.compare_exchange(state, TAKEN, Acquire, Relaxed).is_ok()).then_some(state)
    }
}

/// The newest entry.
static FIRST: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());

fn entries() -> impl Iterator<Item = &'static Entry> {
    // SAFETY: null, or an entry that was leaked whole.
    let at = |place: *mut Entry| unsafe { place.as_ref() };
    std::iter::successors(at(FIRST.load(Acquire)), move |entry| at(entry.next))
}

extern "C" fn close_all() {
    for entry in entries() {
        // What is free for another stays so.
        if entry.state.compare_exchange(WATCHED, TAKEN, Acquire, Relaxed).is_err() {
            continue;
        }
        // SAFETY: this thread, the only one here, took the entry.
        let descriptor = unsafe { &*entry.descriptor.get() };
        if descriptor.checked().is_ok() {
            // SAFETY: it is a copy of one that this library opened, and nothing in this child uses it: it is looked at before each use.
            unsafe { libc::close(descriptor.number()) };
        }
        entry.state.store(CLOSED, Release);
    }
}
