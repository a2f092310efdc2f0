//! libcrypto as a program sees it, behind owned types, and fork.

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_uint, c_ulong, c_void};
use std::ptr;

use evener_ossl_sys::{
    PARAM_OCTET_PTR, PARAM_OCTET_STRING, PARAM_UNMODIFIED, PARAM_UNSIGNED_INTEGER, PARAM_UTF8_PTR, Param,
    ProviderInit,
};

#[macro_use]
mod libcrypto;

pub mod descriptor;
pub mod digest;
pub mod job;
pub mod memory;
pub mod pipe;
pub mod skey;
pub mod tables;

pub use digest::Digest;
use libcrypto::Opaque;

libcrypto! {
    fn OSSL_LIB_CTX_new() -> Opaque;
    fn OSSL_LIB_CTX_free(Opaque);
    fn OSSL_LIB_CTX_load_config(Opaque, *const c_char) -> c_int;
    fn OSSL_PROVIDER_set_default_search_path(Opaque, *const c_char) -> c_int;
    fn OSSL_PROVIDER_load(Opaque, *const c_char) -> Opaque;
    fn OSSL_PROVIDER_add_builtin(Opaque, *const c_char, ProviderInit) -> c_int;
    fn OSSL_PROVIDER_unload(Opaque) -> c_int;
    fn OSSL_PROVIDER_get_params(Opaque, *mut Param) -> c_int;
    fn OSSL_PROVIDER_get0_name(Opaque) -> *const c_char;
    fn EVP_set_default_properties(Opaque, *const c_char) -> c_int;
    fn EVP_CIPHER_fetch(Opaque, *const c_char, *const c_char) -> Opaque;
    fn EVP_CIPHER_free(Opaque);
    fn EVP_CIPHER_get0_provider(Opaque) -> Opaque;
    fn EVP_CIPHER_get_key_length(Opaque) -> c_int;
    fn EVP_CIPHER_get_iv_length(Opaque) -> c_int;
    fn EVP_CIPHER_get_block_size(Opaque) -> c_int;
    fn EVP_CIPHER_get_flags(Opaque) -> c_ulong;
    fn EVP_CIPHER_CTX_new() -> Opaque;
    fn EVP_CIPHER_CTX_free(Opaque);
    fn EVP_CIPHER_CTX_copy(Opaque, Opaque) -> c_int;
    fn EVP_CIPHER_CTX_set_padding(Opaque, c_int) -> c_int;
    fn EVP_CIPHER_CTX_set_params(Opaque, *const Param) -> c_int;
    fn EVP_CIPHER_CTX_get_params(Opaque, *mut Param) -> c_int;
    fn EVP_CipherInit_ex2(Opaque, Opaque, *const c_uchar, *const c_uchar, c_int, *const Param) -> c_int;
    fn EVP_CipherUpdate(Opaque, *mut c_uchar, *mut c_int, *const c_uchar, c_int) -> c_int;
    fn EVP_CipherFinal_ex(Opaque, *mut c_uchar, *mut c_int) -> c_int;
    fn EVP_Cipher(Opaque, *mut c_uchar, *const c_uchar, c_uint) -> c_int;
    fn EVP_RAND_fetch(Opaque, *const c_char, *const c_char) -> Opaque;
    fn EVP_RAND_free(Opaque);
    fn EVP_RAND_get0_provider(Opaque) -> Opaque;
    fn EVP_RAND_CTX_new(Opaque, Opaque) -> Opaque;
    fn EVP_RAND_CTX_free(Opaque);
    fn EVP_RAND_instantiate(Opaque, c_uint, c_int, *const c_uchar, usize, *const Param) -> c_int;
    fn EVP_RAND_generate(Opaque, *mut c_uchar, usize, c_uint, c_int, *const c_uchar, usize) -> c_int;
    fn ERR_get_error_all(*mut *const c_char, *mut c_int, *mut *const c_char, *mut *const c_char, *mut c_int) -> c_ulong;
    fn ERR_error_string_n(c_ulong, *mut c_char, usize);
    fn ERR_clear_error();
}

/// A library context; null stands for the default one.
pub struct LibCtx(Opaque);

// SAFETY: libcrypto locks what a context shares.
unsafe impl Send for LibCtx {}
// SAFETY: as above.
unsafe impl Sync for LibCtx {}

/// The context that programs use that know of none.
pub const DEFAULT: LibCtx = LibCtx(ptr::null_mut());

impl LibCtx {
    pub fn new() -> Self {
        // SAFETY: takes nothing.
        let made = unsafe { OSSL_LIB_CTX_new() };
        assert!(!made.is_null());
        Self(made)
    }

