//! The doors of ciphers: straight into the inner function, but for updates that may be worth another way.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{c_int, c_uchar, c_void};
use std::ptr;

use evener_ossl_sys::{
    CipherFinal, CipherInit, CipherSkeyInit, CipherUpdate, CtxParamsList, DupCtx, FreeCtx, Function,
    GetParams, GettableParams, NewCtx, Param, SetCtxParams, number,
};

use super::{SLOTS, by_slot, dispatch, entry, for_c};
use crate::cipher::ctx::CipherCtx;
use crate::cipher::{Row, route};
use crate::core::Core;
use crate::table::erased;

/// The functions that stand in a cipher's table instead of the inner ones.
pub(crate) fn ours(slot: usize) -> Vec<(c_int, Function)> {
    static NEWCTX: [NewCtx; SLOTS] = by_slot!(newctx);
    static GETTABLE: [GettableParams; SLOTS] = by_slot!(gettable_params);
    static SETTABLE_CTX: [CtxParamsList; SLOTS] = by_slot!(settable_ctx_params);
    static GETTABLE_CTX: [CtxParamsList; SLOTS] = by_slot!(gettable_ctx_params);
    vec![
        (number::CIPHER_NEWCTX, erased!(NEWCTX[slot], NewCtx)),
        (number::CIPHER_GETTABLE_PARAMS, erased!(GETTABLE[slot], GettableParams)),
        (number::CIPHER_SETTABLE_CTX_PARAMS, erased!(SETTABLE_CTX[slot], CtxParamsList)),
        (number::CIPHER_GETTABLE_CTX_PARAMS, erased!(GETTABLE_CTX[slot], CtxParamsList)),
        (number::CIPHER_ENCRYPT_INIT, erased!(encrypt_init, CipherInit)),
        (number::CIPHER_DECRYPT_INIT, erased!(decrypt_init, CipherInit)),
        (number::CIPHER_ENCRYPT_SKEY_INIT, erased!(encrypt_skey_init, CipherSkeyInit)),
        (number::CIPHER_DECRYPT_SKEY_INIT, erased!(decrypt_skey_init, CipherSkeyInit)),
        (number::CIPHER_UPDATE, erased!(update, CipherUpdate)),
        (number::CIPHER_CIPHER, erased!(cipher, CipherUpdate)),
        (number::CIPHER_FINAL, erased!(last, CipherFinal)),
        (number::CIPHER_FREECTX, erased!(freectx, FreeCtx)),
        (number::CIPHER_DUPCTX, erased!(dupctx, DupCtx)),
        (number::CIPHER_GET_CTX_PARAMS, erased!(get_ctx_params, GetParams)),
        (number::CIPHER_SET_CTX_PARAMS, erased!(set_ctx_params, SetCtxParams)),
    ]
}

/// One call of update, as C passed it.
#[derive(Clone, Copy)]
pub(crate) struct Update {
    out: *mut c_uchar,
    written: *mut usize,
    room: usize,
    input: *const c_uchar,
    len: usize,
}

impl Update {
    /// The same call, to the inner function.
    pub(crate) fn inner(self, ctx: &CipherCtx) -> c_int {
        // SAFETY: the inner function with its own context; the rest is the caller's.
        unsafe { (ctx.update)(ctx.inner, self.out, self.written, self.room, self.input, self.len) }
    }
}

fn row_of<'p>(provctx: *mut c_void, slot: usize) -> Option<&'p Row> {
    entry::provider(provctx)?.bound()?.ciphers.rows.get(slot)
}

fn core_of<'p>(row: &Row) -> &'p Core {
    // SAFETY: a row belongs to its provider.
    let prov = unsafe { &*row.prov };
    &prov.core
}

/// The context that a door was called for; `None` for null.
fn known<'c>(ctx: *mut c_void) -> Option<&'c mut CipherCtx> {
    let ctx: *mut CipherCtx = ctx.cast();
    // SAFETY: the core passes null or what `newctx` or `dupctx` gave, to one call at a time.
    unsafe { ctx.as_mut() }
}

/// A context around `inner`; the inner context is freed where there is no memory.
fn wrap(row: &Row, inner: *mut c_void) -> *mut c_void {
    if inner.is_null() {
        return inner;
    }
    // SAFETY: the layout is not empty.
    let room = unsafe { alloc(Layout::new::<CipherCtx>()) }.cast::<CipherCtx>();
    if room.is_null() {
        // SAFETY: the inner context is ours alone.
        unsafe { (row.freectx)(inner) };
        return ptr::null_mut();
    }
    // SAFETY: just allocated with this layout.
    unsafe { room.write(CipherCtx::new(row, inner)) };
    room.cast()
}

