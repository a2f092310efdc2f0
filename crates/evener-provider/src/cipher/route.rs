//! Where an update that is worth it may take another way than the inner function.

use crate::cipher::ctx::CipherCtx;
use crate::err::Reason;
use crate::ffi::cipher::Update;

/// Does one update of at least `thresh` bytes; returns what the inner function would.
pub(crate) fn update(ctx: &CipherCtx, call: Update) -> Result<std::ffi::c_int, Reason> {
    Ok(call.inner(ctx))
}
