//! Digests by name, and the keys that `openssl enc` derives with them.

use std::ffi::CString;
use std::ptr::{self, NonNull};

use evener_evp_sys::{
    EVP_DigestFinal_ex, EVP_DigestInit_ex2, EVP_DigestUpdate, EVP_MD_CTX_free, EVP_MD_CTX_new, EVP_MD_fetch,
    EVP_MD_free, EVP_MD_get_size, EvpMd, EvpMdCtx, PKCS5_PBKDF2_HMAC,
};
use zeroize::Zeroizing;

use super::{LIBRARY, accepted, int, len, owned};
use crate::Refused;

/// Longest digest of any kind (`EVP_MAX_MD_SIZE`).
const DIGEST_BYTES_MAX: usize = 64;

/// A digest of libcrypto's.
#[derive(Debug)]
pub struct Digest(NonNull<EvpMd>);

impl Drop for Digest {
    fn drop(&mut self) {
        // SAFETY: this is the one reference that the fetch gave; contexts count their own.
        unsafe { EVP_MD_free(self.0.as_ptr()) }
    }
}

// SAFETY: a fetched method is constant but for its reference count, which libcrypto changes atomically.
unsafe impl Send for Digest {}
// SAFETY: as above.
unsafe impl Sync for Digest {}

/// A context, freed with what it holds.
struct Context(NonNull<EvpMdCtx>);

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is this value's own; freeing wipes its state.
        unsafe { EVP_MD_CTX_free(self.0.as_ptr()) }
    }
}

/// A digest on its way.
pub struct RunningDigest {
    context: Context,
    /// Its length at the end.
    bytes: usize,
}

impl RunningDigest {
    /// Takes the next bytes in.
    ///
    /// # Errors
    ///
    /// [`Refused`] where libcrypto refuses them.
    pub fn update(&mut self, text: &[u8]) -> Result<(), Refused> {
        // SAFETY: the text is read during the call only.
        accepted(unsafe { EVP_DigestUpdate(self.context.0.as_ptr(), text.as_ptr().cast(), text.len()) })
    }

    /// The digest of all that came.
    ///
    /// # Errors
    ///
    /// [`Refused`] where libcrypto refuses it.
    pub fn finish(self) -> Result<Zeroizing<Vec<u8>>, Refused> {
        let mut digest = Zeroizing::new(vec![0; DIGEST_BYTES_MAX]);
        let (context, place) = (self.context.0.as_ptr(), digest.as_mut_ptr());
        // SAFETY: the space holds the longest digest; null: its length is known.
        accepted(unsafe { EVP_DigestFinal_ex(context, place, ptr::null_mut()) })?;
        digest.truncate(self.bytes);
        Ok(digest)
    }
}

impl Digest {
    /// The digest of that name, `None` where libcrypto has none by its configuration.
    #[must_use]
    pub fn fetch(name: &str) -> Option<Self> {
        let name = CString::new(name).ok()?;
        // SAFETY: the name ends in nul and is read during the call only.
        let digest = unsafe { EVP_MD_fetch(LIBRARY, name.as_ptr(), ptr::null()) };
        owned(digest).ok().map(Self)
    }

    /// The digest of some parts, one after the other.
    ///
    /// # Errors
    ///
    /// [`Refused`] where libcrypto has no memory.
    pub fn of(&self, parts: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>, Refused> {
        let mut running = self.begin()?;
        for part in parts {
            running.update(part)?;
        }
        running.finish()
    }

    /// A digest of what comes bit by bit.
    ///
    /// # Errors
    ///
    /// [`Refused`] where libcrypto has no memory.
    pub fn begin(&self) -> Result<RunningDigest, Refused> {
        let context = Context(owned(EVP_MD_CTX_new())?);
        // SAFETY: context and method are alive.
        accepted(unsafe { EVP_DigestInit_ex2(context.0.as_ptr(), self.0.as_ptr(), ptr::null()) })?;
        // SAFETY: the method is alive.
        Ok(RunningDigest { context, bytes: len(unsafe { EVP_MD_get_size(self.0.as_ptr()) }) })
    }

    /// PBKDF2 with HMAC of this digest (RFC 8018) fills `key`.
    ///
    /// # Errors
    ///
    /// [`Refused`] where the digest cannot be in an HMAC, or a length is beyond libcrypto's.
    pub fn pbkdf2(
        &self,
        passphrase: &[u8],
        salt: &[u8],
        iterations: u32,
        key: &mut [u8],
    ) -> Result<(), Refused> {
        let iterations = usize::try_from(iterations).map_err(|_| Refused)?;
        // SAFETY: each pointer goes with the length of what it points to.
        accepted(unsafe {
            PKCS5_PBKDF2_HMAC(
                passphrase.as_ptr().cast(),
                int(passphrase.len())?,
                salt.as_ptr(),
                int(salt.len())?,
                int(iterations)?,
                self.0.as_ptr(),
                int(key.len())?,
                key.as_mut_ptr(),
            )
        })
    }

    /// What `openssl enc` did before `-pbkdf2`, EVP_BytesToKey with one round, fills `key`: the digest of passphrase and salt, then
    /// again and again of the last digest, passphrase and salt.
    ///
    /// # Errors
    ///
    /// [`Refused`] where libcrypto has no memory.
    pub fn bytes_to_key(&self, passphrase: &[u8], salt: &[u8], key: &mut [u8]) -> Result<(), Refused> {
        let (mut last, mut filled) = (Zeroizing::new(Vec::new()), 0);
        while filled < key.len() {
            last = self.of(&[&last, passphrase, salt])?;
            let part = last.len().min(key.len() - filled);
            if part == 0 {
                return Err(Refused);
            }
            key[filled..filled + part].copy_from_slice(&last[..part]);
            filled += part;
        }
        Ok(())
    }
}
