//! A provider's tables of functions, as the core reads them.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int};

use evener_ossl_sys::{Algorithm, Dispatch, Param, number};

use super::{CipherCtx, Opaque, Provider};

libcrypto! {
    fn OSSL_PROVIDER_query_operation(Opaque, c_int, *mut c_int) -> *const Algorithm;
    fn EVP_CIPHER_CTX_settable_params(Opaque) -> *const Param;
    fn EVP_CIPHER_CTX_gettable_params(Opaque) -> *const Param;
}

/// Addresses of functions by their numbers.
pub type Functions = BTreeMap<c_int, usize>;

impl Provider {
    /// The functions of each cipher, by its first name.
    pub fn ciphers(&self) -> BTreeMap<String, Functions> {
        let mut no_store = 0;
        // SAFETY: a loaded provider, and space for one number.
        let list = unsafe { OSSL_PROVIDER_query_operation(self.0, number::OP_CIPHER, &raw mut no_store) };
        // SAFETY: a list that ends with null names.
        let all = unsafe { until(list, |algorithm| algorithm.names.is_null()) };
        all.into_iter().map(|algorithm| (first_name(&algorithm), functions(&algorithm))).collect()
    }
}

impl CipherCtx {
    /// What can be set, and what can be asked.
    pub fn keys(&self) -> [Vec<String>; 2] {
        // SAFETY: ours, with a cipher.
        let settable = unsafe { EVP_CIPHER_CTX_settable_params(self.0) };
        // SAFETY: as above.
        let gettable = unsafe { EVP_CIPHER_CTX_gettable_params(self.0) };
        // SAFETY: lists that end with a null key.
        let keys = |list| unsafe { until(list, |param: &Param| param.key.is_null()) };
        // SAFETY: text that ends.
        let text = |param: Param| unsafe { CStr::from_ptr(param.key) }.to_string_lossy().into_owned();
        [settable, gettable].map(|list| keys(list).into_iter().map(text).collect())
    }
}

fn first_name(algorithm: &Algorithm) -> String {
    // SAFETY: text that ends.
    let names = unsafe { CStr::from_ptr(algorithm.names) }.to_string_lossy();
    names.split(':').next().unwrap().to_owned()
}

fn functions(algorithm: &Algorithm) -> Functions {
    // SAFETY: a table that ends with number 0.
    let table = unsafe { until(algorithm.implementation, |entry: &Dispatch| entry.function_id == 0) };
    table.into_iter().map(|entry| (entry.function_id, entry.function.unwrap() as usize)).collect()
}

/// What stands before the end of a list.
///
/// # Safety
///
/// `first` is null or a list that has an end.
unsafe fn until<T: Copy>(first: *const T, is_end: impl Fn(&T) -> bool) -> Vec<T> {
    let mut read = Vec::new();
    while !first.is_null() {
        // SAFETY: none before it was the end, so that it exists.
        let entry = unsafe { first.add(read.len()) };
        // SAFETY: as above.
        let entry = unsafe { entry.read() };
        if is_end(&entry) {
            break;
        }
        read.push(entry);
    }
    read
}
