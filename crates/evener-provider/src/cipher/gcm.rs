//! GCM messages whose large updates are split between threads; only contexts for which that is configured come here.
//!
//! The way of a message: init with a nonce of 96 bits ([`init`]) -> small updates go to the inner context and are counted
//! ([`update`]) -> a large one that helpers come for: the inner context gives up its sum, parts are done and joined, and
//! the inner context is started anew where they end ([`shift`]) -> the next ones go to it again, at its own speed -> the
//! tag that it makes or checks in the end is put right for where it really began ([`last`], [`get`]).
//!
//! docs/gcm-split.md has the algebra and why it can be done with OpenSSL's own contexts.

use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use evener::split::{Hand, Helpers};
use evener_core::BLOCK_BYTES;
use evener_core::ghash::{Block, Element, HashKey, Lengths, counter_after, join};
use evener_core::job::Memory;
use evener_core::statistics::Count;
use evener_ossl_sys::Param;
use evener_ring::Parts;

use super::Row;
use super::ctx::CipherCtx;
use super::split::{ecb, started, through};
use crate::err::Reason;
use crate::ffi::cipher::{Init, Update};
use crate::ffi::inner::{Inner, Own};
use crate::ffi::params;

/// Text of one message in bytes, 2^36 - 32 (SP 800-38D, section 5.2.1.1).
const TEXT_MAX: u64 = (1 << 36) - 32;

/// Parts are longer than other modes', for each costs an IV, a tag and four products, about 1 us.
const PARTS_PER_PART: usize = 4;

/// What is known about a message, beside key and direction.
#[derive(Clone, Default)]
pub(crate) struct Gcm {
    /// The message began with a nonce of 96 bits and all that came is counted here.
    is_known: bool,
    nonce: [u8; 12],
    aad_bytes: u64,
    text_bytes: u64,
    /// Where the inner context began, when it is not the message's beginning.
    begun: Option<Begun>,
    /// The tag that the program gave for checking, and its length. Like OpenSSL's it stays for the next message.
    given: Option<(Block, usize)>,
    /// The tag of an ended message that was shifted.
    made: Option<Block>,
    /// From the captured key, when it was first needed.
    hash: Option<HashKey>,
}

/// A beginning that was solved for.
#[derive(Clone, Copy)]
struct Begun {
    /// The inner context's J0.
    counter: Block,
    /// Text before it. Of associated data it got one block.
    text_bytes: u64,
}

impl Gcm {
    fn counter(&self) -> Block {
        let mut counter = [0; BLOCK_BYTES];
        counter[..12].copy_from_slice(&self.nonce);
        counter[15] = 1;
        counter
    }

    /// What the message's own hash ends with.
    fn lengths(&self) -> Lengths {
        Lengths { aad_bytes: self.aad_bytes, text_bytes: self.text_bytes }
    }

    /// J0 and lengths of the inner context.
    fn inner(&self) -> (Block, Lengths) {
        let Some(begun) = self.begun else { return (self.counter(), self.lengths()) };
        let text_bytes = self.text_bytes - begun.text_bytes;
        (begun.counter, Lengths { aad_bytes: BLOCK_BYTES as u64, text_bytes })
    }
}

/// The state of a context that was made for GCM with splitting configured.
fn state(ctx: &mut CipherCtx) -> &mut Gcm {
    ctx.message.gcm.get_or_insert_default()
}

