//! The calls that are timed, each in a loop of its own, so that nothing but EVP stands between two clock readings.

use std::ffi::{CString, c_char, c_int, c_uchar, c_uint, c_void};
use std::ptr;
use std::time::Instant;

pub(crate) mod full_caches;
#[macro_use]
#[path = "../../tests/support/ffi/libcrypto.rs"]
mod libcrypto;

use evener_ossl_sys::{PARAM_UNMODIFIED, PARAM_UNSIGNED_INTEGER, Param};
use full_caches::OtherThings;
use libcrypto::Opaque;

libcrypto! {
    fn OSSL_PROVIDER_set_default_search_path(Opaque, *const c_char) -> c_int;
    fn OSSL_PROVIDER_load(Opaque, *const c_char) -> Opaque;
    fn EVP_CIPHER_fetch(Opaque, *const c_char, *const c_char) -> Opaque;
    fn EVP_CIPHER_get_key_length(Opaque) -> c_int;
    fn EVP_CIPHER_CTX_new() -> Opaque;
    fn EVP_CIPHER_CTX_free(Opaque);
    fn EVP_CIPHER_CTX_set_padding(Opaque, c_int) -> c_int;
    fn EVP_CIPHER_CTX_set_params(Opaque, *const Param) -> c_int;
    fn EVP_CIPHER_CTX_ctrl(Opaque, c_int, c_int, *mut c_void) -> c_int;
    fn EVP_CipherInit_ex2(Opaque, Opaque, *const c_uchar, *const c_uchar, c_int, *const c_void) -> c_int;
    fn EVP_CipherUpdate(Opaque, *mut c_uchar, *mut c_int, *const c_uchar, c_int) -> c_int;
    fn EVP_CipherFinal_ex(Opaque, *mut c_uchar, *mut c_int) -> c_int;
    fn EVP_MD_fetch(Opaque, *const c_char, *const c_char) -> Opaque;
    fn EVP_MD_CTX_new() -> Opaque;
    fn EVP_MD_CTX_free(Opaque);
    fn EVP_DigestInit_ex2(Opaque, Opaque, *const c_void) -> c_int;
    fn EVP_DigestUpdate(Opaque, *const c_void, usize) -> c_int;
    fn EVP_DigestFinal_ex(Opaque, *mut c_uchar, *mut c_uint) -> c_int;
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// One update of a message that goes on.
    Update,
    /// A whole message in a context that is there: init with a new IV, update, final.
    Message,
    /// As that, with another key than the last message had.
    NewKey,
    /// As that, with a new context besides.
    Context,
    /// As that, where the message is decrypted.
    Decryption,
    /// A record as libssl sends it: of TLS 1.3 by GCM, of TLS 1.2 with its MAC outside by CBC.
    Record,
    /// As [`Self::Context`] and [`Self::Decryption`], each behind other things that fill the caches.
    ContextCold,
    DecryptionCold,
}

impl Operation {
    pub(crate) const fn decrypts(self) -> bool {
        matches!(self, Self::Decryption | Self::DecryptionCold)
    }

    /// Whether the algorithm has it. Of GCM there is no tag to decrypt by here, and a digest has nothing to decrypt.
    pub(crate) fn is_of(self, name: &str) -> bool {
        match self {
            Self::Record => name.ends_with("-CBC") || name.ends_with("-GCM"),
            _ => !self.decrypts() || name.ends_with("-CBC") || name.ends_with("-CTR"),
        }
    }

    pub(crate) const fn is_cold(self) -> bool {
        matches!(self, Self::ContextCold | Self::DecryptionCold)
    }
}

/// Loads the default provider and `evener.so` from `folder`.
///
/// # Errors
///
/// Which one does not load.
pub(crate) fn load(folder: &str) -> Result<(), String> {
    let folder = CString::new(folder).map_err(|error| error.to_string())?;
    // SAFETY: the default library context and text.
    unsafe { OSSL_PROVIDER_set_default_search_path(ptr::null_mut(), folder.as_ptr()) };
    for name in [c"default", c"evener"] {
        // SAFETY: as above.
        let loaded = unsafe { OSSL_PROVIDER_load(ptr::null_mut(), name.as_ptr()) };
        if loaded.is_null() {
            return Err(format!("{} does not load", name.to_string_lossy()));
        }
    }
    Ok(())
}

