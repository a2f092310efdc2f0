//! A message whose blocks this provider cuts itself: exactly as OpenSSL's `ossl_cipher_generic_block_update` and
//! `ossl_cipher_generic_stream_update` do (providers/implementations/ciphers/ciphercommon.c).
//!
//! Path: `start` takes the chaining value from the inner context -> `update` completes the held block, does the bulk,
//! holds the rest -> `stop` puts the inner context where it would be: init with no key and the chaining value, then
//! the held bytes. Final, copies and questions leave first, so that padding and its errors stay OpenSSL's own.

use evener_core::job::Memory;
use evener_core::{BLOCK_BYTES, Family};

use super::blocks;
use super::context::CipherCtx;
use super::message::State;
use super::spans::{Cut, advance, input_of, last_block, output_of};
use crate::core::errors::Reason;
use crate::inner_cipher::call::Update;

/// Takes the message over where its next byte starts a block and nothing is held back inside; false where not.
pub(crate) fn start(ctx: &mut CipherCtx) -> bool {
    if holds_inside(ctx) {
        return false;
    }
    if ctx.row().has_iv() {
        let Some(chain) = ctx.inner().updated_iv() else { return false };
        ctx.message.chain = chain;
    }
    ctx.message.held_len = 0;
    ctx.message.broken = None;
    ctx.message.state = State::Owned;
    // Every update comes here from now on, however small.
    ctx.hot.thresh = 0;
    true
}

/// Whether the inner context may hold bytes of the message back.
pub(super) fn holds_inside(ctx: &CipherCtx) -> bool {
    let holds_last = ctx.row().is_padded() && !ctx.message.encrypts && ctx.message.padding;
    ctx.hot.taken % BLOCK_BYTES != 0 || holds_last && ctx.hot.taken > 0
}

/// Raw blocks of ECB or CBC, from the chaining value of the inner context on, which holds nothing back and gets the next one; `None` where
/// it does not tell it.
pub(super) fn raw(ctx: &mut CipherCtx, memory: Memory<'_>) -> Result<Option<usize>, Reason> {
    let len = input_of(&memory).len();
    let has_iv = ctx.row().has_iv();
    if has_iv {
        let Some(chain) = ctx.inner().updated_iv() else { return Ok(None) };
        ctx.message.chain = chain;
    }
    bulk(ctx, memory).map_err(|()| ctx.fail())?;
    if has_iv {
        if !ctx.inner().init(ctx.message.encrypts, None, Some(&ctx.message.chain)) {
            return Err(ctx.fail());
        }
        ctx.message.iv_moved = true;
    }
    Ok(Some(len))
}

/// Hands the message back to the inner context; does nothing where it is there.
pub(crate) fn stop(ctx: &mut CipherCtx) -> Result<(), Reason> {
    if ctx.message.state != State::Owned {
        return Ok(());
    }
    let inner = ctx.inner();
    let held = usize::from(ctx.message.held_len);
    let is_ctr = ctx.family() == Some(Family::Ctr);
    let mut chain = ctx.message.chain;
    if is_ctr && held > 0 {
        // The held key stream belongs to the block before.
        advance(&mut chain, u128::MAX);
    }
    // OpenSSL keeps the key stream of the last broken block, and a program may set `num` to point into it again.
    let broken = ctx.message.broken.take().filter(|_| held == 0);
    let is_rewound = broken
        .is_none_or(|counter| inner.init(ctx.message.encrypts, None, Some(&counter)) && inner.feed(&[0]));
    // Key stream that was used is used up inside by any bytes of the same length.
    let is_restored = is_rewound
        && inner.init(ctx.message.encrypts, None, ctx.row().has_iv().then_some(&chain[..]))
        && (held == 0 || inner.feed(&ctx.message.held[..held]));
    if !is_restored {
        return Err(ctx.fail());
    }
    ctx.message.iv_moved = ctx.row().has_iv();
    ctx.message.state = State::Direct;
    ctx.message.held_len = 0;
    zeroize::Zeroize::zeroize(&mut ctx.message.held);
    ctx.hot.thresh = ctx.row().context_thresh(ctx.message.encrypts);
    Ok(())
}

