//! GCM messages whose large updates are split between threads; only contexts for which that is configured come here.
//!
//! Path of a message: [`init`] with a nonce of 96 bits -> small updates go to the inner context and are counted ([`unsplit::update`]) -> a
//! large one for which helpers come ([`update`], [`data_context::split`]) -> [`last`]. A message is in one of three states:
//!
//! | state | what works on the text | what holds what the program set and queries |
//! |---|---|---|
//! | not known (`is_known` false) | the inner context | the inner context |
//! | known, not split (`data` empty) | the inner context; its bytes are counted here | the inner context |
//! | split (`data` set) | the data context, started where the last split ended | the shadow context, now the inner one |
//!
//! A program may query a message that was split for its nonce, lengths and tag, which the data context has not; the shadow context has the
//! message's own and answers. Whatever else the program does in the middle of it, the shadow is first brought to where the message is
//! ([`restore`]) and does it itself. docs/design/gcm-split.md has the algebra and why it can be done with OpenSSL's own contexts.

mod data_context;
mod parts;
pub(crate) mod state;
pub(crate) mod unsplit;

use std::ffi::c_int;

use evener::split::Call;
use evener_core::BLOCK_BYTES;
use evener_kernels::is_same_tag;
use evener_ossl_sys::Param;

use super::context::CipherCtx;
use super::message::State;
use super::split::ask_gcm;
use crate::core::errors::Reason;
use crate::ffi::params;
use crate::inner_cipher::call::{Init, Update};
use state::{Gcm, NONCE_BYTES, NONCE_BYTES_MAX, TEXT_MAX};

/// The state of a context that was made for GCM with splitting configured.
fn state(ctx: &mut CipherCtx) -> &mut Gcm {
    ctx.gcm.get_or_insert_default()
}

fn is_split(ctx: &mut CipherCtx) -> bool {
    state(ctx).data.is_some()
}

/// An init: forwarded, and what it began is noted.
pub(super) fn init(ctx: &mut CipherCtx, call: &Init<'_>) -> Result<c_int, Reason> {
    // With a nonce nothing is left of the message before; without, OpenSSL goes on with it.
    let begins = call.iv.is_some_and(|iv| (1..=NONCE_BYTES_MAX).contains(&iv.len()));
    if !begins {
        let changes = call.key.is_some() || call.iv.is_some() || call.has_params();
        if changes || call.encrypts != ctx.message.encrypts {
            restore(ctx)?;
        }
        alive(ctx)?;
    }
    ctx.message.state = State::InnerOnly;
    let answer = call.inner(ctx.row(), ctx.hot.inner);
    let goes_on = answer == 1 && !begins && call.key.is_none() && call.encrypts == ctx.message.encrypts;
    if !goes_on {
        ctx.end_and_flush();
        let nonce = call.iv.and_then(|iv| iv.try_into().ok()).filter(|_| answer == 1);
        let gcm = state(ctx);
        gcm.data = None;
        gcm.begin(nonce);
        ctx.hot.iv_bytes = nonce.map_or(0, |_| NONCE_BYTES);
    }
    if call.key.is_some() {
        state(ctx).hash = None;
        // Refused, it may be the inner one's all the same.
        ctx.message.forget_key();
    }
    // The inner direction is the one of the call, even where something else of the call was refused.
    ctx.message.started(call.encrypts, call.key.filter(|_| answer == 1), None);
    record_parameters(ctx, call);
    Ok(answer)
}

/// What may be set and queried at the shadow while the message is ahead of it. EVP repeats padding and the length of the key
/// at each init of a context that has them set; they mean nothing here.
fn is_for_shadow(param: &Param) -> bool {
    match params::key(param).to_bytes() {
        b"tag" | b"keylen" | b"padding" => true,
        b"ivlen" => params::number(param) == Some(NONCE_BYTES),
        _ => false,
    }
}

/// Parameters were set in the inner context, or came with an init.
fn record_parameters(ctx: &mut CipherCtx, call: &Init<'_>) {
    let mut sets_iv_length = false;
    let gcm = state(ctx);
    call.each(|param| match params::key(param).to_bytes() {
        // Of another length than the nonce, it takes it away.
        b"ivlen" => {
            gcm.is_known &= is_for_shadow(param);
            sets_iv_length = true;
        }
        _ => gcm.has_foreign_parameter |= !is_for_shadow(param),
    });
    if sets_iv_length {
        ctx.hot.iv_bytes = 0;
    }
    settle(ctx);
}

/// Every call comes here while something is known, and none otherwise.
fn settle(ctx: &mut CipherCtx) {
    let gcm = state(ctx);
    let is_ours = gcm.data.is_some() || gcm.is_known && !gcm.has_foreign_parameter;
    ctx.hot.thresh = if is_ours && !ctx.message.key().is_empty() { 0 } else { usize::MAX };
}

/// An error where the message was given up.
fn alive(ctx: &CipherCtx) -> Result<(), Reason> {
    if ctx.message.state == State::Failed { Err(Reason::Lost) } else { Ok(()) }
}