    pub fn search(&self, folder: &str) {
        let folder = CString::new(folder).unwrap();
        // SAFETY: a context and text.
        assert_eq!(unsafe { OSSL_PROVIDER_set_default_search_path(self.0, folder.as_ptr()) }, 1);
    }

    pub fn load_config(&self, file: &str) -> bool {
        let file = CString::new(file).unwrap();
        // SAFETY: a context and text.
        unsafe { OSSL_LIB_CTX_load_config(self.0, file.as_ptr()) == 1 }
    }

    pub fn load(&self, name: &str) -> Option<Provider> {
        let name = CString::new(name).unwrap();
        // SAFETY: a context and text.
        let made = unsafe { OSSL_PROVIDER_load(self.0, name.as_ptr()) };
        (!made.is_null()).then_some(Provider(made))
    }

    /// Offers a provider that is linked into this program under `name`.
    pub fn add_builtin(&self, name: &str, init: ProviderInit) {
        let name = CString::new(name).unwrap();
        // SAFETY: a context, text and a provider's entry.
        assert_eq!(unsafe { OSSL_PROVIDER_add_builtin(self.0, name.as_ptr(), init) }, 1);
    }

    pub fn set_properties(&self, properties: &str) {
        let properties = CString::new(properties).unwrap();
        // SAFETY: a context and text.
        assert_eq!(unsafe { EVP_set_default_properties(self.0, properties.as_ptr()) }, 1);
    }

    /// A cipher by name and properties.
    pub fn cipher(&self, name: &str, properties: &str) -> Option<Cipher> {
        let (name, properties) = (CString::new(name).unwrap(), CString::new(properties).unwrap());
        // SAFETY: a context and texts.
        let made = unsafe { EVP_CIPHER_fetch(self.0, name.as_ptr(), properties.as_ptr()) };
        (!made.is_null()).then_some(Cipher(made))
    }

    /// A digest by name and properties.
    pub fn digest(&self, name: &str, properties: &str) -> Option<Digest> {
        Digest::fetch(self.0, name, properties)
    }

    /// Bytes from a generator without a parent, and the provider that serves it.
    pub fn random(&self, name: &str, properties: &str, len: usize) -> Option<(String, Vec<u8>)> {
        let (name, properties) = (CString::new(name).unwrap(), CString::new(properties).unwrap());
        // SAFETY: a context and texts.
        let kind = unsafe { EVP_RAND_fetch(self.0, name.as_ptr(), properties.as_ptr()) };
        if kind.is_null() {
            return None;
        }
        // SAFETY: just fetched.
        let served_by = provider_name(unsafe { EVP_RAND_get0_provider(kind) });
        // SAFETY: as above.
        let ctx = unsafe { EVP_RAND_CTX_new(kind, ptr::null_mut()) };
        // SAFETY: as above.
        unsafe { EVP_RAND_free(kind) };
        let mut out = vec![0; len];
        // SAFETY: a new context, no parameters.
        let ready = unsafe { EVP_RAND_instantiate(ctx, 0, 0, ptr::null(), 0, ptr::null()) };
        // SAFETY: space for `len` bytes.
        let made = unsafe { EVP_RAND_generate(ctx, out.as_mut_ptr(), len, 0, 0, ptr::null(), 0) };
        // SAFETY: ours.
        unsafe { EVP_RAND_CTX_free(ctx) };
        (ready == 1 && made == 1).then_some((served_by, out))
    }
}

impl Drop for LibCtx {
    fn drop(&mut self) {
        // SAFETY: ours; null does nothing.
        unsafe { OSSL_LIB_CTX_free(self.0) };
    }
}

/// A provider that is loaded until it is unloaded.
pub struct Provider(Opaque);

impl Provider {
    pub fn unload(self) {
        // SAFETY: loaded once.
        assert_eq!(unsafe { OSSL_PROVIDER_unload(self.0) }, 1);
    }

    /// What it answers for a count.
    pub fn count(&self, key: &CStr) -> Option<u32> {
        let mut value = 0_u32;
        let data = (&raw mut value).cast();
        let mut params = [param(key, PARAM_UNSIGNED_INTEGER, data, size_of::<u32>()), Param::END];
        // SAFETY: a list that ends.
        let answered = unsafe { OSSL_PROVIDER_get_params(self.0, params.as_mut_ptr()) };
        (answered == 1 && params[0].return_size != PARAM_UNMODIFIED).then_some(value)
    }

