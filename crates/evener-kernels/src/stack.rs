//! The stack beneath work with a key: kernels whose registers are too few for a block's words and the state put some of both there, and a value that is moved
//! stays where it was. Planes of text and keys are put there, too.

use std::hint::black_box;
use std::mem::MaybeUninit;

/// A key that is made uses 3 KiB, a burst of MACs less, as optimized (`tests/stack.rs`).
const STACK_BYTES: usize = 4_096;

/// Does something, and wipes what it used of the stack.
#[inline]
pub fn with_stack_wiped<R>(work: impl FnOnce() -> R) -> R {
    let made = beneath(work);
    wipe();
    made
}

#[inline(never)]
fn beneath<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Its own stack lies where that of [`beneath`] lay.
#[inline(never)]
fn wipe() {
    let mut place = MaybeUninit::<[u8; STACK_BYTES]>::uninit();
    // SAFETY: as many bytes as the place has.
    unsafe { place.as_mut_ptr().write_bytes(0, 1) };
    // Said to be read, or nothing would be written.
    black_box(&mut place);
}
