//! Keys of public-key algorithms: RSA for OAEP, what a PEM file holds, points of P-256.

use std::ffi::{CStr, CString, c_int, c_uchar};
use std::mem;
use std::ptr::{self, NonNull};

use evener_evp_sys::{
    BIO_free, BIO_new_mem_buf, BN_bn2bin, BN_clear_free, BN_num_bits, EVP_PKEY_CTX_free,
    EVP_PKEY_CTX_new_from_name, EVP_PKEY_CTX_new_from_pkey, EVP_PKEY_CTX_set_params, EVP_PKEY_decrypt,
    EVP_PKEY_decrypt_init_ex, EVP_PKEY_derive, EVP_PKEY_derive_init, EVP_PKEY_derive_set_peer,
    EVP_PKEY_encrypt, EVP_PKEY_encrypt_init_ex, EVP_PKEY_free, EVP_PKEY_fromdata, EVP_PKEY_fromdata_init,
    EVP_PKEY_generate, EVP_PKEY_get_bn_param, EVP_PKEY_get_raw_private_key, EVP_PKEY_is_a,
    EVP_PKEY_keygen_init, EvpPkey, EvpPkeyCtx, OSSL_PARAM_construct_BN, OSSL_PARAM_construct_end,
    OSSL_PARAM_construct_octet_string, OSSL_PARAM_construct_utf8_string, OsslParam,
    PEM_read_bio_PrivateKey_ex,
};
use zeroize::Zeroizing;

use super::{LIBRARY, accepted, int, len, owned};
use crate::Refused;

/// `EVP_PKEY_PUBLIC_KEY` and `EVP_PKEY_KEYPAIR` of OpenSSL 3: parameters, public and private part.
const PUBLIC: c_int = 0x86;
const KEY_PAIR: c_int = 0x87;

/// A key of any kind.
#[derive(Debug)]
pub(crate) struct Key(NonNull<EvpPkey>);

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: this is the one reference that libcrypto gave; freeing wipes private parts.
        unsafe { EVP_PKEY_free(self.0.as_ptr()) }
    }
}

// SAFETY: a finished key is not changed but for its reference count and caches, which libcrypto locks.
unsafe impl Send for Key {}
// SAFETY: as above.
unsafe impl Sync for Key {}

struct Context(NonNull<EvpPkeyCtx>);

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is this value's own.
        unsafe { EVP_PKEY_CTX_free(self.0.as_ptr()) }
    }
}

impl Context {
    fn of_kind(kind: &CStr) -> Result<Self, Refused> {
        // SAFETY: the name ends in nul and is read during the call only.
        owned(unsafe { EVP_PKEY_CTX_new_from_name(LIBRARY, kind.as_ptr(), ptr::null()) }).map(Self)
    }

    fn of_key(key: &Key) -> Result<Self, Refused> {
        // SAFETY: the key is alive; the context counts a reference of its own.
        owned(unsafe { EVP_PKEY_CTX_new_from_pkey(LIBRARY, key.0.as_ptr(), ptr::null()) }).map(Self)
    }

    /// The key that some values make.
    fn key_from(&self, selection: c_int, params: &mut [OsslParam]) -> Result<Key, Refused> {
        // SAFETY: the context is alive.
        accepted(unsafe { EVP_PKEY_fromdata_init(self.0.as_ptr()) })?;
        let mut key = ptr::null_mut();
        // SAFETY: the parameters end in the end mark, and what they point to outlives this call.
        let answer =
            unsafe { EVP_PKEY_fromdata(self.0.as_ptr(), &raw mut key, selection, params.as_mut_ptr()) };
        accepted(answer)?;
        owned(key).map(Key)
    }
}

// ---- RSA

/// An RSA key, public or private, for OAEP with SHA-256.
#[derive(Debug)]
pub struct RsaKey {
    key: Key,
    modulus_bytes: usize,
}

