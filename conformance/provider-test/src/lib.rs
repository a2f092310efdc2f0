//! The provider as `evener.so` has it, and an emulated module to which requests are really routed. For tests only: it is
//! never installed, and `evener.so` knows nothing of it.
//!
//! Path of one request of at least the threshold: the provider cuts block work -> [`engine`] makes a job of it -> the
//! emulated driver holds it in memory of its own -> [`soft`], AES from other hands than OpenSSL's, computes -> the
//! result is copied to where the program wants it. One in sixteen fails, and the provider does it again itself.

#![allow(unsafe_code, reason = "room: registers the engine before OpenSSL calls the provider")]

mod count;
mod engine;
mod ffi;
mod software_aes;

pub use evener_provider::OSSL_provider_init;
