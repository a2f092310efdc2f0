//! The entry points of CTR, ECB and XTS where other ways (helpers, modules) may come before a kernel of ours: a context is the kernel's alone, and nothing is
//! captured of its messages, until one is long enough for another way.
//!
//! ```text
//!  init, update below `thresh`, last ──> the kernel's entry points (`blocks.rs`)
//!  update of `thresh` and more ──> a context of the ways is put before the kernel's ([`put_before`]), which has all calls from then on (`entry/cipher.rs`)
//! ```
//!
//! So short messages under keys of their own cost one context, not two. C's pointer stays the kernel's context. What the other needs to know of the message is
//! read from that: key, direction, padding, IV, bytes so far; where it was told what is not known here, the message stays the kernel's.

use std::ffi::{c_int, c_uchar, c_void};
use std::ptr;

use evener_core::Algorithm;
use evener_ossl_sys::{CipherSkeyInit, CtxParamsList, GettableParams, NewCtx, Param};

use super::super::cipher::{self, core_of, gettable_params};
use super::super::parameter_lists::{KeyObjectInit, cipher_functions, key_object_inits};
use super::super::refusal::for_c;
use super::blocks::{self, Place, place_of};
use super::has_memory;
use crate::cipher::message::State;
use crate::ffi::{dispatch, params};
use crate::native::blocks::BLOCK;
use crate::native::front::Front;
use crate::state::rows::CipherRow;

cipher_functions!();

/// Puts a context of the ways before the kernel's at `ctx`, which has told what it knows; where that is not enough, or there is no memory, the message stays.
fn put_before(ctx: *mut c_void) {
    let Some(place) = place_of(ctx) else { return };
    let Some((row, encrypts)) = place.front.row_and_direction() else { return };
    // SAFETY: a row goes with its provider, which the core keeps while a context of it lives.
    let row = unsafe { &*row };
    let key_bytes = row.algorithm.and_then(Algorithm::key_bytes);
    let is_that = place.is_inner() || place.native.encrypts() == encrypts;
    let (Some(key), Some(iv), true) = (place.known_key(), place.known_iv(), is_that) else { return };
    if key_bytes != Some(key.len()) {
        return;
    }
    let Some(made) = cipher::context_of(cipher::around(row, ctx)) else { return };
    made.message.started(encrypts, Some(key), row.has_iv().then_some(&iv[..]));
    made.message.padding = place.native.pads();
    made.message.state = State::Direct;
    made.settle();
    // What was counted here, or in the context that this is a copy of, is not counted again.
    made.hot.taken = place.front.taken;
    made.hot.elsewhere.set(place.front.taken.saturating_sub(place.native.give_counts_up()));
    (place.front.ways, place.front.thresh) = ((&raw mut *made).cast(), 0);
}

/// The context before the kernel's; `None` where there is none.
fn ways_of(ctx: *mut c_void) -> Option<*mut c_void> {
    place_of(ctx).map(|place| place.front.ways).filter(|ways| !ways.is_null())
}

/// Starts a message with a key object.
///
/// # Safety
///
/// As of the functions that it calls.
unsafe fn skey_init(
    ctx: *mut c_void,
    of: fn(&CipherRow) -> Option<CipherSkeyInit>,
    call: KeyObjectInit,
) -> c_int {
    if let Some(ways) = ways_of(ctx) {
        // SAFETY: the caller's arguments, as they came.
        return unsafe { cipher::skey_init(ways, of, call) };
    }
    place_of(ctx).into_iter().for_each(|place| place.front.lose_key());
    // SAFETY: as above.
    unsafe { blocks::skey_init(ctx, of, call) }
}

key_object_inits!(encrypt_skey_init, decrypt_skey_init);

