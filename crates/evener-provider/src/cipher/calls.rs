//! Calls that concern a message as a whole: its init, and its return to the inner context.

use std::ffi::c_int;

use super::context::{CipherCtx, IvOnly};
use super::message::State;
use super::{buffering, gcm};
use crate::core::errors::Reason;
use crate::inner_cipher::call::Init;

/// An init of a tracked context. An IV that was moved inside is given anew where OpenSSL would take the old one.
pub(crate) fn init(ctx: &mut CipherCtx, call: &Init<'_>) -> Result<c_int, Reason> {
    if ctx.row().splits_gcm() {
        return gcm::init(ctx, call);
    }
    if ctx.message.state == State::Failed {
        ctx.message.state = State::InnerOnly;
    }
    buffering::stop(ctx)?;
    Ok(begin(ctx, call))
}

/// Whether a call about the message ends in the inner function, and what is noted of it takes no memory, no lock and none of the kernel's
/// time: the message is the inner context's, and no module or lane knows its key. As with GCM's short calls (`gcm/unsplit.rs`), neither
/// cancellation has to be held back then nor a panic caught.
pub(crate) fn is_noted_only(ctx: &CipherCtx) -> bool {
    matches!(ctx.message.state, State::Direct | State::InnerOnly)
        && !ctx.row().splits_gcm()
        && !ctx.message.has_session()
}

/// An init of a message that is the inner context's.
pub(crate) fn begin(ctx: &mut CipherCtx, call: &Init<'_>) -> c_int {
    ctx.hot.thresh = usize::MAX;
    ctx.hot.iv_only = IvOnly::None;
    ctx.hot.unseen.end();
    if call.key.is_none() && call.encrypts == ctx.message.encrypts && !ctx.hot.direct.is_due() {
        ctx.end_message();
    } else {
        ctx.end_and_flush();
    }
    let again = ctx.iv_again(call.iv.is_some());
    let call = call.or_iv(again.as_ref());
    let answer = call.inner(ctx.row(), ctx.hot.inner);
    if answer != 1 {
        // Half of it may have happened inside.
        ctx.message.forget_key();
        ctx.message.state = State::InnerOnly;
        return answer;
    }
    ctx.message.started(call.encrypts, call.key, call.iv);
    ctx.message.state = State::Direct;
    call.each_param(|key, number| ctx.message.parameter(key, number));
    ctx.settle();
    if ctx.message.is_as_begun() {
        ctx.hot.iv_only = IvOnly::of(call.encrypts);
    }
    answer
}

/// Puts the truth back into the inner context, for a call that goes there.
pub(crate) fn sync_inner(ctx: &mut CipherCtx) -> Result<c_int, Reason> {
    if ctx.message.state == State::Failed {
        return Err(Reason::Lost);
    }
    if ctx.row().splits_gcm() {
        return gcm::lose_sight(ctx);
    }
    buffering::stop(ctx)?;
    Ok(1)
}
