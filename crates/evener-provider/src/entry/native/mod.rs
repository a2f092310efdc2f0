//! The entry points of ciphers that a kernel of ours computes, or may: `gcm.rs` and `blocks.rs` (ECB, CBC, CTR, XTS). What they have alike stands here: an
//! entry point goes to the kernel where that works, and else is a jump into the inner function.

pub(super) mod blocks;
pub(super) mod front;
pub(super) mod gcm;

use std::ffi::{c_int, c_void};

use evener_kernels::with_registers_cleared;

use super::cipher::{self, core_of};
use super::refusal::for_c;
use crate::ffi::reserve;
use crate::native::kernel_choice::{self, Choice, Class};
use crate::state::rows::{CipherRow, Native};

/// The row of the inner cipher, whatever ways stand before it.
fn row_of<'p>(provctx: *mut c_void, slot: usize) -> Option<&'p CipherRow> {
    cipher::row_of(provctx, slot).map(CipherRow::lowest)
}

/// Who does messages of a row in this direction, whose key comes now or with what comes next.
fn choice(row: &CipherRow, native: &Native, encrypts: bool) -> Choice {
    kernel_choice::at_once(native, Class::of(native, encrypts)).unwrap_or_else(|| {
        let mut settled = Choice::Inner;
        let settle = || {
            settled = kernel_choice::settle(row, native, encrypts);
            Ok(())
        };
        for_c::<()>(core_of(row), settle);
        settled
    })
}

/// Whether a piece can be computed again, which takes memory; a kernel takes none.
fn has_memory() -> bool {
    !reserve::is_short()
}

/// Runs a call on a message, behind which no key is left in vector registers.
fn on_message(row: &CipherRow, is_guarded: bool, call: impl FnOnce() -> c_int) -> c_int {
    on_settings(row, is_guarded, || with_registers_cleared(call))
}

/// Runs a call by which nothing is computed under a key. Where text is split between threads, or computed again, it may take memory, locks and the kernel's time,
/// as no other does.
fn on_settings(row: &CipherRow, is_guarded: bool, call: impl FnOnce() -> c_int) -> c_int {
    if is_guarded { for_c(core_of(row), || Ok(call())) } else { call() }
}

/// The functions that are alike of a `Place`, what C holds: to `native_update` and `native_cipher` of the file that uses this, or to the inner ones.
macro_rules! place_functions {
    () => {
        /// The place that an entry point was called for; `None` for null.
        pub(super) fn place_of<'c>(ctx: *mut c_void) -> Option<&'c mut Place> {
            let ctx: *mut Place = ctx.cast();
            // SAFETY: the core passes null or what `newctx` or `dupctx` gave, to one call at a time.
            unsafe { ctx.as_mut() }
        }

        /// Whether a kernel does the messages of a context.
        pub(crate) fn is_by_kernel(ctx: *mut c_void) -> bool {
            place_of(ctx).is_some_and(|place| !place.is_inner())
        }

        const _: () = assert!(size_of::<Place>() <= key_memory::CONTEXT_BYTES, "a place fits into a block");

        dispatch! {
            pub(super) fn freectx(ctx: *mut c_void) {
                let Some(place) = place_of(ctx) else { return };
                place.native.end_and_flush();
                place.add_up();
                if !place.inner.is_null() {
                    // SAFETY: ours alone, and this is the last call with it.
                    unsafe { (place.native.row().inner.freectx)(place.inner) };
                }
                // SAFETY: as above; `newctx` or `dupctx` made it.
                unsafe { key_memory::drop_context(ctx.cast::<Place>()) };
            }

            pub(super) fn update(
                ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, room: usize, input: *const c_uchar, len: usize,
            ) -> c_int {
                let Some(place) = place_of(ctx) else { return 0 };
                if !place.is_inner() {
                    // SAFETY: the caller's arguments, as they came.
                    return unsafe { native_update(place, out, written, room, input, len) };
                }
                if place.work.text(len) {
                    // SAFETY: as above.
                    return unsafe { much_update(place, out, written, room, input, len) };
                }
                // SAFETY: the inner function with its own context; the rest is the caller's.
                unsafe { (place.native.row().inner.update)(place.inner, out, written, room, input, len) }
            }

            /// The same, behind much work of this context.
            #[inline(never)]
            fn much_update(
                place: &mut Place, out: *mut c_uchar, written: *mut usize, room: usize, input: *const c_uchar, len: usize,
            ) -> c_int {
                place.add_up();
                place.work.told();
                // SAFETY: as above.
                unsafe { (place.native.row().inner.update)(place.inner, out, written, room, input, len) }
            }

            pub(super) fn cipher(
                ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, room: usize, input: *const c_uchar, len: usize,
            ) -> c_int {
                let Some(place) = place_of(ctx) else { return 0 };
                if !place.is_inner() {
                    // SAFETY: the caller's arguments, as they came.
                    return unsafe { native_cipher(place, out, written, room, input, len) };
                }
                if place.work.text(len) {
                    place.add_up();
                    place.work.told();
                }
                let row = place.native.row();
                // SAFETY: the inner function with its own context; the rest is the caller's.
                unsafe { row.inner.cipher.unwrap_or(row.inner.update)(place.inner, out, written, room, input, len) }
            }
        }
    };
}
use place_functions;
