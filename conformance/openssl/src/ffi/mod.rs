//! EVP as a program in C sees it, behind owned types: no pointer leaves this folder.
//!
//! Path: a [`Library`] reads a configuration -> [`Cipher`]s and hashes are fetched in it -> a [`Context`] takes
//! calls in any order, wrong ones too, and hands on what libcrypto answers. The error queue is emptied after each.
//! The functions are `evener-evp-sys`'.

mod cipher;
mod fork;
mod message;

use std::ffi::{CStr, CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr::{self, NonNull};

use evener_evp_sys::{
    ERR_clear_error, OSSL_LIB_CTX_load_config, OSSL_LIB_CTX_new, OSSL_PROVIDER_get0_name, OsslLibCtx,
    OsslProvider,
};

pub use cipher::{Answer, Cipher, Context, Octets, SPARE_BYTES, errors};
pub use fork::forked;
pub use message::{Digest, hmac};

/// A library context with its own providers. It lives as long as the process: what is fetched in it points to it.
pub struct Library(NonNull<OsslLibCtx>);

// SAFETY: OpenSSL's library contexts lock what they share.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Makes one and loads the configuration file; `None` where libcrypto refuses it.
    #[must_use]
    pub fn load(configuration: &Path) -> Option<&'static Self> {
        let made = Self(NonNull::new(OSSL_LIB_CTX_new())?);
        let path = CString::new(configuration.as_os_str().as_bytes()).ok()?;
        // SAFETY: the context was made above and the path ends in nul.
        let loaded = unsafe { OSSL_LIB_CTX_load_config(made.0.as_ptr(), path.as_ptr()) };
        (loaded == 1).then(|| &*Box::leak(Box::new(made)))
    }
}

/// What `library` prefers for `name`, by libcrypto's function for such methods; `None` where it has none.
fn fetched<M>(
    library: &'static Library,
    name: &str,
    fetch: unsafe extern "C" fn(*mut OsslLibCtx, *const c_char, *const c_char) -> *mut M,
) -> Option<NonNull<M>> {
    let name = CString::new(name).ok()?;
    // SAFETY: the library lives on and the name ends in nul; null: no properties but its own.
    let method = unsafe { fetch(library.0.as_ptr(), name.as_ptr(), ptr::null()) };
    ERR_clear_error();
    NonNull::new(method)
}

fn provider_name(provider: *const OsslProvider) -> String {
    if provider.is_null() {
        return String::new();
    }
    // SAFETY: a fetched method keeps its provider alive.
    let name = unsafe { OSSL_PROVIDER_get0_name(provider) };
    // SAFETY: a provider's name is a nul-terminated string that lives as long as the provider.
    let name = unsafe { CStr::from_ptr(name) };
    name.to_string_lossy().into_owned()
}

fn int(bytes: usize) -> c_int {
    c_int::try_from(bytes).expect("no buffer of the tests is longer than an int counts")
}
