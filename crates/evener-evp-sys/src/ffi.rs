//! The types and the functions. Opaque types are told apart by name; what each function demands of its caller stands in its manual page.

#![allow(missing_docs, reason = "OpenSSL has a manual page under each name")]

use core::ffi::{c_char, c_int, c_uchar, c_uint, c_void};

macro_rules! opaque {
    ($($name:ident)*) => {$(
        #[repr(C)]
        #[derive(Debug)]
        pub struct $name {
            _private: [u8; 0],
        }
    )*};
}

opaque! { OsslLibCtx OsslProvider EvpCipher EvpCipherCtx EvpMd EvpMdCtx EvpMac EvpMacCtx EvpPkey EvpPkeyCtx Bio Bignum }

/// Asks for the passphrase of a key file: space, its length, 1 for writing, and what the caller gave.
pub type PemPasswordCb =
    unsafe extern "C" fn(space: *mut c_char, bytes: c_int, writing: c_int, user: *mut c_void) -> c_int;

/// One named value, `OSSL_PARAM`; an array of them ends in one that the library makes.
#[repr(C)]
#[derive(Debug)]
pub struct OsslParam {
    key: *const c_char,
    data_type: c_uint,
    data: *mut c_void,
    data_size: usize,
    return_size: usize,
}

#[link(name = "crypto")]
unsafe extern "C" {
    // The library and its error queue.
    pub safe fn OpenSSL_version(which: c_int) -> *const c_char;
    pub safe fn ERR_clear_error();
    pub safe fn ERR_get_error() -> core::ffi::c_ulong;

    // Library contexts and providers.
    pub fn OSSL_PROVIDER_get0_name(provider: *const OsslProvider) -> *const c_char;
    pub fn OSSL_PROVIDER_available(library: *mut OsslLibCtx, name: *const c_char) -> c_int;
    pub fn EVP_default_properties_is_fips_enabled(library: *mut OsslLibCtx) -> c_int;
    pub safe fn OSSL_LIB_CTX_new() -> *mut OsslLibCtx;
    pub fn OSSL_LIB_CTX_load_config(library: *mut OsslLibCtx, path: *const c_char) -> c_int;
    pub fn OSSL_PROVIDER_get_params(provider: *const OsslProvider, params: *mut OsslParam) -> c_int;

    // Parameters.
    pub fn OSSL_PARAM_construct_uint(key: *const c_char, value: *mut c_uint) -> OsslParam;
    pub fn OSSL_PARAM_construct_utf8_string(
        key: *const c_char,
        value: *mut c_char,
        bytes: usize,
    ) -> OsslParam;
    pub fn OSSL_PARAM_construct_utf8_ptr(
        key: *const c_char,
        value: *mut *mut c_char,
        bytes: usize,
    ) -> OsslParam;
    pub safe fn OSSL_PARAM_construct_end() -> OsslParam;
    pub fn OSSL_PARAM_construct_size_t(key: *const c_char, value: *mut usize) -> OsslParam;
    pub fn OSSL_PARAM_construct_octet_ptr(
        key: *const c_char,
        value: *mut *mut c_void,
        bytes: usize,
    ) -> OsslParam;

    pub fn OSSL_PARAM_construct_BN(key: *const c_char, number: *mut c_uchar, bytes: usize) -> OsslParam;
    pub fn OSSL_PARAM_construct_octet_string(
        key: *const c_char,
        value: *mut c_void,
        bytes: usize,
    ) -> OsslParam;

    // Ciphers.
    pub fn EVP_CIPHER_fetch(
        library: *mut OsslLibCtx,
        name: *const c_char,
        properties: *const c_char,
    ) -> *mut EvpCipher;
    pub fn EVP_CIPHER_get_key_length(cipher: *const EvpCipher) -> c_int;
    pub fn EVP_CIPHER_get_iv_length(cipher: *const EvpCipher) -> c_int;
    pub fn EVP_CIPHER_get_block_size(cipher: *const EvpCipher) -> c_int;
    pub fn EVP_CIPHER_get_mode(cipher: *const EvpCipher) -> c_int;
    pub fn EVP_CIPHER_get_flags(cipher: *const EvpCipher) -> core::ffi::c_ulong;
    pub fn EVP_CIPHER_free(cipher: *mut EvpCipher);
    pub safe fn EVP_CIPHER_CTX_new() -> *mut EvpCipherCtx;
    pub fn EVP_CIPHER_CTX_free(context: *mut EvpCipherCtx);
    pub fn EVP_CIPHER_CTX_set_params(context: *mut EvpCipherCtx, params: *const OsslParam) -> c_int;
    pub fn EVP_CIPHER_CTX_ctrl(
        context: *mut EvpCipherCtx,
        control: c_int,
        bytes: c_int,
        data: *mut c_void,
    ) -> c_int;
    pub fn EVP_CipherInit_ex2(
        context: *mut EvpCipherCtx,
        cipher: *const EvpCipher,
        key: *const c_uchar,
        iv: *const c_uchar,
        encrypts: c_int,
        params: *const OsslParam,
    ) -> c_int;
    pub fn EVP_CipherUpdate(
        context: *mut EvpCipherCtx,
        output: *mut c_uchar,
        written: *mut c_int,
        input: *const c_uchar,
        input_bytes: c_int,
    ) -> c_int;
    pub fn EVP_CipherFinal_ex(context: *mut EvpCipherCtx, output: *mut c_uchar, written: *mut c_int)
    -> c_int;
    pub fn EVP_CIPHER_get0_provider(cipher: *const EvpCipher) -> *const OsslProvider;
    pub fn EVP_CIPHER_CTX_copy(to: *mut EvpCipherCtx, from: *const EvpCipherCtx) -> c_int;
    pub fn EVP_Cipher(
        context: *mut EvpCipherCtx,
        output: *mut c_uchar,
        input: *const c_uchar,
        bytes: c_uint,
    ) -> c_int;
    pub fn EVP_CIPHER_CTX_set_padding(context: *mut EvpCipherCtx, padding: c_int) -> c_int;
    pub fn EVP_CIPHER_CTX_set_key_length(context: *mut EvpCipherCtx, bytes: c_int) -> c_int;
    pub fn EVP_CIPHER_CTX_get_num(context: *const EvpCipherCtx) -> c_int;
    pub fn EVP_CIPHER_CTX_set_num(context: *mut EvpCipherCtx, number: c_int) -> c_int;
    pub fn EVP_CIPHER_CTX_get_original_iv(context: *mut EvpCipherCtx, iv: *mut c_void, bytes: usize)
    -> c_int;
    pub fn EVP_CIPHER_CTX_get_updated_iv(context: *mut EvpCipherCtx, iv: *mut c_void, bytes: usize) -> c_int;
    pub fn EVP_CIPHER_CTX_get_params(context: *mut EvpCipherCtx, params: *mut OsslParam) -> c_int;

    // Digests.
    pub fn EVP_MD_fetch(
        library: *mut OsslLibCtx,
        name: *const c_char,
        properties: *const c_char,
    ) -> *mut EvpMd;
    pub fn EVP_MD_get_size(digest: *const EvpMd) -> c_int;
    pub fn EVP_MD_free(digest: *mut EvpMd);
    pub safe fn EVP_MD_CTX_new() -> *mut EvpMdCtx;
    pub fn EVP_MD_CTX_free(context: *mut EvpMdCtx);
    pub fn EVP_DigestInit_ex2(
        context: *mut EvpMdCtx,
        digest: *const EvpMd,
        params: *const OsslParam,
    ) -> c_int;
    pub fn EVP_DigestUpdate(context: *mut EvpMdCtx, data: *const c_void, bytes: usize) -> c_int;
    pub fn EVP_DigestFinal_ex(context: *mut EvpMdCtx, digest: *mut c_uchar, bytes: *mut c_uint) -> c_int;
    pub fn EVP_MD_get0_provider(digest: *const EvpMd) -> *const OsslProvider;
    pub fn EVP_MD_CTX_copy_ex(to: *mut EvpMdCtx, from: *const EvpMdCtx) -> c_int;

    pub fn PKCS5_PBKDF2_HMAC(
        passphrase: *const c_char,
        passphrase_bytes: c_int,
        salt: *const c_uchar,
        salt_bytes: c_int,
        iterations: c_int,
        digest: *const EvpMd,
        key_bytes: c_int,
        key: *mut c_uchar,
    ) -> c_int;

    // Keys of public-key algorithms.
    pub fn EVP_PKEY_free(key: *mut EvpPkey);
    pub fn EVP_PKEY_is_a(key: *const EvpPkey, name: *const c_char) -> c_int;
    pub fn EVP_PKEY_get_raw_private_key(key: *const EvpPkey, raw: *mut c_uchar, bytes: *mut usize) -> c_int;
    pub fn EVP_PKEY_get_bn_param(key: *const EvpPkey, name: *const c_char, number: *mut *mut Bignum)
    -> c_int;
    pub fn EVP_PKEY_CTX_new_from_name(
        library: *mut OsslLibCtx,
        name: *const c_char,
        properties: *const c_char,
    ) -> *mut EvpPkeyCtx;
    pub fn EVP_PKEY_CTX_new_from_pkey(
        library: *mut OsslLibCtx,
        key: *mut EvpPkey,
        properties: *const c_char,
    ) -> *mut EvpPkeyCtx;
    pub fn EVP_PKEY_CTX_free(context: *mut EvpPkeyCtx);
    pub fn EVP_PKEY_fromdata_init(context: *mut EvpPkeyCtx) -> c_int;
    pub fn EVP_PKEY_fromdata(
        context: *mut EvpPkeyCtx,
        key: *mut *mut EvpPkey,
        selection: c_int,
        params: *mut OsslParam,
    ) -> c_int;
    pub fn EVP_PKEY_keygen_init(context: *mut EvpPkeyCtx) -> c_int;
    pub fn EVP_PKEY_CTX_set_params(context: *mut EvpPkeyCtx, params: *const OsslParam) -> c_int;
    pub fn EVP_PKEY_generate(context: *mut EvpPkeyCtx, key: *mut *mut EvpPkey) -> c_int;
    pub fn EVP_PKEY_derive_init(context: *mut EvpPkeyCtx) -> c_int;
    pub fn EVP_PKEY_derive_set_peer(context: *mut EvpPkeyCtx, peer: *mut EvpPkey) -> c_int;
    pub fn EVP_PKEY_derive(context: *mut EvpPkeyCtx, secret: *mut c_uchar, bytes: *mut usize) -> c_int;
    pub fn EVP_PKEY_encrypt_init_ex(context: *mut EvpPkeyCtx, params: *const OsslParam) -> c_int;
    pub fn EVP_PKEY_encrypt(
        context: *mut EvpPkeyCtx,
        output: *mut c_uchar,
        output_bytes: *mut usize,
        input: *const c_uchar,
        input_bytes: usize,
    ) -> c_int;
    pub fn EVP_PKEY_decrypt_init_ex(context: *mut EvpPkeyCtx, params: *const OsslParam) -> c_int;
    pub fn EVP_PKEY_decrypt(
        context: *mut EvpPkeyCtx,
        output: *mut c_uchar,
        output_bytes: *mut usize,
        input: *const c_uchar,
        input_bytes: usize,
    ) -> c_int;

    // Key files.
    pub fn BIO_new_mem_buf(bytes: *const c_void, len: c_int) -> *mut Bio;
    pub fn BIO_free(bio: *mut Bio) -> c_int;
    pub fn PEM_read_bio_PrivateKey_ex(
        bio: *mut Bio,
        key: *mut *mut EvpPkey,
        ask: Option<PemPasswordCb>,
        user: *mut c_void,
        library: *mut OsslLibCtx,
        properties: *const c_char,
    ) -> *mut EvpPkey;

    // Large numbers.
    pub fn BN_num_bits(number: *const Bignum) -> c_int;
    pub fn BN_bn2bin(number: *const Bignum, to: *mut c_uchar) -> c_int;
    pub fn BN_clear_free(number: *mut Bignum);

    // Message authentication codes.
    pub fn EVP_MAC_fetch(
        library: *mut OsslLibCtx,
        name: *const c_char,
        properties: *const c_char,
    ) -> *mut EvpMac;
    pub fn EVP_MAC_free(mac: *mut EvpMac);
    pub fn EVP_MAC_CTX_new(mac: *mut EvpMac) -> *mut EvpMacCtx;
    pub fn EVP_MAC_CTX_free(context: *mut EvpMacCtx);
    pub fn EVP_MAC_init(
        context: *mut EvpMacCtx,
        key: *const c_uchar,
        bytes: usize,
        params: *const OsslParam,
    ) -> c_int;
    pub fn EVP_MAC_update(context: *mut EvpMacCtx, data: *const c_uchar, bytes: usize) -> c_int;
    pub fn EVP_MAC_final(
        context: *mut EvpMacCtx,
        mac: *mut c_uchar,
        written: *mut usize,
        space_bytes: usize,
    ) -> c_int;
}