/// An init: forwarded, and what it began is noted.
pub(super) fn init(ctx: &mut CipherCtx, call: &Init<'_>) -> Result<c_int, Reason> {
    let gcm = state(ctx);
    if gcm.begun.is_some() && call.iv.is_none() {
        // In mid-message, behind the inner context's back: nothing but the same direction again can be done right.
        let is_same = call.key.is_none() && call.encrypts == ctx.message.encrypts && !call.has_params();
        return if is_same { Ok(1) } else { Err(Reason::Lost) };
    }
    ctx.tell();
    let gcm = state(ctx);
    let (was_begun, given) = (gcm.begun.take().is_some(), gcm.given);
    gcm.made = None;
    let answer = call.inner(ctx.row(), ctx.inner);
    let is_known = answer == 1 && call.iv.is_some_and(|iv| iv.len() == 12);
    let is_new =
        answer != 1 || call.iv.is_some() || call.key.is_some() || call.encrypts != ctx.message.encrypts;
    if answer == 1 {
        ctx.message.started(call.encrypts, call.key, None);
    }
    let gcm = state(ctx);
    if call.key.is_some() || answer != 1 {
        gcm.hash = None;
    }
    if is_new {
        (gcm.is_known, gcm.aad_bytes, gcm.text_bytes) = (is_known, 0, 0);
    }
    if let (true, Some(iv)) = (is_known, call.iv) {
        gcm.nonce.copy_from_slice(iv);
    }
    if let (true, Some((tag, len)), false) = (was_begun, given, call.encrypts) {
        // The inner context holds one that was put right for the message before.
        ctx.inner().set_tag(&tag[..len]);
    }
    saw(ctx, call);
    Ok(answer)
}

/// Parameters were set in the inner context, or came with an init.
pub(crate) fn saw(ctx: &mut CipherCtx, call: &Init<'_>) {
    let gcm = state(ctx);
    call.each(|param| match params::key(param).to_bytes() {
        b"tag" => {
            let tag = params::octets(param).filter(|tag| tag.len() <= BLOCK_BYTES);
            gcm.given = tag.map(|tag| {
                let mut room = [0; BLOCK_BYTES];
                room[..tag.len()].copy_from_slice(tag);
                (room, tag.len())
            });
        }
        // EVP repeats the padding at each init of a context that was told of it; it means nothing here.
        b"keylen" | b"padding" => {}
        b"ivlen" if params::number(param) == Some(12) => {}
        _ => gcm.is_known = false,
    });
    settle(ctx);
}

/// Every call comes here while something is known, and none otherwise.
fn settle(ctx: &mut CipherCtx) {
    let is_ours = ctx.message.gcm.as_ref().is_some_and(|gcm| gcm.is_known || gcm.begun.is_some());
    ctx.thresh = if is_ours && !ctx.message.key().is_empty() { 0 } else { usize::MAX };
}

/// The message goes on in ways that are not looked into. Refused where the inner context is not at its beginning.
pub(super) fn lose_sight(ctx: &mut CipherCtx) -> Result<c_int, Reason> {
    let gcm = state(ctx);
    if gcm.begun.is_some() {
        return Err(Reason::Lost);
    }
    gcm.is_known = false;
    settle(ctx);
    Ok(1)
}

/// One update of a known message.
pub(super) fn update(ctx: &mut CipherCtx, call: &Update) -> Result<c_int, Reason> {
    let len = call.len() as u64;
    ctx.taken = ctx.taken.wrapping_add(call.len());
    if call.is_aad() {
        if state(ctx).begun.is_some() {
            return Ok(0); // After text, as OpenSSL has it.
        }
        let answer = call.inner(ctx);
        if answer == 1 {
            state(ctx).aad_bytes += len;
        }
        return Ok(answer);
    }
    if call.is_whole() {
        if let Some(answer) = split(ctx, call)? {
            return Ok(answer);
        }
    }
    let answer = call.inner(ctx);
    let gcm = state(ctx);
    match answer {
        1 => gcm.text_bytes += len,
        // How much of it went in is not told.
        _ if gcm.begun.is_some() => return Err(Reason::Lost),
        _ => gcm.is_known = false,
    }
    settle(ctx);
    Ok(answer)
}

/// How one update falls: to the block boundary, whole blocks, the rest.
struct Cut {
    head: usize,
    bulk: usize,
}

