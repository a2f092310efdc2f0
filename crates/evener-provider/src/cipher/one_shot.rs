//! One-shot calls (`EVP_Cipher`), by which OpenSSH, OpenSSL's CMAC and the GCM records of TLS 1.2 come: each is a request of its own.
//!
//! Path of one call: [`is_plain`] (the inner function's, and only counted) -> for streams, units of XTS and GCM it is an update (`route.rs`) ->
//! for ECB and CBC it is raw blocks, without padding or a held block: [`raw_blocks`] starts from the chaining value of the inner
//! context, which gets the next one -> it is counted ([`count`]), and leaves nothing to the message but where a stream stands in its block.

use std::ffi::c_int;

use evener_core::BLOCK_BYTES;

use super::context::CipherCtx;
use super::message::State;
use super::{buffering, combining, route};
use crate::core::errors::Reason;
use crate::inner_cipher::call::Update;

/// Whether the call is the inner function's and no thread has to know of it: it is short, and leaves a stream where it was in its block.
#[inline]
pub(crate) fn is_plain(ctx: &CipherCtx, len: usize) -> bool {
    let thresh = ctx.hot.thresh;
    len < thresh && (len % BLOCK_BYTES == 0 || thresh == usize::MAX)
}

/// Counts a call that went the inner way.
#[inline]
pub(crate) fn count(ctx: &mut CipherCtx, len: usize) {
    if ctx.hot.direct.record(len) {
        flush(ctx);
    }
}

#[cold]
#[inline(never)]
fn flush(ctx: &mut CipherCtx) {
    ctx.flush_requests();
}

/// Does one call; `inner` is the same call, by the inner function.
pub(crate) fn update(
    ctx: &mut CipherCtx,
    call: &Update,
    inner: impl Fn(&CipherCtx) -> c_int,
) -> Result<c_int, Reason> {
    let (taken, elsewhere) = (ctx.hot.taken, ctx.hot.elsewhere.get());
    let answer = if ctx.row().splits_gcm() {
        route::update(ctx, call)
    } else if ctx.row().is_padded() {
        blocks(ctx, call, inner)
    } else {
        route::update_or(ctx, call, inner)
    };
    let counted = ctx.hot.elsewhere.get().saturating_sub(elsewhere);
    let moved = if ctx.row().is_padded() { 0 } else { call.len() % BLOCK_BYTES };
    ctx.hot.taken = taken.wrapping_add(moved);
    ctx.hot.elsewhere.set(elsewhere.saturating_add(moved));
    if answer == Ok(1) && call.is_whole() && counted < call.len() {
        count(ctx, call.len() - counted);
    }
    answer
}

/// A call of ECB or CBC.
fn blocks(ctx: &mut CipherCtx, call: &Update, inner: impl Fn(&CipherCtx) -> c_int) -> Result<c_int, Reason> {
    if ctx.message.state == State::Failed {
        return Err(Reason::Lost);
    }
    buffering::stop(ctx)?;
    // A part of a block is OpenSSL's own affair, and so are records, which it does not make of such a call.
    let is_work = call.is_whole() && call.len() % BLOCK_BYTES == 0 && call.can_work(0, 0, call.len());
    if !is_work || ctx.message.state != State::Direct || ctx.message.record_mode.is_some() {
        return Ok(inner(ctx));
    }
    route::decided(ctx, call, |ctx, call| {
        let written = if buffering::holds_inside(ctx) { None } else { raw_blocks(ctx, call)? };
        Ok(written.map_or_else(|| inner(ctx), |written| call.done(written)))
    })
}

/// Whole blocks of a message that holds none back; `None` where they are the inner function's.
fn raw_blocks(ctx: &mut CipherCtx, call: &Update) -> Result<Option<usize>, Reason> {
    let is_split = route::is_split(ctx);
    if call.len() < ctx.block_thresh().min(ctx.row().thresholds.combined_from) && !is_split {
        return Ok(None);
    }
    if let Some(written) = combining::update(ctx, call)? {
        // No module had it.
        ctx.pending.module = None;
        return Ok(Some(written));
    }
    if !is_split && call.len() < ctx.block_thresh() {
        return Ok(None);
    }
    buffering::raw(ctx, call.memory(0, 0, call.len()))
}
