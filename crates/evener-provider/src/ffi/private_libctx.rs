//! A library context of our own in the libcrypto that loaded us, where its core lets us see no sibling provider.
//!
//! What it is in the literature: late binding by symbol (dlsym(3)), for a provider must link no libcrypto: the program's may be another one.
//!
//! Path: address of a core function -> file that it lies in (`loaded_file.rs`) -> the functions by name -> a context with nothing in it but a
//! default provider. None of this works where a program hides libcrypto's symbols.
//!
//! | state | what it holds | ends by |
//! |---|---|---|
//! | opening | a context, no provider yet | refused: the context is freed with the value |
//! | open | a context with its default provider | drop: the provider is unloaded, then the context freed |

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use evener_ossl_sys::{Algorithm, Function};

use super::loaded_file::library_of;

type LibCtxNew = unsafe extern "C" fn() -> *mut c_void;
type LibCtxFree = unsafe extern "C" fn(*mut c_void);
type ProviderLoad = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
type ProviderUnload = unsafe extern "C" fn(*mut c_void) -> c_int;
type ProviderQuery = unsafe extern "C" fn(*mut c_void, c_int, *mut c_int) -> *const Algorithm;
type ProviderCtx = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// The default provider in a context of our own.
pub(crate) struct Private {
    context: *mut c_void,
    provider: *mut c_void,
    free: LibCtxFree,
    unload: ProviderUnload,
    query: ProviderQuery,
    provider_ctx: ProviderCtx,
}

macro_rules! symbol {
    ($library:expr, $name:literal: $type:ty) => {{
        // SAFETY: the library is open, and the name ends in nul.
        let address = unsafe { libc::dlsym($library, $name.as_ptr()) };
        // SAFETY: libcrypto's function of this name has this type (its manual pages).
        (!address.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, $type>(address) })
    }};
}

pub(super) use symbol;

impl Private {
    /// Makes one in the libcrypto that `landmark` lies in; `None` where its symbols are hidden or it refuses.
    pub(crate) fn open(landmark: Function) -> Option<Self> {
        let library = library_of(landmark)?;
        let new = symbol!(library, c"OSSL_LIB_CTX_new": LibCtxNew)?;
        let load = symbol!(library, c"OSSL_PROVIDER_load": ProviderLoad)?;
        let mut made = Self {
            context: ptr::null_mut(),
            provider: ptr::null_mut(),
            free: symbol!(library, c"OSSL_LIB_CTX_free": LibCtxFree)?,
            unload: symbol!(library, c"OSSL_PROVIDER_unload": ProviderUnload)?,
            query: symbol!(library, c"OSSL_PROVIDER_query_operation": ProviderQuery)?,
            provider_ctx: symbol!(library, c"OSSL_PROVIDER_get0_provider_ctx": ProviderCtx)?,
        };
        // SAFETY: takes nothing.
        made.context = unsafe { new() };
        if made.context.is_null() {
            return None;
        }
        // SAFETY: the context was just made.
        made.provider = unsafe { load(made.context, c"default".as_ptr()) };
        (!made.provider.is_null()).then_some(made)
    }

    /// What the default provider calls itself by.
    pub(crate) fn provider_ctx(&self) -> *mut c_void {
        // SAFETY: the provider is loaded until `self` goes.
        unsafe { (self.provider_ctx)(self.provider) }
    }

    /// Its algorithms for `operation`.
    pub(crate) fn query(&self, operation: c_int) -> *const Algorithm {
        let mut no_store = 0;
        // SAFETY: as above; there is space for one number.
        unsafe { (self.query)(self.provider, operation, &raw mut no_store) }
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        if !self.provider.is_null() {
            // SAFETY: loaded once by `open`; no thread uses its functions any more.
            unsafe { (self.unload)(self.provider) };
        }
        // SAFETY: made by `open` and used by nothing else; null does nothing.
        unsafe { (self.free)(self.context) };
    }
}