/// Splits one update; `None` where it goes to the inner context whole, as nothing was touched yet.
fn split(ctx: &mut CipherCtx, call: &Update) -> Result<Option<c_int>, Reason> {
    let Some(way) = super::split::ask_gcm(ctx, call.len()) else { return Ok(None) };
    let Some(helpers) = way.helpers() else {
        // Whole, and timed.
        let answer = call.inner(ctx);
        if answer == 1 {
            state(ctx).text_bytes += call.len() as u64;
            way.end();
            return Ok(Some(1));
        }
        return Ok(None);
    };
    let gcm = state(ctx);
    let past = usize::try_from(gcm.text_bytes % BLOCK_BYTES as u64).unwrap_or(0);
    let head = (BLOCK_BYTES - past) % BLOCK_BYTES;
    let bulk = call.len().saturating_sub(head) / BLOCK_BYTES * BLOCK_BYTES;
    let cut = Cut { head, bulk };
    let part_bytes = (helpers.part_bytes(bulk) * PARTS_PER_PART).min(bulk.div_ceil(4).next_multiple_of(4096));
    let is_worth = bulk > part_bytes
        && gcm.text_bytes + call.len() as u64 <= TEXT_MAX
        && call.can_work(0, 0, call.len());
    if !is_worth || !ready(ctx) {
        return Ok(None);
    }
    let done = at_boundary(ctx, call, &cut).and_then(|sum| parts(ctx, call, &cut, sum, part_bytes, helpers));
    let done = done.and_then(|sum| shift(ctx, sum)).and_then(|()| rest(ctx, call, &cut));
    if done.is_none() {
        state(ctx).is_known = false;
        return Err(super::owned::fail(ctx));
    }
    way.end();
    Ok(Some(call.done(call.len())))
}

/// Whether this libcrypto does as we need, and the hash key can be divided by.
fn ready(ctx: &mut CipherCtx) -> bool {
    if !ctx.prov().gcm_tells_tags(|| tells_tags(ctx.row(), ctx.message.key().len())) {
        return false;
    }
    if state(ctx).hash.is_none() {
        let hash = mask(ctx, [0; BLOCK_BYTES]).and_then(|key| HashKey::new(&key));
        state(ctx).hash = hash;
    }
    state(ctx).hash.is_some()
}

/// E(block) under the message's key.
fn mask(ctx: &CipherCtx, block: Block) -> Option<Block> {
    let mut block = block;
    through(ecb(ctx, true, ctx.message.key())?.inner(), &mut block)?;
    Some(block)
}

/// Brings the inner context to a block boundary and takes its sum; it is of no use afterwards.
fn at_boundary(ctx: &mut CipherCtx, call: &Update, cut: &Cut) -> Option<Element> {
    if cut.head > 0 && !ctx.inner().work(&mut call.memory(0, 0, cut.head)) {
        return None;
    }
    state(ctx).text_bytes += cut.head as u64;
    let gcm = state(ctx);
    if gcm.begun.is_none() && gcm.aad_bytes + gcm.text_bytes == 0 {
        return Some(Element::default());
    }
    let (counter, lengths) = gcm.inner();
    let tag = told_tag(ctx.inner(), ctx.message.encrypts)?;
    let digest = xor(tag, mask(ctx, counter)?);
    Some(state(ctx).hash.as_ref()?.state_of(&digest, lengths))
}

/// Ends `inner` and takes its tag. A context that decrypts does not tell it, one that encrypts does; and turning it around
/// changes nothing else.
fn told_tag(inner: Inner<'_>, encrypts: bool) -> Option<Block> {
    ((encrypts || inner.init(true, None, None)) && inner.finish()).then(|| inner.tag()).flatten()
}

/// Whether turning a context around tells the tag of what it decrypted: tried once per library context.
fn tells_tags(row: &Row, key_bytes: usize) -> bool {
    let (key, iv, text) = ([0x42; 32], [0x17; BLOCK_BYTES], [0x55; 40]);
    let Some(key) = key.get(..key_bytes) else { return false };
    let made = |encrypts: bool, text: &mut [u8; 40]| {
        let own = started(row, encrypts, key)?;
        let inner = own.inner();
        let done = inner.init(encrypts, None, Some(&iv))
            && inner.associate(&iv)
            && inner.work(&mut Memory::InPlace { room: text, input_bytes: 40 });
        done.then(|| told_tag(inner, encrypts)).flatten()
    };
    let mut room = text;
    let tag = made(true, &mut room);
    tag.is_some() && made(false, &mut room) == tag && room == text
}

