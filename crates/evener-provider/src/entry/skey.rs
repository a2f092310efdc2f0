//! Key objects of OpenSSL 3.5 and later, passed through: a cipher takes only those of its own provider.

use std::ffi::{c_int, c_void};
use std::ptr;

use evener_ossl_sys::{Dispatch, GettableParams, Param, SkeymgmtGenerate, SkeymgmtImport, number};

use super::parameter_lists::method_lists;
use super::provider_of;
use crate::core::find;
use crate::ffi::dispatch;
use crate::inner_provider::InnerProvider;
use crate::inner_provider::dispatch_table::{Offer, Wrapped, entry_at};
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
    vec![
        entry_at!(slot, SKEYMGMT_IMPORT, import: SkeymgmtImport),
        entry_at!(slot, SKEYMGMT_GENERATE, generate: SkeymgmtGenerate),
        entry_at!(slot, SKEYMGMT_IMP_SETTABLE_PARAMS, imp_settable_params: GettableParams),
        entry_at!(slot, SKEYMGMT_GEN_SETTABLE_PARAMS, gen_settable_params: GettableParams),
    ]
}

fn row_of<'p>(provctx: *mut c_void, slot: usize) -> Option<&'p SkeyRow> {
    provider_of(provctx)?.bound()?.skeys.rows.get(slot)
}

method_lists! { imp_settable_params: imp_settable, gen_settable_params: gen_settable }

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
}
