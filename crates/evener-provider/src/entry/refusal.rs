//! How an entry point refuses: null or 0, with the reason on OpenSSL's queue. A panic never leaves Rust.

use std::ffi::c_int;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;

use evener_kernels::with_registers_cleared;
use evener_ring::hold_cancellation;

use crate::core::Core;
use crate::core::errors::Reason;
use crate::ffi::reserve;

/// What an entry point answers when it has to refuse.
pub(crate) trait Refusal {
    const REFUSED: Self;
}

impl Refusal for c_int {
    const REFUSED: Self = 0;
}

impl Refusal for () {
    const REFUSED: Self = ();
}

impl<T> Refusal for *mut T {
    const REFUSED: Self = ptr::null_mut();
}

impl<T> Refusal for *const T {
    const REFUSED: Self = ptr::null();
}

/// Runs `body` for a C caller; an error and a panic become a refusal with a reason on the queue. Where memory has been short for long,
/// nothing is begun. Cancellation of the thread is held back meanwhile, and no key is left in vector registers.
pub(crate) fn for_c<T: Refusal>(core: &Core, body: impl FnOnce() -> Result<T, Reason>) -> T {
    if reserve::is_short() {
        core.raise(Reason::NoMemory, None);
        return T::REFUSED;
    }
    let _held = hold_cancellation();
    let caught = with_registers_cleared(|| panic::catch_unwind(AssertUnwindSafe(body)));
    caught.unwrap_or(Err(Reason::Panicked)).unwrap_or_else(|reason| {
        core.raise(reason, None);
        T::REFUSED
    })
}
