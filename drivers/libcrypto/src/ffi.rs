//! libcrypto behind owned types: no pointer leaves this file, and every function that it exports is safe.
//!
//! Declared by hand from OpenSSL 3.0's manual pages; all of it is stable interface of every 3.x. The objects
//! are freed by their owners here; `EVP_CIPHER_CTX_free` and `EVP_MAC_CTX_free` wipe key schedules as they do
//! so. Whatever libcrypto leaves on its error queue is taken off again at once.

use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_void};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use evener_core::job::{Memory, Parts};
use evener_core::{Algorithm, BLOCK_BYTES, Direction, Family, JobError, Padding, Session, TAG_BYTES_MAX};

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

/// An implementation of a cipher.
pub(crate) struct Cipher(NonNull<EvpCipher>);

impl Cipher {
    /// Finds the implementation that this machine's configuration prefers; `None` where it has none.
    pub(crate) fn fetch(name: &CStr) -> Option<Self> {
        // SAFETY: `name` ends in nul and is read during the call only; null: default library and properties.
        let cipher = unsafe { EVP_CIPHER_fetch(ptr::null_mut(), name.as_ptr(), ptr::null()) };
        owned(cipher).ok().map(Self)
    }
}

impl Drop for Cipher {
    fn drop(&mut self) {
        // SAFETY: this is the one reference that `fetch` was given; contexts count their own.
        unsafe { EVP_CIPHER_free(self.0.as_ptr()) }
    }
}

// SAFETY: a fetched method is constant but for its reference count, which libcrypto changes atomically.
unsafe impl Send for Cipher {}
// SAFETY: as above; nothing here changes it through a shared reference.
unsafe impl Sync for Cipher {}

/// A context with its key set: what one session needs on one thread, and the plain loop of a benchmark.
///
/// Each run sets the IV and nothing else, as in the loop of a C program that knows what it does
/// (`EVP_CipherInit_ex2` without cipher and key, `EVP_CipherUpdate`, `EVP_CipherFinal_ex` where something is
/// left to finish). The key schedule is wiped when the context is dropped.
pub struct CipherContext {
    context: NonNull<EvpCipherCtx>,
    algorithm: Algorithm,
    direction: Direction,
    padding: Padding,
}

// SAFETY: a context belongs to no thread; `&mut` everywhere keeps two threads from using it at once.
unsafe impl Send for CipherContext {}

impl CipherContext {
    /// A context for `session`, whose algorithm `cipher` implements.
    pub(crate) fn with_cipher(cipher: &Cipher, session: &Session) -> Result<Self, Refused> {
        let made = Self {
            context: owned(EVP_CIPHER_CTX_new())?,
            algorithm: session.algorithm(),
            direction: session.direction(),
            padding: session.padding(),
        };
        // SAFETY: libcrypto only reads the fetched method.
        let key_bytes = unsafe { EVP_CIPHER_get_key_length(cipher.0.as_ptr()) };
        if usize::try_from(key_bytes) != Ok(session.key().len()) {
            return Err(Refused);
        }
        made.set_key(cipher, session.key())?;
        Ok(made)
    }

    /// Encrypts or decrypts `src` into `dst` with an algorithm that has no tag; `iv` counts up to
    /// [`Algorithm::iv_bytes`]. Returns the bytes written at the start of `dst`.
    ///
    /// # Errors
    ///
    /// [`JobError::BadLength`] where `src` or `dst` does not fit ([`Job::lengths_fit`](evener_core::Job));
    /// [`JobError::BadPadding`]; [`JobError::Unsupported`] for an AEAD, which goes through
    /// [`CipherContext::run_parts`]. After an error `dst` may hold a part of the output.
    pub fn run(&mut self, iv: &[u8; 16], src: &[u8], dst: &mut [u8]) -> Result<usize, JobError> {
        self.run_without_tag(iv, Memory::Apart { src, dst })
    }

    /// As [`CipherContext::run`], from the first `input_bytes` of `room` to its start.
    ///
    /// # Errors
    ///
    /// As for [`CipherContext::run`].
    pub fn run_in_place(
        &mut self,
        iv: &[u8; 16],
        room: &mut [u8],
        input_bytes: usize,
    ) -> Result<usize, JobError> {
        self.run_without_tag(iv, Memory::InPlace { room, input_bytes })
    }

    fn run_without_tag(&mut self, iv: &[u8; 16], memory: Memory<'_>) -> Result<usize, JobError> {
        if self.algorithm.is_aead() {
            return Err(JobError::Unsupported);
        }
        self.run_parts(Parts { iv, aad: &[], memory, tag: &mut [0; TAG_BYTES_MAX] })
    }

