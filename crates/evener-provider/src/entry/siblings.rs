//! The core's news of providers beside this one, for as long as it looks for the one to bind to.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;

use evener_ossl_sys::CoreHandle;

use super::provider_of;
use crate::ffi::dispatch;
use crate::state::ProvCtx;

/// Has the core notify `prov` of its siblings.
pub(super) fn register(prov: &ProvCtx) {
    let Some(children) = prov.core.children else { return };
    let this = std::ptr::from_ref(prov).cast_mut().cast();
    // SAFETY: the functions take this provider's address, which stays until `deregister` takes them back.
    let registered = unsafe {
        (children.register)(prov.core.handle, sibling_came, sibling_goes, properties_changed, this)
    };
    prov.binding.registered.store(registered == 1, Relaxed);
}

/// Ends what `register` began. Not only at the end: a program may free its library context before the last cipher
/// context in it, and the end comes with the latter, when the core has no list of siblings any more.
pub(super) fn deregister(prov: &ProvCtx) {
    let Some(children) = prov.core.children else { return };
    if prov.binding.registered.swap(false, Relaxed) {
        // SAFETY: takes back what `register` gave; from here on the core calls none of those functions.
        unsafe { (children.deregister)(prov.core.handle) };
    }
}

dispatch! {
    /// The core has activated a sibling. It holds locks: nothing is done here but counting and keeping.
    fn sibling_came(sibling: *const CoreHandle, provctx: *mut c_void) -> c_int {
        if let Some(prov) = provider_of(provctx) {
            prov.binding.siblings.came(&prov.core, sibling);
        }
        1
    }

    /// The core is about to deactivate a sibling. Where it has no memory to register this provider, it says so of none, too, by null
    /// (OpenSSL 3.0, `ossl_provider_register_child_cb`).
    fn sibling_goes(sibling: *const CoreHandle, provctx: *mut c_void) -> c_int {
        if let Some(prov) = provider_of(provctx).filter(|_| !sibling.is_null()) {
            prov.binding.siblings.goes(&prov.core, sibling);
        }
        1
    }

    /// The program has set its default properties, on which nothing depends here: `fips=yes` never finds us.
    fn properties_changed(_properties: *const c_char, _provctx: *mut c_void) -> c_int {
        1
    }
}
