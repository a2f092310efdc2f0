//! Block work of one large update, split between the caller and threads that help it.
//!
//! Path: [`decide`] (before the update is looked at: does splitting pay now?) -> the update falls into block work as any
//! other -> [`work`] cuts that into parts, finds out how each part starts before anything is overwritten, and lends them
//! (`evener::split`). Each thread works in an inner context of its own, which the caller makes ([`hands`]) and frees.
//!
//! How a part starts: CTR, the counter so many blocks on; CBC decryption, the last ciphertext block before it; ECB, no
//! matter. An XTS context starts at the tweak E(iv) under the second half of the key, so that the iv that stands for the
//! tweak T * x^j is its decryption under that half. Ciphertext stealing is the last part's, as it is the unit's.

use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

use evener::split::{Call, Helpers, PartWorker, helper_pool};
use evener_core::job::Memory;
use evener_core::splits::RequestSize;
use evener_core::xts::Stride;
use evener_core::{Algorithm, BLOCK_BYTES, Direction, Family};
use evener_kernels::clear_registers;
use evener_ring::Parts;

use super::context::CipherCtx;
use super::message::State;
use super::spans::{advance, input_of};
use crate::inner_cipher::context::{InnerContext, OwnContext};
use crate::state::rows::CipherRow;

type Block = [u8; BLOCK_BYTES];

/// Begins the split of an update of `len` bytes where one is configured; the answer may still be to leave it whole.
pub(super) fn decide(ctx: &CipherCtx, len: usize) -> Option<Call> {
    let is_message =
        matches!(ctx.message.state, State::Direct | State::Owned) && ctx.message.record_mode.is_none();
    if !is_message || len < ctx.row().split_from(ctx.message.encrypts) {
        return None;
    }
    begin(ctx, kind(ctx.row().algorithm?.family())?, len)
}

/// The same for GCM.
pub(super) fn ask_gcm(ctx: &CipherCtx, len: usize) -> Option<Call> {
    (len >= ctx.row().thresholds.gcm_from).then(|| begin(ctx, kind(Family::Gcm)?, len)).flatten()
}

fn begin(ctx: &CipherCtx, kind: usize, bytes: usize) -> Option<Call> {
    let settings = &ctx.prov().settings;
    // The first call starts threads, by functions of libc that the dynamic linker looks up.
    clear_registers();
    Some(helper_pool()?.begin(RequestSize { kind, bytes }, settings.threads, settings.split_threshold()))
}

/// The kind of work under which costs are learned, below [`evener::split::KINDS`].
pub(crate) fn kind(family: Family) -> Option<usize> {
    Some(match family {
        Family::Ecb => 0,
        Family::Cbc => 1,
        Family::Ctr => 2,
        Family::Xts => 3,
        Family::Gcm => 4,
        _ => return None,
    })
}

/// Does block work with the helpers of the update under way; `None` where there are none, or it has nothing to share. An
/// error where input was lost.
pub(super) fn work(ctx: &CipherCtx, iv: &Block, memory: &mut Memory<'_>) -> Option<Result<(), ()>> {
    let helpers = ctx.pending.split.as_ref()?.helpers()?;
    let in_place = matches!(memory, Memory::InPlace { .. });
    let starts = starts(ctx, helpers, iv, input_of(memory))?;
    let part_bytes = starts.part_bytes;
    let mut parts = match memory {
        Memory::InPlace { space, input_bytes } => Parts::in_place(&mut space[..*input_bytes], part_bytes),
        Memory::Apart { src, dst } => Parts::apart(src, &mut dst[..src.len()], part_bytes),
    };
    let (row, message) = (ctx.row(), &ctx.message);
    let context = || started(row, message.encrypts, message.key());
    let worker = || Some(Worker { context: context()?, encrypts: message.encrypts, starts: &starts });
    // Before anything is touched: without memory for it, the work goes another way.
    let own = worker()?;
    let others = hands(helpers.count().min(parts.count() - 1), worker);
    ctx.counts().split.fetch_add(1, Relaxed);
    match helpers.share(&mut parts, own, &others) {
        true => Some(Ok(())),
        // Apart, the input is what it was: the plain way says what is wrong.
        false => in_place.then_some(Err(())),
    }
}

/// What helpers work with, made by their caller: as many as can be, `count` at most.
///
/// Only threads of the program have libcrypto allocate memory: in OpenSSL 4.0 one whose first request fails recurses
/// until its stack ends (`CRYPTO_THREAD_set_local_ex`, crypto/threads_common.c).
pub(crate) fn hands<T>(count: usize, make: impl Fn() -> Option<T>) -> Vec<Mutex<T>> {
    (0..count).map_while(|_| make().map(Mutex::new)).collect()
}

