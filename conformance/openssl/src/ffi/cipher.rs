//! Ciphers: fetched methods and contexts.

use std::cell::RefCell;
use std::ffi::{CStr, c_int, c_uchar, c_uint, c_ulong, c_void};
use std::ops::Range;
use std::ptr::{self, NonNull};

use evener_evp_sys::{
    ERR_get_error, EVP_CIPHER_CTX_copy, EVP_CIPHER_CTX_ctrl, EVP_CIPHER_CTX_free, EVP_CIPHER_CTX_get_num,
    EVP_CIPHER_CTX_get_original_iv, EVP_CIPHER_CTX_get_params, EVP_CIPHER_CTX_get_updated_iv,
    EVP_CIPHER_CTX_new, EVP_CIPHER_CTX_set_key_length, EVP_CIPHER_CTX_set_num, EVP_CIPHER_CTX_set_padding,
    EVP_CIPHER_CTX_set_params, EVP_CIPHER_fetch, EVP_CIPHER_free, EVP_CIPHER_get_iv_length,
    EVP_CIPHER_get_key_length, EVP_CIPHER_get0_provider, EVP_Cipher, EVP_CipherFinal_ex, EVP_CipherInit_ex2,
    EVP_CipherUpdate, EvpCipher, EvpCipherCtx, OSSL_PARAM_construct_end, OSSL_PARAM_construct_octet_ptr,
    OSSL_PARAM_construct_size_t, OSSL_PARAM_construct_uint, OSSL_PROVIDER_get_params,
};

use super::{Library, fetched, int, provider_name};

/// Key, IV or tag; longer than any that libcrypto reads or writes (an IV of GCM: 128 bytes).
pub type Octets = [u8; 128];

/// An implementation of a cipher.
pub struct Cipher(NonNull<EvpCipher>);

// SAFETY: a fetched method is constant but for its reference count, which libcrypto changes atomically.
unsafe impl Send for Cipher {}
// SAFETY: as above.
unsafe impl Sync for Cipher {}

impl Cipher {
    /// What `library` prefers for `name`; `None` where it has none.
    #[must_use]
    pub fn fetch(library: &'static Library, name: &str) -> Option<Self> {
        fetched(library, name, EVP_CIPHER_fetch).map(Self)
    }

    /// The name of the provider that serves it.
    #[must_use]
    pub fn provider(&self) -> String {
        // SAFETY: libcrypto only reads the fetched method.
        provider_name(unsafe { EVP_CIPHER_get0_provider(self.0.as_ptr()) })
    }

    /// What its provider has counted in this library under `name`, as `evener-routed`; 0 where it does not say.
    #[must_use]
    pub fn counted(&self, name: &CStr) -> u32 {
        let mut counted: c_uint = 0;
        // SAFETY: name and value outlive the parameter, which is used in this function only.
        let param = unsafe { OSSL_PARAM_construct_uint(name.as_ptr(), &raw mut counted) };
        let mut params = [param, OSSL_PARAM_construct_end()];
        // SAFETY: libcrypto only reads the fetched method.
        let provider = unsafe { EVP_CIPHER_get0_provider(self.0.as_ptr()) };
        // SAFETY: a fetched method keeps its provider alive; the parameters end in the end mark.
        let code = unsafe { OSSL_PROVIDER_get_params(provider, params.as_mut_ptr()) };
        if answered(code) == 1 { counted } else { 0 }
    }

    /// Length of its key in bytes.
    #[must_use]
    pub fn key_bytes(&self) -> usize {
        // SAFETY: as above.
        usize::try_from(unsafe { EVP_CIPHER_get_key_length(self.0.as_ptr()) }).unwrap_or(0)
    }

    /// Length of its IV in bytes.
    #[must_use]
    pub fn iv_bytes(&self) -> usize {
        // SAFETY: as above.
        usize::try_from(unsafe { EVP_CIPHER_get_iv_length(self.0.as_ptr()) }).unwrap_or(0)
    }
}

impl Drop for Cipher {
    fn drop(&mut self) {
        // SAFETY: this is the one reference that `fetch` was given; contexts count their own.
        unsafe { EVP_CIPHER_free(self.0.as_ptr()) }
    }
}

