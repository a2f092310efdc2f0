//! Parts of one update, each by a context of its own that is started where the part begins, and their sums.
//!
//! Path: [`is_supported`] (can this libcrypto's contexts be read and started so?) -> [`share`]: contexts are made for each thread, it works
//! on parts and reads their sums out of the tags -> the sums joined by powers of the hash key. The formulas stand in `data_context.rs`.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use evener::split::{Helpers, PartWorker};
use evener_core::BLOCK_BYTES;
use evener_core::counts::Count;
use evener_core::ghash::{Block, Element, HashKey, Lengths, counter_after, join};
use evener_core::job::Memory;
use evener_ring::Parts;

use super::super::context::CipherCtx;
use super::super::spans::input_of;
use super::super::split::{ecb, ecb_row, hands, started, through};
use super::state;
use super::state::Cut;
use crate::inner_cipher::call::Update;
use crate::inner_cipher::context::{InnerContext, OwnContext};
use crate::state::rows::CipherRow;

/// Parts are longer than other modes', for each costs an IV, a tag and four products, about 1 us.
const PARTS_PER_PART: usize = 4;

/// Length of the parts of `bulk` bytes.
pub(super) fn part_bytes(helpers: &Helpers, bulk: usize) -> usize {
    (helpers.part_bytes(bulk) * PARTS_PER_PART).min(bulk.div_ceil(4).next_multiple_of(4096))
}

/// Whether this libcrypto does as we need, and the hash key can be divided by.
pub(super) fn is_supported(ctx: &mut CipherCtx) -> bool {
    if !ctx.prov().gcm_tells_tags(|| reads_back_tags(ctx.row(), ctx.message.key().len())) {
        return false;
    }
    if state(ctx).hash.is_none() {
        let ecb = ecb(ctx, true, ctx.message.key());
        let hash = ecb.and_then(|ecb| mask(ecb.inner(), [0; BLOCK_BYTES])).and_then(|key| HashKey::new(&key));
        state(ctx).hash = hash;
    }
    state(ctx).hash.is_some()
}

/// E(block) under the key of `ecb`.
pub(super) fn mask(ecb: InnerContext<'_>, block: Block) -> Option<Block> {
    let mut block = block;
    through(ecb, &mut block)?;
    Some(block)
}

/// Ends `inner` and takes its tag. A context that decrypts does not give it, one that encrypts does; and turning it around
/// changes nothing else.
pub(super) fn final_tag(inner: InnerContext<'_>, encrypts: bool) -> Option<Block> {
    ((encrypts || inner.init(true, None, None)) && inner.finish()).then(|| inner.tag()).flatten()
}

/// Whether turning a context around gives the tag of what it decrypted, and lets it hold another: tried once per library
/// context.
fn reads_back_tags(row: &CipherRow, key_bytes: usize) -> bool {
    let (key, iv, text) = ([0x42; 32], [0x17; BLOCK_BYTES], [0x55; 40]);
    let Some(key) = key.get(..key_bytes) else { return false };
    let made = |encrypts: bool, text: &mut [u8; 40]| {
        let own = started(row, encrypts, key)?;
        let inner = own.inner();
        let done = inner.init(encrypts, None, Some(&iv))
            && inner.associate(&iv)
            && inner.work(&mut Memory::InPlace { space: text, input_bytes: 40 });
        let tag = done.then(|| final_tag(inner, encrypts)).flatten()?;
        let holds = inner.init(false, None, None) && inner.set_tag(&iv) && inner.init(true, None, None);
        (holds && inner.tag() == Some(iv) && inner.tag_bytes() == Some(iv.len())).then_some(tag)
    };
    let mut space = text;
    let tag = made(true, &mut space);
    tag.is_some() && made(false, &mut space) == tag && space == text
}