// Kept out of the entry points: one whose own code needs no stack jumps on.
dispatch! {
    /// A first long update.
    #[cold]
    #[inline(never)]
    fn first_long(
        ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, room: usize, input: *const c_uchar, len: usize,
    ) -> c_int {
        come_before(ctx);
        // Where none came, none does in this message.
        // SAFETY: the caller's arguments, as they came.
        unsafe { update(ctx, out, written, room, input, len) }
    }

    /// A first long call of its own.
    #[cold]
    #[inline(never)]
    fn first_long_call(
        ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, room: usize, input: *const c_uchar, len: usize,
    ) -> c_int {
        come_before(ctx);
        // SAFETY: the caller's arguments, as they came.
        unsafe { cipher(ctx, out, written, room, input, len) }
    }

    /// An init with parameters, or of what the inner cipher works on, which is counted here.
    #[inline(never)]
    fn other_init[ENCRYPTS](
        place: &mut Place, key: *const c_uchar, key_len: usize, iv: *const c_uchar, iv_len: usize, params: *const Param,
    ) -> c_int {
        if !params.is_null() {
            told(place, params);
        }
        if place.is_inner() {
            place.native.next_direct(ENCRYPTS == 1);
        }
        // SAFETY: the caller's arguments, as they came.
        unsafe { blocks::init::<ENCRYPTS>((&raw mut *place).cast(), key, key_len, iv, iv_len, params) }
    }

    /// A call of its own by the inner cipher, which is counted here.
    #[inline(never)]
    fn inner_call(
        place: &mut Place, out: *mut c_uchar, written: *mut usize, room: usize, input: *const c_uchar, len: usize,
    ) -> c_int {
        place.native.count_direct_call(len);
        // SAFETY: the caller's arguments, as they came.
        unsafe { blocks::cipher((&raw mut *place).cast(), out, written, room, input, len) }
    }
}

/// Has a context of the ways come before the kernel's, where there is memory for it.
fn come_before(ctx: *mut c_void) {
    let Some(place) = place_of(ctx) else { return };
    // Asked once for a message.
    place.front.thresh = usize::MAX;
    let core = core_of(place.native.row());
    if has_memory() {
        for_c::<()>(core, || {
            put_before(ctx);
            Ok(())
        });
    }
}

/// Parameters come.
fn told(place: &mut Place, list: *const Param) {
    // SAFETY: the core's list, lent for the call.
    let list = unsafe { params::list(list) };
    place.front.told(list, place.native.native().key_bytes);
    let paddings = list.iter().filter(|param| params::key(param) == c"padding");
    paddings.filter_map(params::number).take(1).for_each(|padding| place.native.note_padding(padding != 0));
}

