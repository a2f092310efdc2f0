//! Key objects of OpenSSL 3.5 and later, passed through: a cipher takes only those of its own provider.

use std::ffi::{c_int, c_void};
use std::ptr;

use evener_ossl_sys::{Dispatch, GettableParams, Param, SkeymgmtGenerate, SkeymgmtImport, number};

use super::provider_of;
use crate::core::find;
use crate::ffi::{SLOTS, by_slot, dispatch};
use crate::inner_provider::InnerProvider;
use crate::inner_provider::dispatch_table::{Offer, Wrapped, erased};
use crate::state::rows::SkeyRow;

/// The kinds of key objects that we offer: none before OpenSSL 3.5.
pub(crate) fn offer(inner: &InnerProvider) -> Offer<SkeyRow> {
    Offer::new(inner, number::OP_SKEYMGMT, |_, functions, slot| {
        let row = row(inner.provider_ctx, functions);
        Some(Wrapped {
            row,
            known: |number| (1..=7).contains(&number),
            replaced: replacements(slot),
            added: Vec::new(),
        })
    })
}

fn row(provider: *mut c_void, functions: &[Dispatch]) -> SkeyRow {
    SkeyRow {
        provider,
        import: find!(functions, SKEYMGMT_IMPORT: SkeymgmtImport),
        generate: find!(functions, SKEYMGMT_GENERATE: SkeymgmtGenerate),
        imp_settable: find!(functions, SKEYMGMT_IMP_SETTABLE_PARAMS: GettableParams),
        gen_settable: find!(functions, SKEYMGMT_GEN_SETTABLE_PARAMS: GettableParams),
    }
}

fn replacements(slot: usize) -> Vec<(c_int, evener_ossl_sys::Function)> {
    static IMPORT: [SkeymgmtImport; SLOTS] = by_slot!(import);
    static GENERATE: [SkeymgmtGenerate; SLOTS] = by_slot!(generate);
    static IMP_SETTABLE: [GettableParams; SLOTS] = by_slot!(imp_settable_params);
    static GEN_SETTABLE: [GettableParams; SLOTS] = by_slot!(gen_settable_params);
    vec![
        (number::SKEYMGMT_IMPORT, erased!(IMPORT[slot], SkeymgmtImport)),
        (number::SKEYMGMT_GENERATE, erased!(GENERATE[slot], SkeymgmtGenerate)),
        (number::SKEYMGMT_IMP_SETTABLE_PARAMS, erased!(IMP_SETTABLE[slot], GettableParams)),
        (number::SKEYMGMT_GEN_SETTABLE_PARAMS, erased!(GEN_SETTABLE[slot], GettableParams)),
    ]
}

fn row_of<'p>(provctx: *mut c_void, slot: usize) -> Option<&'p SkeyRow> {
    provider_of(provctx)?.bound()?.skeys.rows.get(slot)
}

dispatch! {
    fn import[SLOT](provctx: *mut c_void, selection: c_int, params: *const Param) -> *mut c_void {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null_mut() };
        let Some(import) = row.import else { return ptr::null_mut() };
        // SAFETY: the inner function with the inner provider's context.
        unsafe { import(row.provider, selection, params) }
    }

    fn generate[SLOT](provctx: *mut c_void, params: *const Param) -> *mut c_void {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null_mut() };
        let Some(generate) = row.generate else { return ptr::null_mut() };
        // SAFETY: as above.
        unsafe { generate(row.provider, params) }
    }

    fn imp_settable_params[SLOT](provctx: *mut c_void) -> *const Param {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null() };
        let Some(settable) = row.imp_settable else { return ptr::null() };
        // SAFETY: as above.
        unsafe { settable(row.provider) }
    }

    fn gen_settable_params[SLOT](provctx: *mut c_void) -> *const Param {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null() };
        let Some(settable) = row.gen_settable else { return ptr::null() };
        // SAFETY: as above.
        unsafe { settable(row.provider) }
    }
}