/// What a call answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 1 where it succeeded.
    pub code: c_int,
    /// Bytes that it says it wrote; -77 where it says nothing.
    pub bytes: c_int,
}

/// As many are asked for: CCM of 3.0 answers with as many bytes as there is space, also from behind its IV.
const IV_BYTES: usize = 16;
const UNTOUCHED: c_int = -77;

/// Bytes that must be free behind the input's length at the place of the output: a block, and a block of padding.
pub const SPARE_BYTES: usize = 64;

/// A cipher context, in whatever state its calls brought it.
pub struct Context(NonNull<EvpCipherCtx>);

// SAFETY: a context belongs to no thread; `&mut` everywhere keeps two threads from using it at once.
unsafe impl Send for Context {}

#[allow(clippy::needless_pass_by_ref_mut, reason = "libcrypto changes the context behind the pointer")]
impl Context {
    /// A context without a cipher.
    ///
    /// # Panics
    ///
    /// Where there is no memory.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "an empty context is no default of anything")]
    pub fn new() -> Self {
        Self(NonNull::new(EVP_CIPHER_CTX_new()).expect("libcrypto has memory"))
    }

    /// Another context in the same state; `None` where libcrypto refuses.
    #[must_use]
    pub fn copy(&self) -> Option<Self> {
        let copy = Self::new();
        // SAFETY: both contexts are alive.
        let code = unsafe { EVP_CIPHER_CTX_copy(copy.0.as_ptr(), self.0.as_ptr()) };
        answered(code);
        (code == 1).then_some(copy)
    }

    /// Sets what is given and leaves the rest; `encrypts` is the direction.
    pub fn init(
        &mut self,
        cipher: Option<&Cipher>,
        key: Option<&Octets>,
        iv: Option<&Octets>,
        encrypts: Option<bool>,
    ) -> c_int {
        let cipher = cipher.map_or(ptr::null(), |cipher| cipher.0.as_ptr().cast_const());
        let key = key.map_or(ptr::null(), |key| key.as_ptr());
        let iv = iv.map_or(ptr::null(), |iv| iv.as_ptr());
        let direction = encrypts.map_or(-1, c_int::from);
        // SAFETY: context and cipher are alive; key and IV are longer than what is read of them.
        answered(unsafe { EVP_CipherInit_ex2(self.0.as_ptr(), cipher, key, iv, direction, ptr::null()) })
    }

    /// Runs `input` of `arena` and writes to `output` of the same `arena`, wherever that lies; without `output` the
    /// input is associated data.
    ///
    /// # Panics
    ///
    /// Where `arena` has no [`SPARE_BYTES`] behind the output.
    pub fn update(&mut self, arena: &mut [u8], input: Range<usize>, output: Option<usize>) -> Answer {
        let (from, to, bytes) = places(arena, &input, output);
        let mut written = UNTOUCHED;
        // SAFETY: input and output lie within the arena with space to spare (`places`); how they may overlap is
        // libcrypto's business, which is asked here.
        let code = unsafe { EVP_CipherUpdate(self.0.as_ptr(), to, &raw mut written, from, bytes) };
        Answer { code: answered(code), bytes: written }
    }

    /// As [`Context::update`], by the call that libssl uses for records.
    pub fn record(&mut self, arena: &mut [u8], input: Range<usize>, output: usize) -> c_int {
        let (from, to, bytes) = places(arena, &input, Some(output));
        // SAFETY: as in `update`.
        answered(unsafe { EVP_Cipher(self.0.as_ptr(), to, from, bytes.unsigned_abs()) })
    }

    /// Ends the message and writes what is left to `output` of `arena`.
    ///
    /// # Panics
    ///
    /// As [`Context::update`].
    pub fn finish(&mut self, arena: &mut [u8], output: usize) -> Answer {
        let (_, to, _) = places(arena, &(0..0), Some(output));
        let mut written = UNTOUCHED;
        // SAFETY: a last block has space (`places`).
        let code = unsafe { EVP_CipherFinal_ex(self.0.as_ptr(), to, &raw mut written) };
        Answer { code: answered(code), bytes: written }
    }

