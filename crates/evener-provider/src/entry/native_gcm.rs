//! The entry points of AES-GCM where a kernel of ours computes it (`native/gcm.rs`).
//!
//! None takes memory but `newctx` and `dupctx`, and none a lock or the kernel's time, so that no thread's cancellation has to be held back; the
//! few that ask an inner context are OpenSSL's own work. Once a key object of the inner provider came ([`skey_init`]), the inner functions have the
//! context for good.

use std::ffi::{c_int, c_uchar, c_void};
use std::ptr;

use evener_ossl_sys::{CipherSkeyInit, CtxParamsList, GettableParams, NewCtx, Param};

use super::cipher::{core_of, gettable_params, row_of};
use super::parameter_lists::{KeyObjectInit, cipher_functions, context_lists, key_object_inits};
use crate::core::errors::Reason;
use crate::ffi::{dispatch, key_memory, params};
use crate::inner_cipher::call::{Init, Update};
use crate::native::gcm::{GcmContext, Refused};
use crate::state::rows::CipherRow;

cipher_functions!();

/// What C holds: a context of ours, and the inner one where that has taken over.
struct Place {
    native: GcmContext,
    inner: *mut c_void,
}

/// The place that an entry point was called for; `None` for null.
fn place_of<'c>(ctx: *mut c_void) -> Option<&'c mut Place> {
    let ctx: *mut Place = ctx.cast();
    // SAFETY: the core passes null or what `newctx` or `dupctx` gave, to one call at a time.
    unsafe { ctx.as_mut() }
}

const _: () = assert!(size_of::<Place>() <= key_memory::CONTEXT_BYTES, "a place fits into a block");

/// 1, or 0 with a reason on OpenSSL's queue.
fn answer(native: &GcmContext, done: Result<(), Refused>) -> c_int {
    match done {
        Ok(()) => 1,
        Err(Refused) => refuse(native.row()),
    }
}

#[cold]
fn refuse(row: &CipherRow) -> c_int {
    core_of(row).raise(Reason::Refused, None);
    0
}

/// Starts a message with a key object, by the inner function that `of` names, whose context this is from then on.
///
/// # Safety
///
/// The arguments are those of OpenSSL's core, and the key object is the inner provider's.
unsafe fn skey_init(
    ctx: *mut c_void,
    of: fn(&CipherRow) -> Option<CipherSkeyInit>,
    call: KeyObjectInit,
) -> c_int {
    let Some(place) = place_of(ctx) else { return 0 };
    let row = place.native.row();
    let Some(init) = of(row) else { return 0 };
    let given = place.native.given_nonce().filter(|_| call.iv.is_null());
    let (iv, iv_len) = given.map_or((call.iv, call.iv_len), |nonce| (nonce.as_ptr(), nonce.len()));
    let inner = if place.inner.is_null() {
        // SAFETY: the inner function with the inner provider's context.
        unsafe { (row.newctx)(row.provider) }
    } else {
        place.inner
    };
    if inner.is_null() {
        return 0;
    }
    // SAFETY: the inner function with its own context; the rest is the caller's.
    let answer = unsafe { init(inner, call.key, iv, iv_len, call.params) };
    place.inner = inner;
    answer
}

key_object_inits!(encrypt_skey_init, decrypt_skey_init);

context_lists! { settable_ctx_params: settable_ctx, gettable_ctx_params: gettable_ctx }

