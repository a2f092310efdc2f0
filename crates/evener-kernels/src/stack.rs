//! The stack and the vector registers beneath work with a key: kernels whose registers are too few for a block's words and the state put some of both on the
//! stack, and a value that is moved stays where it was. Planes of text and keys are put there, too.
//!
//! What is left in vector registers gets there as well: where a function is called for the first time, by a program that is not linked with `-z now`
//! or within libc, the dynamic linker saves them all (glibc, `_dl_runtime_resolve_xsavec`), and does not clear that place.

use std::arch::asm;
use std::hint::black_box;
use std::mem::MaybeUninit;

/// A key that is made uses 3 KiB, a burst of MACs less, as optimized (`tests/stack.rs`).
const STACK_BYTES: usize = 4_096;

/// Does something, and wipes what it used of the stack and of vector registers.
#[inline]
pub fn with_stack_wiped<R>(work: impl FnOnce() -> R) -> R {
    let made = beneath(work);
    clear_registers();
    wipe();
    made
}

/// Does something, and clears the vector registers.
#[inline]
pub fn with_registers_cleared<R>(work: impl FnOnce() -> R) -> R {
    let made = work();
    clear_registers();
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

/// Instructions that each clear one vector register, of those that a call may change.
macro_rules! clear {
    ($(($($instruction:literal),*))*) => {
        asm!($(concat!($($instruction),*)),*, clobber_abi("C"), options(nomem, nostack, preserves_flags))
    };
    (pxor: $($number:literal)*) => { clear!($(("pxor xmm", $number, ", xmm", $number))*) };
    (vpxor: $($number:literal)*) => { clear!($(("vpxor xmm", $number, ", xmm", $number, ", xmm", $number))*) };
    (vpxord: $($number:literal)*) => { clear!($(("vpxord xmm", $number, ", xmm", $number, ", xmm", $number))*) };
    (whole: $($number:literal)*) => { clear!($(("movi v", $number, ".16b, #0"))*) };
    (upper: $($number:literal)*) => { clear!($(("mov v", $number, ".d[1], xzr"))*) };
}

/// Clears the vector registers.
///
/// By an instruction for each, which processors know as clearing the whole of it and do four at a time: 4 cycles for 32 registers, where `vzeroall`
/// takes 10 for half of them (measured, a Xeon of model 167).
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn clear_registers() {
    if !is_x86_feature_detected!("avx") {
        // SAFETY: every processor of this kind has the instruction, and the compiler knows what a call changes.
        return unsafe { clear!(pxor: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    }
    // SAFETY: the processor has the instruction; as above.
    unsafe { clear!(vpxor: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    if is_x86_feature_detected!("avx512vl") {
        // SAFETY: as above.
        unsafe { clear!(vpxord: 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31) };
    }
}

/// Clears the vector registers; what of the others is lower is the caller's.
#[cfg(target_arch = "aarch64")]
#[inline]
pub fn clear_registers() {
    // SAFETY: every processor of this kind has the instruction, and the compiler knows what a call changes.
    unsafe { clear!(whole: 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31) };
    // SAFETY: as above.
    unsafe { clear!(upper: 8 9 10 11 12 13 14 15) };
}

/// There are none that are known here.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
pub fn clear_registers() {}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn what_work_leaves_in_vector_registers_is_gone_behind_it() {
        let leave = || {
            // SAFETY: the compiler knows what a call changes.
            unsafe { asm!("pcmpeqd xmm0, xmm0", "pcmpeqd xmm15, xmm15", clobber_abi("C")) };
        };
        let left = |work: fn(&dyn Fn())| {
            work(&leave);
            let (first, last): (u64, u64);
            // SAFETY: registers are read.
            unsafe { asm!("movq {}, xmm0", "movq {}, xmm15", out(reg) first, out(reg) last) };
            (first, last)
        };
        assert_eq!(left(|work| work()), (u64::MAX, u64::MAX), "planted");
        assert_eq!(left(|work| with_registers_cleared(work)), (0, 0));
        assert_eq!(left(|work| with_stack_wiped(work)), (0, 0));
    }
}
