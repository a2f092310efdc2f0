//! libcrypto behind owned types: no pointer leaves this file, and every function that it exports is safe.
//!
//! The functions are `evener-evp-sys`'. The objects are freed by their owners here; `EVP_CIPHER_CTX_free` and `EVP_MAC_CTX_free` wipe key schedules as they do
//! so. Whatever libcrypto leaves on its error queue is taken off again at once.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU8;

use evener_core::{JobError, TAG_BYTES_MAX};
use evener_evp_sys::{
    ERR_clear_error, EVP_CIPHER_CTX_ctrl, EVP_CIPHER_CTX_free, EVP_CIPHER_CTX_new, EVP_CIPHER_CTX_set_params,
    EVP_CIPHER_fetch, EVP_CIPHER_free, EVP_CIPHER_get_iv_length, EVP_CIPHER_get_key_length,
    EVP_CipherFinal_ex, EVP_CipherInit_ex2, EVP_CipherUpdate, EVP_DigestFinal_ex, EVP_DigestInit_ex2,
    EVP_DigestUpdate, EVP_MAC_CTX_free, EVP_MAC_CTX_new, EVP_MAC_fetch, EVP_MAC_final, EVP_MAC_free,
    EVP_MAC_init, EVP_MAC_update, EVP_MD_CTX_free, EVP_MD_CTX_new, EVP_MD_fetch, EVP_MD_free,
    EVP_MD_get_size, EvpCipher, EvpCipherCtx, EvpMac, EvpMacCtx, EvpMd, EvpMdCtx, OSSL_PARAM_construct_end,
    OSSL_PARAM_construct_uint, OSSL_PARAM_construct_utf8_string, OpenSSL_version,
};

pub(crate) mod service;

/// libcrypto returned something other than success.
#[derive(Debug)]
pub(crate) struct Refused;

impl From<Refused> for JobError {
    fn from(Refused: Refused) -> Self {
        Self::Library
    }
}