/// Keeps this thread on the core that it runs on.
pub(crate) fn pin() {
    // SAFETY: takes nothing.
    let core = unsafe { libc::sched_getcpu() };
    // SAFETY: zeros are an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel's own number of a core.
    unsafe { libc::CPU_SET(usize::try_from(core).unwrap_or(0), &mut set) };
    // SAFETY: this thread, and a set of its size.
    unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
}

/// `EVP_CTRL_AEAD_GET_TAG` (openssl/evp.h).
const GET_TAG: c_int = 0x10;

fn number(key: &'static std::ffi::CStr, data: *mut c_void, data_size: usize) -> Param {
    let key = key.as_ptr();
    Param { key, data_type: PARAM_UNSIGNED_INTEGER, data, data_size, return_size: PARAM_UNMODIFIED }
}

/// A cache line. Buffers of all subjects begin on one, wherever the heap has space: of 1 KiB at 8 GB/s half a line is felt.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "reached by its address")] [u8; 64]);

fn lines(byte: u8, bytes: usize) -> Vec<Line> {
    vec![Line([byte; 64]); bytes.div_ceil(64)]
}

/// An algorithm of one provider, with a context in use.
pub(crate) struct Subject {
    method: Opaque,
    context: Opaque,
    is_digest: bool,
    is_aead: bool,
    decrypts: bool,
    key: [u8; 64],
    iv: [u8; 16],
    input: Vec<Line>,
    out: Vec<Line>,
}

impl Subject {
    /// `name` as `provider` has it, for pieces of up to `size` bytes.
    ///
    /// # Errors
    ///
    /// Where the provider has none.
    pub(crate) fn new(name: &str, provider: &str, size: usize) -> Result<Self, String> {
        let (fetched, properties) = (CString::new(name), CString::new(format!("provider={provider}")));
        let (Ok(fetched), Ok(properties)) = (fetched, properties) else {
            return Err("a name with nul".into());
        };
        let is_digest = name.starts_with("SHA");
        let fetch = if is_digest { EVP_MD_fetch } else { EVP_CIPHER_fetch };
        // SAFETY: the default library context and texts.
        let method = unsafe { fetch(ptr::null_mut(), fetched.as_ptr(), properties.as_ptr()) };
        if method.is_null() {
            return Err(format!("{provider} has no {name}"));
        }
        let new = if is_digest { EVP_MD_CTX_new } else { EVP_CIPHER_CTX_new };
        // SAFETY: takes nothing.
        let context = unsafe { new() };
        let mut made = Self {
            method,
            context,
            is_digest,
            is_aead: name.ends_with("-GCM"),
            decrypts: false,
            key: std::array::from_fn(|at| u8::try_from(at).unwrap_or(0)),
            iv: [7; 16],
            input: lines(3, size),
            out: lines(0, size + 64),
        };
        made.init(context, true);
        Ok(made)
    }

    /// Whether keys fit, which the fixed key of this program does for AES.
    pub(crate) fn is_usable(&self) -> bool {
        // SAFETY: fetched.
        self.is_digest || unsafe { EVP_CIPHER_get_key_length(self.method) } <= 64
    }

    /// Has the context do records, which it does from then on: of CBC as libssl says it, once for a connection.
    pub(crate) fn begin_records(&mut self) {
        if self.is_aead {
            return;
        }
        let (mut version, mut mac_bytes): (c_uint, usize) = (0x0303, 0);
        let params = [
            number(c"tls-version", (&raw mut version).cast(), size_of_val(&version)),
            number(c"tls-mac-size", (&raw mut mac_bytes).cast(), size_of_val(&mac_bytes)),
            Param::END,
        ];
        // SAFETY: a list that ends.
        unsafe { EVP_CIPHER_CTX_set_params(self.context, params.as_ptr()) };
    }

