//! What the C library calls for threads.

use std::ffi::{CStr, c_int, c_void};
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
#[cfg(not(any(loom, miri)))]
use std::ptr::NonNull;

#[cfg(not(any(loom, miri)))]
use super::shares::{Inside, THREAD, give_back};

unsafe extern "C" {
    /// POSIX's, which the `libc` crate does not declare for Linux.
    pub(super) fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// What a thread does of which the memory is there already.
pub trait Service: Sync + 'static {
    /// The thread's name, at most 15 bytes.
    const NAME: &'static CStr;

    /// Serves for the life of the process, or of what it serves. A panic ends the thread alone.
    fn serve(&self);
}

/// A thread's beginning and end, which serves a `T` that stays.
pub(super) extern "C" fn serve<T: Service>(service: *mut c_void) -> *mut c_void {
    // SAFETY: who starts the thread made it of a reference that lasts.
    life(unsafe { &*service.cast::<T>().cast_const() });
    ptr::null_mut()
}

/// As [`serve`], of a `T` that goes with its last share, of which the thread has one.
#[cfg(not(any(loom, miri)))]
pub(super) extern "C" fn live<T: Service>(inside: *mut c_void) -> *mut c_void {
    let Some(inside) = NonNull::new(inside.cast::<Inside<T>>()) else { return ptr::null_mut() };
    // SAFETY: who starts the thread gave it a share, which it has until the next line but one.
    life(&unsafe { inside.as_ref() }.value);
    // SAFETY: as above, and it is not touched again.
    let free = || unsafe { give_back(inside, THREAD) };
    drop(panic::catch_unwind(AssertUnwindSafe(free)));
    ptr::null_mut()
}

/// Names the calling thread, and has it serve.
fn life<T: Service>(service: &T) {
    // SAFETY: takes nothing.
    let this = unsafe { libc::pthread_self() };
    // SAFETY: this thread, and constant text that ends in nul.
    unsafe { libc::pthread_setname_np(this, T::NAME.as_ptr()) };
    drop(panic::catch_unwind(AssertUnwindSafe(|| service.serve())));
}

/// The end of a thread's value, a `T` in a box, at the thread's end.
pub(super) unsafe extern "C" fn drop_value<T>(value: *mut c_void) {
    if !value.is_null() {
        // SAFETY: the value was made as a box's, and the key has forgotten it.
        drop(unsafe { Box::from_raw(value.cast::<T>()) });
    }
}