/// The version of the library that is loaded, as `3.0.19`.
pub(crate) fn version() -> String {
    let text = OpenSSL_version(OPENSSL_FULL_VERSION_STRING);
    // SAFETY: for every selector OpenSSL_version returns a nul-terminated string of static life.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

/// What `fetch` of a type found, and by which function it is given back.
macro_rules! fetched {
    ($method:ident, $free:ident) => {
        impl Drop for $method {
            fn drop(&mut self) {
                // SAFETY: this is the one reference that `fetch` was given; contexts count their own.
                unsafe { $free(self.0.as_ptr()) }
            }
        }

        // SAFETY: a fetched method is constant but for its reference count, which libcrypto changes atomically.
        unsafe impl Send for $method {}
        // SAFETY: as above; nothing here changes it through a shared reference.
        unsafe impl Sync for $method {}
    };
}

/// An implementation of a cipher.
pub(crate) struct Cipher(NonNull<EvpCipher>);

impl Cipher {
    /// Finds the implementation that this machine's configuration prefers; `None` where it has none.
    pub(crate) fn fetch(name: &CStr, properties: &CStr) -> Option<Self> {
        // SAFETY: both texts end in nul and are read during the call only; null: default library.
        let cipher = unsafe { EVP_CIPHER_fetch(ptr::null_mut(), name.as_ptr(), properties.as_ptr()) };
        owned(cipher).ok().map(Self)
    }
}

fetched!(Cipher, EVP_CIPHER_free);

/// A context with its key set and its own padding off.
pub(crate) struct CipherContext(NonNull<EvpCipherCtx>);

// SAFETY: a context belongs to no thread; `&mut` everywhere keeps two threads from using it at once.
unsafe impl Send for CipherContext {}

impl CipherContext {
    /// A context that takes IVs of `iv_bytes`, at most 16.
    pub(crate) fn new(cipher: &Cipher, encrypts: bool, key: &[u8], iv_bytes: usize) -> Result<Self, Refused> {
        let made = Self(owned(EVP_CIPHER_CTX_new())?);
        let cipher = cipher.0.as_ptr();
        // SAFETY: libcrypto only reads the fetched method.
        let needed_key = unsafe { EVP_CIPHER_get_key_length(cipher) };
        // SAFETY: as above.
        let needed_iv = unsafe { EVP_CIPHER_get_iv_length(cipher) };
        if (int(key.len()), int(iv_bytes)) != (needed_key, needed_iv) || iv_bytes > 16 {
            return Err(Refused);
        }
        // SAFETY: context and cipher are alive, the key has the length that is read, and no IV is read.
        accepted(unsafe {
            EVP_CipherInit_ex2(
                made.0.as_ptr(),
                cipher,
                key.as_ptr(),
                ptr::null(),
                encrypts.into(),
                ptr::null(),
            )
        })?;
        made.switch_padding_off()?;
        Ok(made)
    }

    /// By parameter and not by `EVP_CIPHER_CTX_set_padding`: that leaves a flag behind for which
    /// `EVP_CipherInit_ex2` sets the parameter again in every run (300 instructions of 1750 at 64 bytes).
    fn switch_padding_off(&self) -> Result<(), Refused> {
        let mut off: c_uint = 0;
        // SAFETY: the name is static and `off` outlives the parameter, which is used in this function only.
        let padding = unsafe { OSSL_PARAM_construct_uint(c"padding".as_ptr(), &raw mut off) };
        let params = [padding, OSSL_PARAM_construct_end()];
        // SAFETY: the context has a cipher, and the parameters end in the end mark. Ciphers that never pad
        // pass over the parameter.
        accepted(unsafe { EVP_CIPHER_CTX_set_params(self.0.as_ptr(), params.as_ptr()) })
    }

    /// Begins a message: new IV, same cipher, key and direction.
    #[inline]
    pub(crate) fn restart(&mut self, iv: Option<&[u8; 16]>) -> Result<(), Refused> {
        const SAME: c_int = -1;
        let iv = iv.map_or(ptr::null(), |iv| iv.as_ptr());
        // SAFETY: the context has cipher and key; of an IV at most 16 bytes are read (`new`).
        accepted(unsafe {
            EVP_CipherInit_ex2(self.0.as_ptr(), ptr::null(), ptr::null(), iv, SAME, ptr::null())
        })
    }

    /// Takes associated data, before anything else of the message.
    pub(crate) fn authenticate(&mut self, aad: &[u8]) -> Result<(), Refused> {
        for slice in aad.chunks(SLICE_BYTES_MAX) {
            let mut taken = 0;
            // SAFETY: a null output says associated data; `slice` is read for its whole length.
            accepted(unsafe {
                EVP_CipherUpdate(
                    self.0.as_ptr(),
                    ptr::null_mut(),
                    &raw mut taken,
                    slice.as_ptr(),
                    int(slice.len()),
                )
            })?;
        }
        Ok(())
    }

    /// Runs `span`, which for a block mode has whole blocks, and returns its length.
    #[inline]
    pub(crate) fn update(&mut self, span: Span<'_>) -> Result<usize, Refused> {
        let mut run_bytes = 0;
        while run_bytes < span.bytes {
            let slice_bytes = (span.bytes - run_bytes).min(SLICE_BYTES_MAX);
            // SAFETY: less than `bytes`, for which the input is readable.
            let input = unsafe { span.input.add(run_bytes) };
            // SAFETY: less than `bytes`, for which the output is writable.
            let output = unsafe { span.output.add(run_bytes) };
            let mut written: c_int = 0;
            // SAFETY: input and output have `slice_bytes` and lie apart or are the same; bytes of shared memory that
            // change meanwhile are bytes, and libcrypto takes none of them for an address or a length; without padding
            // nothing but what comes in goes out, and all of it, which is looked at below: so nothing is left
            // in the context that would go out with the next slice.
            accepted(unsafe {
                EVP_CipherUpdate(self.0.as_ptr(), output, &raw mut written, input, int(slice_bytes))
            })?;
            if written != int(slice_bytes) {
                return Err(Refused);
            }
            run_bytes += slice_bytes;
        }
        Ok(run_bytes)
    }

    /// Ends the message of an AEAD: makes the tag, or checks it.
    pub(crate) fn finish(&mut self) -> Result<(), Refused> {
        let mut nothing = [0; EVP_MAX_BLOCK_LENGTH];
        let mut written = 0;
        // SAFETY: there is space for the longest block of all; an AEAD writes none.
        accepted(unsafe { EVP_CipherFinal_ex(self.0.as_ptr(), nothing.as_mut_ptr(), &raw mut written) })
    }

    /// Writes the tag that `finish` made to the start of `tag`.
    pub(crate) fn read_tag(&mut self, tag: &mut [u8; TAG_BYTES_MAX]) -> Result<(), Refused> {
        self.control_tag(EVP_CTRL_AEAD_GET_TAG, tag)
    }

    /// Says what tag `finish` is to find: the start of `tag`, which stays as it is.
    pub(crate) fn set_tag(&mut self, tag: &mut [u8; TAG_BYTES_MAX]) -> Result<(), Refused> {
        self.control_tag(EVP_CTRL_AEAD_SET_TAG, tag)
    }

    fn control_tag(&mut self, control: c_int, tag: &mut [u8; TAG_BYTES_MAX]) -> Result<(), Refused> {
        const { assert!(AEAD_TAG_BYTES <= TAG_BYTES_MAX) };
        let tag = tag.as_mut_ptr().cast::<c_void>();
        // SAFETY: both controls keep to the bytes that are named, for which `tag` has space.
        accepted(unsafe { EVP_CIPHER_CTX_ctrl(self.0.as_ptr(), control, int(AEAD_TAG_BYTES), tag) })
    }
}

impl Drop for CipherContext {
    fn drop(&mut self) {
        // SAFETY: the context was made here and nothing else refers to it.
        unsafe { EVP_CIPHER_CTX_free(self.0.as_ptr()) }
    }
}

/// Input and output of one length.
pub(crate) struct Span<'j> {
    input: *const u8,
    output: *mut u8,
    bytes: usize,
    memory: PhantomData<&'j mut [u8]>,
}