    /// Runs a job that is taken apart, tag included, and returns the bytes written.
    ///
    /// # Errors
    ///
    /// As for [`CipherContext::run`], and [`JobError::NotAuthentic`], after which the output holds plaintext
    /// that must not be seen: clear it ([`Job::fail`](evener_core::Job::fail) does).
    pub fn run_parts(&mut self, parts: Parts<'_>) -> Result<usize, JobError> {
        let mut span = Span::over(parts.memory);
        if !self.fits(&span) {
            return Err(JobError::BadLength);
        }
        self.restart(parts.iv)?;
        if self.algorithm.is_aead() {
            return self.run_aead(&mut span, parts.aad, parts.tag);
        }
        self.update(&mut span)?;
        // Without padding nothing is left to finish: whole blocks, or a stream.
        match (self.padding, self.direction) {
            (Padding::None, _) => {}
            (Padding::Pkcs7, Direction::Encrypt) => self.finish(&mut span)?,
            (Padding::Pkcs7, Direction::Decrypt) => {
                self.finish(&mut span).map_err(|Refused| JobError::BadPadding)?;
            }
        }
        Ok(span.written)
    }

    fn run_aead(
        &mut self,
        span: &mut Span<'_>,
        aad: &[u8],
        tag: &mut [u8; TAG_BYTES_MAX],
    ) -> Result<usize, JobError> {
        self.authenticate(aad)?;
        match self.direction {
            Direction::Encrypt => {
                self.update(span)?;
                self.finish(span)?;
                self.tag(EVP_CTRL_AEAD_GET_TAG, tag)?;
            }
            Direction::Decrypt => {
                self.tag(EVP_CTRL_AEAD_SET_TAG, tag)?;
                self.update(span)?;
                self.finish(span).map_err(|Refused| JobError::NotAuthentic)?;
            }
        }
        Ok(span.written)
    }

    /// Whether libcrypto stays inside `span` and takes it: all that the unsafe blocks below rely on.
    fn fits(&self, span: &Span<'_>) -> bool {
        let input_bytes = span.input_bytes;
        let whole = input_bytes % BLOCK_BYTES == 0;
        let (lengths_fit, output_bytes) = match (self.padding, self.direction) {
            (Padding::Pkcs7, Direction::Encrypt) => {
                (true, input_bytes - input_bytes % BLOCK_BYTES + BLOCK_BYTES)
            }
            (Padding::Pkcs7, Direction::Decrypt) => (whole && input_bytes > 0, input_bytes),
            (Padding::None, _) => (self.takes(input_bytes), input_bytes),
        };
        lengths_fit && output_bytes <= span.room_bytes
    }

    /// Whether the algorithm takes `input_bytes` without padding.
    const fn takes(&self, input_bytes: usize) -> bool {
        match self.algorithm.family() {
            Family::Ecb | Family::Cbc => input_bytes % BLOCK_BYTES == 0,
            Family::Xts => input_bytes >= BLOCK_BYTES && input_bytes <= XTS_BYTES_MAX,
            _ => true,
        }
    }

    fn set_key(&self, cipher: &Cipher, key: &[u8]) -> Result<(), Refused> {
        let mut on = c_uint::from(self.padding == Padding::Pkcs7);
        // SAFETY: the name is static and `on` outlives the parameter, which is used in this function only.
        let padding = unsafe { OSSL_PARAM_construct_uint(c"padding".as_ptr(), &raw mut on) };
        // By parameter and not by EVP_CIPHER_CTX_set_padding: that leaves a flag behind for which
        // EVP_CipherInit_ex2 then sets the parameter again in every run (3.0).
        let params = [padding, OSSL_PARAM_construct_end()];
        let params = if self.algorithm.needs_whole_blocks() { params.as_ptr() } else { ptr::null() };
        let encrypts = c_int::from(self.direction == Direction::Encrypt);
        // SAFETY: context and cipher are alive, the key has the length that the cipher reads, no IV is read,
        // and the parameters end in the end mark.
        accepted(unsafe {
            EVP_CipherInit_ex2(
                self.context.as_ptr(),
                cipher.0.as_ptr(),
                key.as_ptr(),
                ptr::null(),
                encrypts,
                params,
            )
        })
    }

