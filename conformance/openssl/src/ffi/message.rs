//! Hashes and MACs.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::{self, NonNull};

use evener_evp_sys::{
    ERR_clear_error, EVP_DigestFinal_ex, EVP_DigestInit_ex2, EVP_DigestUpdate, EVP_MAC_CTX_free,
    EVP_MAC_CTX_new, EVP_MAC_fetch, EVP_MAC_final, EVP_MAC_free, EVP_MAC_init, EVP_MAC_update,
    EVP_MD_CTX_copy_ex, EVP_MD_CTX_free, EVP_MD_CTX_new, EVP_MD_fetch, EVP_MD_free, EVP_MD_get0_provider,
    EvpMd, EvpMdCtx, OSSL_PARAM_construct_end, OSSL_PARAM_construct_utf8_string,
};

use super::{Library, fetched, provider_name};

/// A hash at work.
pub struct Digest {
    context: NonNull<EvpMdCtx>,
    method: NonNull<EvpMd>,
}

// SAFETY: a context belongs to no thread; `&mut` everywhere keeps two threads from using it at once.
unsafe impl Send for Digest {}

impl Digest {
    /// Begins a message with what `library` prefers for `name`; `None` where it has none.
    #[must_use]
    pub fn fetch(library: &'static Library, name: &str) -> Option<Self> {
        let method = fetched(library, name, EVP_MD_fetch)?;
        let made = Self { method, context: NonNull::new(EVP_MD_CTX_new())? };
        // SAFETY: context and method are alive; there are no parameters.
        let code = unsafe { EVP_DigestInit_ex2(made.context.as_ptr(), made.method.as_ptr(), ptr::null()) };
        (code == 1).then_some(made)
    }

    /// The name of the provider that serves it.
    #[must_use]
    pub fn provider(&self) -> String {
        // SAFETY: libcrypto only reads the fetched method.
        provider_name(unsafe { EVP_MD_get0_provider(self.method.as_ptr()) })
    }

    /// Takes more of the message.
    #[allow(clippy::needless_pass_by_ref_mut, reason = "libcrypto changes the context behind the pointer")]
    pub fn update(&mut self, data: &[u8]) -> c_int {
        // SAFETY: `data` is read for its whole length.
        unsafe { EVP_DigestUpdate(self.context.as_ptr(), data.as_ptr().cast::<c_void>(), data.len()) }
    }

    /// The digest of what came so far, from a copy of the context: the message may go on.
    #[must_use]
    pub fn so_far(&self) -> (c_int, Vec<u8>) {
        let Some(copy) = NonNull::new(EVP_MD_CTX_new()) else { return (0, Vec::new()) };
        // SAFETY: both contexts are alive.
        let copied = unsafe { EVP_MD_CTX_copy_ex(copy.as_ptr(), self.context.as_ptr()) };
        let mut digest = vec![0; 64];
        let mut written = 0;
        // SAFETY: no digest of a fixed length is longer than 64 bytes.
        let code = unsafe { EVP_DigestFinal_ex(copy.as_ptr(), digest.as_mut_ptr(), &raw mut written) };
        // SAFETY: the copy was made above and nothing else refers to it.
        unsafe { EVP_MD_CTX_free(copy.as_ptr()) };
        digest.truncate(usize::try_from(written).unwrap_or(0));
        (copied & code, digest)
    }
}

impl Drop for Digest {
    fn drop(&mut self) {
        // SAFETY: the context was made here and nothing else refers to it.
        unsafe { EVP_MD_CTX_free(self.context.as_ptr()) }
        // SAFETY: this is the one reference that `fetch` was given; contexts count their own.
        unsafe { EVP_MD_free(self.method.as_ptr()) }
    }
}

/// HMAC of `data` with the named hash; `None` where libcrypto refuses.
#[must_use]
pub fn hmac(library: &'static Library, digest: &CStr, key: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    // SAFETY: the library lives on and the name ends in nul; null: no properties but its own.
    let method = NonNull::new(unsafe { EVP_MAC_fetch(library.0.as_ptr(), c"HMAC".as_ptr(), ptr::null()) })?;
    // SAFETY: the method is alive; the context counts its own reference to it.
    let context = unsafe { EVP_MAC_CTX_new(method.as_ptr()) };
    // SAFETY: this is the one reference that the fetch gave; the context has another.
    unsafe { EVP_MAC_free(method.as_ptr()) };
    let context = NonNull::new(context)?;
    // SAFETY: both strings end in nul (length 0: count yourself) and outlive the parameter, which is only read.
    let value =
        unsafe { OSSL_PARAM_construct_utf8_string(c"digest".as_ptr(), digest.as_ptr().cast_mut(), 0) };
    let params = [value, OSSL_PARAM_construct_end()];
    let (mut tag, mut written) = (vec![0; 64], 0);
    // SAFETY: the key is read for its whole length and the parameters end in the end mark.
    let began = unsafe { EVP_MAC_init(context.as_ptr(), key.as_ptr(), key.len(), params.as_ptr()) };
    // SAFETY: `data` is read for its whole length.
    let took = unsafe { EVP_MAC_update(context.as_ptr(), data.as_ptr(), data.len()) };
    // SAFETY: libcrypto refuses where `tag` is too short.
    let ended = unsafe { EVP_MAC_final(context.as_ptr(), tag.as_mut_ptr(), &raw mut written, tag.len()) };
    // SAFETY: the context was made above and nothing else refers to it.
    unsafe { EVP_MAC_CTX_free(context.as_ptr()) };
    ERR_clear_error();
    tag.truncate(written);
    (began & took & ended == 1).then_some(tag)
}
