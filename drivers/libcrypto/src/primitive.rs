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
    /// HMAC, the name of the hash that it is to use, and under which properties.
    Hmac(Hmac, [&'static CStr; 2]),
}

/// Every provider but Evener's own, which a program's configuration may have in this process: what is measured and compared with is
/// OpenSSL alone, and a host or a module's check is not to ask itself. By a property that only that one has: `provider!=evener` would take the
/// place of a `provider=fips` in the default properties.
const OTHERS: &CStr = c"evener.serves!=yes";
/// Where a configuration has that one alone.
const ANY: &CStr = c"";

/// The implementation of `algorithm`; `None` where this machine's OpenSSL does not offer it, as MD5 where only
/// FIPS algorithms are allowed.
pub(crate) fn primitive(algorithm: Algorithm) -> Option<&'static Primitive> {
    static FETCHED: [OnceLock<Option<Primitive>>; Algorithm::ALL.len()] =
        [const { OnceLock::new() }; Algorithm::ALL.len()];
    let by = |properties| fetch(algorithm, properties);
    FETCHED[algorithm.index()].get_or_init(|| by(OTHERS).or_else(|| by(ANY))).as_ref()
}

fn fetch(algorithm: Algorithm, properties: &'static CStr) -> Option<Primitive> {
    match algorithm.family() {
        Family::Digest(hash) => Digest::fetch(hash_name(hash), properties).map(Primitive::Digest),
        Family::Hmac(hash) => {
            let name = hash_name(hash);
            Digest::fetch(name, properties)?;
            Hmac::fetch(properties).map(|hmac| Primitive::Hmac(hmac, [name, properties]))
        }
        // OpenSSL knows the ciphers by the names of the table.
        _ => Cipher::fetch(&CString::new(algorithm.name()).ok()?, properties).map(Primitive::Cipher),
    }
}

const fn hash_name(hash: Hash) -> &'static CStr {
    match hash {
        Hash::Sha1 => c"SHA-1",
        Hash::Sha256 => c"SHA-256",
        Hash::Md5 => c"MD5",
    }
}
