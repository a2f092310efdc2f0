//! A value that threads of ours serve for its owners, and what becomes of it in a forked child, where the owners are and those threads are not.
//!
//! | process | freed by |
//! |---|---|
//! | the one that made it | the last of its owners and threads |
//! | a child of it, and theirs | the last of its owners, where it is whole ([`Inherited`]); threads do not count |
//!
//! Not taken: `Arc`, in which the shares of a parent's threads stay for ever, and with them what each child inherits.
//!
//! What the C library holds for a thread a child takes over with its stack, but for what `malloc` keeps at hand once the thread has allocated
//! or freed anything: so a thread that stays does neither while all goes well, and leaves both to those who ask it.

use std::io;
use std::ops::Deref;
use std::ptr::NonNull;

use super::ffi::{Service, live};
use super::service_thread::with_attributes;
use super::shares::{Inside, OWNER, OWNERS, THREAD, give_back};
use crate::process::Inherited;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// An owner's share of a value that threads serve.
pub struct Served<T: Service + Inherited>(NonNull<Inside<T>>);

// SAFETY: owners share the value, which is `Sync`, and the last of owners and threads drops it, which may be a thread of ours: `Send`.
unsafe impl<T: Service + Inherited + Send> Sync for Served<T> {}
// SAFETY: as above.
unsafe impl<T: Service + Inherited + Send> Send for Served<T> {}

impl<T: Service + Inherited + Send> Served<T> {
    /// One owner, and no thread.
    pub fn new(value: T) -> Self {
        Self(NonNull::from(Box::leak(Box::new(Inside::new(value)))))
    }

    /// Starts a thread that serves it, on a stack of so many bytes, as [`start_service`](super::start_service) does.
    ///
    /// # Errors
    ///
    /// The system's, and `Unsupported` in another process than the one that made the value.
    pub fn start(&self, stack: usize) -> io::Result<()> {
        if !self.is_of_this_process() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // Relaxed: this owner has a share, so that the value stays until the thread has its own.
        self.inside().shares.fetch_add(THREAD, Relaxed);
        // SAFETY: `live::<T>` takes what this is, with the share above.
        let started = with_attributes(stack, |attributes, thread| unsafe {
            libc::pthread_create(thread, attributes, live::<T>, self.0.as_ptr().cast())
        });
        if started.is_err() {
            self.inside().shares.fetch_sub(THREAD, Relaxed);
        }
        started
    }

    /// Whether its threads may be in this process.
    #[must_use]
    pub fn is_of_this_process(&self) -> bool {
        self.inside().creator.is_current()
    }
}

impl<T: Service + Inherited> Served<T> {
    fn inside(&self) -> &Inside<T> {
        // SAFETY: made from a box, which goes with the last share, and this is one.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Service + Inherited> Clone for Served<T> {
    fn clone(&self) -> Self {
        // Relaxed: who clones has a share.
        self.inside().shares.fetch_add(OWNER, Relaxed);
        Self(self.0)
    }
}

impl<T: Service + Inherited> Deref for Served<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inside().value
    }
}

impl<T: Service + Inherited> Inherited for Served<T> {
    /// Where a thread of the program's had it in the other process, too, it stays.
    fn is_whole(&mut self) -> bool {
        // Acquire: as in `Drop`.
        let is_last =
            self.inside().shares.load(Acquire) & OWNERS == OWNER && !self.inside().creator.is_current();
        // SAFETY: no thread of another process is here, and of the owners this is the last.
        is_last && unsafe { self.0.as_mut() }.value.is_whole()
    }
}

impl<T: Service + Inherited> Drop for Served<T> {
    fn drop(&mut self) {
        if self.inside().creator.is_current() {
            // SAFETY: this owner's share, which goes with it.
            return unsafe { give_back(self.0, OWNER) };
        }
        // AcqRel: as in `give_back`, among the owners of this process.
        if self.inside().shares.fetch_sub(OWNER, AcqRel) & OWNERS != OWNER {
            return;
        }
        // SAFETY: no thread serves it here, because none of another process is here and `start` starts none; this was the last owner.
        let mut inside = unsafe { Box::from_raw(self.0.as_ptr()) };
        if !inside.value.is_whole() {
            Box::leak(inside);
        }
    }
}
