//! Ciphers that nothing is configured for: their contexts are the inner provider's own, so that all but making one costs
//! what it costs without this provider.
//!
//! What is replaced in their tables are the functions that are called with a provider's context, which has to be the
//! inner one's.

use std::ffi::{c_int, c_void};
use std::ptr;

use evener_ossl_sys::{CtxParamsList, Function, GettableParams, NewCtx};

use super::cipher::{gettable_params, row_of};
use super::parameter_lists::{context_lists, entries};
use crate::ffi::dispatch;

/// The functions that stand in such a table instead of the inner ones.
pub(crate) fn replacements(slot: usize) -> Vec<(c_int, Function)> {
    entries![slot;
        CIPHER_NEWCTX newctx: NewCtx,
        CIPHER_GETTABLE_PARAMS gettable_params: GettableParams,
        CIPHER_SETTABLE_CTX_PARAMS settable_ctx_params: CtxParamsList,
        CIPHER_GETTABLE_CTX_PARAMS gettable_ctx_params: CtxParamsList,
    ]
}

context_lists! { settable_ctx_params, gettable_ctx_params }

dispatch! {
    fn newctx[SLOT](provctx: *mut c_void) -> *mut c_void {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null_mut() };
        // SAFETY: the inner function with the inner provider's context.
        unsafe { (row.inner.newctx)(row.provider) }
    }
}