    /// Begins a message: new IV, same cipher, key, direction and padding.
    fn restart(&mut self, iv: &[u8; 16]) -> Result<(), Refused> {
        const SAME: c_int = -1;
        let iv = if self.algorithm.iv_bytes() == 0 { ptr::null() } else { iv.as_ptr() };
        // SAFETY: the context has cipher and key; an IV is read for the cipher's default length, 12 or 16.
        accepted(unsafe {
            EVP_CipherInit_ex2(self.context.as_ptr(), ptr::null(), ptr::null(), iv, SAME, ptr::null())
        })
    }

    fn authenticate(&mut self, aad: &[u8]) -> Result<(), Refused> {
        for slice in aad.chunks(SLICE_BYTES_MAX) {
            let mut taken = 0;
            // SAFETY: a null output says associated data; `slice` is read for its whole length.
            accepted(unsafe {
                EVP_CipherUpdate(
                    self.context.as_ptr(),
                    ptr::null_mut(),
                    &raw mut taken,
                    slice.as_ptr(),
                    int(slice.len()),
                )
            })?;
        }
        Ok(())
    }

    /// Reads or writes the tag, as `control` says.
    fn tag(&mut self, control: c_int, tag: &mut [u8; TAG_BYTES_MAX]) -> Result<(), Refused> {
        const { assert!(AEAD_TAG_BYTES <= TAG_BYTES_MAX) };
        // SAFETY: `tag` has room for the bytes that are asked for, and both controls keep to them.
        accepted(unsafe {
            EVP_CIPHER_CTX_ctrl(
                self.context.as_ptr(),
                control,
                int(AEAD_TAG_BYTES),
                tag.as_mut_ptr().cast::<c_void>(),
            )
        })
    }

    /// Runs all of the input; the last block of a padded decryption stays in the context.
    fn update(&mut self, span: &mut Span<'_>) -> Result<(), Refused> {
        while span.read < span.input_bytes {
            let slice_bytes = (span.input_bytes - span.read).min(SLICE_BYTES_MAX);
            // SAFETY: `read` is less than `input_bytes`, which lies inside the input.
            let input = unsafe { span.input.add(span.read) };
            // SAFETY: `written` never passes the output's end (`fits`).
            let output = unsafe { span.output.add(span.written) };
            let mut written: c_int = 0;
            // SAFETY: the input is readable for `slice_bytes`; what is written up to here never passes what
            // was read, and `fits` saw that the output has room for as much. Input and output lie apart or
            // begin at the same byte: a block held back is written before the input moves on.
            accepted(unsafe {
                EVP_CipherUpdate(self.context.as_ptr(), output, &raw mut written, input, int(slice_bytes))
            })?;
            span.read += slice_bytes;
            span.written += length(written);
        }
        Ok(())
    }

    /// Ends the message: writes or checks padding, makes or checks the tag.
    fn finish(&mut self, span: &mut Span<'_>) -> Result<(), Refused> {
        // SAFETY: `written` never passes the output's end (`fits`).
        let output = unsafe { span.output.add(span.written) };
        let mut written: c_int = 0;
        // SAFETY: with padding one block at most is written, for which `fits` saw room; otherwise nothing.
        accepted(unsafe { EVP_CipherFinal_ex(self.context.as_ptr(), output, &raw mut written) })?;
        span.written += length(written);
        Ok(())
    }
}

impl Drop for CipherContext {
    fn drop(&mut self) {
        // SAFETY: the context was made here and nobody else knows it.
        unsafe { EVP_CIPHER_CTX_free(self.context.as_ptr()) }
    }
}

/// An implementation of a hash.
pub(crate) struct Digest(NonNull<EvpMd>);

impl Digest {
    /// Finds the implementation that this machine's configuration prefers; `None` where it has none, or one
    /// with a digest longer than any tag of Evener.
    pub(crate) fn fetch(name: &CStr) -> Option<Self> {
        // SAFETY: `name` ends in nul and is read during the call only; null: default library and properties.
        let digest = unsafe { EVP_MD_fetch(ptr::null_mut(), name.as_ptr(), ptr::null()) };
        let digest = owned(digest).ok().map(Self)?;
        // SAFETY: libcrypto only reads the fetched method.
        let digest_bytes = unsafe { EVP_MD_get_size(digest.0.as_ptr()) };
        usize::try_from(digest_bytes).is_ok_and(|bytes| bytes <= TAG_BYTES_MAX).then_some(digest)
    }
}

impl Drop for Digest {
    fn drop(&mut self) {
        // SAFETY: this is the one reference that `fetch` was given; contexts count their own.
        unsafe { EVP_MD_free(self.0.as_ptr()) }
    }
}