    /// What it answers for a text parameter.
    pub fn says(&self, key: &CStr) -> Option<String> {
        let mut value: *const c_char = ptr::null();
        let mut params = [param(key, PARAM_UTF8_PTR, (&raw mut value).cast(), 0), Param::END];
        // SAFETY: a list that ends.
        let answered = unsafe { OSSL_PROVIDER_get_params(self.0, params.as_mut_ptr()) };
        if answered != 1 || value.is_null() {
            return None;
        }
        // SAFETY: the provider's text.
        Some(unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned())
    }
}

fn provider_name(provider: Opaque) -> String {
    // SAFETY: an algorithm's provider lives as long as the algorithm.
    let name = unsafe { OSSL_PROVIDER_get0_name(provider) };
    // SAFETY: text that ends.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
}

fn param(key: &CStr, data_type: c_uint, data: *mut c_void, data_size: usize) -> Param {
    Param { key: key.as_ptr(), data_type, data, data_size, return_size: PARAM_UNMODIFIED }
}

/// A fetched cipher.
pub struct Cipher(Opaque);

// SAFETY: constant but for its reference count.
unsafe impl Send for Cipher {}
// SAFETY: as above.
unsafe impl Sync for Cipher {}

impl Cipher {
    pub fn provider(&self) -> String {
        // SAFETY: fetched.
        provider_name(unsafe { EVP_CIPHER_get0_provider(self.0) })
    }

    pub fn key_bytes(&self) -> usize {
        // SAFETY: fetched.
        usize::try_from(unsafe { EVP_CIPHER_get_key_length(self.0) }).unwrap()
    }

    pub fn iv_bytes(&self) -> usize {
        // SAFETY: fetched.
        usize::try_from(unsafe { EVP_CIPHER_get_iv_length(self.0) }).unwrap()
    }

    pub fn block_bytes(&self) -> usize {
        // SAFETY: fetched.
        usize::try_from(unsafe { EVP_CIPHER_get_block_size(self.0) }).unwrap()
    }

    pub fn flags(&self) -> c_ulong {
        // SAFETY: fetched.
        unsafe { EVP_CIPHER_get_flags(self.0) }
    }
}

impl Drop for Cipher {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { EVP_CIPHER_free(self.0) };
    }
}

/// A context of a cipher.
pub struct CipherCtx(Opaque);

// SAFETY: belongs to no thread.
unsafe impl Send for CipherCtx {}

impl CipherCtx {
    pub fn new() -> Self {
        // SAFETY: takes nothing.
        Self(unsafe { EVP_CIPHER_CTX_new() })
    }

    /// Init with what is given; `encrypts` may be left as it was.
    pub fn init(
        &self,
        cipher: Option<&Cipher>,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
        encrypts: Option<bool>,
    ) -> bool {
        let cipher = cipher.map_or(ptr::null_mut(), |cipher| cipher.0);
        let bytes = |slice: Option<&[u8]>| slice.map_or(ptr::null(), <[u8]>::as_ptr);
        let direction = encrypts.map_or(-1, c_int::from);
        // SAFETY: the tests give keys and IVs of the cipher's lengths.
        unsafe { EVP_CipherInit_ex2(self.0, cipher, bytes(key), bytes(iv), direction, ptr::null()) == 1 }
    }

    pub fn set_padding(&self, on: bool) {
        // SAFETY: ours.
        unsafe { EVP_CIPHER_CTX_set_padding(self.0, on.into()) };
    }

    pub fn set_number(&self, key: &CStr, value: c_uint) -> bool {
        self.set_numbers([(key, value)])
    }

    /// All in one call.
    pub fn set_numbers<const N: usize>(&self, mut values: [(&CStr, c_uint); N]) -> bool {
        let mut params = Vec::with_capacity(N + 1);
        for (key, value) in &mut values {
            params.push(param(key, PARAM_UNSIGNED_INTEGER, (&raw mut *value).cast(), size_of::<c_uint>()));
        }
        params.push(Param::END);
        // SAFETY: a list that ends.
        unsafe { EVP_CIPHER_CTX_set_params(self.0, params.as_ptr()) == 1 }
    }

    pub fn set_octets(&self, key: &CStr, value: &[u8]) -> bool {
        let params =
            [param(key, PARAM_OCTET_STRING, value.as_ptr().cast_mut().cast(), value.len()), Param::END];
        // SAFETY: a list that ends; the value is read only.
        unsafe { EVP_CIPHER_CTX_set_params(self.0, params.as_ptr()) == 1 }
    }

    /// Where the context has an octet parameter.
    pub fn address(&self, key: &CStr) -> Option<usize> {
        let mut place: *const c_void = ptr::null();
        let mut params = [param(key, PARAM_OCTET_PTR, (&raw mut place).cast(), 16), Param::END];
        // SAFETY: a list that ends, with space for an address.
        let answered = unsafe { EVP_CIPHER_CTX_get_params(self.0, params.as_mut_ptr()) };
        (answered == 1).then_some(place.addr())
    }