    /// Nanoseconds that one `operation` on `size` bytes takes, over `count` of them.
    pub(crate) fn time(&mut self, operation: Operation, size: usize, count: u32) -> f64 {
        self.decrypts = operation.decrypts();
        let start = Instant::now();
        for _ in 0..count {
            self.once(operation, size);
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(count)
    }

    /// The same of one, behind `others`.
    pub(crate) fn time_cold(&mut self, operation: Operation, size: usize, others: &mut OtherThings) -> f64 {
        self.decrypts = operation.decrypts();
        others.go_through();
        let start = Instant::now();
        self.once(operation, size);
        start.elapsed().as_secs_f64() * 1e9
    }

    fn once(&mut self, operation: Operation, size: usize) {
        match operation {
            Operation::Update => self.update(self.context, size),
            Operation::Message => self.message(self.context, size, false),
            Operation::NewKey => {
                self.key[0] = self.key[0].wrapping_add(1);
                self.message(self.context, size, true);
            }
            Operation::Record if self.is_aead => self.sealed_record(size),
            Operation::Record => self.record(size),
            _ => self.in_new_context(size),
        }
    }

    fn in_new_context(&mut self, size: usize) {
        let (new, free) = if self.is_digest {
            (
                EVP_MD_CTX_new as unsafe extern "C" fn() -> Opaque,
                EVP_MD_CTX_free as unsafe extern "C" fn(Opaque),
            )
        } else {
            (EVP_CIPHER_CTX_new as _, EVP_CIPHER_CTX_free as _)
        };
        // SAFETY: takes nothing.
        let context = unsafe { new() };
        self.message(context, size, true);
        // SAFETY: made above.
        unsafe { free(context) };
    }

    /// Of TLS 1.3 (`tls13_enc` of libssl): a nonce, the header, the text, the end and the tag.
    fn sealed_record(&mut self, size: usize) {
        let (mut len, mut tag) = (0, [0_u8; 16]);
        self.init(self.context, false);
        // SAFETY: five bytes are there.
        unsafe {
            EVP_CipherUpdate(self.context, ptr::null_mut(), &raw mut len, self.input.as_ptr().cast(), 5)
        };
        self.update(self.context, size);
        // SAFETY: nothing comes out.
        unsafe { EVP_CipherFinal_ex(self.context, self.out.as_mut_ptr().cast(), &raw mut len) };
        // SAFETY: space for a tag.
        unsafe { EVP_CIPHER_CTX_ctrl(self.context, GET_TAG, 16, (&raw mut tag).cast()) };
    }

    /// Of TLS 1.2 (`tls1_enc` of libssl): an IV and the text, in place, padded by the provider.
    fn record(&mut self, size: usize) {
        let mut len = 0;
        let place: *mut c_uchar = self.out.as_mut_ptr().cast();
        let bytes = c_int::try_from(16 + size).unwrap_or(0);
        // SAFETY: there is space for an IV, the text and a block of padding.
        unsafe { EVP_CipherUpdate(self.context, place, &raw mut len, place, bytes) };
    }

    fn message(&mut self, context: Opaque, size: usize, is_new: bool) {
        self.init(context, is_new);
        self.update(context, size);
        let out = self.out.as_mut_ptr().cast();
        if self.is_digest {
            let mut len = 0;
            // SAFETY: space for any digest.
            unsafe { EVP_DigestFinal_ex(context, out, &raw mut len) };
        } else {
            let mut len = 0;
            // SAFETY: space for a block.
            unsafe { EVP_CipherFinal_ex(context, out, &raw mut len) };
        }
    }

    fn init(&mut self, context: Opaque, is_new: bool) {
        self.iv[0] = self.iv[0].wrapping_add(1);
        if self.is_digest {
            // SAFETY: a context and a fetched digest.
            unsafe { EVP_DigestInit_ex2(context, self.method, ptr::null()) };
        } else {
            let (method, key) =
                if is_new { (self.method, self.key.as_ptr()) } else { (ptr::null_mut(), ptr::null()) };
            // SAFETY: key and IV are at least as long as the cipher's.
            unsafe {
                EVP_CipherInit_ex2(
                    context,
                    method,
                    key,
                    self.iv.as_ptr(),
                    c_int::from(!self.decrypts),
                    ptr::null(),
                )
            };
            if self.decrypts {
                // SAFETY: the same context; no padding is there to be found.
                unsafe { EVP_CIPHER_CTX_set_padding(context, 0) };
            }
        }
    }

    fn update(&mut self, context: Opaque, size: usize) {
        debug_assert!(size <= 64 * self.input.len());
        let input = self.input.as_ptr().cast::<c_uchar>();
        if self.is_digest {
            // SAFETY: the input has `size` bytes.
            unsafe { EVP_DigestUpdate(context, input.cast(), size) };
        } else {
            let mut len = 0;
            let size = c_int::try_from(size).unwrap_or(0);
            // SAFETY: as above, and there is space for them and a block.
            unsafe { EVP_CipherUpdate(context, self.out.as_mut_ptr().cast(), &raw mut len, input, size) };
        }
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let free = if self.is_digest { EVP_MD_CTX_free } else { EVP_CIPHER_CTX_free };
        // SAFETY: made by `new`; methods are left to the process's end.
        unsafe { free(self.context) };
    }
}
