//! The entry points of ciphers: straight into the inner function, but for updates that may be worth another way.

use std::ffi::{c_int, c_uchar, c_void};
use std::ptr;

use evener_core::{Algorithm, BLOCK_BYTES};
use evener_kernels::with_stack_wiped;
use evener_ossl_sys::{CipherSkeyInit, CtxParamsList, GettableParams, NewCtx, Param};

use super::parameter_lists::{KeyObjectInit, cipher_functions, key_object_inits};
use super::provider_of;
use super::refusal::for_c;
use crate::cipher::context::CipherCtx;
use crate::cipher::message::Message;
use crate::cipher::{buffering, calls, combining, gcm, module_choice, one_shot, route};
use crate::core::Core;
use crate::core::errors::Reason;
use crate::ffi::{dispatch, key_memory, params};
use crate::inner_cipher::call::{Init, Update};
use crate::native::kernel_choice::{self, Choice, Class};
use crate::state::rows::CipherRow;

cipher_functions!();

/// No key and no IV.
const NOTHING: (*const c_uchar, usize) = (ptr::null(), 0);

pub(super) fn row_of<'p>(provctx: *mut c_void, slot: usize) -> Option<&'p CipherRow> {
    provider_of(provctx)?.cipher_row(slot)
}

pub(super) fn core_of<'p>(row: &CipherRow) -> &'p Core {
    // SAFETY: a row belongs to its provider.
    let prov = unsafe { &*row.prov };
    &prov.core
}

/// The context that an entry point was called for; `None` for null.
pub(super) fn context_of<'c>(ctx: *mut c_void) -> Option<&'c mut CipherCtx> {
    let ctx: *mut CipherCtx = ctx.cast();
    // SAFETY: the core passes null or what `newctx` or `dupctx` gave, to one call at a time.
    unsafe { ctx.as_mut() }
}

const _: () = assert!(size_of::<CipherCtx>() <= key_memory::CONTEXT_BYTES, "a context fits into a block");

/// A context around `inner`, with a copy of `message` where there is one; the inner context is freed where there is no memory.
fn wrap(row: &CipherRow, inner: *mut c_void, message: Option<&Message>) -> *mut c_void {
    if inner.is_null() {
        return inner;
    }
    let made = around(row, inner);
    if made.is_null() {
        // SAFETY: the inner context is ours alone.
        unsafe { (row.inner.freectx)(inner) };
    }
    if let (Some(ctx), Some(message)) = (context_of(made), message) {
        ctx.message.become_copy_of(message);
    }
    made
}

/// A context around `inner`, which is left alone where there is no memory.
pub(super) fn around(row: &CipherRow, inner: *mut c_void) -> *mut c_void {
    let space = key_memory::allocated::<CipherCtx>();
    if !space.is_null() {
        // SAFETY: just allocated with this layout.
        unsafe { space.write(CipherCtx::new(row, inner)) };
    }
    space.cast()
}

/// Starts a message with a key object, by the inner function that `of` names.
///
/// # Safety
///
/// The arguments are those of OpenSSL's core, and the key object is the inner provider's (`skey.rs`).
pub(super) unsafe fn skey_init(
    ctx: *mut c_void,
    of: fn(&CipherRow) -> Option<CipherSkeyInit>,
    call: KeyObjectInit,
) -> c_int {
    let Some(ctx) = context_of(ctx) else { return 0 };
    let Some(init) = of(ctx.row()) else { return 0 };
    if ctx.hot.thresh == 0 && sync_inner(ctx) != 1 {
        return 0;
    }
    ctx.lose_sight();
    let again = ctx.iv_again(!call.iv.is_null());
    let (iv, iv_len) = again.as_ref().map_or((call.iv, call.iv_len), |iv| (iv.as_ptr(), iv.len()));
    // SAFETY: the inner function with its own context; the rest is the caller's.
    unsafe { init(ctx.hot.inner, call.key, iv, iv_len, call.params) }
}

