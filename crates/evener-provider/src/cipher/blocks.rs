//! Block work: whole blocks by helpers, by the engine that was chosen, or by the inner cipher.

use std::sync::atomic::Ordering::Relaxed;

use evener::offload::policy::Concurrency;
use evener_core::Algorithm;
use evener_core::counts::Count;
use evener_core::job::Memory;

use super::context::CipherCtx;
use super::engine::{BlockError, BlockRequest, Engine, Fallback, registry};
use super::split;
use crate::ffi::async_job::Jobs;

/// Does block work from `iv` on; an error says what became of the input. Undone is only what belongs to a record.
pub(super) fn work(ctx: &CipherCtx, iv: [u8; 16], memory: &mut Memory<'_>) -> Result<(), BlockError> {
    let (row, message) = (ctx.row(), &ctx.message);
    let fallback = Fallback::new(row, message.direction(), message.key());
    let Some(algorithm) = row.algorithm else { return Err(BlockError::Undone) };
    let len = match memory {
        Memory::InPlace { input_bytes, .. } => *input_bytes,
        Memory::Apart { src, .. } => src.len(),
    };
    if let Some(done) = split::work(ctx, &iv, memory) {
        if done.is_ok() {
            ctx.count_request(Count::Split, len);
        }
        return done.map_err(|()| BlockError::Lost);
    }
    if len >= ctx.block_thresh() {
        let counts = ctx.counts();
        counts.routed.fetch_add(1, Relaxed);
        if let Some(engine) = chosen(ctx, algorithm, len) {
            let mut block_request = BlockRequest {
                algorithm,
                direction: message.direction(),
                key: message.key(),
                iv,
                memory: lent(memory),
                fallback,
                session: &|| message.session(algorithm),
                turn: ctx.pending.module.as_ref().and_then(|choice| choice.turn.as_ref()),
                job: if is_alone(ctx) {
                    None
                } else {
                    ctx.prov().ways().jobs.as_ref().and_then(Jobs::current)
                },
                counts,
            };
            match engine.run(&mut block_request) {
                Ok(()) => {
                    ctx.count_request(Count::Routed, len);
                    return Ok(());
                }
                Err(BlockError::Lost) => return Err(BlockError::Lost),
                Err(BlockError::Refused) => {}
                Err(BlockError::Undone) => {
                    counts.redone.fetch_add(1, Relaxed);
                    ctx.count_redone(1, len);
                }
            }
        }
    }
    match fallback.run(&iv, memory) {
        // There is no memory for a context of its own.
        Err(BlockError::Undone | BlockError::Refused) if message.record_mode.is_none() => {
            by_inner(ctx, &iv, memory)
        }
        done => done,
    }
}

/// Whether it was found already that the update runs in no `ASYNC_JOB`.
fn is_alone(ctx: &CipherCtx) -> bool {
    ctx.pending.module.as_ref().is_some_and(|choice| choice.concurrency == Concurrency::Alone)
}

/// The engine for a piece: the one that was chosen for its update, or where no choice was made the first that takes it.
fn chosen(ctx: &CipherCtx, algorithm: Algorithm, len: usize) -> Option<&'static dyn Engine> {
    let direction = ctx.message.direction();
    match &ctx.pending.module {
        Some(choice) => choice.engine.filter(|engine| engine.takes(algorithm, direction, len)),
        None => registry::engine(algorithm, direction, len),
    }
}

/// Block work by the inner context, which stays behind an owned message and is set to its place when that is handed back; a unit
/// of XTS begins with the same tweak again.
fn by_inner(ctx: &CipherCtx, iv: &[u8; 16], memory: &mut Memory<'_>) -> Result<(), BlockError> {
    let (row, message, inner) = (ctx.row(), &ctx.message, ctx.inner());
    let ready = inner.init(message.encrypts, None, row.has_iv().then_some(&iv[..]))
        && (!row.is_padded() || inner.set_padding(false));
    let done = ready && inner.work(memory);
    let is_back = !row.is_padded() || inner.set_padding(message.padding);
    if done && is_back { Ok(()) } else { Err(BlockError::Lost) }
}

fn lent<'m>(memory: &'m mut Memory<'_>) -> Memory<'m> {
    match memory {
        Memory::InPlace { space, input_bytes } => Memory::InPlace { space, input_bytes: *input_bytes },
        Memory::Apart { src, dst } => Memory::Apart { src, dst },
    }
}