dispatch! {
    fn newctx[SLOT](provctx: *mut c_void) -> *mut c_void {
        let Some(row) = cipher::row_of(provctx, SLOT) else { return ptr::null_mut() };
        // SAFETY: the core's argument.
        let ctx = unsafe { blocks::newctx::<SLOT>(provctx) };
        if let Some(place) = place_of(ctx) {
            place.front = Front::of(row);
            place.native.take_counts();
        }
        ctx
    }

    fn freectx(ctx: *mut c_void) {
        match ways_of(ctx) {
            // It frees the kernel's as its inner one.
            // SAFETY: this is the last call with it.
            Some(ways) => unsafe { cipher::freectx(ways) },
            // SAFETY: as above.
            None => unsafe { blocks::freectx(ctx) },
        }
    }

    fn dupctx(ctx: *mut c_void) -> *mut c_void {
        let Some(ways) = ways_of(ctx) else {
            // SAFETY: the caller's argument.
            return unsafe { blocks::dupctx(ctx) };
        };
        // SAFETY: as above.
        let ways = unsafe { cipher::dupctx(ways) };
        let Some(copy) = cipher::context_of(ways) else { return ptr::null_mut() };
        let ctx = copy.hot.inner;
        if let Some(place) = place_of(ctx) {
            (place.front.ways, place.front.thresh) = (ways, 0);
        }
        ctx
    }

    fn init[ENCRYPTS](
        ctx: *mut c_void, key: *const c_uchar, key_len: usize, iv: *const c_uchar, iv_len: usize, params: *const Param,
    ) -> c_int {
        let Some(place) = place_of(ctx) else { return 0 };
        let ways = place.front.ways;
        if !ways.is_null() {
            // SAFETY: the caller's arguments, as they came.
            return unsafe { cipher::init::<ENCRYPTS>(ways, key, key_len, iv, iv_len, params) };
        }
        // Of a cipher without one EVP passes on what the program has.
        let iv_bytes = (!iv.is_null() && iv_len > 0).then_some(iv_len);
        place.front.begin(ENCRYPTS == 1, !key.is_null(), iv_bytes);
        if place.is_inner() || !params.is_null() {
            // SAFETY: as above.
            return unsafe { other_init::<ENCRYPTS>(place, key, key_len, iv, iv_len, params) };
        }
        // SAFETY: as above.
        unsafe { blocks::init::<ENCRYPTS>(ctx, key, key_len, iv, iv_len, params) }
    }

    fn update(
        ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, room: usize, input: *const c_uchar, len: usize,
    ) -> c_int {
        let Some(place) = place_of(ctx) else { return 0 };
        if len >= place.front.thresh {
            let ways = place.front.ways;
            if ways.is_null() {
                // SAFETY: the caller's arguments, as they came.
                return unsafe { first_long(ctx, out, written, room, input, len) };
            }
            // SAFETY: as above.
            return unsafe { cipher::update(ways, out, written, room, input, len) };
        }
        place.front.taken = place.front.taken.wrapping_add(len);
        if place.is_inner() {
            place.native.take_direct(len);
        }
        // SAFETY: as above.
        unsafe { blocks::update(ctx, out, written, room, input, len) }
    }

    fn cipher(
        ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, room: usize, input: *const c_uchar, len: usize,
    ) -> c_int {
        let Some(place) = place_of(ctx) else { return 0 };
        if len >= place.front.thresh {
            let ways = place.front.ways;
            if ways.is_null() {
                // SAFETY: the caller's arguments, as they came.
                return unsafe { first_long_call(ctx, out, written, room, input, len) };
            }
            // SAFETY: as above.
            return unsafe { cipher::cipher(ways, out, written, room, input, len) };
        }
        if !place.native.row().is_padded() {
            // A stream stands elsewhere in its block; all else leaves the message where it was.
            place.front.taken = place.front.taken.wrapping_add(len % BLOCK);
        }
        if place.is_inner() {
            // SAFETY: the caller's arguments, as they came.
            return unsafe { inner_call(place, out, written, room, input, len) };
        }
        // SAFETY: as above.
        unsafe { blocks::cipher(ctx, out, written, room, input, len) }
    }

    fn last(ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, room: usize) -> c_int {
        let Some(place) = place_of(ctx) else { return 0 };
        let ways = place.front.ways;
        if !ways.is_null() {
            // SAFETY: the caller's arguments, as they came.
            return unsafe { cipher::last(ways, out, written, room) };
        }
        // What comes after the end is the kernel's own affair.
        place.front.thresh = usize::MAX;
        // SAFETY: as above.
        unsafe { blocks::last(ctx, out, written, room) }
    }

    fn get_ctx_params(ctx: *mut c_void, list: *mut Param) -> c_int {
        match ways_of(ctx) {
            // SAFETY: the caller's arguments, as they came.
            Some(ways) => unsafe { cipher::get_ctx_params(ways, list) },
            // SAFETY: as above.
            None => unsafe { blocks::get_ctx_params(ctx, list) },
        }
    }

    fn set_ctx_params(ctx: *mut c_void, list: *const Param) -> c_int {
        if let Some(ways) = ways_of(ctx) {
            // SAFETY: the caller's arguments, as they came.
            return unsafe { cipher::set_ctx_params(ways, list) };
        }
        let Some(place) = place_of(ctx) else { return 0 };
        told(place, list);
        // SAFETY: as above.
        unsafe { blocks::set_ctx_params(ctx, list) }
    }

    fn settable_ctx_params[SLOT](_ctx: *mut c_void, provctx: *mut c_void) -> *const Param {
        // The inner provider's context may be none of these.
        // SAFETY: the core's argument.
        unsafe { cipher::settable_ctx_params::<SLOT>(ptr::null_mut(), provctx) }
    }

    fn gettable_ctx_params[SLOT](_ctx: *mut c_void, provctx: *mut c_void) -> *const Param {
        // SAFETY: as above.
        unsafe { cipher::gettable_ctx_params::<SLOT>(ptr::null_mut(), provctx) }
    }
}