key_object_inits!(encrypt_skey_init, decrypt_skey_init);

// What stands first is kept out of the entry points behind it: an entry point whose own code needs no stack jumps into the inner
// function and costs one jump.
dispatch! {
    #[inline(never)]
    fn any_init[ENCRYPTS](
        ctx: &mut CipherCtx, key: *const c_uchar, key_len: usize, iv: *const c_uchar, iv_len: usize, params: *const Param,
    ) -> c_int {
        let call = Init::of(ENCRYPTS == 1, (key, key_len), (iv, iv_len), params);
        ctx.inner.is_usual &= !call.has_params();
        if calls::is_noted_only(ctx) {
            return calls::begin(ctx, &call);
        }
        if let Some(answer) = gcm::unsplit::init(ctx, &call) {
            return answer;
        }
        for_c(core_of(ctx.row()), || calls::init(ctx, &call))
    }

    #[cold]
    #[inline(never)]
    fn slow_update(
        ctx: &mut CipherCtx, out: *mut c_uchar, written: *mut usize, space: usize, input: *const c_uchar, len: usize,
    ) -> c_int {
        let call = Update::of(out, written, space, input, len);
        if let Some(answer) = gcm::unsplit::update(ctx, &call) {
            return answer;
        }
        choose_kernel(ctx, len);
        if len < ctx.hot.thresh || combining::waits_for_no_job(ctx, len) || module_choice::stays_unseen(ctx, len) {
            return ctx.forward(&call);
        }
        if let Some(answer) = combining::forward_alone(ctx, &call) {
            return answer;
        }
        ctx.end_iv_only();
        let answer = for_c(core_of(ctx.row()), || route::update(ctx, &call));
        if answer == 0 {
            ctx.refused();
        }
        answer
    }

    #[cold]
    #[inline(never)]
    fn slow_last(ctx: &mut CipherCtx, out: *mut c_uchar, written: *mut usize, space: usize) -> c_int {
        if ctx.row().splits_gcm() {
            let finish = |ctx: &CipherCtx| {
                // SAFETY: the inner function with its own context; the rest is the caller's.
                unsafe { (ctx.hot.last)(ctx.hot.inner, out, written, space) }
            };
            let answer = gcm::unsplit::last(ctx, finish);
            return answer.unwrap_or_else(|| for_c(core_of(ctx.row()), || gcm::last(ctx, finish)));
        }
        if sync_inner(ctx) != 1 {
            return 0;
        }
        ctx.hot.thresh = usize::MAX;
        // SAFETY: the inner function with its own context; the rest is the caller's.
        unsafe { (ctx.hot.last)(ctx.hot.inner, out, written, space) }
    }

    #[cold]
    #[inline(never)]
    fn slow_cipher(
        ctx: &mut CipherCtx, out: *mut c_uchar, written: *mut usize, space: usize, input: *const c_uchar, len: usize,
    ) -> c_int {
        choose_kernel(ctx, len);
        let inner = |ctx: &CipherCtx| {
            // SAFETY: the inner function with its own context; the rest is the caller's.
            unsafe { (ctx.inner.cipher)(ctx.hot.inner, out, written, space, input, len) }
        };
        if ctx.row().splits_gcm() && input.is_null() {
            let answer = gcm::unsplit::last(ctx, inner);
            return answer.unwrap_or_else(|| for_c(core_of(ctx.row()), || gcm::last(ctx, inner)));
        }
        let call = Update::of(out, written, space, input, len);
        // Of whole blocks: then the call leaves nothing to the message.
        if len % BLOCK_BYTES == 0 && module_choice::stays_unseen(ctx, len) {
            one_shot::count(ctx, len);
            return inner(ctx);
        }
        ctx.end_iv_only();
        for_c(core_of(ctx.row()), || one_shot::update(ctx, &call, inner))
    }

    #[inline(never)]
    fn slow_get(ctx: &mut CipherCtx, params: *mut Param) -> c_int {
        let Some(get) = ctx.row().inner.get_ctx_params else { return 0 };
        if ctx.row().splits_gcm() {
            // SAFETY: the core's list, lent for the call.
            let questions = unsafe { params::list(params) };
            let may = gcm::unsplit::before_get(ctx, questions);
            if may.unwrap_or_else(|| for_c(core_of(ctx.row()), || gcm::before_get(ctx, questions))) != 1 {
                return 0;
            }
        } else if ctx.hot.thresh == 0 && sync_inner(ctx) != 1 {
            return 0;
        }
        // SAFETY: the inner function with its own context; the rest is the caller's.
        let answer = unsafe { get(ctx.hot.inner, params) };
        if answer == 1 && ctx.message.iv_moved {
            // SAFETY: the core's list, which the inner function has just read to its end.
            let params = unsafe { params::list_mut(params) };
            let original = params.iter_mut().find(|param| params::key(param) == c"iv");
            return original.map_or(1, |param| c_int::from(params::answer_octets(param, &ctx.message.iv)));
        }
        answer
    }
}