/// Brings the inner context to where the message is; does nothing where it is there.
fn restore(ctx: &mut CipherCtx) -> Result<(), Reason> {
    alive(ctx)?;
    if !is_split(ctx) {
        return Ok(());
    }
    let restored = data_context::sum(ctx).and_then(|sum| data_context::replay(ctx, sum));
    restored.ok_or_else(|| ctx.fail())
}

/// The message goes on in ways that are not looked into.
pub(super) fn lose_sight(ctx: &mut CipherCtx) -> Result<c_int, Reason> {
    restore(ctx)?;
    state(ctx).is_known = false;
    settle(ctx);
    Ok(1)
}

/// One update of a known message.
pub(super) fn update(ctx: &mut CipherCtx, call: &Update) -> Result<c_int, Reason> {
    ctx.hot.taken = ctx.hot.taken.wrapping_add(call.len());
    let is_text = call.is_whole() && call.can_work(0, 0, call.len());
    let way = if is_text { ask_gcm(ctx, call.len()) } else { None };
    let answer = match way.as_ref().and_then(Call::helpers) {
        Some(helpers) => match data_context::split(ctx, call, helpers)? {
            Some(answer) => answer,
            None => return update_unsplit(ctx, call, is_text),
        },
        None => update_unsplit(ctx, call, is_text)?,
    };
    if let (Some(way), 1) = (way, answer) {
        ctx.finish_split(way, call.len());
    }
    Ok(answer)
}

/// An update that is not split.
fn update_unsplit(ctx: &mut CipherCtx, call: &Update, is_text: bool) -> Result<c_int, Reason> {
    if is_split(ctx) {
        return update_after_split(ctx, call, is_text);
    }
    Ok(unsplit::forward(ctx, call))
}

/// An update of a message that was split before.
fn update_after_split(ctx: &mut CipherCtx, call: &Update, is_text: bool) -> Result<c_int, Reason> {
    if is_text {
        if state(ctx).text_bytes + call.len() as u64 > TEXT_MAX {
            return Err(Reason::TooLong);
        }
        let done = data_context::text(ctx, call, 0, call.len());
        return done.map(|()| call.done(call.len())).ok_or_else(|| ctx.fail());
    }
    let is_refused = call.is_aad() || call.is_whole() && !call.has_space(call.len());
    if call.len() > 0 && !is_refused {
        // Input and output that overlap otherwise than exactly, or a final in disguise.
        lose_sight(ctx)?;
    }
    Ok(ctx.inner_update(call))
}

/// The end of a message. One that was split ends ahead, and `finish` ends its shadow.
pub(crate) fn last(ctx: &mut CipherCtx, finish: impl Fn(&CipherCtx) -> c_int) -> Result<c_int, Reason> {
    alive(ctx)?;
    if !is_split(ctx) {
        state(ctx).is_known = false;
        settle(ctx);
        return Ok(finish(ctx));
    }
    let encrypts = ctx.message.encrypts;
    let given = if encrypts { None } else { data_context::stored_tag(ctx) };
    if !encrypts && given.is_none() {
        // Refused: the program has not set the expected tag, and may still do so.
        return Ok(finish(ctx));
    }
    let ended = data_context::sum(ctx).and_then(|sum| Some((sum, data_context::tag(ctx, sum)?)));
    let Some((sum, tag)) = ended else { return Err(ctx.fail()) };
    let accepted = match given {
        None => Some((tag, BLOCK_BYTES)),
        Some(given) => is_same_tag(&tag, &given.0, given.1).then_some(given),
    };
    let Some(accepted) = accepted else {
        // The shadow, brought to where the message is, refuses it itself.
        data_context::replay(ctx, sum).ok_or_else(|| ctx.fail())?;
        state(ctx).is_known = false;
        settle(ctx);
        return Ok(finish(ctx));
    };
    data_context::end(ctx, accepted, finish).ok_or_else(|| ctx.fail())
}

/// Whether a parameter or question is about TLS's records.
fn is_about_tls(param: &Param) -> bool {
    params::key(param).to_bytes().starts_with(b"tls")
}

/// Questions are coming: only those about TLS's IV, which change it, are more than the shadow can answer.
pub(crate) fn before_get(ctx: &mut CipherCtx, questions: &[Param]) -> Result<c_int, Reason> {
    alive(ctx)?;
    if questions.iter().any(is_about_tls) {
        state(ctx).has_foreign_parameter = true;
        return lose_sight(ctx);
    }
    Ok(1)
}

/// Parameters are set in the inner context by `set`.
pub(crate) fn set(
    ctx: &mut CipherCtx,
    call: &Init<'_>,
    set: impl FnOnce(&CipherCtx) -> c_int,
) -> Result<c_int, Reason> {
    alive(ctx)?;
    let mut fits = true;
    call.each(|param| fits &= is_for_shadow(param));
    if !fits {
        restore(ctx)?;
    }
    let answer = set(ctx);
    record_parameters(ctx, call);
    Ok(answer)
}