impl<'j> Span<'j> {
    /// What comes out replaces what goes in.
    pub(crate) fn in_place(space: &'j mut [u8]) -> Self {
        let output = space.as_mut_ptr();
        Self { input: output.cast_const(), output, bytes: space.len(), memory: PhantomData }
    }

    /// # Panics
    ///
    /// Where the lengths are not the same.
    pub(crate) fn apart(src: &'j [u8], dst: &'j mut [u8]) -> Self {
        assert_eq!(src.len(), dst.len(), "as much comes out as goes in");
        Self { input: src.as_ptr(), output: dst.as_mut_ptr(), bytes: src.len(), memory: PhantomData }
    }

    /// Memory that another process may change.
    ///
    /// # Panics
    ///
    /// Where the lengths are not the same.
    pub(crate) fn shared(src: &'j [AtomicU8], dst: &'j [AtomicU8]) -> Self {
        assert_eq!(src.len(), dst.len(), "as much comes out as goes in");
        let output = dst.as_ptr().cast_mut().cast();
        Self { input: src.as_ptr().cast(), output, bytes: src.len(), memory: PhantomData }
    }
}

/// What is only read.
pub(crate) struct Input<'j> {
    start: *const u8,
    bytes: usize,
    memory: PhantomData<&'j [u8]>,
}

impl<'j> From<&'j [u8]> for Input<'j> {
    fn from(data: &'j [u8]) -> Self {
        Self { start: data.as_ptr(), bytes: data.len(), memory: PhantomData }
    }
}

impl<'j> From<&'j [AtomicU8]> for Input<'j> {
    /// Memory that another process may change.
    fn from(data: &'j [AtomicU8]) -> Self {
        Self { start: data.as_ptr().cast(), bytes: data.len(), memory: PhantomData }
    }
}

/// An implementation of a hash.
pub(crate) struct Digest(NonNull<EvpMd>);

impl Digest {
    /// Finds the implementation that this machine's configuration prefers; `None` where it has none, or one
    /// with a digest longer than any tag of Evener.
    pub(crate) fn fetch(name: &CStr, properties: &CStr) -> Option<Self> {
        // SAFETY: both texts end in nul and are read during the call only; null: default library.
        let digest = unsafe { EVP_MD_fetch(ptr::null_mut(), name.as_ptr(), properties.as_ptr()) };
        let digest = owned(digest).ok().map(Self)?;
        // SAFETY: libcrypto only reads the fetched method.
        let digest_bytes = unsafe { EVP_MD_get_size(digest.0.as_ptr()) };
        usize::try_from(digest_bytes).is_ok_and(|bytes| bytes <= TAG_BYTES_MAX).then_some(digest)
    }
}

fetched!(Digest, EVP_MD_free);

/// A context for a hash.
pub(crate) struct DigestContext {
    context: NonNull<EvpMdCtx>,
    digest: &'static Digest,
}

// SAFETY: a context belongs to no thread; `&mut` everywhere keeps two threads from using it at once.
unsafe impl Send for DigestContext {}

impl DigestContext {
    pub(crate) fn new(digest: &'static Digest) -> Result<Self, Refused> {
        Ok(Self { context: owned(EVP_MD_CTX_new())?, digest })
    }

    /// Writes the digest of `data` to the start of `tag`.
    pub(crate) fn run(&mut self, data: &Input<'_>, tag: &mut [u8; TAG_BYTES_MAX]) -> Result<(), Refused> {
        let context = self.context.as_ptr();
        // SAFETY: context and method are alive; there are no parameters.
        accepted(unsafe { EVP_DigestInit_ex2(context, self.digest.0.as_ptr(), ptr::null()) })?;
        // SAFETY: `data` is read for its whole length, and whatever bytes stand there are hashed.
        accepted(unsafe { EVP_DigestUpdate(context, data.start.cast::<c_void>(), data.bytes) })?;
        // SAFETY: `fetch` saw that the digest is no longer than `tag`; a null length is not written.
        accepted(unsafe { EVP_DigestFinal_ex(context, tag.as_mut_ptr(), ptr::null_mut()) })
    }
}

