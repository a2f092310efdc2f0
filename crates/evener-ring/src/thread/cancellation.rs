//! Holds a thread's cancellation back where code runs that no forced unwinding may pass.

use std::ffi::c_int;
use std::marker::PhantomData;

use super::ffi::pthread_setcancelstate;

/// glibc's and musl's `PTHREAD_CANCEL_DISABLE`.
const DISABLED: c_int = 1;

/// As long as it lives, `pthread_cancel` of this thread waits: it would end the process where it passes a function that may not unwind,
/// such as any destructor that closes a file.
pub struct CancellationHeld {
    before: c_int,
    /// Of one thread.
    thread: PhantomData<*const ()>,
}

/// Holds cancellation back from here on.
#[must_use]
pub fn hold_cancellation() -> CancellationHeld {
    let mut before = 0;
    // SAFETY: writes the state before; the new one is valid.
    unsafe { pthread_setcancelstate(DISABLED, &raw mut before) };
    CancellationHeld { before, thread: PhantomData }
}

impl Drop for CancellationHeld {
    fn drop(&mut self) {
        let mut held = 0;
        // SAFETY: as above; the state is one that the same function gave.
        unsafe { pthread_setcancelstate(self.before, &raw mut held) };
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use std::ffi::c_int;

    use super::{DISABLED, hold_cancellation, pthread_setcancelstate};

    fn state() -> c_int {
        let mut before = 0;
        // SAFETY: writes the state before, which is set again below.
        unsafe { pthread_setcancelstate(DISABLED, &raw mut before) };
        let mut held = 0;
        // SAFETY: a state that the same function gave.
        unsafe { pthread_setcancelstate(before, &raw mut held) };
        before
    }

    #[test]
    fn cancellation_is_held_back_and_given_again_from_within_too() {
        let usual = state();
        assert_ne!(usual, DISABLED);
        {
            let _outer = hold_cancellation();
            drop(hold_cancellation());
            assert_eq!(state(), DISABLED, "the outer one holds on");
        }
        assert_eq!(state(), usual);
    }
}
