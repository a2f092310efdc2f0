//! Digests that are counted: where a process counts at all, its hashes are to be seen too.
//!
//! A context of ours holds the inner one and how many bytes its message has had so far. The doors of update and final add
//! and jump; a message is counted when another begins, or the context goes.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{c_int, c_uchar, c_void};
use std::ptr;

use evener::statistics::Direct;
use evener_core::Direction;
use evener_ossl_sys::{
    DigestCopyCtx, DigestFinal, DigestInit, DigestUpdate, Dispatch, DupCtx, FreeCtx, Function, GetParams,
    NewCtx, Param, SetCtxParams, number,
};

use super::digest::{Row, row_of};
use super::{SLOTS, by_slot, dispatch};
use crate::core::find;
use crate::table::erased;

/// The inner functions that take a context.
pub(crate) struct Inner {
    init: DigestInit,
    update: DigestUpdate,
    last: DigestFinal,
    free: FreeCtx,
    duplicate: Option<DupCtx>,
    copy: Option<DigestCopyCtx>,
    squeeze: Option<DigestFinal>,
    get: Option<GetParams>,
    set: Option<SetCtxParams>,
}

impl Inner {
    /// Those of one digest; `None` where it lacks what every digest has.
    pub(crate) fn of(functions: &[Dispatch]) -> Option<Self> {
        Some(Self {
            init: find!(functions, DIGEST_INIT: DigestInit)?,
            update: find!(functions, DIGEST_UPDATE: DigestUpdate)?,
            last: find!(functions, DIGEST_FINAL: DigestFinal)?,
            free: find!(functions, DIGEST_FREECTX: FreeCtx)?,
            duplicate: find!(functions, DIGEST_DUPCTX: DupCtx),
            copy: find!(functions, DIGEST_COPYCTX: DigestCopyCtx),
            squeeze: find!(functions, DIGEST_SQUEEZE: DigestFinal),
            get: find!(functions, DIGEST_GET_CTX_PARAMS: GetParams),
            set: find!(functions, DIGEST_SET_CTX_PARAMS: SetCtxParams),
        })
    }
}

/// The functions that stand in a counted digest's table instead of the inner ones.
pub(super) fn ours(slot: usize) -> Vec<(c_int, Function)> {
    static NEWCTX: [NewCtx; SLOTS] = by_slot!(newctx);
    vec![
        (number::DIGEST_NEWCTX, erased!(NEWCTX[slot], NewCtx)),
        (number::DIGEST_INIT, erased!(init, DigestInit)),
        (number::DIGEST_UPDATE, erased!(update, DigestUpdate)),
        (number::DIGEST_FINAL, erased!(last, DigestFinal)),
        (number::DIGEST_FREECTX, erased!(freectx, FreeCtx)),
        (number::DIGEST_DUPCTX, erased!(dupctx, DupCtx)),
        (number::DIGEST_COPYCTX, erased!(copyctx, DigestCopyCtx)),
        (number::DIGEST_SQUEEZE, erased!(squeeze, DigestFinal)),
        (number::DIGEST_GET_CTX_PARAMS, erased!(get_ctx_params, GetParams)),
        (number::DIGEST_SET_CTX_PARAMS, erased!(set_ctx_params, SetCtxParams)),
    ]
}

/// What C holds for a digest in use.
struct Hashed {
    update: DigestUpdate,
    inner: *mut c_void,
    /// Bytes of the message so far.
    bytes: usize,
    /// The digest; its provider outlives the context.
    row: *const Row,
    /// Messages that are at their end and not in the process's statistics yet.
    direct: Direct,
}

impl Hashed {
    fn row<'p>(&self) -> &'p Row {
        // SAFETY: rows go with their provider, which the core keeps while a context of it lives.
        unsafe { &*self.row }
    }

