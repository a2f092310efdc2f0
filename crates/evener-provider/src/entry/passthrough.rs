//! Ciphers that nothing is configured for: their contexts are the inner provider's own, so that all but making one costs
//! what it costs without this provider.
//!
//! What is replaced in their tables are the functions that are called with a provider's context, which has to be the
//! inner one's.

use std::ffi::{c_int, c_void};
use std::ptr;

use evener_ossl_sys::{CtxParamsList, Function, GettableParams, NewCtx, Param, number};

use super::cipher::{gettable_params, row_of};
use crate::ffi::{SLOTS, by_slot, dispatch};
use crate::inner_provider::dispatch_table::erased;

/// The functions that stand in such a table instead of the inner ones.
pub(crate) fn replacements(slot: usize) -> Vec<(c_int, Function)> {
    static NEWCTX: [NewCtx; SLOTS] = by_slot!(newctx);
    static GETTABLE: [GettableParams; SLOTS] = by_slot!(gettable_params);
    static SETTABLE_CTX: [CtxParamsList; SLOTS] = by_slot!(settable_ctx_params);
    static GETTABLE_CTX: [CtxParamsList; SLOTS] = by_slot!(gettable_ctx_params);
    vec![
        (number::CIPHER_NEWCTX, erased!(NEWCTX[slot], NewCtx)),
        (number::CIPHER_GETTABLE_PARAMS, erased!(GETTABLE[slot], GettableParams)),
        (number::CIPHER_SETTABLE_CTX_PARAMS, erased!(SETTABLE_CTX[slot], CtxParamsList)),
        (number::CIPHER_GETTABLE_CTX_PARAMS, erased!(GETTABLE_CTX[slot], CtxParamsList)),
    ]
}

dispatch! {
    fn newctx[SLOT](provctx: *mut c_void) -> *mut c_void {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null_mut() };
        // SAFETY: the inner function with the inner provider's context.
        unsafe { (row.newctx)(row.provider) }
    }

    fn settable_ctx_params[SLOT](ctx: *mut c_void, provctx: *mut c_void) -> *const Param {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null() };
        let Some(settable) = row.settable_ctx else { return ptr::null() };
        // SAFETY: as above; the context is the inner provider's, or null.
        unsafe { settable(ctx, row.provider) }
    }

    fn gettable_ctx_params[SLOT](ctx: *mut c_void, provctx: *mut c_void) -> *const Param {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null() };
        let Some(gettable) = row.gettable_ctx else { return ptr::null() };
        // SAFETY: as above.
        unsafe { gettable(ctx, row.provider) }
    }
}
