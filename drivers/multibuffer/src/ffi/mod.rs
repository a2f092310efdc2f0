//! Calls libipsec-mb: everything unsafe of this crate stands here.
//!
//! [`Manager`] is the library on one thread. Ciphers and hashes of many jobs go through a [`Pass`], which
//! borrows keys and memory until it has run; GCM and ChaCha20-Poly1305 are called directly (`aead.rs`).

mod aead;
mod job_slots;
mod keys;
mod layout;
mod library;
mod manager;
mod memory;
mod pass;
mod raw_loop;
mod span;
mod work;

pub(crate) use aead::{AeadMessage, CHACHA_BYTES_MAX, GCM_BYTES_MAX};
pub(crate) use keys::{AesKeys, GcmKeys, HmacKeys, KeySize};
pub(crate) use layout::{BURST_JOBS_MAX, LANE_BYTES_MAX};
pub(crate) use library::{load_first, load_first_of};
pub(crate) use manager::{Manager, find};
pub(crate) use pass::{Pass, Refused};
pub use raw_loop::{BareLoop, BareSpan};
pub(crate) use span::{Input, Span};
pub(crate) use work::Work;