    /// Another message follows, or none.
    fn end_message(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes > 0 && self.direct.saw(bytes) {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if let Some(statistics) = self.row().statistics().filter(|_| !self.direct.is_empty()) {
            statistics.flush(self.row().kind, Direction::Encrypt, &mut self.direct);
        }
    }
}

/// A context around `inner`, which is freed where there is no memory.
fn wrap(row: &Row, functions: &Inner, inner: *mut c_void) -> *mut c_void {
    if inner.is_null() {
        return inner;
    }
    // SAFETY: the layout is not empty.
    let room = unsafe { alloc(Layout::new::<Hashed>()) }.cast::<Hashed>();
    if room.is_null() {
        // SAFETY: the inner context is ours alone.
        unsafe { (functions.free)(inner) };
        return ptr::null_mut();
    }
    let made = Hashed { update: functions.update, inner, bytes: 0, row, direct: Direct::default() };
    // SAFETY: just allocated with this layout.
    unsafe { room.write(made) };
    room.cast()
}

/// The context that a door was called for, and the inner functions; `None` for null.
fn known<'c>(ctx: *mut c_void) -> Option<(&'c mut Hashed, &'c Inner)> {
    let ctx: *mut Hashed = ctx.cast();
    // SAFETY: the core passes null or what `newctx` or `dupctx` gave, to one call at a time.
    let ctx = unsafe { ctx.as_mut() }?;
    let functions = ctx.row().counted.as_ref()?;
    Some((ctx, functions))
}

dispatch! {
    fn newctx[SLOT](provctx: *mut c_void) -> *mut c_void {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null_mut() };
        let Some(functions) = &row.counted else { return ptr::null_mut() };
        // SAFETY: the inner function with the inner provider's context.
        wrap(row, functions, unsafe { (row.newctx)(row.provider) })
    }

    fn init(ctx: *mut c_void, params: *const Param) -> c_int {
        let Some((ctx, functions)) = known(ctx) else { return 0 };
        ctx.end_message();
        // SAFETY: the inner function with its own context; the rest is the caller's.
        unsafe { (functions.init)(ctx.inner, params) }
    }

    fn update(ctx: *mut c_void, input: *const c_uchar, len: usize) -> c_int {
        let ctx: *mut Hashed = ctx.cast();
        // SAFETY: as in `known`.
        let Some(ctx) = (unsafe { ctx.as_mut() }) else { return 0 };
        ctx.bytes = ctx.bytes.wrapping_add(len);
        // SAFETY: as above.
        unsafe { (ctx.update)(ctx.inner, input, len) }
    }

    fn last(ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, room: usize) -> c_int {
        let Some((ctx, functions)) = known(ctx) else { return 0 };
        // SAFETY: as above.
        unsafe { (functions.last)(ctx.inner, out, written, room) }
    }

    fn squeeze(ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, room: usize) -> c_int {
        let Some((ctx, functions)) = known(ctx) else { return 0 };
        // SAFETY: as above.
        functions.squeeze.map_or(0, |squeeze| unsafe { squeeze(ctx.inner, out, written, room) })
    }

    fn freectx(ctx: *mut c_void) {
        let Some((known, functions)) = known(ctx) else { return };
        known.end_message();
        known.flush();
        // SAFETY: ours alone, and this is the last call with it.
        unsafe { (functions.free)(known.inner) };
        // SAFETY: allocated by `wrap` with this layout; nothing in it needs to be dropped.
        unsafe { dealloc(ctx.cast(), Layout::new::<Hashed>()) };
    }

    fn dupctx(ctx: *mut c_void) -> *mut c_void {
        let Some((ctx, functions)) = known(ctx) else { return ptr::null_mut() };
        let Some(duplicate) = functions.duplicate else { return ptr::null_mut() };
        // Bytes before the copy are counted once, with the original.
        // SAFETY: the inner function with its own context.
        wrap(ctx.row(), functions, unsafe { duplicate(ctx.inner) })
    }

    fn copyctx(to: *mut c_void, from: *mut c_void) {
        let (Some((to, functions)), Some((from, _))) = (known(to), known(from)) else { return };
        let Some(copy) = functions.copy else { return };
        to.end_message();
        // SAFETY: the inner function with two contexts of its own.
        unsafe { copy(to.inner, from.inner) };
    }

    fn get_ctx_params(ctx: *mut c_void, params: *mut Param) -> c_int {
        let Some((ctx, functions)) = known(ctx) else { return 0 };
        // SAFETY: the inner function with its own context; the rest is the caller's.
        functions.get.map_or(0, |get| unsafe { get(ctx.inner, params) })
    }

    fn set_ctx_params(ctx: *mut c_void, params: *const Param) -> c_int {
        let Some((ctx, functions)) = known(ctx) else { return 0 };
        // SAFETY: as above.
        functions.set.map_or(0, |set| unsafe { set(ctx.inner, params) })
    }
}
