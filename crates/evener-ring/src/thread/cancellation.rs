//! Holds a thread's cancellation back where code runs that no forced unwinding may pass.
//!
//! A call that is put aside gives the thread back to the program, which gets its own state meanwhile ([`put_aside`]), and may go on in another thread: what to
//! set again in the end is therefore kept with the thread, and not with who holds.

use std::cell::Cell;
use std::ffi::c_int;
use std::marker::PhantomData;

use super::ffi::pthread_setcancelstate;
use super::thread_value::ThreadValue;
use crate::process::{CountedAside, count_put_aside};

/// glibc's and musl's `PTHREAD_CANCEL_DISABLE`.
const DISABLED: c_int = 1;

/// Of a thread.
static HOLDERS: ThreadValue<Cell<Holders>> = ThreadValue::new(Cell::default);

/// Those that hold a thread's cancellation back, one within the other.
#[derive(Clone, Copy, Default)]
struct Holders {
    count: u32,
    /// The state before the first of them.
    before: c_int,
}

/// As long as it lives, `pthread_cancel` of this thread waits: it would end the process where it passes a function that may not unwind,
/// such as any destructor that closes a file.
pub struct CancellationHeld {
    /// Where there was no memory to keep it with the thread.
    before: Option<c_int>,
    /// Of one thread at a time.
    thread: PhantomData<*const ()>,
}

/// Holds cancellation back from here on.
#[must_use]
pub fn hold_cancellation() -> CancellationHeld {
    let before = set_state(DISABLED);
    let noted = HOLDERS.with(|holders| {
        let Holders { count, before: first } = holders.get();
        holders.set(Holders { count: count + 1, before: if count == 0 { before } else { first } });
    });
    CancellationHeld { before: noted.is_none().then_some(before), thread: PhantomData }
}

impl Drop for CancellationHeld {
    fn drop(&mut self) {
        let noted = || {
            HOLDERS.with_made(|holders| {
                let Holders { count, before } = holders.get();
                holders.set(Holders { count: count.saturating_sub(1), before });
                (count <= 1).then_some(before)
            })
        };
        self.before.or_else(|| noted().flatten()).map(set_state);
    }
}

/// A call that another part of its thread goes on instead of.
#[derive(Debug)]
pub struct PutAside {
    /// Those that hold cancellation back when the call goes on, maybe in another thread.
    holders: u32,
    _counted: CountedAside,
}

/// Puts a call aside until what this returns is dropped: meanwhile the program has its thread as it was before anyone held its cancellation back.
#[must_use]
pub fn put_aside() -> PutAside {
    let Holders { count, before } = HOLDERS.with_made(Cell::take).unwrap_or_default();
    if count > 0 {
        set_state(before);
    }
    PutAside { holders: count, _counted: count_put_aside() }
}

impl Drop for PutAside {
    fn drop(&mut self) {
        if self.holders > 0 {
            let before = set_state(DISABLED);
            HOLDERS.with(|holders| holders.set(Holders { count: self.holders, before }));
        }
    }
}

/// Sets this thread's state; returns the one before.
fn set_state(state: c_int) -> c_int {
    let mut before = 0;
    // SAFETY: writes the state before; the new one is valid, or one that the same function gave.
    unsafe { pthread_setcancelstate(state, &raw mut before) };
    before
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use std::ffi::c_int;
    use std::thread;

    use super::{DISABLED, hold_cancellation, put_aside, set_state};

    /// glibc's and musl's `PTHREAD_CANCEL_ENABLE`.
    const ENABLED: c_int = 0;

    fn state() -> c_int {
        let state = set_state(DISABLED);
        set_state(state);
        state
    }

    #[test]
    fn cancellation_is_held_back_and_given_again_from_within_too() {
        assert_eq!(state(), ENABLED);
        {
            let _outer = hold_cancellation();
            drop(hold_cancellation());
            assert_eq!(state(), DISABLED, "the outer one holds on");
        }
        assert_eq!(state(), ENABLED);
    }

    #[test]
    fn calls_that_are_put_aside_leave_the_thread_its_own_state_in_whichever_order_they_end() {
        let first = hold_cancellation();
        let first_aside = put_aside();
        assert_eq!(state(), ENABLED, "the program has its thread");
        let second = (hold_cancellation(), hold_cancellation());
        let second_aside = put_aside();
        drop(first_aside);
        assert_eq!(state(), DISABLED);
        drop(first);
        assert_eq!(state(), ENABLED);
        drop(second_aside);
        drop(second.0);
        assert_eq!(state(), DISABLED, "another of the second's holds on");
        drop(second.1);
        assert_eq!(state(), ENABLED);
    }

    #[test]
    fn a_call_that_goes_on_in_another_thread_leaves_both_as_they_were() {
        // What holds is of no thread while it is put aside; here it never is used from two at once.
        struct Moved<T>(T);
        // SAFETY: as a job's stack goes from thread to thread.
        unsafe impl<T> Send for Moved<T> {}

        let held = Moved((hold_cancellation(), put_aside()));
        assert_eq!(state(), ENABLED);
        let other = move || {
            let Moved((held, aside)) = { held };
            set_state(DISABLED);
            drop(aside);
            drop(held);
            assert_eq!(state(), DISABLED, "as that thread's program had set it");
        };
        thread::spawn(other).join().unwrap();
        assert_eq!(state(), ENABLED);
    }
}
