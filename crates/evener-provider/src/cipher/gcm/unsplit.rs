//! Short calls of a message that is not split: each ends in the inner function, and what it began or fed is noted.
//!
//! Nothing here takes memory, a lock or the kernel's time, and nothing panics: such a call needs neither its thread's cancellation held back
//! nor a panic caught, which together would take a quarter of a small message's instructions (docs/results/instructions.md). Each function
//! but [`forward`] answers `None`, with nothing touched, where the call is for its namesake in `mod.rs`.

use std::ffi::c_int;

use evener_ossl_sys::Param;

use super::state::{Gcm, NONCE_BYTES};
use super::{is_about_tls, record_parameters, settle};
use crate::cipher::context::CipherCtx;
use crate::cipher::message::State;
use crate::inner_cipher::call::{Init, Update};

/// The state of a message that was neither split nor given up.
fn unsplit(ctx: &mut CipherCtx) -> Option<&mut Gcm> {
    let is_failed = ctx.message.state == State::Failed;
    ctx.gcm.as_deref_mut().filter(|gcm| gcm.data.is_none() && !is_failed)
}

/// An init with nothing but a nonce of 96 bits, under the key and in the direction of the message before.
pub(crate) fn init(ctx: &mut CipherCtx, call: &Init<'_>) -> Option<c_int> {
    let nonce: &[u8; NONCE_BYTES] = call.iv?.try_into().ok()?;
    let goes_on = call.key.is_none() && call.encrypts == ctx.message.encrypts && !call.has_params();
    if !goes_on || ctx.message.key().is_empty() || ctx.hot.direct.is_due() {
        return None;
    }
    unsplit(ctx)?;
    ctx.end_message();
    let answer = call.inner(ctx.row(), ctx.hot.inner);
    let gcm = unsplit(ctx)?;
    gcm.begin((answer == 1).then_some(nonce));
    ctx.message.state = State::InnerOnly;
    ctx.hot.iv_bytes = if answer == 1 { NONCE_BYTES } else { 0 };
    settle(ctx);
    Some(answer)
}

/// An update that is too short to be split.
pub(crate) fn update(ctx: &mut CipherCtx, call: &Update) -> Option<c_int> {
    if call.len() >= ctx.row().thresholds.gcm_from {
        return None;
    }
    unsplit(ctx)?;
    ctx.hot.taken = ctx.hot.taken.wrapping_add(call.len());
    Some(forward(ctx, call))
}

/// An update by the inner function, of a message that is not split.
pub(super) fn forward(ctx: &mut CipherCtx, call: &Update) -> c_int {
    let answer = ctx.inner_update(call);
    if let Some(gcm) = unsplit(ctx) {
        match (answer, call.is_aad()) {
            (1, true) => gcm.aad_bytes = gcm.aad_bytes.wrapping_add(call.len() as u64),
            (1, false) => gcm.text_bytes = gcm.text_bytes.wrapping_add(call.len() as u64),
            // How much of it went in is unknown.
            _ => gcm.is_known = false,
        }
        settle(ctx);
    }
    answer
}

/// The end of a message.
pub(crate) fn last(ctx: &mut CipherCtx, finish: impl Fn(&CipherCtx) -> c_int) -> Option<c_int> {
    unsplit(ctx)?.is_known = false;
    settle(ctx);
    Some(finish(ctx))
}

/// Questions are coming that the inner context answers as it is.
pub(crate) fn before_get(ctx: &mut CipherCtx, questions: &[Param]) -> Option<c_int> {
    unsplit(ctx)?;
    (!questions.iter().any(is_about_tls)).then_some(1)
}

/// Parameters are set in the inner context by `set`.
pub(crate) fn set(
    ctx: &mut CipherCtx,
    call: &Init<'_>,
    set: impl FnOnce(&CipherCtx) -> c_int,
) -> Option<c_int> {
    unsplit(ctx)?;
    let answer = set(ctx);
    record_parameters(ctx, call);
    Some(answer)
}
