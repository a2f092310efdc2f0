//! What libcrypto has for each algorithm, fetched once per process.
//!
//! A fetch walks the providers and takes locks; one that OpenSSL makes by itself inside the hot path costs
//! more than encrypting 64 bytes.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use evener_core::{Algorithm, Family, Hash};

use crate::ffi::{Cipher, Digest, Hmac};

/// The implementation of an algorithm.
pub(crate) enum Primitive {
    Cipher(Cipher),
    Digest(Digest),
    /// HMAC and the name of the hash that it is to use.
    Hmac(Hmac, &'static CStr),
}

/// The implementation of `algorithm`; `None` where this machine's OpenSSL does not offer it, as MD5 where only
/// FIPS algorithms are allowed.
pub(crate) fn primitive(algorithm: Algorithm) -> Option<&'static Primitive> {
    static FETCHED: [OnceLock<Option<Primitive>>; Algorithm::ALL.len()] =
        [const { OnceLock::new() }; Algorithm::ALL.len()];
    FETCHED[algorithm.index()].get_or_init(|| fetch(algorithm)).as_ref()
}

fn fetch(algorithm: Algorithm) -> Option<Primitive> {
    match algorithm.family() {
        Family::Digest(hash) => Digest::fetch(hash_name(hash)).map(Primitive::Digest),
        Family::Hmac(hash) => {
            let name = hash_name(hash);
            Digest::fetch(name)?;
            Hmac::fetch().map(|hmac| Primitive::Hmac(hmac, name))
        }
        // OpenSSL knows the ciphers by the names of the table.
        _ => Cipher::fetch(&CString::new(algorithm.name()).ok()?).map(Primitive::Cipher),
    }
}

const fn hash_name(hash: Hash) -> &'static CStr {
    match hash {
        Hash::Sha1 => c"SHA-1",
        Hash::Sha256 => c"SHA-256",
        Hash::Md5 => c"MD5",
    }
}
