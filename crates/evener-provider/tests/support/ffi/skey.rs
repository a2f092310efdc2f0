//! Key objects as a program uses them, by name: a libcrypto before 3.5 has none of these functions.

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::ptr;

use evener_ossl_sys::{PARAM_UNSIGNED_INTEGER, Param};

use super::{Cipher, CipherCtx, param};

type Opaque = *mut c_void;

/// The address of a function of the libcrypto that this program is linked to; null where it has none.
fn address(name: &CStr) -> Opaque {
    // SAFETY: a name.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

macro_rules! call {
    ($name:literal($($argument:expr),*): fn($($type:ty),*) $(-> $result:ty)?) => {{
        let address = address($name);
        assert!(!address.is_null(), "{:?} is missing", $name);
        // SAFETY: libcrypto's function of this name.
        let function = unsafe { std::mem::transmute::<Opaque, unsafe extern "C" fn($($type),*) $(-> $result)?>(address) };
        // SAFETY: as its manual says.
        unsafe { function($($argument),*) }
    }};
}

/// A key object.
pub struct Key(Opaque);

impl Key {
    pub fn are_known() -> bool {
        !address(c"EVP_CipherInit_SKEY").is_null()
    }

    /// One of this kind from the key's bytes.
    pub fn import(kind: &str, bytes: &[u8], properties: &str) -> Option<Self> {
        let (kind, properties) = (CString::new(kind).unwrap(), CString::new(properties).unwrap());
        let mut bytes = bytes.to_vec();
        let made = call!(c"EVP_SKEY_import_raw_key"(
                ptr::null_mut(), kind.as_ptr(), bytes.as_mut_ptr(), bytes.len(), properties.as_ptr()):
            fn(Opaque, *const c_char, *mut c_uchar, usize, *const c_char) -> Opaque);
        (!made.is_null()).then_some(Self(made))
    }

    /// A new one of `len` bytes.
    pub fn generate(kind: &str, len: usize, properties: &str) -> Option<Self> {
        let (kind, properties) = (CString::new(kind).unwrap(), CString::new(properties).unwrap());
        let mut len = len;
        let data = (&raw mut len).cast();
        let params = [param(c"key-length", PARAM_UNSIGNED_INTEGER, data, size_of::<usize>()), Param::END];
        let made = call!(c"EVP_SKEY_generate"(
                ptr::null_mut(), kind.as_ptr(), properties.as_ptr(), params.as_ptr()):
            fn(Opaque, *const c_char, *const c_char, *const Param) -> Opaque);
        (!made.is_null()).then_some(Self(made))
    }

    /// The same key as an object of the provider of this name.
    pub fn to_provider(&self, name: &str) -> Option<Self> {
        let properties = CString::new(format!("provider={name}")).unwrap();
        let made = call!(c"EVP_SKEY_to_provider"(
                self.0, ptr::null_mut(), ptr::null_mut(), properties.as_ptr()):
            fn(Opaque, Opaque, Opaque, *const c_char) -> Opaque);
        (!made.is_null()).then_some(Self(made))
    }

    pub fn provider(&self) -> String {
        let name = call!(c"EVP_SKEY_get0_provider_name"(self.0): fn(Opaque) -> *const c_char);
        // SAFETY: text that ends.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    }

    /// The key, where the provider gives it away.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let (mut key, mut len) = (ptr::null::<c_uchar>(), 0_usize);
        let code = call!(c"EVP_SKEY_get0_raw_key"(self.0, &raw mut key, &raw mut len):
            fn(Opaque, *mut *const c_uchar, *mut usize) -> c_int);
        if code != 1 {
            return None;
        }
        // SAFETY: so many bytes of the object, which lives.
        Some(unsafe { std::slice::from_raw_parts(key, len) }.to_vec())
    }

    /// Init of a context with this key.
    pub fn init(&self, ctx: &CipherCtx, cipher: &Cipher, iv: &[u8], encrypts: bool) -> bool {
        let code = call!(c"EVP_CipherInit_SKEY"(
                ctx.0, cipher.0, self.0, iv.as_ptr(), iv.len(), c_int::from(encrypts), ptr::null()):
            fn(Opaque, Opaque, Opaque, *const c_uchar, usize, c_int, *const Param) -> c_int);
        code == 1
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        call!(c"EVP_SKEY_free"(self.0): fn(Opaque));
    }
}
