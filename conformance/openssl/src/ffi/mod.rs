//! EVP as a program in C sees it, behind owned types: no pointer leaves this folder.
//!
//! Path: a [`Library`] reads a configuration -> [`Cipher`]s and hashes are fetched in it -> a [`Context`] takes
//! calls in any order, wrong ones too, and hands on what libcrypto answers. The error queue is emptied after each.
//! Declared by hand from OpenSSL 3.0's manual pages.

mod cipher;
mod fork;
mod message;

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_uint, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr::NonNull;

pub use cipher::{Answer, Cipher, Context, Octets, SPARE_BYTES};
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

macro_rules! opaque {
    ($($name:ident)*) => { $(#[repr(C)] struct $name { _private: [u8; 0] })* };
}

opaque! { OsslLibCtx OsslProvider EvpCipher EvpCipherCtx EvpMd EvpMdCtx EvpMac EvpMacCtx }

/// `OSSL_PARAM`: one named value; an array of them ends in one that the library makes.
#[repr(C)]
struct OsslParam {
    key: *const c_char,
    data_type: c_uint,
    data: *mut c_void,
    data_size: usize,
    return_size: usize,
}

#[link(name = "crypto")]
unsafe extern "C" {
    safe fn ERR_clear_error();
    safe fn OSSL_LIB_CTX_new() -> *mut OsslLibCtx;
    fn OSSL_LIB_CTX_load_config(library: *mut OsslLibCtx, path: *const c_char) -> c_int;
    fn OSSL_PROVIDER_get_params(provider: *const OsslProvider, params: *mut OsslParam) -> c_int;
    fn OSSL_PROVIDER_get0_name(provider: *const OsslProvider) -> *const c_char;

    fn OSSL_PARAM_construct_uint(key: *const c_char, value: *mut c_uint) -> OsslParam;
    fn OSSL_PARAM_construct_size_t(key: *const c_char, value: *mut usize) -> OsslParam;
    fn OSSL_PARAM_construct_octet_ptr(key: *const c_char, value: *mut *mut c_void, bytes: usize)
    -> OsslParam;
    fn OSSL_PARAM_construct_utf8_string(key: *const c_char, value: *mut c_char, bytes: usize) -> OsslParam;
    safe fn OSSL_PARAM_construct_end() -> OsslParam;

    fn EVP_CIPHER_fetch(
        library: *mut OsslLibCtx,
        name: *const c_char,
        properties: *const c_char,
    ) -> *mut EvpCipher;
    fn EVP_CIPHER_get0_provider(cipher: *const EvpCipher) -> *const OsslProvider;
    fn EVP_CIPHER_get_key_length(cipher: *const EvpCipher) -> c_int;
    fn EVP_CIPHER_get_iv_length(cipher: *const EvpCipher) -> c_int;
    fn EVP_CIPHER_free(cipher: *mut EvpCipher);
    safe fn EVP_CIPHER_CTX_new() -> *mut EvpCipherCtx;
    fn EVP_CIPHER_CTX_free(context: *mut EvpCipherCtx);
    fn EVP_CIPHER_CTX_copy(to: *mut EvpCipherCtx, from: *const EvpCipherCtx) -> c_int;
    fn EVP_CipherInit_ex2(
        context: *mut EvpCipherCtx,
        cipher: *const EvpCipher,
        key: *const c_uchar,
        iv: *const c_uchar,
        encrypts: c_int,
        params: *const OsslParam,
    ) -> c_int;
    fn EVP_CipherUpdate(
        context: *mut EvpCipherCtx,
        output: *mut c_uchar,
        written: *mut c_int,
        input: *const c_uchar,
        bytes: c_int,
    ) -> c_int;
    fn EVP_CipherFinal_ex(context: *mut EvpCipherCtx, output: *mut c_uchar, written: *mut c_int) -> c_int;
    fn EVP_Cipher(
        context: *mut EvpCipherCtx,
        output: *mut c_uchar,
        input: *const c_uchar,
        bytes: c_uint,
    ) -> c_int;
    fn EVP_CIPHER_CTX_ctrl(
        context: *mut EvpCipherCtx,
        control: c_int,
        number: c_int,
        data: *mut c_void,
    ) -> c_int;
    fn EVP_CIPHER_CTX_set_padding(context: *mut EvpCipherCtx, padding: c_int) -> c_int;
    fn EVP_CIPHER_CTX_set_key_length(context: *mut EvpCipherCtx, bytes: c_int) -> c_int;
    fn EVP_CIPHER_CTX_get_num(context: *const EvpCipherCtx) -> c_int;
    fn EVP_CIPHER_CTX_set_num(context: *mut EvpCipherCtx, number: c_int) -> c_int;
    fn EVP_CIPHER_CTX_get_original_iv(context: *mut EvpCipherCtx, iv: *mut c_void, bytes: usize) -> c_int;
    fn EVP_CIPHER_CTX_get_updated_iv(context: *mut EvpCipherCtx, iv: *mut c_void, bytes: usize) -> c_int;
    fn EVP_CIPHER_CTX_set_params(context: *mut EvpCipherCtx, params: *const OsslParam) -> c_int;
    fn EVP_CIPHER_CTX_get_params(context: *mut EvpCipherCtx, params: *mut OsslParam) -> c_int;

    fn EVP_MD_fetch(library: *mut OsslLibCtx, name: *const c_char, properties: *const c_char) -> *mut EvpMd;
    fn EVP_MD_get0_provider(digest: *const EvpMd) -> *const OsslProvider;
    fn EVP_MD_free(digest: *mut EvpMd);
    safe fn EVP_MD_CTX_new() -> *mut EvpMdCtx;
    fn EVP_MD_CTX_free(context: *mut EvpMdCtx);
    fn EVP_MD_CTX_copy_ex(to: *mut EvpMdCtx, from: *const EvpMdCtx) -> c_int;
    fn EVP_DigestInit_ex2(context: *mut EvpMdCtx, digest: *const EvpMd, params: *const OsslParam) -> c_int;
    fn EVP_DigestUpdate(context: *mut EvpMdCtx, data: *const c_void, bytes: usize) -> c_int;
    fn EVP_DigestFinal_ex(context: *mut EvpMdCtx, digest: *mut c_uchar, written: *mut c_uint) -> c_int;

    fn EVP_MAC_fetch(library: *mut OsslLibCtx, name: *const c_char, properties: *const c_char)
    -> *mut EvpMac;
    fn EVP_MAC_free(mac: *mut EvpMac);
    fn EVP_MAC_CTX_new(mac: *mut EvpMac) -> *mut EvpMacCtx;
    fn EVP_MAC_CTX_free(context: *mut EvpMacCtx);
    fn EVP_MAC_init(
        context: *mut EvpMacCtx,
        key: *const c_uchar,
        bytes: usize,
        params: *const OsslParam,
    ) -> c_int;
    fn EVP_MAC_update(context: *mut EvpMacCtx, data: *const c_uchar, bytes: usize) -> c_int;
    fn EVP_MAC_final(
        context: *mut EvpMacCtx,
        tag: *mut c_uchar,
        written: *mut usize,
        bytes_max: usize,
    ) -> c_int;
}