/// An update of so many bytes comes, with which a kernel may have the context from here on: unless the inner cipher was found to be quicker.
fn choose_kernel(ctx: &mut CipherCtx, len: usize) {
    if ctx.is_for_kernel(len) && may_be_quicker(ctx) {
        ctx.flush_requests();
        ctx.go_to_kernel();
    }
}

fn may_be_quicker(ctx: &CipherCtx) -> bool {
    let row = ctx.row().kernels_slot.and_then(|slot| ctx.prov().cipher_row(slot));
    let native = row.and_then(|row| row.lowest().native);
    native.is_some_and(|native| {
        kernel_choice::at_once(&native, Class::of(&native, false)) != Some(Choice::Inner)
    })
}

/// The IV of a short init; `None` where it is none.
fn next_iv<'c>(
    ctx: &CipherCtx,
    encrypts: bool,
    key: *const c_uchar,
    (iv, iv_len): (*const c_uchar, usize),
    params: *const Param,
) -> Option<&'c [u8; 16]> {
    let iv: *const [u8; 16] = iv.cast();
    let is_next =
        ctx.is_iv_only(encrypts) && key.is_null() && params.is_null() && iv_len == size_of::<[u8; 16]>();
    // SAFETY: null, or the caller lends 16 bytes.
    if is_next { unsafe { iv.as_ref() } } else { None }
}

/// The context of the inner cipher itself in one of ours; null where another stands between.
fn inner_of(ctx: *mut c_void) -> *mut c_void {
    let own = context_of(ctx).filter(|ctx| ctx.row().beneath.is_none());
    own.map_or(ptr::null_mut(), |ctx| ctx.hot.inner)
}

/// Puts the truth about the message back into the inner context.
#[inline(never)]
fn sync_inner(ctx: &mut CipherCtx) -> c_int {
    for_c(core_of(ctx.row()), || calls::sync_inner(ctx))
}

