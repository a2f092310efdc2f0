//! The data context of a message that was split, and how its shadow context is brought after it.
//!
//! Path of one split: the inner context becomes the data context and a new one its shadow, which has the message's key, nonce and tag and
//! has begun ([`install_shadow`]) -> the data context goes to a block boundary and gives up its sum ([`sum`]) -> parts are done and joined
//! (`parts.rs`) -> it is started anew where they end ([`restart`]). Later text goes to it ([`text`]).
//!
//! With H = E(0), Y the sum (GHASH's state), L the block of both lengths, J0 the counter block that a context starts from:
//!
//! | what | formula | function |
//! |---|---|---|
//! | read a sum out of a tag T | Y = (T + E(J0)) / H + L | [`sum`]: `HashKey::state_of` |
//! | start at counter block J0 | IV = (J0 / H + L_iv) / H, an IV of one block | [`restart`]: `HashKey::iv_starting_at` |
//! | start from sum Y | A = Y / H, one block of associated data | [`restart`]: `HashKey::aad_leading_to` |
//! | join parts | Y = Y_before H^(blocks of the part) + Y_part | `parts::share`: `ghash::join` |
//! | the message's tag | T = (Y + L) H + E(J0), L and J0 the message's own | [`tag`]: `HashKey::digest` |
//!
//! The shadow catches up by decrypting as much text as the message has, all zeros but for one block C = Y / H that leads to the message's
//! sum, and the open block's own ciphertext ([`replay`]): then it is, byte for byte, what OpenSSL's would be.

use std::ffi::c_int;

use evener::split::Helpers;
use evener_core::BLOCK_BYTES;
use evener_core::ghash::{Block, Element, Lengths, counter_after};
use evener_core::job::Memory;
use zeroize::Zeroizing;

use super::super::context::CipherCtx;
use super::super::split::started;
use super::parts::{self, final_tag, is_supported, mask};
use super::state;
use super::state::{Cut, DataContext, SolvedStart, TEXT_MAX};
use crate::core::errors::Reason;
use crate::inner_cipher::call::Update;
use crate::inner_cipher::context::InnerContext;

/// Splits one update; `None` where it is to go whole, as nothing was touched yet.
pub(super) fn split(ctx: &mut CipherCtx, call: &Update, helpers: &Helpers) -> Result<Option<c_int>, Reason> {
    let gcm = state(ctx);
    let head = (BLOCK_BYTES - gcm.open_bytes()) % BLOCK_BYTES;
    let bulk = call.len().saturating_sub(head) / BLOCK_BYTES * BLOCK_BYTES;
    let (cut, part_bytes) = (Cut { head, bulk }, parts::part_bytes(helpers, bulk));
    let is_worth = bulk > part_bytes && gcm.text_bytes + call.len() as u64 <= TEXT_MAX;
    if !is_worth || !is_supported(ctx) || install_shadow(ctx).is_none() {
        return Ok(None);
    }
    // The last thing that needs memory.
    let Some(own) = started(ctx.row(), ctx.message.encrypts, ctx.message.key()) else { return Ok(None) };
    let done = text(ctx, call, 0, cut.head).and_then(|()| sum(ctx));
    let done = done.and_then(|sum| parts::share(ctx, call, &cut, (sum, part_bytes), (helpers, own)));
    let rest = cut.head + cut.bulk;
    let done = done.and_then(|sum| restart(ctx, sum)).and_then(|()| text(ctx, call, rest, call.len() - rest));
    done.map(|()| Some(call.done(call.len()))).ok_or_else(|| ctx.fail())
}

/// Makes the inner context the data context, where it is not yet, and a new one its shadow.
fn install_shadow(ctx: &mut CipherCtx) -> Option<()> {
    if state(ctx).data.is_some() {
        return Some(());
    }
    let tag = stored_tag(ctx);
    let (row, encrypts) = (ctx.row(), ctx.message.encrypts);
    let mut own = started(row, encrypts, ctx.message.key())?;
    let ecb = super::super::split::ecb(ctx, true, ctx.message.key())?;
    let shadow = own.inner();
    let ready = shadow.init(encrypts, None, Some(&state(ctx).nonce))
        && tag.is_none_or(|tag| set_tag(shadow, encrypts, tag))
        // It has begun: associated data comes too late for it too.
        && shadow.work(&mut Memory::InPlace { space: &mut [0; BLOCK_BYTES], input_bytes: BLOCK_BYTES });
    if !ready {
        return None;
    }
    own.trade(row, &mut ctx.hot.inner);
    state(ctx).data = Some(DataContext { own, ecb, solved_start: None, open: [0; BLOCK_BYTES] });
    Some(())
}

/// The tag that the inner context holds, made or given, all 16 bytes of it and how many count; `None` where there is none.
pub(super) fn stored_tag(ctx: &CipherCtx) -> Option<(Block, usize)> {
    let (inner, encrypts) = (ctx.inner(), ctx.message.encrypts);
    // A context that encrypts answers with what it holds. Where that is nothing, it raises an error, which is dropped.
    let tag = ctx.prov().core.quietly(|| inner.init(true, None, None).then(|| inner.tag()).flatten());
    let len = inner.tag_bytes();
    inner.init(encrypts, None, None);
    Some((tag?, len?))
}

/// Makes `inner` hold a tag: one that decrypts takes it.
fn set_tag(inner: InnerContext<'_>, encrypts: bool, (tag, len): (Block, usize)) -> bool {
    inner.init(false, None, None)
        && inner.set_tag(&tag)
        && (len == tag.len() || inner.set_tag(&tag[..len]))
        && inner.init(encrypts, None, None)
}

