//! Random generators, passed through where the program has no others.

use std::ffi::c_void;
use std::ptr;

use evener_ossl_sys::{CtxParamsList, Dispatch, GettableParams, RandNewCtx, number};

use super::parameter_lists::{context_lists, method_lists, passed_through};
use crate::ffi::dispatch;
use crate::inner_provider::InnerProvider;
use crate::inner_provider::dispatch_table::Offer;
use crate::state::rows::{PassedRow, RandFunctions};

/// The generators that we offer.
pub(crate) fn offer(inner: &InnerProvider) -> Offer<PassedRow<RandFunctions>> {
    let row = if inner.is_private() { row } else { |_, _: &_| None };
    Offer::passed(inner, (number::OP_RAND, |number| (1..=19).contains(&number)), row, replacements)
}

passed_through! {
    RandFunctions in rands;
    RAND_NEWCTX newctx: RandNewCtx,
    RAND_GETTABLE_PARAMS gettable_params: GettableParams,
    RAND_SETTABLE_CTX_PARAMS settable_ctx_params: CtxParamsList,
    RAND_GETTABLE_CTX_PARAMS gettable_ctx_params: CtxParamsList,
}

method_lists! { gettable_params }

context_lists! { settable_ctx_params, gettable_ctx_params }

dispatch! {
    fn newctx[SLOT](provctx: *mut c_void, parent: *mut c_void, parent_calls: *const Dispatch) -> *mut c_void {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null_mut() };
        // SAFETY: the inner function with the inner provider's context; the parent comes with its own functions.
        unsafe { (row.inner.newctx)(row.provider, parent, parent_calls) }
    }
}
