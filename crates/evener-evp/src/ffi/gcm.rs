//! AES-GCM over short texts: keysets. Files go through drivers.

use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};

use evener_evp_sys::{
    EVP_CIPHER_CTX_ctrl, EVP_CIPHER_CTX_free, EVP_CIPHER_CTX_new, EVP_CIPHER_fetch, EVP_CIPHER_free,
    EVP_CipherFinal_ex, EVP_CipherInit_ex2, EVP_CipherUpdate, EvpCipher, EvpCipherCtx,
};
use zeroize::Zeroizing;

use super::{LIBRARY, accepted, int, owned};
use crate::Refused;

/// Length of a tag in bytes.
pub(crate) const TAG_BYTES: usize = 16;
/// `EVP_CTRL_AEAD_GET_TAG` and `EVP_CTRL_AEAD_SET_TAG`.
const GET_TAG: c_int = 0x10;
const SET_TAG: c_int = 0x11;

struct Gcm {
    cipher: NonNull<EvpCipher>,
    context: NonNull<EvpCipherCtx>,
}

impl Drop for Gcm {
    fn drop(&mut self) {
        // SAFETY: the context is this value's own; freeing wipes its key schedule.
        unsafe { EVP_CIPHER_CTX_free(self.context.as_ptr()) };
        // SAFETY: this is the one reference that the fetch gave.
        unsafe { EVP_CIPHER_free(self.cipher.as_ptr()) };
    }
}

impl Gcm {
    fn new(encrypts: bool, key: &[u8], nonce: &[u8; 12]) -> Result<Self, Refused> {
        let name = match key.len() {
            16 => c"AES-128-GCM",
            32 => c"AES-256-GCM",
            _ => return Err(Refused),
        };
        let context = owned(EVP_CIPHER_CTX_new())?;
        // SAFETY: the name ends in nul and is read during the call only.
        let cipher = owned(unsafe { EVP_CIPHER_fetch(LIBRARY, name.as_ptr(), ptr::null()) });
        let cipher = cipher.inspect_err(|_| {
            // SAFETY: no other thread has the context.
            unsafe { EVP_CIPHER_CTX_free(context.as_ptr()) }
        })?;
        let gcm = Self { cipher, context };
        // SAFETY: both are alive, key and nonce (12 bytes, the default) have the lengths that are read.
        accepted(unsafe {
            EVP_CipherInit_ex2(
                gcm.context.as_ptr(),
                gcm.cipher.as_ptr(),
                key.as_ptr(),
                nonce.as_ptr(),
                encrypts.into(),
                ptr::null(),
            )
        })?;
        Ok(gcm)
    }

    fn control(&self, control: c_int, tag: &mut [u8; TAG_BYTES]) -> Result<(), Refused> {
        let space: *mut c_void = tag.as_mut_ptr().cast();
        // SAFETY: the tag has the length that is told.
        accepted(unsafe { EVP_CIPHER_CTX_ctrl(self.context.as_ptr(), control, int(TAG_BYTES)?, space) })
    }

    fn crypt(&self, text: &[u8], output: &mut [u8]) -> Result<(), Refused> {
        let mut written = 0;
        // SAFETY: GCM writes as many bytes as it reads, and the output is as long as the text.
        accepted(unsafe {
            EVP_CipherUpdate(
                self.context.as_ptr(),
                output.as_mut_ptr(),
                &raw mut written,
                text.as_ptr(),
                int(text.len().min(output.len()))?,
            )
        })?;
        let mut rest = [0; 32];
        // SAFETY: GCM writes nothing at its end; the space would hold a block.
        accepted(unsafe { EVP_CipherFinal_ex(self.context.as_ptr(), rest.as_mut_ptr(), &raw mut written) })
    }
}

pub(crate) fn seal(key: &[u8], nonce: &[u8; 12], text: &[u8]) -> Result<Vec<u8>, Refused> {
    let gcm = Gcm::new(true, key, nonce)?;
    let (mut sealed, mut tag) = (vec![0; text.len()], [0; TAG_BYTES]);
    gcm.crypt(text, &mut sealed)?;
    gcm.control(GET_TAG, &mut tag)?;
    sealed.extend_from_slice(&tag);
    Ok(sealed)
}

pub(crate) fn open(key: &[u8], nonce: &[u8; 12], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, Refused> {
    let (cipher, tag) = sealed.split_last_chunk::<TAG_BYTES>().ok_or(Refused)?;
    let gcm = Gcm::new(false, key, nonce)?;
    let mut text = Zeroizing::new(vec![0; cipher.len()]);
    let mut tag = *tag;
    gcm.control(SET_TAG, &mut tag)?;
    gcm.crypt(cipher, &mut text)?;
    Ok(text)
}
