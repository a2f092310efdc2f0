//! Random generators, passed through: all of them, so that a program that asks `provider=evener` for one has it.

use std::ffi::{c_int, c_void};
use std::ptr;

use evener_ossl_sys::{CtxParamsList, Dispatch, GettableParams, RandNewCtx, number};

use super::parameter_lists::{context_lists, method_lists};
use super::provider_of;
use crate::core::find;
use crate::ffi::dispatch;
use crate::inner_provider::InnerProvider;
use crate::inner_provider::dispatch_table::{Offer, Wrapped, entry_at};
use crate::state::rows::RandRow;

/// The generators that we offer.
pub(crate) fn offer(inner: &InnerProvider) -> Offer<RandRow> {
    Offer::new(inner, number::OP_RAND, |_, functions, slot| {
        let row = row(inner.provider_ctx, functions)?;
        Some(Wrapped {
            row,
            known: |number| (1..=19).contains(&number),
            replaced: replacements(slot),
            added: Vec::new(),
        })
    })
}

fn row(provider: *mut c_void, functions: &[Dispatch]) -> Option<RandRow> {
    Some(RandRow {
        provider,
        newctx: find!(functions, RAND_NEWCTX: RandNewCtx)?,
        gettable: find!(functions, RAND_GETTABLE_PARAMS: GettableParams),
        settable_ctx: find!(functions, RAND_SETTABLE_CTX_PARAMS: CtxParamsList),
        gettable_ctx: find!(functions, RAND_GETTABLE_CTX_PARAMS: CtxParamsList),
    })
}

fn replacements(slot: usize) -> Vec<(c_int, evener_ossl_sys::Function)> {
    vec![
        entry_at!(slot, RAND_NEWCTX, newctx: RandNewCtx),
        entry_at!(slot, RAND_GETTABLE_PARAMS, gettable_params: GettableParams),
        entry_at!(slot, RAND_SETTABLE_CTX_PARAMS, settable_ctx_params: CtxParamsList),
        entry_at!(slot, RAND_GETTABLE_CTX_PARAMS, gettable_ctx_params: CtxParamsList),
    ]
}

fn row_of<'p>(provctx: *mut c_void, slot: usize) -> Option<&'p RandRow> {
    provider_of(provctx)?.bound()?.rands.rows.get(slot)
}

method_lists! { gettable_params: gettable }

context_lists! { settable_ctx_params: settable_ctx, gettable_ctx_params: gettable_ctx }

dispatch! {
    fn newctx[SLOT](provctx: *mut c_void, parent: *mut c_void, parent_calls: *const Dispatch) -> *mut c_void {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null_mut() };
        // SAFETY: the inner function with the inner provider's context; the parent comes with its own functions.
        unsafe { (row.newctx)(row.provider, parent, parent_calls) }
    }
}