/// One update of an owned message; `None` where it is the inner context's business, with the message handed back.
pub(crate) fn update(ctx: &mut CipherCtx, call: &Update) -> Result<Option<usize>, Reason> {
    let done = if ctx.row().is_padded() { whole_blocks(ctx, call) } else { stream(ctx, call) };
    let written = match done {
        Some(Ok(written)) => written,
        Some(Err(())) => return Err(ctx.fail()),
        None => {
            stop(ctx)?;
            return Ok(None);
        }
    };
    ctx.hot.taken = ctx.hot.taken.wrapping_add(call.len());
    Ok(Some(written))
}

/// ECB and CBC.
fn whole_blocks(ctx: &mut CipherCtx, call: &Update) -> Option<Result<usize, ()>> {
    let held = usize::from(ctx.message.held_len);
    let cut = Cut::of(held, call.len(), !ctx.message.encrypts && ctx.message.padding);
    if !call.can_work(cut.fill, cut.flushed(), cut.output()) {
        return None;
    }
    let done = || -> Result<(), ()> {
        call.copy_input(0, &mut ctx.message.held[held..held + cut.fill]);
        if cut.flush {
            let mut block = ctx.message.held;
            one_block(ctx, &mut block)?;
            call.put_output(0, &block);
        }
        if cut.bulk > 0 {
            bulk(ctx, call.memory(cut.fill, cut.flushed(), cut.bulk))?;
        }
        let start = cut.fill + cut.bulk;
        let rest = call.len() - start;
        let stays_held = if cut.flush { 0 } else { held + cut.fill };
        call.copy_input(start, &mut ctx.message.held[stays_held..stays_held + rest]);
        ctx.message.held_len = short(stays_held + rest);
        Ok(())
    }();
    Some(done.map(|()| cut.output()))
}

/// CTR.
fn stream(ctx: &mut CipherCtx, call: &Update) -> Option<Result<usize, ()>> {
    let len = call.len();
    if !call.can_work(0, 0, len) {
        return None;
    }
    let used = usize::from(ctx.message.held_len);
    let head = if used > 0 { len.min(BLOCK_BYTES - used) } else { 0 };
    let bulk_bytes = (len - head) / BLOCK_BYTES * BLOCK_BYTES;
    let tail = len - head - bulk_bytes;
    let done = || -> Result<(), ()> {
        call.xor(0, &ctx.message.held[used..used + head]);
        let mut used = (used + head) % BLOCK_BYTES;
        if bulk_bytes > 0 {
            bulk(ctx, call.memory(head, head, bulk_bytes))?;
        }
        if tail > 0 {
            let mut key_stream = [0; BLOCK_BYTES];
            ctx.message.broken = Some(ctx.message.chain);
            one_block(ctx, &mut key_stream)?;
            ctx.message.held = key_stream;
            call.xor(head + bulk_bytes, &key_stream[..tail]);
            zeroize::Zeroize::zeroize(&mut key_stream);
            used = tail;
        }
        ctx.message.held_len = short(used);
        Ok(())
    }();
    Some(done.map(|()| len))
}

fn one_block(ctx: &mut CipherCtx, block: &mut [u8; BLOCK_BYTES]) -> Result<(), ()> {
    bulk(ctx, Memory::InPlace { space: block, input_bytes: BLOCK_BYTES })
}

/// Whole blocks, from the chaining value on, which is moved behind them.
fn bulk(ctx: &mut CipherCtx, mut memory: Memory<'_>) -> Result<(), ()> {
    let family = ctx.family();
    let iv = ctx.message.chain;
    // Before the work: in place the last ciphertext block is overwritten by it.
    let last_input = last_block(input_of(&memory));
    let len = input_of(&memory).len();
    blocks::work(ctx, iv, &mut memory).map_err(|_| ())?;
    match family {
        Some(Family::Cbc) if ctx.message.encrypts => ctx.message.chain = last_block(output_of(&memory, len)),
        Some(Family::Cbc) => ctx.message.chain = last_input,
        Some(Family::Ctr) => advance(&mut ctx.message.chain, (len / BLOCK_BYTES) as u128),
        _ => {}
    }
    Ok(())
}

fn short(len: usize) -> u8 {
    u8::try_from(len).expect("at most a block")
}