dispatch! {
    fn newctx[SLOT](provctx: *mut c_void) -> *mut c_void {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null_mut() };
        let Some(native) = row.native else { return ptr::null_mut() };
        let place = key_memory::allocated::<Place>();
        if !place.is_null() {
            // SAFETY: just allocated with this layout.
            unsafe { place.write(Place { native: GcmContext::new(row, native), inner: ptr::null_mut() }) };
        }
        place.cast()
    }

    fn freectx(ctx: *mut c_void) {
        let Some(place) = place_of(ctx) else { return };
        place.native.flush();
        if !place.inner.is_null() {
            // SAFETY: ours alone, and this is the last call with it.
            unsafe { (place.native.row().freectx)(place.inner) };
        }
        // SAFETY: as above; `newctx` or `dupctx` made it.
        unsafe { key_memory::drop_context(ctx.cast::<Place>()) };
    }

    fn dupctx(ctx: *mut c_void) -> *mut c_void {
        let Some(place) = place_of(ctx) else { return ptr::null_mut() };
        let inner = match (place.inner.is_null(), place.native.row().dupctx) {
            (true, _) => ptr::null_mut(),
            // SAFETY: the inner function with its own context.
            (false, Some(dup)) => unsafe { dup(place.inner) },
            (false, None) => return ptr::null_mut(),
        };
        if inner.is_null() && !place.inner.is_null() {
            return ptr::null_mut();
        }
        let copy = key_memory::allocated::<Place>();
        if copy.is_null() {
            if !inner.is_null() {
                // SAFETY: just made, and ours alone.
                unsafe { (place.native.row().freectx)(inner) };
            }
            return ptr::null_mut();
        }
        // SAFETY: plain bytes, into memory that was just allocated for as many.
        unsafe { ptr::copy_nonoverlapping(&raw const *place, copy, 1) };
        // SAFETY: a context since the line before.
        let made = unsafe { &mut *copy };
        made.inner = inner;
        made.native.forget_counts();
        copy.cast()
    }

    fn init[ENCRYPTS](
        ctx: *mut c_void, key: *const c_uchar, key_len: usize, iv: *const c_uchar, iv_len: usize, params: *const Param,
    ) -> c_int {
        let Some(place) = place_of(ctx) else { return 0 };
        let call = Init::of(ENCRYPTS == 1, (key, key_len), (iv, iv_len), params);
        if !place.inner.is_null() {
            return call.inner(place.native.row(), place.inner);
        }
        let done = place.native.init(&call);
        answer(&place.native, done)
    }

    fn update(
        ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, room: usize, input: *const c_uchar, len: usize,
    ) -> c_int {
        let Some(place) = place_of(ctx) else { return 0 };
        let call = Update::of(out, written, room, input, len);
        if !place.inner.is_null() {
            return call.inner(place.native.row().update, place.inner);
        }
        match place.native.update(&call) {
            Ok(bytes) => call.done(bytes),
            Err(Refused) => refuse(place.native.row()),
        }
    }

    fn cipher(
        ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, room: usize, input: *const c_uchar, len: usize,
    ) -> c_int {
        let Some(place) = place_of(ctx) else { return 0 };
        let call = Update::of(out, written, room, input, len);
        if !place.inner.is_null() {
            let row = place.native.row();
            return call.inner(row.cipher.unwrap_or(row.update), place.inner);
        }
        place.native.one_shot(&call).map_or(0, |bytes| call.done(bytes))
    }

    fn last(ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, room: usize) -> c_int {
        let Some(place) = place_of(ctx) else { return 0 };
        if !place.inner.is_null() {
            // SAFETY: the inner function with its own context; the rest is the caller's.
            return unsafe { (place.native.row().last)(place.inner, out, written, room) };
        }
        // Without a reason on the queue, as OpenSSL's: a tag that is not the message's is an answer.
        place.native.last().map_or(0, |()| Update::of(out, written, room, ptr::null(), 0).done(0))
    }

    fn get_ctx_params(ctx: *mut c_void, list: *mut Param) -> c_int {
        let Some(place) = place_of(ctx) else { return 0 };
        if !place.inner.is_null() {
            let Some(get) = place.native.row().get_ctx_params else { return 0 };
            // SAFETY: the inner function with its own context; the rest is the caller's.
            return unsafe { get(place.inner, list) };
        }
        // Each init through EVP of OpenSSL 3.0 queries this first.
        // SAFETY: the core's list, lent for the call.
        if unsafe { params::answered_length(list, c"ivlen", place.native.nonce_len()) } {
            return 1;
        }
        // SAFETY: as above.
        let list = unsafe { params::list_mut(list) };
        let done = place.native.get(list);
        answer(&place.native, done)
    }

    fn set_ctx_params(ctx: *mut c_void, list: *const Param) -> c_int {
        let Some(place) = place_of(ctx) else { return 0 };
        if !place.inner.is_null() {
            let Some(set) = place.native.row().set_ctx_params else { return 0 };
            // SAFETY: the inner function with its own context; the rest is the caller's.
            return unsafe { set(place.inner, list) };
        }
        // SAFETY: the core's list, lent for the call.
        let done = place.native.set(unsafe { params::list(list) });
        answer(&place.native, done)
    }
}