/// Works on the whole blocks in parts, and joins their sums to `sum`.
fn parts(
    ctx: &mut CipherCtx,
    call: &Update,
    cut: &Cut,
    sum: Element,
    part_bytes: usize,
    helpers: &Helpers,
) -> Option<Element> {
    let gcm = state(ctx);
    let counter = counter_after(&gcm.counter(), gcm.text_bytes / BLOCK_BYTES as u64);
    gcm.text_bytes += cut.bulk as u64;
    let mut memory = call.memory(cut.head, cut.head, cut.bulk);
    let mut shared = match &mut memory {
        Memory::InPlace { room, .. } => Parts::in_place(room, part_bytes),
        Memory::Apart { src, dst } => Parts::apart(src, dst, part_bytes),
    };
    let sums = Mutex::new(vec![Element::default(); shared.count()]);
    let (row, message, ctx) = (ctx.row(), &ctx.message, &*ctx);
    let hash = message.gcm.as_ref()?.hash.as_ref()?;
    let ecb_row = super::split::ecb_row(ctx, message.key().len())?;
    let blocks = (part_bytes / BLOCK_BYTES) as u64;
    ctx.counts().split.fetch_add(1, Relaxed);
    ctx.went(Count::Split, cut.bulk);
    let (encrypts, key) = (message.encrypts, message.key());
    let hand = || -> Option<Box<dyn Hand + '_>> {
        let (context, ecb) = (started(row, encrypts, key)?, started(ecb_row, true, key)?);
        Some(Box::new(Worker { context, ecb, encrypts, hash, counter, blocks, sums: &sums }))
    };
    if !helpers.share(&mut shared, &hand) {
        return None;
    }
    let sums = sums.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (last, rest) = sums.split_last()?;
    let power = hash.power(blocks);
    let sum = rest.iter().fold(sum, |sum, part| join(sum, *part, power));
    let last_blocks = ((cut.bulk - rest.len() * part_bytes) / BLOCK_BYTES) as u64;
    Some(join(sum, *last, hash.power(last_blocks)))
}

/// Starts the inner context anew where the message stands: counter by the IV, sum by one block of associated data.
fn shift(ctx: &mut CipherCtx, sum: Element) -> Option<()> {
    let gcm = state(ctx);
    let (counter, text_bytes) =
        (counter_after(&gcm.counter(), gcm.text_bytes / BLOCK_BYTES as u64), gcm.text_bytes);
    let hash = gcm.hash.as_ref()?;
    let (iv, leading) = (hash.iv_starting_at(&counter), hash.aad_leading_to(sum));
    let inner = ctx.inner();
    let begun = inner.init(ctx.message.encrypts, None, Some(&iv)) && inner.associate(&leading);
    state(ctx).begun = Some(Begun { counter, text_bytes });
    begun.then_some(())
}

/// The bytes behind the last whole block.
fn rest(ctx: &mut CipherCtx, call: &Update, cut: &Cut) -> Option<()> {
    let from = cut.head + cut.bulk;
    let len = call.len() - from;
    let done = len == 0 || ctx.inner().work(&mut call.memory(from, from, len));
    state(ctx).text_bytes += len as u64;
    done.then_some(())
}

/// The end of a message. One that was shifted ends in the inner context with a tag that is put right.
pub(crate) fn last(ctx: &mut CipherCtx, finish: impl FnOnce(&CipherCtx) -> c_int) -> Result<c_int, Reason> {
    if state(ctx).begun.is_none() {
        state(ctx).is_known = false;
        return Ok(finish(ctx));
    }
    if state(ctx).text_bytes > TEXT_MAX {
        return Err(Reason::Lost);
    }
    let correction = correction(ctx).ok_or(Reason::Lost)?;
    state(ctx).is_known = false;
    if ctx.message.encrypts {
        let answer = finish(ctx);
        let made = (answer == 1).then(|| ctx.inner().tag()).flatten();
        state(ctx).made = made.map(|tag| xor(tag, correction));
        return Ok(answer);
    }
    let Some((tag, len)) = state(ctx).given else { return Ok(0) };
    if !ctx.inner().set_tag(&xor(tag, correction)[..len]) {
        return Err(Reason::Lost);
    }
    Ok(finish(ctx))
}