// SAFETY: a fetched method is constant but for its reference count, which libcrypto changes atomically.
unsafe impl Send for Digest {}
// SAFETY: as above; nothing here changes it through a shared reference.
unsafe impl Sync for Digest {}

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
    pub(crate) fn run(&mut self, data: &[u8], tag: &mut [u8; TAG_BYTES_MAX]) -> Result<(), Refused> {
        let context = self.context.as_ptr();
        // SAFETY: context and method are alive; there are no parameters.
        accepted(unsafe { EVP_DigestInit_ex2(context, self.digest.0.as_ptr(), ptr::null()) })?;
        // SAFETY: `data` is read for its whole length.
        accepted(unsafe { EVP_DigestUpdate(context, data.as_ptr().cast::<c_void>(), data.len()) })?;
        // SAFETY: `fetch` saw that the digest is no longer than `tag`; a null length is not written.
        accepted(unsafe { EVP_DigestFinal_ex(context, tag.as_mut_ptr(), ptr::null_mut()) })
    }
}

impl Drop for DigestContext {
    fn drop(&mut self) {
        // SAFETY: the context was made here and nobody else knows it.
        unsafe { EVP_MD_CTX_free(self.context.as_ptr()) }
    }
}

/// The implementation of HMAC.
pub(crate) struct Hmac(NonNull<EvpMac>);

impl Hmac {
    /// Finds the implementation that this machine's configuration prefers; `None` where it has none.
    pub(crate) fn fetch() -> Option<Self> {
        // SAFETY: the name is static; null: default library and properties.
        let mac = unsafe { EVP_MAC_fetch(ptr::null_mut(), c"HMAC".as_ptr(), ptr::null()) };
        owned(mac).ok().map(Self)
    }
}

impl Drop for Hmac {
    fn drop(&mut self) {
        // SAFETY: this is the one reference that `fetch` was given; contexts count their own.
        unsafe { EVP_MAC_free(self.0.as_ptr()) }
    }
}

// SAFETY: a fetched method is constant but for its reference count, which libcrypto changes atomically.
unsafe impl Send for Hmac {}
// SAFETY: as above; nothing here changes it through a shared reference.
unsafe impl Sync for Hmac {}

/// A context for HMAC with its key set; wiped when it is dropped.
pub(crate) struct HmacContext {
    context: NonNull<EvpMacCtx>,
}

// SAFETY: a context belongs to no thread; `&mut` everywhere keeps two threads from using it at once.
unsafe impl Send for HmacContext {}

impl HmacContext {
    pub(crate) fn new(hmac: &Hmac, digest: &CStr, key: &[u8]) -> Result<Self, Refused> {
        // SAFETY: the method is alive; the context counts its own reference to it.
        let made = Self { context: owned(unsafe { EVP_MAC_CTX_new(hmac.0.as_ptr()) })? };
        // SAFETY: both strings end in nul (length 0: count yourself) and outlive the parameter; libcrypto takes
        // the value as mutable in general and only reads it here.
        let named =
            unsafe { OSSL_PARAM_construct_utf8_string(c"digest".as_ptr(), digest.as_ptr().cast_mut(), 0) };
        let params = [named, OSSL_PARAM_construct_end()];
        // SAFETY: the key is read for its whole length and the parameters end in the end mark.
        accepted(unsafe { EVP_MAC_init(made.context.as_ptr(), key.as_ptr(), key.len(), params.as_ptr()) })?;
        Ok(made)
    }

    /// Writes the MAC of `data` to the start of `tag`.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "libcrypto changes the context behind the pointer")]
    pub(crate) fn run(&mut self, data: &[u8], tag: &mut [u8; TAG_BYTES_MAX]) -> Result<(), Refused> {
        let context = self.context.as_ptr();
        // SAFETY: without key and parameters the context starts again with those that it has.
        accepted(unsafe { EVP_MAC_init(context, ptr::null(), 0, ptr::null()) })?;
        // SAFETY: `data` is read for its whole length.
        accepted(unsafe { EVP_MAC_update(context, data.as_ptr(), data.len()) })?;
        let mut written = 0;
        // SAFETY: libcrypto refuses where `tag` is too short.
        accepted(unsafe { EVP_MAC_final(context, tag.as_mut_ptr(), &raw mut written, tag.len()) })
    }
}

impl Drop for HmacContext {
    fn drop(&mut self) {
        // SAFETY: the context was made here and nobody else knows it.
        unsafe { EVP_MAC_CTX_free(self.context.as_ptr()) }
    }
}