    /// The answer for an octet parameter of `len` bytes.
    pub fn octets(&self, key: &CStr, len: usize) -> Option<Vec<u8>> {
        let mut value = vec![0; len];
        let mut params = [param(key, PARAM_OCTET_STRING, value.as_mut_ptr().cast(), len), Param::END];
        // SAFETY: a list that ends, with space for `len` bytes.
        let answered = unsafe { EVP_CIPHER_CTX_get_params(self.0, params.as_mut_ptr()) };
        (answered == 1 && params[0].return_size == len).then_some(value)
    }

    /// What a list of questions gives, each with its type and its space in bytes (none: no address either): the code, and for
    /// each the space as it is then and the length that was returned.
    pub fn answers(&self, questions: &[(&CStr, c_uint, usize)]) -> (c_int, Vec<(Vec<u8>, usize)>) {
        let mut spaces: Vec<Vec<u8>> = questions.iter().map(|question| vec![0xEE; question.2]).collect();
        let as_param = |((key, kind, bytes), space): (&(&CStr, c_uint, usize), &mut Vec<u8>)| {
            let data = if space.is_empty() { ptr::null_mut() } else { space.as_mut_ptr().cast() };
            param(key, *kind, data, *bytes)
        };
        let mut params: Vec<Param> = questions.iter().zip(&mut spaces).map(as_param).collect();
        params.push(Param::END);
        // SAFETY: a list that ends, with the space that it tells of.
        let code = unsafe { EVP_CIPHER_CTX_get_params(self.0, params.as_mut_ptr()) };
        (code, spaces.into_iter().zip(params.iter().map(|param| param.return_size)).collect())
    }

    /// What a question without an address gives, which tells of so much space: the code, and the length that was returned.
    pub fn size_of(&self, (key, kind, bytes): (&CStr, c_uint, usize)) -> (c_int, usize) {
        let mut params = [param(key, kind, ptr::null_mut(), bytes), Param::END];
        // SAFETY: a list that ends; nothing is written to it but lengths.
        let code = unsafe { EVP_CIPHER_CTX_get_params(self.0, params.as_mut_ptr()) };
        (code, params[0].return_size)
    }

    /// Sets a length.
    pub fn set_length(&self, key: &CStr, value: usize) -> bool {
        let mut value = value;
        let data = (&raw mut value).cast();
        let params = [param(key, PARAM_UNSIGNED_INTEGER, data, size_of::<usize>()), Param::END];
        // SAFETY: a list that ends.
        unsafe { EVP_CIPHER_CTX_set_params(self.0, params.as_ptr()) == 1 }
    }

    /// The answer for a length.
    pub fn length(&self, key: &CStr) -> Option<usize> {
        self.answer(key)
    }

    /// The answer for a number.
    pub fn number(&self, key: &CStr) -> Option<c_uint> {
        self.answer(key)
    }

    /// The answer for an unsigned integer, which may be of any length that `T` has.
    fn answer<T: Copy + Default>(&self, key: &CStr) -> Option<T> {
        let mut value = T::default();
        let data = (&raw mut value).cast();
        let mut params = [param(key, PARAM_UNSIGNED_INTEGER, data, size_of::<T>()), Param::END];
        // SAFETY: a list that ends, with space for what is asked.
        let answered = unsafe { EVP_CIPHER_CTX_get_params(self.0, params.as_mut_ptr()) };
        (answered == 1 && params[0].return_size != PARAM_UNMODIFIED).then_some(value)
    }

    /// Additional data of an AEAD.
    pub fn aad(&self, data: &[u8]) -> bool {
        let mut written = 0;
        let len = c_int::try_from(data.len()).unwrap();
        // SAFETY: null output: additional data.
        unsafe { EVP_CipherUpdate(self.0, ptr::null_mut(), &raw mut written, data.as_ptr(), len) == 1 }
    }

    /// Update from `input`; what came out, `None` where it was refused.
    pub fn update(&self, input: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![0xA5; input.len() + 2 * 16];
        let mut written = 0;
        let len = c_int::try_from(input.len()).unwrap();
        // SAFETY: space for the input and a block.
        let done =
            unsafe { EVP_CipherUpdate(self.0, out.as_mut_ptr(), &raw mut written, input.as_ptr(), len) };
        out.truncate(usize::try_from(written).unwrap());
        (done == 1).then_some(out)
    }