/// An inner context with a key, without padding.
pub(super) fn started<'r>(row: &'r CipherRow, encrypts: bool, key: &[u8]) -> Option<OwnContext<'r>> {
    let own = OwnContext::new(row)?;
    let ready =
        own.inner().init(encrypts, Some(key), None) && (!row.is_padded() || own.inner().set_padding(false));
    ready.then_some(own)
}

/// ECB with a key of that length, of the same library context.
pub(super) fn ecb<'r>(ctx: &CipherCtx, encrypts: bool, key: &[u8]) -> Option<OwnContext<'r>> {
    started(ecb_row(ctx, key.len())?, encrypts, key)
}

pub(super) fn ecb_row<'r>(ctx: &CipherCtx, key_bytes: usize) -> Option<&'r CipherRow> {
    let wanted = Algorithm::ALL
        .iter()
        .find(|algorithm| algorithm.family() == Family::Ecb && algorithm.key_bytes() == Some(key_bytes))?;
    ctx.prov().bound()?.ciphers.get()?.rows.iter().find(|row| row.algorithm == Some(*wanted))
}

/// Turns whole blocks into others by ECB.
pub(super) fn through(ecb: InnerContext<'_>, blocks: &mut [u8]) -> Option<()> {
    let input_bytes = blocks.len();
    ecb.work(&mut Memory::InPlace { space: blocks, input_bytes }).then_some(())
}

/// Where parts are cut, and the IV of each; no IVs for ECB.
struct Starts {
    part_bytes: usize,
    ivs: Vec<Block>,
}

fn starts(ctx: &CipherCtx, helpers: &Helpers, iv: &Block, input: &[u8]) -> Option<Starts> {
    let family = ctx.family()?;
    let part_bytes = without_stolen_end(input.len(), helpers.part_bytes(input.len()));
    if input.len() <= part_bytes {
        return None;
    }
    let count = input.len().div_ceil(part_bytes);
    let blocks = part_bytes / BLOCK_BYTES;
    let ivs = match (family, ctx.message.direction()) {
        (Family::Ecb, _) => Vec::new(),
        (Family::Ctr, _) => chain(*iv, count, |counter| advance(counter, blocks as u128)),
        (Family::Cbc, Direction::Decrypt) => {
            let before = input.chunks(part_bytes).map(|part| part.last_chunk().copied().unwrap_or_default());
            [*iv].into_iter().chain(before).take(count).collect()
        }
        (Family::Xts, _) => tweaks(ctx, iv, count, blocks as u64)?,
        _ => return None,
    };
    Some(Starts { part_bytes, ivs })
}

/// The length of parts, so much longer that ciphertext is stolen from a whole block of the same part.
pub(crate) fn without_stolen_end(bytes: usize, part_bytes: usize) -> usize {
    let mut part_bytes = part_bytes;
    while part_bytes < bytes && (1..BLOCK_BYTES).contains(&(bytes % part_bytes)) {
        part_bytes += 4096;
    }
    part_bytes
}

fn chain(first: Block, count: usize, step: impl Fn(&mut Block)) -> Vec<Block> {
    let mut next = first;
    let take = |_| {
        let this = next;
        step(&mut next);
        this
    };
    (0..count).map(take).collect()
}

/// For each part, the iv at whose tweak it starts.
fn tweaks(ctx: &CipherCtx, iv: &Block, count: usize, blocks: u64) -> Option<Vec<Block>> {
    let key = ctx.message.key();
    let half = &key[key.len() / 2..];
    let mut first = *iv;
    through(ecb(ctx, true, half)?.inner(), &mut first)?;
    let stride = Stride::over(blocks);
    let mut tweaks = chain(first, count, |tweak| *tweak = stride.after(tweak));
    through(ecb(ctx, false, half)?.inner(), tweaks.as_flattened_mut())?;
    Some(tweaks)
}

/// One thread's context.
struct Worker<'w> {
    context: OwnContext<'w>,
    encrypts: bool,
    starts: &'w Starts,
}

impl Worker<'_> {
    fn work(&self, memory: &mut Memory<'_>) -> bool {
        self.context.inner().work(memory)
    }
}

impl PartWorker for Worker<'_> {
    fn begin(&mut self, index: usize) -> bool {
        let iv = self.starts.ivs.get(index);
        iv.is_none_or(|iv| self.context.inner().init(self.encrypts, None, Some(iv)))
    }

    fn out_of_place(&mut self, _: usize, input: &[u8], output: &mut [u8]) -> bool {
        self.work(&mut Memory::Apart { src: input, dst: output })
    }

    fn in_place(&mut self, _: usize, data: &mut [u8]) -> bool {
        let input_bytes = data.len();
        self.work(&mut Memory::InPlace { space: data, input_bytes })
    }
}