/// Text to the data context, `len` bytes from `from` on.
pub(super) fn text(ctx: &mut CipherCtx, call: &Update, from: usize, len: usize) -> Option<()> {
    if len == 0 {
        return Some(());
    }
    let (encrypts, gcm) = (ctx.message.encrypts, state(ctx));
    let (past, data) = (gcm.open_bytes(), gcm.data.as_mut()?);
    // Of these bytes, so many at their end are the open block's, behind those that are there if it stays open.
    let count = ((past + len) % BLOCK_BYTES).min(len);
    let at = if past + len < BLOCK_BYTES { past } else { 0 };
    let (open, first) = (&mut data.open[at..at + count], from + len - count);
    if !encrypts {
        call.copy_input(first, open);
    }
    if !data.own.inner().work(&mut call.memory(from, from, len)) {
        return None;
    }
    if encrypts {
        open.copy_from_slice(&call.space(from + len)[first..]);
    }
    gcm.text_bytes += len as u64;
    Some(())
}

/// Ends the data context and takes the message's sum, an open block filled with zeros.
pub(super) fn sum(ctx: &mut CipherCtx) -> Option<Element> {
    let encrypts = ctx.message.encrypts;
    let gcm = state(ctx);
    let data = gcm.data.as_ref()?;
    if data.solved_start.is_none() && gcm.aad_bytes + gcm.text_bytes == 0 {
        return Some(Element::default());
    }
    let (counter, lengths) = match data.solved_start {
        None => (gcm.counter(), gcm.lengths()),
        Some(begun) => {
            let text_bytes = gcm.text_bytes - begun.text_bytes;
            (begun.counter, Lengths { aad_bytes: BLOCK_BYTES as u64, text_bytes })
        }
    };
    let tag = final_tag(data.own.inner(), encrypts)?;
    let digest = parts::xor(tag, mask(data.ecb.inner(), counter)?);
    Some(state(ctx).hash.as_ref()?.state_of(&digest, lengths))
}

/// Starts the data context anew where the message stands, a block boundary: counter by the IV, sum by one block of
/// associated data.
fn restart(ctx: &mut CipherCtx, sum: Element) -> Option<()> {
    let encrypts = ctx.message.encrypts;
    let gcm = state(ctx);
    let counter = counter_after(&gcm.counter(), gcm.blocks());
    let hash = gcm.hash.as_ref()?;
    let (iv, leading) = (hash.iv_starting_at(&counter), hash.aad_leading_to(sum));
    let data = gcm.data.as_mut()?;
    data.solved_start = Some(SolvedStart { counter, text_bytes: gcm.text_bytes });
    let inner = data.own.inner();
    (inner.init(encrypts, None, Some(&iv)) && inner.associate(&leading)).then_some(())
}

/// The message's tag, where `sum` is the sum of all of it.
pub(super) fn tag(ctx: &mut CipherCtx, sum: Element) -> Option<Block> {
    let gcm = state(ctx);
    let (digest, counter) = (gcm.hash.as_ref()?.digest(sum, gcm.lengths()), gcm.counter());
    Some(parts::xor(digest, mask(gcm.data.as_ref()?.ecb.inner(), counter)?))
}

/// Ends the shadow as if the message had been its own: an encryption has made `tag`, a decryption has accepted it.
pub(super) fn end(
    ctx: &mut CipherCtx,
    tag: (Block, usize),
    finish: impl Fn(&CipherCtx) -> c_int,
) -> Option<c_int> {
    let (shadow, encrypts) = (ctx.inner(), ctx.message.encrypts);
    // An encryption can always end; what it holds as its tag is replaced.
    let ended = shadow.init(true, None, None) && finish(ctx) == 1 && set_tag(shadow, encrypts, tag);
    let gcm = state(ctx);
    (gcm.data, gcm.is_known) = (None, false);
    super::settle(ctx);
    ended.then_some(1)
}

/// Zeros for a shadow that catches up.
static ZEROS: [u8; 4096] = [0; 4096];

/// Brings the shadow to where the message is, whose sum is `sum`, and drops the data context.
pub(super) fn replay(ctx: &mut CipherCtx, sum: Element) -> Option<()> {
    let (shadow, encrypts) = (ctx.inner(), ctx.message.encrypts);
    let gcm = state(ctx);
    let hash = gcm.hash.as_ref()?;
    let open = &gcm.data.as_ref()?.open[..gcm.open_bytes()];
    // The sum before the open block: (before + open block) * H is the sum.
    let mut before = hash.aad_leading_to(sum);
    match open {
        [] => before = sum.into(),
        open => before.iter_mut().zip(open).for_each(|(byte, open)| *byte ^= open),
    }
    // Zeros leave a sum of zero, and one block leads from there to any other.
    let leading = hash.aad_leading_to(before.into());
    let begun =
        shadow.init(false, None, Some(&gcm.nonce)) && zeros(gcm.aad_bytes, |zeros| shadow.associate(zeros));
    let mut space = Zeroizing::new([0; ZEROS.len()]);
    let mut decrypt = |text: &[u8]| {
        text.is_empty() || shadow.work(&mut Memory::Apart { src: text, dst: &mut space[..text.len()] })
    };
    let text_bytes = (gcm.blocks() - 1) * BLOCK_BYTES as u64;
    let there = begun && zeros(text_bytes, &mut decrypt) && decrypt(&leading) && decrypt(open);
    (there && shadow.init(encrypts, None, None)).then(|| state(ctx).data = None)
}

/// Gives so many zeros to `take`, piece by piece, until it refuses one.
fn zeros(count: u64, mut take: impl FnMut(&[u8]) -> bool) -> bool {
    let mut left = count;
    while left > 0 {
        let piece = usize::try_from(left).map_or(ZEROS.len(), |left| left.min(ZEROS.len()));
        if !take(&ZEROS[..piece]) {
            return false;
        }
        left -= piece as u64;
    }
    true
}