impl RsaKey {
    /// A public key of two numbers, big end first.
    ///
    /// # Errors
    ///
    /// [`Refused`] where libcrypto takes them for none.
    pub fn public(modulus: &[u8], exponent: &[u8]) -> Result<Self, Refused> {
        let (mut n, mut e) = (native(modulus), native(exponent));
        let mut params = [number(c"n", &mut n), number(c"e", &mut e), OSSL_PARAM_construct_end()];
        let key = Context::of_kind(c"RSA")?.key_from(PUBLIC, &mut params)?;
        Ok(Self { key, modulus_bytes: n.len() })
    }

    /// A private key of three numbers, big end first: modulus, public and private exponent.
    ///
    /// # Errors
    ///
    /// As [`RsaKey::public`].
    pub fn private(modulus: &[u8], exponent: &[u8], private: &[u8]) -> Result<Self, Refused> {
        let (mut n, mut e, mut d) = (native(modulus), native(exponent), native(private));
        let mut params =
            [number(c"n", &mut n), number(c"e", &mut e), number(c"d", &mut d), OSSL_PARAM_construct_end()];
        let key = Context::of_kind(c"RSA")?.key_from(KEY_PAIR, &mut params)?;
        Ok(Self { key, modulus_bytes: n.len() })
    }

    /// Length of the modulus in bytes, which is that of a ciphertext.
    #[must_use]
    pub const fn modulus_bytes(&self) -> usize {
        self.modulus_bytes
    }

    /// Encrypts a short text.
    ///
    /// # Errors
    ///
    /// [`Refused`] where it is too long.
    pub fn encrypt_oaep(&self, label: &[u8], text: &[u8]) -> Result<Vec<u8>, Refused> {
        let context = Context::of_key(&self.key)?;
        let mut names = OaepNames::new(label);
        // SAFETY: the context is alive, the parameters end in the end mark and outlive the call.
        accepted(unsafe { EVP_PKEY_encrypt_init_ex(context.0.as_ptr(), names.params().as_ptr()) })?;
        self.crypted(&context, EVP_PKEY_encrypt, text).map(|mut cipher| mem::take(&mut *cipher))
    }

    /// Decrypts what [`RsaKey::encrypt_oaep`] made.
    ///
    /// # Errors
    ///
    /// [`Refused`] where it is for another key, or the key is public.
    pub fn decrypt_oaep(&self, label: &[u8], cipher: &[u8]) -> Result<Zeroizing<Vec<u8>>, Refused> {
        let context = Context::of_key(&self.key)?;
        let mut names = OaepNames::new(label);
        // SAFETY: as in `encrypt_oaep`.
        accepted(unsafe { EVP_PKEY_decrypt_init_ex(context.0.as_ptr(), names.params().as_ptr()) })?;
        self.crypted(&context, EVP_PKEY_decrypt, cipher)
    }

    /// What `function` makes of `input`, which is as long as the modulus at most.
    fn crypted(
        &self,
        context: &Context,
        function: PkeyCrypt,
        input: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, Refused> {
        let mut output = Zeroizing::new(vec![0; self.modulus_bytes]);
        let mut bytes = output.len();
        // SAFETY: the context was prepared for this function; output and input go with their lengths.
        let answer = unsafe {
            function(context.0.as_ptr(), output.as_mut_ptr(), &raw mut bytes, input.as_ptr(), input.len())
        };
        accepted(answer)?;
        output.truncate(bytes);
        Ok(output)
    }
}

/// `EVP_PKEY_encrypt` or `EVP_PKEY_decrypt`: context, output and its length, input and its length.
type PkeyCrypt =
    unsafe extern "C" fn(*mut EvpPkeyCtx, *mut c_uchar, *mut usize, *const c_uchar, usize) -> c_int;

/// The words that ask for OAEP, as memory that parameters point to.
struct OaepNames {
    padding: CString,
    digest: CString,
    label: Vec<u8>,
}

impl OaepNames {
    fn new(label: &[u8]) -> Self {
        Self { padding: c"oaep".into(), digest: c"SHA256".into(), label: label.to_vec() }
    }

