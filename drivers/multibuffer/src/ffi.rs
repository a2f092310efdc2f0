//! The door to libipsec-mb: everything unsafe of this crate stands here and in the files below `ffi/`.
//!
//! [`Manager`] is the library on one thread. Ciphers and hashes of many jobs go through a [`Pass`], which
//! borrows keys and memory until it has run; GCM and ChaCha20-Poly1305 are called directly (`aead.rs`).

mod aead;
mod bare;
mod keys;
mod layout;
mod library;
mod manager;
mod memory;
mod pass;

pub(crate) use aead::{CHACHA_BYTES_MAX, GCM_BYTES_MAX};
pub use bare::{BareLoop, BareSpan};
pub(crate) use keys::{AesKeys, GcmKeys, HmacKeys, KeySize};
pub(crate) use layout::{BURST_JOBS_MAX, LANE_BYTES_MAX};
pub(crate) use manager::Manager;
pub(crate) use pass::{Pass, Refused, Span, Work};
