//! Random generators, passed through: all of them, so that a program that asks `provider=evener` for one has it.

use std::ffi::{c_int, c_void};
use std::ptr;

use evener_ossl_sys::{CtxParamsList, Dispatch, GettableParams, Param, RandNewCtx, number};

use super::provider_of;
use crate::core::find;
use crate::ffi::{SLOTS, by_slot, dispatch};
use crate::inner_provider::InnerProvider;
use crate::inner_provider::dispatch_table::{Offer, Wrapped, erased};
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
    static NEWCTX: [RandNewCtx; SLOTS] = by_slot!(newctx);
    static GETTABLE: [GettableParams; SLOTS] = by_slot!(gettable_params);
    static SETTABLE_CTX: [CtxParamsList; SLOTS] = by_slot!(settable_ctx_params);
    static GETTABLE_CTX: [CtxParamsList; SLOTS] = by_slot!(gettable_ctx_params);
    vec![
        (number::RAND_NEWCTX, erased!(NEWCTX[slot], RandNewCtx)),
        (number::RAND_GETTABLE_PARAMS, erased!(GETTABLE[slot], GettableParams)),
        (number::RAND_SETTABLE_CTX_PARAMS, erased!(SETTABLE_CTX[slot], CtxParamsList)),
        (number::RAND_GETTABLE_CTX_PARAMS, erased!(GETTABLE_CTX[slot], CtxParamsList)),
    ]
}

fn row_of<'p>(provctx: *mut c_void, slot: usize) -> Option<&'p RandRow> {
    provider_of(provctx)?.bound()?.rands.rows.get(slot)
}

dispatch! {
    fn newctx[SLOT](provctx: *mut c_void, parent: *mut c_void, parent_calls: *const Dispatch) -> *mut c_void {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null_mut() };
        // SAFETY: the inner function with the inner provider's context; the parent comes with its own functions.
        unsafe { (row.newctx)(row.provider, parent, parent_calls) }
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
        // SAFETY: as above; a generator's context is the inner provider's.
        unsafe { settable(ctx, row.provider) }
    }

    fn gettable_ctx_params[SLOT](ctx: *mut c_void, provctx: *mut c_void) -> *const Param {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null() };
        let Some(gettable) = row.gettable_ctx else { return ptr::null() };
        // SAFETY: as above.
        unsafe { gettable(ctx, row.provider) }
    }
}
