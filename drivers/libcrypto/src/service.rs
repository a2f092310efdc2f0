//! Which provider serves which algorithm in this process: for a command that explains it.

use std::ffi::CString;

use crate::ffi::{self, service};

/// A kind of algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// A cipher.
    Cipher,
    /// A hash.
    Digest,
}

impl Service {
    /// The provider that serves algorithm `name` (OpenSSL's own name) under the property query `properties`, such as
    /// `provider=default`; an empty one is what most programs use. `None` where no provider serves it.
    #[must_use]
    pub fn served_by(self, name: &str, properties: &str) -> Option<String> {
        let [name, properties] = [name, properties].map(|text| CString::new(text).ok());
        match self {
            Self::Cipher => service::cipher(&name?, &properties?),
            Self::Digest => service::digest(&name?, &properties?),
        }
    }
}

/// Whether libcrypto has loaded and activated the provider `name`.
#[must_use]
pub fn has_provider(name: &str) -> bool {
    CString::new(name).is_ok_and(|name| service::is_active(&name))
}

/// What the provider that serves cipher `name` under `properties` says of its build (`buildinfo` in provider-base(7)).
#[must_use]
pub fn build_info(name: &str, properties: &str) -> Option<String> {
    let [name, properties] = [name, properties].map(|text| CString::new(text).ok());
    service::build_info(&name?, &properties?)
}

/// Whether this process wants validated algorithms only.
#[must_use]
pub fn asks_for_fips() -> bool {
    service::asks_for_fips()
}

/// The version of the library that is loaded, as `3.0.19`.
#[must_use]
pub fn version() -> String {
    ffi::version()
}
