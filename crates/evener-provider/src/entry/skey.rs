//! Key objects of OpenSSL 3.5 and later, passed through: a cipher takes only those of its own provider.

use std::ffi::{c_int, c_void};
use std::ptr;

use evener_ossl_sys::{GettableParams, Param, SkeymgmtGenerate, SkeymgmtImport, number};

use super::parameter_lists::{method_lists, passed_through};
use crate::ffi::dispatch;
use crate::inner_provider::InnerProvider;
use crate::inner_provider::dispatch_table::Offer;
use crate::state::rows::{PassedRow, SkeyFunctions};

/// The kinds of key objects that we offer: none before OpenSSL 3.5.
pub(crate) fn offer(inner: &InnerProvider) -> Offer<PassedRow<SkeyFunctions>> {
    Offer::passed(inner, (number::OP_SKEYMGMT, |number| (1..=7).contains(&number)), row, replacements)
}

passed_through! {
    SkeyFunctions in skeys;
    SKEYMGMT_IMPORT import: SkeymgmtImport,
    SKEYMGMT_GENERATE generate: SkeymgmtGenerate,
    SKEYMGMT_IMP_SETTABLE_PARAMS imp_settable_params: GettableParams,
    SKEYMGMT_GEN_SETTABLE_PARAMS gen_settable_params: GettableParams,
}

method_lists! { imp_settable_params, gen_settable_params }

dispatch! {
    fn import[SLOT](provctx: *mut c_void, selection: c_int, params: *const Param) -> *mut c_void {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null_mut() };
        let Some(import) = row.inner.import else { return ptr::null_mut() };
        // SAFETY: the inner function with the inner provider's context.
        unsafe { import(row.provider, selection, params) }
    }

    fn generate[SLOT](provctx: *mut c_void, params: *const Param) -> *mut c_void {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null_mut() };
        let Some(generate) = row.inner.generate else { return ptr::null_mut() };
        // SAFETY: as above.
        unsafe { generate(row.provider, params) }
    }
}