dispatch! {
    fn newctx[SLOT](provctx: *mut c_void) -> *mut c_void {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null_mut() };
        // SAFETY: the inner function with the inner provider's context.
        wrap(row, unsafe { (row.newctx)(row.provider) })
    }

    fn freectx(ctx: *mut c_void) {
        let Some(known) = known(ctx) else { return };
        // SAFETY: ours alone, and this is the last call with it.
        unsafe { (known.row().freectx)(known.inner) };
        // SAFETY: allocated by `wrap` with this layout.
        unsafe { dealloc(ctx.cast(), Layout::new::<CipherCtx>()) };
    }

    fn dupctx(ctx: *mut c_void) -> *mut c_void {
        let Some(ctx) = known(ctx) else { return ptr::null_mut() };
        let Some(dup) = ctx.row().dupctx else { return ptr::null_mut() };
        // SAFETY: the inner function with its own context.
        wrap(ctx.row(), unsafe { dup(ctx.inner) })
    }

    fn encrypt_init(
        ctx: *mut c_void, key: *const c_uchar, key_len: usize, iv: *const c_uchar, iv_len: usize, params: *const Param,
    ) -> c_int {
        let Some(ctx) = known(ctx) else { return 0 };
        // SAFETY: the inner function with its own context; the rest is the caller's.
        unsafe { (ctx.row().encrypt_init)(ctx.inner, key, key_len, iv, iv_len, params) }
    }

    fn decrypt_init(
        ctx: *mut c_void, key: *const c_uchar, key_len: usize, iv: *const c_uchar, iv_len: usize, params: *const Param,
    ) -> c_int {
        let Some(ctx) = known(ctx) else { return 0 };
        // SAFETY: as above.
        unsafe { (ctx.row().decrypt_init)(ctx.inner, key, key_len, iv, iv_len, params) }
    }

    fn encrypt_skey_init(
        ctx: *mut c_void, key: *mut c_void, iv: *const c_uchar, iv_len: usize, params: *const Param,
    ) -> c_int {
        let Some(ctx) = known(ctx) else { return 0 };
        let Some(init) = ctx.row().encrypt_skey_init else { return 0 };
        // SAFETY: as above; the key object is the inner provider's (`skey.rs`).
        unsafe { init(ctx.inner, key, iv, iv_len, params) }
    }

    fn decrypt_skey_init(
        ctx: *mut c_void, key: *mut c_void, iv: *const c_uchar, iv_len: usize, params: *const Param,
    ) -> c_int {
        let Some(ctx) = known(ctx) else { return 0 };
        let Some(init) = ctx.row().decrypt_skey_init else { return 0 };
        // SAFETY: as above.
        unsafe { init(ctx.inner, key, iv, iv_len, params) }
    }

    fn update(
        ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, room: usize, input: *const c_uchar, len: usize,
    ) -> c_int {
        let Some(ctx) = known(ctx) else { return 0 };
        if len < ctx.thresh {
            // SAFETY: the inner function with its own context; the rest is the caller's.
            return unsafe { (ctx.update)(ctx.inner, out, written, room, input, len) };
        }
        for_c(core_of(ctx.row()), || route::update(ctx, Update { out, written, room, input, len }))
    }

    fn cipher(
        ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, room: usize, input: *const c_uchar, len: usize,
    ) -> c_int {
        let Some(ctx) = known(ctx) else { return 0 };
        // SAFETY: as above.
        unsafe { (ctx.cipher)(ctx.inner, out, written, room, input, len) }
    }

    fn last(ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, room: usize) -> c_int {
        let Some(ctx) = known(ctx) else { return 0 };
        // SAFETY: as above.
        unsafe { (ctx.row().last)(ctx.inner, out, written, room) }
    }

    fn get_ctx_params(ctx: *mut c_void, params: *mut Param) -> c_int {
        let Some(ctx) = known(ctx) else { return 0 };
        let Some(get) = ctx.row().get_ctx_params else { return 0 };
        // SAFETY: as above.
        unsafe { get(ctx.inner, params) }
    }

    fn set_ctx_params(ctx: *mut c_void, params: *const Param) -> c_int {
        let Some(ctx) = known(ctx) else { return 0 };
        let Some(set) = ctx.row().set_ctx_params else { return 0 };
        // SAFETY: as above.
        unsafe { set(ctx.inner, params) }
    }

    fn gettable_params[SLOT](provctx: *mut c_void) -> *const Param {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null() };
        let Some(gettable) = row.gettable else { return ptr::null() };
        // SAFETY: the inner function with the inner provider's context.
        unsafe { gettable(row.provider) }
    }

    fn settable_ctx_params[SLOT](ctx: *mut c_void, provctx: *mut c_void) -> *const Param {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null() };
        let Some(settable) = row.settable_ctx else { return ptr::null() };
        let inner = known(ctx).map_or(ptr::null_mut(), |ctx| ctx.inner);
        // SAFETY: as above; the core passes null for a context where it has none.
        unsafe { settable(inner, row.provider) }
    }

    fn gettable_ctx_params[SLOT](ctx: *mut c_void, provctx: *mut c_void) -> *const Param {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null() };
        let Some(gettable) = row.gettable_ctx else { return ptr::null() };
        let inner = known(ctx).map_or(ptr::null_mut(), |ctx| ctx.inner);
        // SAFETY: as above.
        unsafe { gettable(inner, row.provider) }
    }
}