/// A job's memory as libcrypto takes it, and how far it has come.
struct Span<'j> {
    input: *const u8,
    input_bytes: usize,
    /// Equal to `input` in place.
    output: *mut u8,
    room_bytes: usize,
    /// Input taken so far.
    read: usize,
    /// Output made so far.
    written: usize,
    memory: PhantomData<&'j mut [u8]>,
}

impl<'j> Span<'j> {
    fn over(memory: Memory<'j>) -> Self {
        let (input, input_bytes, output, room_bytes) = match memory {
            Memory::InPlace { room, input_bytes } => {
                let output = room.as_mut_ptr();
                // A length beyond the room fits nowhere, so that `fits` refuses it.
                (output.cast_const(), input_bytes, output, room.len())
            }
            Memory::Apart { src, dst } => (src.as_ptr(), src.len(), dst.as_mut_ptr(), dst.len()),
        };
        Self { input, input_bytes, output, room_bytes, read: 0, written: 0, memory: PhantomData }
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

fn length(written: c_int) -> usize {
    usize::try_from(written).expect("a call that succeeded wrote no negative number of bytes")
}

/// Most bytes in one call: libcrypto counts in `int`. In unit tests so few that slices are seen at work.
const SLICE_BYTES_MAX: usize = if cfg!(test) { 4096 } else { 1 << 30 };
/// Longest data unit of XTS: 2^20 blocks (IEEE 1619), which libcrypto enforces. Each call is a unit of its own.
const XTS_BYTES_MAX: usize = BLOCK_BYTES << 20;
const AEAD_TAG_BYTES: usize = 16;

const OPENSSL_FULL_VERSION_STRING: c_int = 7;
const EVP_CTRL_AEAD_GET_TAG: c_int = 0x10;
const EVP_CTRL_AEAD_SET_TAG: c_int = 0x11;

macro_rules! opaque {
    ($($name:ident)*) => { $(#[repr(C)] struct $name { _private: [u8; 0] })* };
}

opaque! { OsslLibCtx EvpCipher EvpCipherCtx EvpMd EvpMdCtx EvpMac EvpMacCtx }

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
    safe fn OpenSSL_version(which: c_int) -> *const c_char;
    safe fn ERR_clear_error();

    fn OSSL_PARAM_construct_uint(key: *const c_char, value: *mut c_uint) -> OsslParam;
    fn OSSL_PARAM_construct_utf8_string(key: *const c_char, value: *mut c_char, bytes: usize) -> OsslParam;
    safe fn OSSL_PARAM_construct_end() -> OsslParam;

    fn EVP_CIPHER_fetch(
        library: *mut OsslLibCtx,
        name: *const c_char,
        properties: *const c_char,
    ) -> *mut EvpCipher;
    fn EVP_CIPHER_get_key_length(cipher: *const EvpCipher) -> c_int;
    fn EVP_CIPHER_free(cipher: *mut EvpCipher);
    safe fn EVP_CIPHER_CTX_new() -> *mut EvpCipherCtx;
    fn EVP_CIPHER_CTX_free(context: *mut EvpCipherCtx);
    fn EVP_CIPHER_CTX_ctrl(
        context: *mut EvpCipherCtx,
        control: c_int,
        bytes: c_int,
        data: *mut c_void,
    ) -> c_int;
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
        input_bytes: c_int,
    ) -> c_int;
    fn EVP_CipherFinal_ex(context: *mut EvpCipherCtx, output: *mut c_uchar, written: *mut c_int) -> c_int;

    fn EVP_MD_fetch(library: *mut OsslLibCtx, name: *const c_char, properties: *const c_char) -> *mut EvpMd;
    fn EVP_MD_get_size(digest: *const EvpMd) -> c_int;
    fn EVP_MD_free(digest: *mut EvpMd);
    safe fn EVP_MD_CTX_new() -> *mut EvpMdCtx;
    fn EVP_MD_CTX_free(context: *mut EvpMdCtx);
    fn EVP_DigestInit_ex2(context: *mut EvpMdCtx, digest: *const EvpMd, params: *const OsslParam) -> c_int;
    fn EVP_DigestUpdate(context: *mut EvpMdCtx, data: *const c_void, bytes: usize) -> c_int;
    fn EVP_DigestFinal_ex(context: *mut EvpMdCtx, digest: *mut c_uchar, bytes: *mut c_uint) -> c_int;

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
        mac: *mut c_uchar,
        written: *mut usize,
        room_bytes: usize,
    ) -> c_int;
}