dispatch! {
    fn newctx[SLOT](provctx: *mut c_void) -> *mut c_void {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null_mut() };
        let row = row.first();
        // SAFETY: the inner function with the inner provider's context.
        wrap(row, unsafe { (row.inner.newctx)(row.provider) }, None)
    }

    pub(super) fn freectx(ctx: *mut c_void) {
        let Some(known) = context_of(ctx) else { return };
        known.end_and_flush();
        // SAFETY: ours alone, and this is the last call with it.
        unsafe { (known.row().inner.freectx)(known.hot.inner) };
        // SAFETY: as above; `wrap` made it.
        unsafe { key_memory::drop_context(ctx.cast::<CipherCtx>()) };
    }

    pub(super) fn dupctx(ctx: *mut c_void) -> *mut c_void {
        let Some(ctx) = context_of(ctx) else { return ptr::null_mut() };
        let Some(dup) = ctx.row().inner.dupctx else { return ptr::null_mut() };
        with_stack_wiped(|| for_c(core_of(ctx.row()), || {
            buffering::stop(ctx)?;
            let gcm = match &ctx.gcm {
                Some(gcm) => Some(gcm.duplicate().ok_or(Reason::Unavailable)?),
                None => None,
            };
            // SAFETY: the inner function with its own context.
            let copy = context_of(wrap(ctx.row(), unsafe { dup(ctx.hot.inner) }, Some(&ctx.message)));
            Ok(copy.map_or(ptr::null_mut(), |copy| {
                (copy.hot.thresh, copy.hot.taken, copy.gcm) = (ctx.hot.thresh, ctx.hot.taken, gcm);
                copy.inner.is_usual = ctx.inner.is_usual;
                // Bytes before the copy are counted once, with the original.
                copy.hot.elsewhere.set(ctx.hot.taken);
                copy.pipes = ctx.pipes.as_ref().and_then(|pipes| pipes.duplicate());
                (&raw mut *copy).cast()
            }))
        }))
    }

    pub(super) fn init[ENCRYPTS](
        ctx: *mut c_void, key: *const c_uchar, key_len: usize, iv: *const c_uchar, iv_len: usize, params: *const Param,
    ) -> c_int {
        let Some(ctx) = context_of(ctx) else { return 0 };
        let encrypts = ENCRYPTS == 1;
        if let Some(iv) = next_iv(ctx, encrypts, key, (iv, iv_len), params) {
            ctx.next_message(encrypts, iv);
        } else if ctx.hot.is_tracked {
            // SAFETY: the caller's arguments, as they came.
            return unsafe { any_init::<ENCRYPTS>(ctx, key, key_len, iv, iv_len, params) };
        }
        let inner = if encrypts { ctx.hot.encrypt_init } else { ctx.hot.decrypt_init };
        // SAFETY: the inner function with its own context; the rest is the caller's.
        unsafe { inner(ctx.hot.inner, key, key_len, iv, iv_len, params) }
    }

    pub(super) fn update(
        ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, space: usize, input: *const c_uchar, len: usize,
    ) -> c_int {
        let Some(ctx) = context_of(ctx) else { return 0 };
        if len < ctx.hot.thresh {
            ctx.hot.taken = ctx.hot.taken.wrapping_add(len);
            // SAFETY: the inner function with its own context; the rest is the caller's.
            return unsafe { (ctx.hot.update)(ctx.hot.inner, out, written, space, input, len) };
        }
        // SAFETY: the caller's arguments, as they came.
        unsafe { slow_update(ctx, out, written, space, input, len) }
    }

    pub(super) fn cipher(
        ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, space: usize, input: *const c_uchar, len: usize,
    ) -> c_int {
        let Some(ctx) = context_of(ctx) else { return 0 };
        if !one_shot::is_plain(ctx, len) {
            // SAFETY: the caller's arguments, as they came.
            return unsafe { slow_cipher(ctx, out, written, space, input, len) };
        }
        // Neither associated data nor an end.
        if !out.is_null() {
            one_shot::count(ctx, len);
        }
        // SAFETY: as above.
        unsafe { (ctx.inner.cipher)(ctx.hot.inner, out, written, space, input, len) }
    }

    pub(super) fn last(ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, space: usize) -> c_int {
        let Some(ctx) = context_of(ctx) else { return 0 };
        if ctx.hot.thresh == 0 {
            // SAFETY: the caller's arguments, as they came.
            return unsafe { slow_last(ctx, out, written, space) };
        }
        // What OpenSSL does with more input after the end is its own affair.
        ctx.hot.thresh = usize::MAX;
        // SAFETY: the inner function with its own context; the rest is the caller's.
        unsafe { (ctx.hot.last)(ctx.hot.inner, out, written, space) }
    }

    pub(super) fn get_ctx_params(ctx: *mut c_void, params: *mut Param) -> c_int {
        let Some(ctx) = context_of(ctx) else { return 0 };
        // Each init through EVP of OpenSSL 3.0 queries this first, by a search through all parameters, and it never
        // changes (`EVP_CIPHER_CTX_get_iv_length`, crypto/evp/evp_lib.c; later versions query once per context).
        // SAFETY: the core's list, lent for the call.
        if ctx.hot.iv_bytes > 0 && unsafe { params::answered_length(params, c"ivlen", ctx.hot.iv_bytes) } {
            return 1;
        }
        // Each init with a key queries this next, and it is the cipher's.
        let key_bytes = ctx.row().algorithm.and_then(Algorithm::key_bytes).unwrap_or(0);
        // SAFETY: as above.
        if key_bytes > 0 && unsafe { params::answered_length(params, c"keylen", key_bytes) } {
            return 1;
        }
        // SAFETY: the caller's arguments, as they came.
        unsafe { slow_get(ctx, params) }
    }

    pub(super) fn set_ctx_params(ctx: *mut c_void, params: *const Param) -> c_int {
        let Some(ctx) = context_of(ctx) else { return 0 };
        let Some(set) = ctx.row().inner.set_ctx_params else { return 0 };
        if ctx.row().splits_gcm() {
            let call = Init::of(true, NOTHING, NOTHING, params);
            let inner = |ctx: &CipherCtx| {
                // SAFETY: the inner function with its own context; the rest is the caller's.
                unsafe { set(ctx.hot.inner, params) }
            };
            let answer = gcm::unsplit::set(ctx, &call, inner);
            return answer.unwrap_or_else(|| for_c(core_of(ctx.row()), || gcm::set(ctx, &call, inner)));
        }
        if ctx.hot.thresh == 0 && sync_inner(ctx) != 1 {
            return 0;
        }
        // SAFETY: as above.
        let answer = unsafe { set(ctx.hot.inner, params) };
        if ctx.hot.is_tracked {
            let is_noted_only = calls::is_noted_only(ctx);
            // EVP repeats it at each init of a context that does not pad.
            // SAFETY: the core's list, lent for the call.
            let padding = unsafe { params::number_alone(params, c"padding") };
            if let Some(padding) = padding.filter(|_| is_noted_only && answer == 1) {
                ctx.set_padding(padding != 0);
                return answer;
            }
            ctx.inner.is_usual = false;
            let call = Init::of(true, NOTHING, NOTHING, params);
            if is_noted_only {
                ctx.set(answer == 1, &call);
                return answer;
            }
            return for_c(core_of(ctx.row()), || {
                ctx.set(answer == 1, &call);
                Ok(answer)
            });
        }
        answer
    }

    pub(super) fn gettable_params[SLOT](provctx: *mut c_void) -> *const Param {
        let Some(row) = row_of(provctx, SLOT).map(CipherRow::lowest) else { return ptr::null() };
        let Some(gettable) = row.inner.gettable_params else { return ptr::null() };
        // SAFETY: the inner function with the inner provider's context.
        unsafe { gettable(row.provider) }
    }

    pub(super) fn settable_ctx_params[SLOT](ctx: *mut c_void, provctx: *mut c_void) -> *const Param {
        let Some(row) = row_of(provctx, SLOT).map(CipherRow::lowest) else { return ptr::null() };
        let Some(settable) = row.inner.settable_ctx_params else { return ptr::null() };
        let inner = inner_of(ctx);
        // SAFETY: as above; the core passes null for a context where it has none.
        unsafe { settable(inner, row.provider) }
    }

    pub(super) fn gettable_ctx_params[SLOT](ctx: *mut c_void, provctx: *mut c_void) -> *const Param {
        let Some(row) = row_of(provctx, SLOT).map(CipherRow::lowest) else { return ptr::null() };
        let Some(gettable) = row.inner.gettable_ctx_params else { return ptr::null() };
        let inner = inner_of(ctx);
        // SAFETY: as above.
        unsafe { gettable(inner, row.provider) }
    }
}
