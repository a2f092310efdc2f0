//! Which provider serves an algorithm: what a fetch in this process finds.

use std::ffi::CStr;
use std::ptr;

use evener_evp_sys::{
    EVP_CIPHER_fetch, EVP_CIPHER_free, EVP_CIPHER_get0_provider, EVP_MD_fetch, EVP_MD_free,
    EVP_MD_get0_provider, EVP_default_properties_is_fips_enabled, OSSL_PARAM_construct_end,
    OSSL_PARAM_construct_utf8_ptr, OSSL_PROVIDER_available, OSSL_PROVIDER_get_params,
    OSSL_PROVIDER_get0_name, OsslProvider,
};

use super::owned;

/// The provider that serves a method under these properties, by libcrypto's functions for this kind of method.
macro_rules! served {
    ($what:literal, $name:ident: $fetch:ident, $provider:ident, $free:ident) => {
        #[doc = concat!("The provider that serves ", $what, " under these properties.")]
        pub(crate) fn $name(name: &CStr, properties: &CStr) -> Option<String> {
            // SAFETY: both texts end in nul and are read during the call only; null: the default library.
            let method = unsafe { $fetch(ptr::null_mut(), name.as_ptr(), properties.as_ptr()) };
            let method = owned(method).ok()?.as_ptr();
            // SAFETY: a fetched method names its provider as long as it lives.
            let name = name_of(unsafe { $provider(method) });
            // SAFETY: this is the one reference that the fetch gave, and the name was copied.
            unsafe { $free(method) };
            name
        }
    };
}

served!("a cipher", cipher: EVP_CIPHER_fetch, EVP_CIPHER_get0_provider, EVP_CIPHER_free);
served!("a digest", digest: EVP_MD_fetch, EVP_MD_get0_provider, EVP_MD_free);

/// Whether a provider of that name is active.
pub(crate) fn is_active(name: &CStr) -> bool {
    // SAFETY: the name ends in nul and is read during the call only; null: the default library.
    unsafe { OSSL_PROVIDER_available(ptr::null_mut(), name.as_ptr()) == 1 }
}

/// What the provider that serves a cipher under these properties says of its build.
pub(crate) fn build_info(cipher: &CStr, properties: &CStr) -> Option<String> {
    // SAFETY: both texts end in nul and are read during the call only; null: the default library.
    let method = unsafe { EVP_CIPHER_fetch(ptr::null_mut(), cipher.as_ptr(), properties.as_ptr()) };
    let method = owned(method).ok()?.as_ptr();
    let mut text = ptr::null_mut();
    // SAFETY: the name ends in nul, and the space for one address outlives the list that has its address.
    let asked = unsafe { OSSL_PARAM_construct_utf8_ptr(c"buildinfo".as_ptr(), &raw mut text, 0) };
    let mut params = [asked, OSSL_PARAM_construct_end()];
    // SAFETY: a fetched method names its provider as long as it lives.
    let provider = unsafe { EVP_CIPHER_get0_provider(method) };
    // SAFETY: the provider is alive, and the list ends.
    let answered = unsafe { OSSL_PROVIDER_get_params(provider, params.as_mut_ptr()) };
    // SAFETY: what it answers ends in nul and lives as long as the provider.
    let info = (answered == 1 && !text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
    let info = info.map(|info| info.to_string_lossy().into_owned());
    // SAFETY: this is the one reference that the fetch gave, and the text was copied.
    unsafe { EVP_CIPHER_free(method) };
    info
}

/// Whether fetches have `fips=yes` by default.
pub(crate) fn asks_for_fips() -> bool {
    // SAFETY: null: the default library.
    unsafe { EVP_default_properties_is_fips_enabled(ptr::null_mut()) == 1 }
}

fn name_of(provider: *const OsslProvider) -> Option<String> {
    // SAFETY: a null provider is allowed; any other is alive, for the caller holds a method of it.
    let name = unsafe { OSSL_PROVIDER_get0_name(provider) };
    if name.is_null() {
        return None;
    }
    // SAFETY: a provider's name ends in nul and lives as long as the provider.
    Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}