    /// Switches padding on or off.
    pub fn set_padding(&mut self, on: bool) -> c_int {
        // SAFETY: the context is alive; it may have no cipher.
        answered(unsafe { EVP_CIPHER_CTX_set_padding(self.0.as_ptr(), on.into()) })
    }

    /// Sets the length of the key in bytes.
    pub fn set_key_bytes(&mut self, bytes: u8) -> c_int {
        // SAFETY: the context has a cipher; the tests begin with one.
        answered(unsafe { EVP_CIPHER_CTX_set_key_length(self.0.as_ptr(), bytes.into()) })
    }

    /// How far the context is into a block of key stream.
    pub fn num(&self) -> c_int {
        // SAFETY: the context has a cipher; the tests begin with one.
        answered(unsafe { EVP_CIPHER_CTX_get_num(self.0.as_ptr()) })
    }

    /// Says how far it is.
    pub fn set_num(&mut self, num: u8) -> c_int {
        // SAFETY: as above.
        answered(unsafe { EVP_CIPHER_CTX_set_num(self.0.as_ptr(), num.into()) })
    }

    /// The IV that was set.
    pub fn original_iv(&mut self) -> (c_int, Octets) {
        let mut iv = [0; 128];
        let space = iv.as_mut_ptr().cast::<c_void>();
        // SAFETY: no more than the named bytes are written.
        let code = unsafe { EVP_CIPHER_CTX_get_original_iv(self.0.as_ptr(), space, IV_BYTES) };
        (answered(code), iv)
    }

    /// The IV as the message changed it.
    pub fn updated_iv(&mut self) -> (c_int, Octets) {
        let mut iv = [0; 128];
        let space = iv.as_mut_ptr().cast::<c_void>();
        // SAFETY: as above.
        let code = unsafe { EVP_CIPHER_CTX_get_updated_iv(self.0.as_ptr(), space, IV_BYTES) };
        (answered(code), iv)
    }

    /// Sets the length of an AEAD's IV in bytes.
    pub fn set_iv_bytes(&mut self, bytes: u8) -> c_int {
        self.control(AEAD_SET_IVLEN, bytes, &mut [0; 128])
    }

    /// Reads `bytes` of the tag.
    pub fn tag(&mut self, bytes: u8) -> (c_int, Octets) {
        let mut tag = [0; 128];
        (self.control(AEAD_GET_TAG, bytes, &mut tag), tag)
    }

    /// Says what tag the message must have.
    pub fn set_tag(&mut self, tag: &Octets, bytes: u8) -> c_int {
        self.control(AEAD_SET_TAG, bytes, &mut tag.clone())
    }

    /// Says, as libssl does, that a record with 13 bytes of associated data comes next.
    pub fn set_tls_aad(&mut self, aad: &Octets) -> c_int {
        self.control(AEAD_TLS1_AAD, 13, &mut aad.clone())
    }

    /// Sets the whole IV of records; libssl sets the part that stays, and the rest is then drawn by lot.
    pub fn set_tls_iv(&mut self, iv: &Octets) -> c_int {
        let mut iv = *iv;
        let data = iv.as_mut_ptr().cast::<c_void>();
        // SAFETY: -1 says as many bytes as an IV has (`EVP_EncryptInit(3)`), and there are more.
        answered(unsafe { EVP_CIPHER_CTX_ctrl(self.0.as_ptr(), AEAD_SET_IV_FIXED, -1, data) })
    }

    fn control(&mut self, control: c_int, bytes: u8, data: &mut Octets) -> c_int {
        assert!(usize::from(bytes) <= data.len(), "the buffer has as much as is named");
        let data = data.as_mut_ptr().cast::<c_void>();
        // SAFETY: these controls keep to the bytes that are named, for which there is space.
        answered(unsafe { EVP_CIPHER_CTX_ctrl(self.0.as_ptr(), control, bytes.into(), data) })
    }

