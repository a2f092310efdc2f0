//! Ciphers by the names that `openssl enc` takes, as streams.

use std::ffi::{CString, c_int};
use std::ptr::{self, NonNull};

use evener_evp_sys::{
    EVP_CIPHER_CTX_free, EVP_CIPHER_CTX_new, EVP_CIPHER_fetch, EVP_CIPHER_free, EVP_CIPHER_get_block_size,
    EVP_CIPHER_get_flags, EVP_CIPHER_get_iv_length, EVP_CIPHER_get_key_length, EVP_CIPHER_get_mode,
    EVP_CipherFinal_ex, EVP_CipherInit_ex2, EVP_CipherUpdate, EvpCipher, EvpCipherCtx,
};
use zeroize::Zeroize as _;

use super::{LIBRARY, accepted, int, len, owned};
use crate::Refused;

/// `EVP_CIPH_FLAG_AEAD_CIPHER`.
const AEAD: std::ffi::c_ulong = 0x20_0000;
/// Longest block of any cipher (`EVP_MAX_BLOCK_LENGTH`).
const BLOCK_BYTES_MAX: usize = 32;

/// How a cipher treats a text of many blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Whole blocks, padded at the end.
    Blocks,
    /// Any length, as long out as in.
    Stream,
    /// What no file is written with: authenticated modes, XTS, key wrapping.
    Other,
}

/// A cipher of libcrypto's.
#[derive(Debug)]
pub struct Cipher(NonNull<EvpCipher>);

impl Drop for Cipher {
    fn drop(&mut self) {
        // SAFETY: this is the one reference that the fetch gave; contexts count their own.
        unsafe { EVP_CIPHER_free(self.0.as_ptr()) }
    }
}

// SAFETY: a fetched method is constant but for its reference count, which libcrypto changes atomically.
unsafe impl Send for Cipher {}
// SAFETY: as above.
unsafe impl Sync for Cipher {}

impl Cipher {
    /// The cipher of that name, `None` where libcrypto has none by its configuration.
    #[must_use]
    pub fn fetch(name: &str) -> Option<Self> {
        let name = CString::new(name).ok()?;
        // SAFETY: the name ends in nul and is read during the call only.
        let cipher = unsafe { EVP_CIPHER_fetch(LIBRARY, name.as_ptr(), ptr::null()) };
        owned(cipher).ok().map(Self)
    }

    /// Length of its key in bytes.
    #[must_use]
    pub fn key_bytes(&self) -> usize {
        // SAFETY: the fetched method is alive.
        len(unsafe { EVP_CIPHER_get_key_length(self.0.as_ptr()) })
    }

    /// Length of its IV in bytes, 0 where it takes none.
    #[must_use]
    pub fn iv_bytes(&self) -> usize {
        // SAFETY: as above.
        len(unsafe { EVP_CIPHER_get_iv_length(self.0.as_ptr()) })
    }

    /// Length of its blocks in bytes, 1 for streams.
    #[must_use]
    pub fn block_bytes(&self) -> usize {
        // SAFETY: as above.
        len(unsafe { EVP_CIPHER_get_block_size(self.0.as_ptr()) })
    }

    /// How it treats a long text.
    #[must_use]
    pub fn mode(&self) -> Mode {
        // SAFETY: as above.
        let flags = unsafe { EVP_CIPHER_get_flags(self.0.as_ptr()) };
        // SAFETY: as above.
        match unsafe { EVP_CIPHER_get_mode(self.0.as_ptr()) } {
            _ if flags & AEAD != 0 => Mode::Other,
            // EVP_CIPH_ECB_MODE, EVP_CIPH_CBC_MODE.
            1 | 2 => Mode::Blocks,
            // EVP_CIPH_STREAM_CIPHER, EVP_CIPH_CFB_MODE, EVP_CIPH_OFB_MODE, EVP_CIPH_CTR_MODE.
            0 | 3 | 4 | 5 => Mode::Stream,
            _ => Mode::Other,
        }
    }

    /// Begins a text, padded where the cipher wants whole blocks.
    ///
    /// # Errors
    ///
    /// [`Refused`] where key or IV have another length, or libcrypto has no memory.
    pub fn stream(&self, encrypts: bool, key: &[u8], iv: &[u8]) -> Result<CipherStream, Refused> {
        if (key.len(), iv.len()) != (self.key_bytes(), self.iv_bytes()) {
            return Err(Refused);
        }
        let stream = CipherStream { context: owned(EVP_CIPHER_CTX_new())? };
        // SAFETY: context and cipher are alive, key and IV have the lengths that are read.
        accepted(unsafe {
            EVP_CipherInit_ex2(
                stream.context.as_ptr(),
                self.0.as_ptr(),
                key.as_ptr(),
                if iv.is_empty() { ptr::null() } else { iv.as_ptr() },
                encrypts.into(),
                ptr::null(),
            )
        })?;
        Ok(stream)
    }
}

/// A text on its way through a cipher.
#[derive(Debug)]
pub struct CipherStream {
    context: NonNull<EvpCipherCtx>,
}

impl Drop for CipherStream {
    fn drop(&mut self) {
        // SAFETY: the context is this value's own; freeing wipes its key schedule.
        unsafe { EVP_CIPHER_CTX_free(self.context.as_ptr()) }
    }
}

// SAFETY: a context belongs to no thread, and `&mut` keeps two from using it at once.
unsafe impl Send for CipherStream {}

impl CipherStream {
    /// Appends what `input` gives to `output`: up to a block is held back.
    ///
    /// # Errors
    ///
    /// [`Refused`]; the text is lost then.
    pub fn update(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<(), Refused> {
        let start = output.len();
        output.resize(start + input.len() + BLOCK_BYTES_MAX, 0);
        let (space, mut written) = (&mut output[start..], 0);
        // SAFETY: the space is a block longer than the input, as the manual page wants.
        let answer = unsafe {
            EVP_CipherUpdate(
                self.context.as_ptr(),
                space.as_mut_ptr(),
                &raw mut written,
                input.as_ptr(),
                int(input.len())?,
            )
        };
        cut(output, start, accepted(answer), written)
    }

    /// Appends the end of the text, padding added or taken off.
    ///
    /// # Errors
    ///
    /// [`Refused`] where the padding is wrong or the text ends inside a block.
    pub fn finish(self, output: &mut Vec<u8>) -> Result<(), Refused> {
        let start = output.len();
        output.resize(start + BLOCK_BYTES_MAX, 0);
        let mut written = 0;
        // SAFETY: the space holds a block of any cipher.
        let answer = unsafe {
            EVP_CipherFinal_ex(self.context.as_ptr(), output[start..].as_mut_ptr(), &raw mut written)
        };
        cut(output, start, accepted(answer), written)
    }
}

/// Leaves of what was appended at `start` the bytes that count; of a refusal none.
fn cut(
    output: &mut Vec<u8>,
    start: usize,
    answer: Result<(), Refused>,
    written: c_int,
) -> Result<(), Refused> {
    if answer.is_err() {
        output[start..].zeroize();
    }
    output.truncate(start + if answer.is_ok() { len(written) } else { 0 });
    answer
}
