//! Evener's OpenSSL provider: wraps the default provider of the libcrypto that loads it.
//!
//! The way of one call: C -> `ffi/` (takes pointers apart, catches panics) -> here, on references -> the inner
//! function, which is the default provider's own. `cipher/route.rs` is where another way than that may be taken.
//! Everything that belongs to one library context lives in `ProvCtx`; two libcryptos in one process map this file
//! once, so a static holds nothing of theirs. `docs/provider.md` tells the rest.

#![allow(unsafe_code, reason = "room: OpenSSL's C interface")]

mod bind;
mod cfg;
mod cipher;
mod core;
mod counted;
mod err;
mod ffi;
pub mod fork;
mod modules;
mod provctx;
mod table;

pub use cipher::combined::combine_always;
pub use cipher::in_flight::{offer_pipelines_anyway, run_lanes_by};
pub use cipher::raw::{Engine, Many, Plain, Raw, RawError};
pub use cipher::route::add_engine;
pub use ffi::entry::OSSL_provider_init;
pub use modules::add_module;
