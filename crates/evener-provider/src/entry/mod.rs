//! What OpenSSL calls: the module's one symbol, and the functions in the tables of each algorithm.
//!
//! An entry point takes pointers apart, has the work done in safe code elsewhere, and answers 1, a pointer, or 0 with the reason on
//! OpenSSL's queue (`refusal.rs`). A panic never leaves Rust. Entry points on the hot path compare one number first and jump into the inner
//! function; that path has nothing that could panic.
//!
//! `provider.rs` has the symbol and the provider's own functions, `offers.rs` what it answers when OpenSSL queries algorithms; the other
//! files have one kind of algorithm each.

mod cipher;
mod cipher_rows;
mod digest;
mod digest_stats;
mod native;
mod offers;
mod parameter_lists;
mod passthrough;
mod pipelines;
pub(crate) mod provider;
mod rand;
mod refusal;
mod siblings;
mod skey;

use std::ffi::c_void;

use crate::state::ProvCtx;

/// The provider that an entry point was called for.
fn provider_of<'p>(provctx: *mut c_void) -> Option<&'p ProvCtx> {
    let provctx: *const ProvCtx = provctx.cast_const().cast();
    // SAFETY: the core passes null or what OSSL_provider_init gave, and nothing after teardown.
    unsafe { provctx.as_ref() }
}
