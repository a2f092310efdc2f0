//! Evener's OpenSSL provider: wraps the default provider of the libcrypto that loads it.
//!
//! Path of one call: C -> `entry/` (takes pointers apart, catches panics) -> `cipher/route.rs` decides -> one of the ways in `cipher/`,
//! which ends in `cipher/blocks.rs` -> the inner function, which is the default provider's own. Small calls go from `entry/` to the inner
//! function at once. A provider is made by `setup.rs` and lives in `state/`; the rooms stand in Cargo.toml in their order.
//! What a kernel of ours computes goes from `entry/native/` to `native/gcm.rs` or `native/blocks.rs` and no further.
//! Everything that belongs to one library context lives in `ProvCtx`; two libcryptos in one process map this file
//! once, so a static holds nothing of theirs. `docs/design/provider.md` has the rest.

#![allow(unsafe_code, reason = "room: OpenSSL's C interface")]

mod cipher;
mod config;
mod core;
mod counters;
mod entry;
mod ffi;
pub mod fork;
mod inner_cipher;
mod inner_provider;
mod modules;
mod native;
mod setup;
mod state;

pub use cipher::combining::combine_always;
pub use cipher::engine::registry::add_engine;
pub use cipher::engine::{BlockBatch, BlockError, BlockRequest, Engine, Fallback};
pub use cipher::in_flight::offer_pipelines_anyway;
pub use cipher::lane::source::run_lanes_by;
pub use entry::provider::OSSL_provider_init;
pub use modules::add_module;
pub use native::kernel_check::{plant_unwinding, plant_wrong_kernels};
