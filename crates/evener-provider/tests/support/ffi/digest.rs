//! Digests and messages that are hashed, as a program has them.

use std::ffi::{CString, c_char, c_int, c_uchar, c_uint, c_void};
use std::ptr;

use super::libcrypto::Opaque;
use super::{function, provider_name};

libcrypto! {
    fn EVP_MD_fetch(Opaque, *const c_char, *const c_char) -> Opaque;
    fn EVP_MD_free(Opaque);
    fn EVP_MD_get0_provider(Opaque) -> Opaque;
    fn EVP_MD_CTX_new() -> Opaque;
    fn EVP_MD_CTX_free(Opaque);
    fn EVP_MD_CTX_copy_ex(Opaque, Opaque) -> c_int;
    fn EVP_DigestInit_ex(Opaque, Opaque, Opaque) -> c_int;
    fn EVP_DigestUpdate(Opaque, *const c_void, usize) -> c_int;
    fn EVP_DigestFinal_ex(Opaque, *mut c_uchar, *mut c_uint) -> c_int;
}

/// A fetched digest.
pub struct Digest(Opaque);

// SAFETY: a fetched algorithm is only read, and its references are counted atomically.
unsafe impl Sync for Digest {}

impl Digest {
    pub(super) fn fetch(context: Opaque, name: &str, properties: &str) -> Option<Self> {
        let (name, properties) = (CString::new(name).unwrap(), CString::new(properties).unwrap());
        // SAFETY: a context and texts.
        let made = unsafe { EVP_MD_fetch(context, name.as_ptr(), properties.as_ptr()) };
        (!made.is_null()).then_some(Self(made))
    }

    pub fn provider(&self) -> String {
        // SAFETY: fetched.
        provider_name(unsafe { EVP_MD_get0_provider(self.0) })
    }

    /// The digest of `parts`, with the context copied between each two.
    pub fn of(&self, parts: &[&[u8]]) -> Vec<u8> {
        let mut out = vec![0; 64];
        let mut len = 0;
        // SAFETY: takes nothing.
        let mut ctx = unsafe { EVP_MD_CTX_new() };
        // SAFETY: fetched, ours.
        assert_eq!(unsafe { EVP_DigestInit_ex(ctx, self.0, ptr::null_mut()) }, 1);
        for part in parts {
            // SAFETY: ours.
            assert_eq!(unsafe { EVP_DigestUpdate(ctx, part.as_ptr().cast(), part.len()) }, 1);
            // SAFETY: takes nothing.
            let copy = unsafe { EVP_MD_CTX_new() };
            // SAFETY: both ours.
            assert_eq!(unsafe { EVP_MD_CTX_copy_ex(copy, ctx) }, 1);
            // SAFETY: ours.
            unsafe { EVP_MD_CTX_free(ctx) };
            ctx = copy;
        }
        // SAFETY: space for the longest digest.
        assert_eq!(unsafe { EVP_DigestFinal_ex(ctx, out.as_mut_ptr(), &raw mut len) }, 1);
        // SAFETY: ours.
        unsafe { EVP_MD_CTX_free(ctx) };
        out.truncate(len as usize);
        out
    }
}

/// A message that is hashed.
pub struct DigestCtx(Opaque);

// SAFETY: a context belongs to its user.
unsafe impl Send for DigestCtx {}

impl DigestCtx {
    pub fn new(digest: &Digest) -> Self {
        // SAFETY: takes nothing.
        let ctx = Self(unsafe { EVP_MD_CTX_new() });
        ctx.init(digest);
        ctx
    }

    pub fn init(&self, digest: &Digest) {
        // SAFETY: fetched, ours.
        assert_eq!(unsafe { EVP_DigestInit_ex(self.0, digest.0, ptr::null_mut()) }, 1);
    }

    pub fn update(&self, input: &[u8]) {
        // SAFETY: ours.
        assert_eq!(unsafe { EVP_DigestUpdate(self.0, input.as_ptr().cast(), input.len()) }, 1);
    }

    /// The state as a program keeps it, which OpenSSL has from 4.0 on; the inner `None` where this digest does not give it.
    pub fn serialized(&self) -> Option<Option<Vec<u8>>> {
        type Serialize = unsafe extern "C" fn(Opaque, *mut u8, *mut usize) -> c_int;
        let serialize: Serialize = function(c"EVP_MD_CTX_serialize")?;
        let mut len = 0;
        // SAFETY: ours; asks for the length.
        let is_told = unsafe { serialize(self.0, ptr::null_mut(), &raw mut len) } == 1;
        let mut state = vec![0; len];
        // SAFETY: ours, with as much space as it said.
        let is_given = is_told && unsafe { serialize(self.0, state.as_mut_ptr(), &raw mut len) } == 1;
        state.truncate(len);
        Some(is_given.then_some(state))
    }

    /// Goes on where a state was kept; whether it may.
    pub fn deserialize(&self, state: &[u8]) -> bool {
        type Deserialize = unsafe extern "C" fn(Opaque, *const u8, usize) -> c_int;
        let deserialize: Option<Deserialize> = function(c"EVP_MD_CTX_deserialize");
        // SAFETY: ours; the bytes are only read.
        deserialize
            .is_some_and(|deserialize| unsafe { deserialize(self.0, state.as_ptr(), state.len()) } == 1)
    }

    pub fn last(&self) -> Vec<u8> {
        let mut out = vec![0; 64];
        let mut len = 0;
        // SAFETY: space for the longest digest.
        assert_eq!(unsafe { EVP_DigestFinal_ex(self.0, out.as_mut_ptr(), &raw mut len) }, 1);
        out.truncate(len as usize);
        out
    }
}

impl Drop for DigestCtx {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { EVP_MD_CTX_free(self.0) };
    }
}

impl Drop for Digest {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { EVP_MD_free(self.0) };
    }
}
