//! libcrypto for file formats: what is looked up by a name that a user wrote, and what no driver does.
//!
//! A name -> [`Cipher`] or [`Digest`] (fetched, or `None`) -> a stream, a digest, a derived key. A key file in PEM, or numbers -> [`RsaKey`],
//! [`PemKey`]; a point of P-256 -> [`p256`]. Pointers stay in `ffi`; every function here is safe. Secrets that come out are wiped when they are dropped.
#![allow(unsafe_code, reason = "room: libcrypto's C interface")]
#![deny(unsafe_op_in_unsafe_fn)]

mod ffi;
pub mod gcm;
pub mod p256;

pub use ffi::cipher::{Cipher, CipherStream, Mode};
pub use ffi::digest::{Digest, RunningDigest};
pub use ffi::key::{PemKey, RsaKey};

/// libcrypto returned something other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("libcrypto refused it")]
pub struct Refused;