    /// Makes a context of records of it: version as on the wire, and the length of the MAC that decryption takes off.
    pub fn set_tls(&mut self, version: u16, mac_bytes: usize) -> c_int {
        let (mut version, mut mac_bytes) = (c_uint::from(version), mac_bytes);
        // SAFETY: the name is static and the value outlives the parameter, which is used in this function only.
        let version = unsafe { OSSL_PARAM_construct_uint(c"tls-version".as_ptr(), &raw mut version) };
        // SAFETY: as above.
        let mac = unsafe { OSSL_PARAM_construct_size_t(c"tls-mac-size".as_ptr(), &raw mut mac_bytes) };
        let params = [version, mac, OSSL_PARAM_construct_end()];
        // SAFETY: the context is alive and the parameters end in the end mark.
        answered(unsafe { EVP_CIPHER_CTX_set_params(self.0.as_ptr(), params.as_ptr()) })
    }

    /// The MAC that the last record had, `bytes` long.
    pub fn tls_mac(&mut self, bytes: usize) -> (c_int, Vec<u8>) {
        let mut mac: *mut c_void = ptr::null_mut();
        // SAFETY: the name is static and the pointer outlives the parameter.
        let param = unsafe { OSSL_PARAM_construct_octet_ptr(c"tls-mac".as_ptr(), &raw mut mac, bytes) };
        let mut params = [param, OSSL_PARAM_construct_end()];
        // SAFETY: the context is alive and the parameters end in the end mark.
        let code = answered(unsafe { EVP_CIPHER_CTX_get_params(self.0.as_ptr(), params.as_mut_ptr()) });
        if code != 1 || mac.is_null() {
            return (code, Vec::new());
        }
        // SAFETY: libcrypto points into the context or into the record, both alive, at the MAC of this length.
        (code, unsafe { std::slice::from_raw_parts(mac.cast::<u8>(), bytes) }.to_vec())
    }

    /// Sets a parameter that is an unsigned number, known to the cipher or not.
    pub fn set_number(&mut self, name: &CStr, number: u32) -> c_int {
        let mut number = number;
        // SAFETY: name and value outlive the parameter, which is used in this function only.
        let param = unsafe { OSSL_PARAM_construct_uint(name.as_ptr(), &raw mut number) };
        let params = [param, OSSL_PARAM_construct_end()];
        // SAFETY: the context is alive and the parameters end in the end mark.
        answered(unsafe { EVP_CIPHER_CTX_set_params(self.0.as_ptr(), params.as_ptr()) })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context was made here and nothing else refers to it.
        unsafe { EVP_CIPHER_CTX_free(self.0.as_ptr()) }
    }
}

/// Pointers to input and output and the length of the input.
fn places(
    arena: &mut [u8],
    input: &Range<usize>,
    output: Option<usize>,
) -> (*const c_uchar, *mut c_uchar, c_int) {
    let bytes = input.len();
    assert!(input.end <= arena.len(), "the input lies in the arena");
    let space = output.is_none_or(|at| at + bytes + SPARE_BYTES <= arena.len());
    assert!(space, "the output has space in the arena");
    // One pointer for both: they may point at the same bytes.
    let base = arena.as_mut_ptr();
    let from = base.wrapping_add(input.start).cast_const();
    let to = output.map_or(ptr::null_mut(), |at| base.wrapping_add(at));
    (from, to, int(bytes))
}

fn answered(code: c_int) -> c_int {
    loop {
        let error = ERR_get_error();
        if error == 0 {
            return code;
        }
        ERRORS.with_borrow_mut(|errors| errors.push(error));
    }
}

/// Library and reason of each error that calls of this thread have left since this was asked last.
pub fn errors() -> Vec<c_ulong> {
    ERRORS.take()
}

thread_local! {
    static ERRORS: RefCell<Vec<c_ulong>> = const { RefCell::new(Vec::new()) };
}

const AEAD_SET_IVLEN: c_int = 0x9;
const AEAD_GET_TAG: c_int = 0x10;
const AEAD_SET_TAG: c_int = 0x11;
const AEAD_SET_IV_FIXED: c_int = 0x12;
const AEAD_TLS1_AAD: c_int = 0x16;