    /// Update of `len` bytes within `space`, from `from` to `to`; its result and how much it wrote.
    pub fn update_within(&self, space: &mut [u8], from: usize, to: usize, len: usize) -> (bool, usize) {
        assert!(from + len <= space.len() && to + len + 16 <= space.len());
        let base = space.as_mut_ptr();
        let mut written = 0;
        // SAFETY: checked above.
        let input = unsafe { base.add(from) };
        // SAFETY: as above.
        let out = unsafe { base.add(to) };
        let len = c_int::try_from(len).unwrap();
        // SAFETY: both ends lie in `space`, with a block to spare.
        let done = unsafe { EVP_CipherUpdate(self.0, out, &raw mut written, input, len) };
        (done == 1, usize::try_from(written).unwrap())
    }

    /// Update of whole blocks, in place, by a cipher that holds none back; its result and how much it wrote.
    pub fn update_whole(&self, data: &mut [u8]) -> (bool, usize) {
        assert_eq!(data.len() % 16, 0);
        let (at, len, mut written) = (data.as_mut_ptr(), c_int::try_from(data.len()).unwrap(), 0);
        // SAFETY: works in place on `data`, of which as much comes out as goes in.
        let done = unsafe { EVP_CipherUpdate(self.0, at, &raw mut written, at, len) };
        (done == 1, usize::try_from(written).unwrap())
    }

    /// The same from `input` to `output`.
    pub fn update_apart(&self, input: &[u8], output: &mut [u8]) -> (bool, usize) {
        assert!(input.len() % 16 == 0 && input.len() <= output.len());
        let (at, out) = (input.as_ptr(), output.as_mut_ptr());
        let (len, mut written) = (c_int::try_from(input.len()).unwrap(), 0);
        // SAFETY: as above, and there is space for it.
        let done = unsafe { EVP_CipherUpdate(self.0, out, &raw mut written, at, len) };
        (done == 1, usize::try_from(written).unwrap())
    }

    /// The one-shot function on whole blocks, in place; what it returned.
    pub fn one_shot(&self, data: &mut [u8]) -> c_int {
        let len = c_uint::try_from(data.len()).unwrap();
        let at = data.as_mut_ptr();
        // SAFETY: works in place on `data`.
        unsafe { EVP_Cipher(self.0, at, at, len) }
    }

    /// The last part; `None` where it was refused.
    pub fn last(&self) -> Option<Vec<u8>> {
        let mut out = vec![0xA5; 64];
        let mut written = 0;
        // SAFETY: space for more than a block.
        let done = unsafe { EVP_CipherFinal_ex(self.0, out.as_mut_ptr(), &raw mut written) };
        out.truncate(usize::try_from(written).unwrap());
        (done == 1).then_some(out)
    }

    pub fn duplicate(&self) -> Self {
        let copy = Self::new();
        // SAFETY: both ours.
        assert_eq!(unsafe { EVP_CIPHER_CTX_copy(copy.0, self.0) }, 1);
        copy
    }
}

impl Drop for CipherCtx {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { EVP_CIPHER_CTX_free(self.0) };
    }
}

/// Whether the libcrypto that this program is linked to has a function of this name.
pub fn has_function(name: &CStr) -> bool {
    function::<unsafe extern "C" fn()>(name).is_some()
}

/// A function of the libcrypto that this program is linked to; `None` where it has none of this name.
fn function<F: Copy>(name: &CStr) -> Option<F> {
    assert_eq!(size_of::<F>(), size_of::<Opaque>(), "an address");
    // SAFETY: a name.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: libcrypto's function of this name, of the type that its manual says.
    (!address.is_null()).then(|| unsafe { std::mem::transmute_copy::<Opaque, F>(&address) })
}

/// Everything on this thread's queue of errors, as OpenSSL prints it with its data.
pub fn errors() -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let (mut file, mut function, mut data) = (ptr::null(), ptr::null(), ptr::null());
        let (mut line, mut flags) = (0, 0);
        // SAFETY: space for each answer.
        let code = unsafe {
            ERR_get_error_all(&raw mut file, &raw mut line, &raw mut function, &raw mut data, &raw mut flags)
        };
        if code == 0 {
            return all;
        }
        let mut text = [0; 256];
        // SAFETY: space for the text.
        unsafe { ERR_error_string_n(code, text.as_mut_ptr(), text.len()) };
        // SAFETY: text that ends.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
        // SAFETY: as above.
        let data = if data.is_null() { c"" } else { unsafe { CStr::from_ptr(data) } };
        all.push(format!("{text} {}", data.to_string_lossy()));
    }
}

pub fn clear_errors() {
    // SAFETY: takes nothing.
    unsafe { ERR_clear_error() };
}