/// What lies between the inner context's tag and the message's: two masks, and the lengths that were hashed in.
fn correction(ctx: &mut CipherCtx) -> Option<Block> {
    let gcm = state(ctx);
    let (own, inner) = (gcm.lengths(), gcm.inner());
    let hash = gcm.hash.as_ref()?;
    let zero = Element::default();
    let lengths = xor(hash.digest(zero, own), hash.digest(zero, inner.1));
    let counter = gcm.counter();
    Some(xor(lengths, xor(mask(ctx, counter)?, mask(ctx, inner.0)?)))
}

/// Answers questions about a message that was shifted; `ask` answers one about the inner context.
pub(crate) fn get(ctx: &mut CipherCtx, list: &mut [Param], ask: impl Fn(&Param) -> Option<Param>) -> c_int {
    let encrypts = ctx.message.encrypts;
    let gcm = state(ctx);
    let answered = list.iter_mut().all(|param| match params::key(param).to_bytes() {
        b"iv" | b"updated-iv" => params::answer_octets(param, &gcm.nonce),
        b"ivlen" => params::answer_length(param, gcm.nonce.len()),
        b"tag" => gcm.made.is_some_and(|tag| {
            let wanted = tag.get(..param.data_size).filter(|wanted| encrypts && !wanted.is_empty());
            wanted.is_some_and(|wanted| params::answer_octets(param, wanted))
        }),
        _ => ask(param).map(|answer| *param = answer).is_some(),
    });
    c_int::from(answered)
}

/// Whether questions and parameters are ours to look at.
pub(crate) fn is_begun(ctx: &CipherCtx) -> bool {
    ctx.message.gcm.as_ref().is_some_and(|gcm| gcm.begun.is_some())
}

/// Parameters for a message that was shifted: a tag to check is kept, the nonce's length may be said again.
pub(crate) fn set(ctx: &mut CipherCtx, call: &Init<'_>) -> Result<c_int, Reason> {
    let mut fits = true;
    let encrypts = ctx.message.encrypts;
    call.each(|param| {
        fits &= match params::key(param).to_bytes() {
            b"tag" => !encrypts && params::octets(param).is_some_and(|tag| (1..=16).contains(&tag.len())),
            b"ivlen" => params::number(param) == Some(12),
            b"keylen" | b"padding" => true,
            _ => false,
        }
    });
    if !fits {
        return Ok(0);
    }
    saw(ctx, call);
    Ok(1)
}

fn xor(a: Block, b: Block) -> Block {
    (u128::from_ne_bytes(a) ^ u128::from_ne_bytes(b)).to_ne_bytes()
}

/// One thread's contexts.
struct Worker<'w> {
    context: Own<'w>,
    ecb: Own<'w>,
    encrypts: bool,
    hash: &'w HashKey,
    /// J0 of the first part: one before the first block's counter.
    counter: Block,
    /// Blocks of every part but the last.
    blocks: u64,
    sums: &'w Mutex<Vec<Element>>,
}

impl Worker<'_> {
    fn work(&self, index: usize, memory: &mut Memory<'_>) -> Option<()> {
        let text_bytes = super::owned::input_of(memory).len() as u64;
        let counter = counter_after(&self.counter, self.blocks * index as u64);
        let inner = self.context.inner();
        let done =
            inner.init(self.encrypts, None, Some(&self.hash.iv_starting_at(&counter))) && inner.work(memory);
        if !done {
            return None;
        }
        let mut mask = counter;
        through(self.ecb.inner(), &mut mask)?;
        let digest = xor(told_tag(inner, self.encrypts)?, mask);
        let sum = self.hash.state_of(&digest, Lengths { aad_bytes: 0, text_bytes });
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)[index] = sum;
        Some(())
    }
}

impl Hand for Worker<'_> {
    fn apart(&mut self, index: usize, input: &[u8], output: &mut [u8]) -> bool {
        self.work(index, &mut Memory::Apart { src: input, dst: output }).is_some()
    }

    fn in_place(&mut self, index: usize, data: &mut [u8]) -> bool {
        let input_bytes = data.len();
        self.work(index, &mut Memory::InPlace { room: data, input_bytes }).is_some()
    }
}
