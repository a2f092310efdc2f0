//! Evener's OpenSSL provider: wraps the default provider of the libcrypto that loads it.
//!
//! The way of one call: C -> `ffi/` (takes pointers apart, catches panics) -> here, on references -> the inner
//! function, which is the default provider's own. `cipher/route.rs` is where another way than that may be taken.
//! Everything that belongs to one library context lives in `ProvCtx`; two libcryptos in one process map this file
//! once, so a static holds nothing of theirs. `docs/provider.md` tells the rest.

#![allow(unsafe_code, reason = "room: OpenSSL's C interface")]

mod cipher;
mod config;
mod core;
mod entry;
mod ffi;
pub mod fork;
mod inner_cipher;
mod inner_provider;
mod modules;
mod setup;
mod state;
mod statistics;

pub use cipher::combining::combine_always;
pub use cipher::engine::registry::add_engine;
pub use cipher::engine::{Engine, Many, Plain, Raw, RawError};
pub use cipher::in_flight::{offer_pipelines_anyway, run_lanes_by};
pub use entry::provider::OSSL_provider_init;
pub use modules::add_module;