    fn params(&mut self) -> [OsslParam; 5] {
        [
            word(c"pad-mode", &self.padding),
            word(c"digest", &self.digest),
            word(c"mgf1-digest", &self.digest),
            octets(c"oaep-label", &mut self.label),
            OSSL_PARAM_construct_end(),
        ]
    }
}

// ---- key files

/// What a PEM file holds.
#[derive(Debug)]
pub enum PemKey {
    /// An RSA key with its public numbers, big end first.
    Rsa {
        /// The key, for OAEP.
        key: RsaKey,
        /// The modulus.
        modulus: Vec<u8>,
        /// The public exponent.
        exponent: Vec<u8>,
    },
    /// The seed of an Ed25519 key.
    Ed25519(Zeroizing<[u8; 32]>),
    /// A key of another kind.
    Other,
}

impl PemKey {
    /// Reads a private key in PEM: PKCS #8, PKCS #1, encrypted or not. The user is not asked for a passphrase.
    ///
    /// # Errors
    ///
    /// [`Refused`] where the file is damaged or `passphrase` the wrong one.
    pub fn read(pem: &[u8], passphrase: &str) -> Result<Self, Refused> {
        let key = read_pem(pem, passphrase)?;
        let is_a = |name: &CStr| {
            // SAFETY: the key is alive and the name ends in nul.
            unsafe { EVP_PKEY_is_a(key.0.as_ptr(), name.as_ptr()) == 1 }
        };
        if is_a(c"RSA") {
            let (modulus, exponent) = (public_number(&key, c"n")?, public_number(&key, c"e")?);
            let key = RsaKey { key, modulus_bytes: modulus.len() };
            return Ok(Self::Rsa { key, modulus, exponent });
        }
        if !is_a(c"ED25519") {
            return Ok(Self::Other);
        }
        let mut seed = Zeroizing::new([0; 32]);
        let mut bytes = seed.len();
        // SAFETY: the space goes with its length.
        let answer =
            unsafe { EVP_PKEY_get_raw_private_key(key.0.as_ptr(), seed.as_mut_ptr(), &raw mut bytes) };
        accepted(answer)?;
        Ok(Self::Ed25519(seed))
    }
}

fn read_pem(pem: &[u8], passphrase: &str) -> Result<Key, Refused> {
    struct Memory(NonNull<evener_evp_sys::Bio>);
    impl Drop for Memory {
        fn drop(&mut self) {
            // SAFETY: the BIO is this value's own; it only reads the bytes of others.
            unsafe { BIO_free(self.0.as_ptr()) };
        }
    }
    let passphrase = Zeroizing::new(CString::new(passphrase).map_err(|_| Refused)?.into_bytes_with_nul());
    // SAFETY: the bytes outlive the BIO, which reads no further than the length.
    let memory = Memory(owned(unsafe { BIO_new_mem_buf(pem.as_ptr().cast(), int(pem.len())?) })?);
    // SAFETY: with no callback the user's pointer is a passphrase that ends in nul, which is read during the call only.
    let key = unsafe {
        PEM_read_bio_PrivateKey_ex(
            memory.0.as_ptr(),
            ptr::null_mut(),
            None,
            passphrase.as_ptr().cast_mut().cast(),
            LIBRARY,
            ptr::null(),
        )
    };
    owned(key).map(Key)
}

/// A public number of a key, big end first.
fn public_number(key: &Key, name: &CStr) -> Result<Vec<u8>, Refused> {
    let mut number = ptr::null_mut();
    // SAFETY: the key is alive, the name ends in nul, and a null place asks for a new number.
    accepted(unsafe { EVP_PKEY_get_bn_param(key.0.as_ptr(), name.as_ptr(), &raw mut number) })?;
    let number = owned(number)?;
    // SAFETY: the number is alive.
    let bits = len(unsafe { BN_num_bits(number.as_ptr()) });
    let mut bytes = vec![0; bits.div_ceil(8)];
    // SAFETY: the space has as many bytes as the number.
    unsafe { BN_bn2bin(number.as_ptr(), bytes.as_mut_ptr()) };
    // SAFETY: the number is this function's own.
    unsafe { BN_clear_free(number.as_ptr()) };
    Ok(bytes)
}

// ---- P-256

/// A public key from its point in either form.
pub(crate) fn p256_public(point: &[u8]) -> Result<Key, Refused> {
    let mut point = point.to_vec();
    let mut params = [word(c"group", c"P-256"), octets(c"pub", &mut point), OSSL_PARAM_construct_end()];
    Context::of_kind(c"EC")?.key_from(PUBLIC, &mut params)
}

/// A new key.
pub(crate) fn p256_generate() -> Result<Key, Refused> {
    let context = Context::of_kind(c"EC")?;
    // SAFETY: the context is alive.
    accepted(unsafe { EVP_PKEY_keygen_init(context.0.as_ptr()) })?;
    let params = [word(c"group", c"P-256"), OSSL_PARAM_construct_end()];
    // SAFETY: the parameters end in the end mark and outlive the call.
    accepted(unsafe { EVP_PKEY_CTX_set_params(context.0.as_ptr(), params.as_ptr()) })?;
    let mut key = ptr::null_mut();
    // SAFETY: a null place asks for a new key.
    accepted(unsafe { EVP_PKEY_generate(context.0.as_ptr(), &raw mut key) })?;
    owned(key).map(Key)
}

/// The point of a key with both coordinates.
pub(crate) fn p256_point(key: &Key) -> Result<[u8; 65], Refused> {
    // The library gives the point in the form that it was given in, so both coordinates are asked for.
    let mut point = [0; 65];
    point[0] = 4;
    for (name, place) in [(c"qx", 1_usize), (c"qy", 33)] {
        let coordinate = public_number(key, name)?;
        let end = place + 32;
        let start = end.checked_sub(coordinate.len()).filter(|start| *start >= place).ok_or(Refused)?;
        point[start..end].copy_from_slice(&coordinate);
    }
    Ok(point)
}

/// The secret that a key shares with a public one.
pub(crate) fn p256_secret(own: &Key, peer: &Key) -> Result<Zeroizing<[u8; 32]>, Refused> {
    let context = Context::of_key(own)?;
    // SAFETY: the context is alive.
    accepted(unsafe { EVP_PKEY_derive_init(context.0.as_ptr()) })?;
    // SAFETY: context and key are alive.
    accepted(unsafe { EVP_PKEY_derive_set_peer(context.0.as_ptr(), peer.0.as_ptr()) })?;
    let mut secret = Zeroizing::new([0; 32]);
    let mut bytes = secret.len();
    // SAFETY: the space goes with its length.
    let answer = unsafe { EVP_PKEY_derive(context.0.as_ptr(), secret.as_mut_ptr(), &raw mut bytes) };
    accepted(answer)?;
    if bytes == secret.len() { Ok(secret) } else { Err(Refused) }
}

// ---- parameters

/// A number as libcrypto's parameters want it, in the order of this machine's words.
fn native(number: &[u8]) -> Zeroizing<Vec<u8>> {
    let start = number.iter().position(|&byte| byte != 0).unwrap_or(number.len());
    let mut bytes = Zeroizing::new(number[start..].to_vec());
    if cfg!(target_endian = "little") {
        bytes.reverse();
    }
    bytes
}

fn number(name: &'static CStr, value: &mut [u8]) -> OsslParam {
    // SAFETY: name and value outlive the parameter: each caller uses it within its own body.
    unsafe { OSSL_PARAM_construct_BN(name.as_ptr(), value.as_mut_ptr(), value.len()) }
}

fn word(name: &'static CStr, value: &CStr) -> OsslParam {
    // SAFETY: as above; libcrypto only reads the value.
    unsafe { OSSL_PARAM_construct_utf8_string(name.as_ptr(), value.as_ptr().cast_mut(), 0) }
}

fn octets(name: &'static CStr, value: &mut [u8]) -> OsslParam {
    // SAFETY: as above.
    unsafe { OSSL_PARAM_construct_octet_string(name.as_ptr(), value.as_mut_ptr().cast(), value.len()) }
}