/// Works on the whole blocks in parts of `part_bytes`, the caller by a context of its `own`, and joins their sums to `sum`.
pub(super) fn share(
    ctx: &mut CipherCtx,
    call: &Update,
    cut: &Cut,
    (sum, part_bytes): (Element, usize),
    (helpers, own): (&Helpers, OwnContext<'static>),
) -> Option<Element> {
    let gcm = state(ctx);
    let counter = counter_after(&gcm.counter(), gcm.blocks());
    gcm.text_bytes += cut.bulk as u64;
    let mut memory = call.memory(cut.head, cut.head, cut.bulk);
    let mut shared = match &mut memory {
        Memory::InPlace { space, .. } => Parts::in_place(space, part_bytes),
        Memory::Apart { src, dst } => Parts::apart(src, dst, part_bytes),
    };
    let sums = Mutex::new(vec![Element::default(); shared.count()]);
    let (row, message, ctx) = (ctx.row(), &ctx.message, &*ctx);
    let hash = ctx.gcm.as_ref()?.hash.as_ref()?;
    let ecb_row = ecb_row(ctx, message.key().len())?;
    let part_blocks = (part_bytes / BLOCK_BYTES) as u64;
    ctx.counts().split.fetch_add(1, Relaxed);
    ctx.count_request(Count::Split, cut.bulk);
    let (encrypts, key) = (message.encrypts, message.key());
    let message = Message { encrypts, hash, counter, blocks: part_blocks, sums: &sums };
    let others = hands(helpers.count().min(shared.count() - 1), || {
        let (context, ecb) = (started(row, encrypts, key)?, started(ecb_row, true, key)?);
        Some(Worker { context, ecb: move || ecb.inner(), message })
    });
    let ecb = ctx.gcm.as_ref()?.ecb()?;
    let own = Worker { context: own, ecb: || ecb, message };
    if !helpers.share(&mut shared, own, &others) {
        return None;
    }
    drop(others);
    let sums = sums.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (last, rest) = sums.split_last()?;
    let power = hash.power(part_blocks);
    let sum = rest.iter().fold(sum, |sum, part| join(sum, *part, power));
    let last_blocks = ((cut.bulk - rest.len() * part_bytes) / BLOCK_BYTES) as u64;
    Some(join(sum, *last, hash.power(last_blocks)))
}

pub(super) fn xor(a: Block, b: Block) -> Block {
    (u128::from_ne_bytes(a) ^ u128::from_ne_bytes(b)).to_ne_bytes()
}

/// One thread's contexts.
struct Worker<'w, E> {
    context: OwnContext<'w>,
    ecb: E,
    message: Message<'w>,
}

/// What all threads know of it.
#[derive(Clone, Copy)]
struct Message<'w> {
    encrypts: bool,
    hash: &'w HashKey,
    /// J0 of the first part: one before the first block's counter.
    counter: Block,
    /// Blocks of every part but the last.
    blocks: u64,
    sums: &'w Mutex<Vec<Element>>,
}

impl Message<'_> {
    /// J0 of a part.
    fn counter(&self, index: usize) -> Block {
        counter_after(&self.counter, self.blocks * index as u64)
    }
}

impl<'w, E: Fn() -> InnerContext<'w>> Worker<'w, E> {
    fn work(&self, index: usize, memory: &mut Memory<'_>) -> Option<()> {
        let text_bytes = input_of(memory).len() as u64;
        let inner = self.context.inner();
        if !inner.work(memory) {
            return None;
        }
        let message = &self.message;
        let mask = mask((self.ecb)(), message.counter(index))?;
        let digest = xor(final_tag(inner, message.encrypts)?, mask);
        let sum = message.hash.state_of(&digest, Lengths { aad_bytes: 0, text_bytes });
        message.sums.lock().unwrap_or_else(PoisonError::into_inner)[index] = sum;
        Some(())
    }
}

impl<'w, E: Fn() -> InnerContext<'w>> PartWorker for Worker<'w, E> {
    fn begin(&mut self, index: usize) -> bool {
        let iv = self.message.hash.iv_starting_at(&self.message.counter(index));
        self.context.inner().init(self.message.encrypts, None, Some(&iv))
    }

    fn out_of_place(&mut self, index: usize, input: &[u8], output: &mut [u8]) -> bool {
        self.work(index, &mut Memory::Apart { src: input, dst: output }).is_some()
    }

    fn in_place(&mut self, index: usize, data: &mut [u8]) -> bool {
        let input_bytes = data.len();
        self.work(index, &mut Memory::InPlace { space: data, input_bytes }).is_some()
    }
}