impl Drop for DigestContext {
    fn drop(&mut self) {
        // SAFETY: the context was made here and nothing else refers to it.
        unsafe { EVP_MD_CTX_free(self.context.as_ptr()) }
    }
}

/// The implementation of HMAC.
pub(crate) struct Hmac(NonNull<EvpMac>);

impl Hmac {
    /// Finds the implementation that this machine's configuration prefers; `None` where it has none.
    pub(crate) fn fetch(properties: &CStr) -> Option<Self> {
        // SAFETY: both texts end in nul and are read during the call only; null: default library.
        let mac = unsafe { EVP_MAC_fetch(ptr::null_mut(), c"HMAC".as_ptr(), properties.as_ptr()) };
        owned(mac).ok().map(Self)
    }
}

fetched!(Hmac, EVP_MAC_free);

/// A context for HMAC with its key set; wiped when it is dropped.
pub(crate) struct HmacContext {
    context: NonNull<EvpMacCtx>,
}

// SAFETY: a context belongs to no thread; `&mut` everywhere keeps two threads from using it at once.
unsafe impl Send for HmacContext {}

impl HmacContext {
    /// By this digest, which is fetched under these properties.
    pub(crate) fn new(hmac: &Hmac, digest: [&CStr; 2], key: &[u8]) -> Result<Self, Refused> {
        // SAFETY: the method is alive; the context counts its own reference to it.
        let made = Self { context: owned(unsafe { EVP_MAC_CTX_new(hmac.0.as_ptr()) })? };
        let text = |name: &CStr, value: &CStr| {
            // SAFETY: both strings end in nul (length 0: count yourself) and outlive the parameter; libcrypto takes
            // the value as mutable in general and only reads it here.
            unsafe { OSSL_PARAM_construct_utf8_string(name.as_ptr(), value.as_ptr().cast_mut(), 0) }
        };
        let [name, properties] = digest;
        let params = [text(c"digest", name), text(c"properties", properties), OSSL_PARAM_construct_end()];
        // SAFETY: the key is read for its whole length and the parameters end in the end mark.
        accepted(unsafe { EVP_MAC_init(made.context.as_ptr(), key.as_ptr(), key.len(), params.as_ptr()) })?;
        Ok(made)
    }

    /// Writes the MAC of `data` to the start of `tag`.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "libcrypto changes the context behind the pointer")]
    pub(crate) fn run(&mut self, data: &Input<'_>, tag: &mut [u8; TAG_BYTES_MAX]) -> Result<(), Refused> {
        let context = self.context.as_ptr();
        // SAFETY: without key and parameters the context starts again with those that it has.
        accepted(unsafe { EVP_MAC_init(context, ptr::null(), 0, ptr::null()) })?;
        // SAFETY: as for a digest.
        accepted(unsafe { EVP_MAC_update(context, data.start, data.bytes) })?;
        let mut written = 0;
        // SAFETY: libcrypto refuses where `tag` is too short.
        accepted(unsafe { EVP_MAC_final(context, tag.as_mut_ptr(), &raw mut written, tag.len()) })
    }
}

impl Drop for HmacContext {
    fn drop(&mut self) {
        // SAFETY: the context was made here and nothing else refers to it.
        unsafe { EVP_MAC_CTX_free(self.context.as_ptr()) }
    }
}

fn owned<T>(made: *mut T) -> Result<NonNull<T>, Refused> {
    NonNull::new(made).ok_or_else(refused)
}

fn accepted(answer: c_int) -> Result<(), Refused> {
    if answer == 1 { Ok(()) } else { Err(refused()) }
}

#[cold]
fn refused() -> Refused {
    ERR_clear_error();
    Refused
}

fn int(bytes: usize) -> c_int {
    c_int::try_from(bytes).expect("no slice is longer than SLICE_BYTES_MAX")
}

/// Most bytes in one call: libcrypto counts in `int`. In unit tests so few that slices are seen at work.
const SLICE_BYTES_MAX: usize = if cfg!(test) { 4096 } else { 1 << 30 };
const AEAD_TAG_BYTES: usize = 16;

const OPENSSL_FULL_VERSION_STRING: c_int = 7;
const EVP_MAX_BLOCK_LENGTH: usize = 32;
const EVP_CTRL_AEAD_GET_TAG: c_int = 0x10;
const EVP_CTRL_AEAD_SET_TAG: c_int = 0x11;
