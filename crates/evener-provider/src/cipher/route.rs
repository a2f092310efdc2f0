//! Where an update that is worth it takes another way than the inner function.
//!
//! Path of one update of at least `thresh` bytes: refused forms go straight on -> a TLS record (`record.rs`), or a unit of XTS, is raw
//! work at once -> CBC encryption goes together with other threads' where they combine (`combining.rs`) -> other messages are entered
//! (`buffering.rs`) and cut into block work -> [`blocks::work`] gives each piece to the first engine that takes it, and what an engine
//! leaves undone to the plain way.

use std::ffi::c_int;

use evener_core::Family;
use evener_core::counts::Count;

use super::context::CipherCtx;
use super::message::State;
use super::module_choice::choose_for_update;
use super::{blocks, buffering, combining, gcm, record, split};
use crate::core::errors::Reason;
use crate::inner_cipher::call::Update;

/// XTS: the largest data unit, 2^20 blocks (SP 800-38E), and the smallest.
const XTS_UNIT_BYTES: std::ops::RangeInclusive<usize> = 16..=(1 << 24);

/// Does one update of at least `thresh` bytes; returns what the inner function would.
pub(crate) fn update(ctx: &mut CipherCtx, call: &Update) -> Result<c_int, Reason> {
    if ctx.row().splits_gcm() && ctx.message.state != State::Failed {
        return gcm::update(ctx, call);
    }
    decided(ctx, call, |ctx, call| by_state(ctx, call, |ctx| ctx.forward(call)))
}

/// The same of an update that goes to `inner` where no other way has it.
pub(super) fn update_or(
    ctx: &mut CipherCtx,
    call: &Update,
    inner: impl Fn(&CipherCtx) -> c_int,
) -> Result<c_int, Reason> {
    decided(ctx, call, |ctx, call| by_state(ctx, call, |ctx| inner(ctx)))
}

/// Does block work by `way` once guard and policy have said who has it, and has them know what it took.
pub(super) fn decided(
    ctx: &mut CipherCtx,
    call: &Update,
    way: impl FnOnce(&mut CipherCtx, &Update) -> Result<c_int, Reason>,
) -> Result<c_int, Reason> {
    ctx.pending.split = split::decide(ctx, call.len());
    ctx.pending.module = if is_split(ctx) { None } else { choose_for_update(ctx, call) };
    let answer = way(ctx, call);
    let (split, module, job_turn) =
        (ctx.pending.split.take(), ctx.pending.module.take(), ctx.pending.job_turn.take());
    if answer == Ok(1) {
        split.into_iter().for_each(|split| ctx.finish_split(split, call.len()));
        module.into_iter().for_each(|choice| ctx.count_event(Count::Locked, choice.end().into(), call.len()));
        job_turn.into_iter().for_each(|turn| ctx.count_event(Count::Locked, turn.end().into(), call.len()));
    }
    answer
}

pub(super) fn is_split(ctx: &CipherCtx) -> bool {
    ctx.pending.split.as_ref().is_some_and(|split| split.helpers().is_some())
}

fn by_state(
    ctx: &mut CipherCtx,
    call: &Update,
    inner: impl FnOnce(&mut CipherCtx) -> c_int,
) -> Result<c_int, Reason> {
    let is_split = is_split(ctx);
    // Where neither helpers nor engines are used, a context of our own costs more than handing back.
    let thresh = ctx.block_thresh().min(ctx.row().combined_from);
    let is_inner = call.len() < thresh && !is_split && ctx.message.record_mode.is_none();
    let written = match ctx.message.state {
        State::Failed => return Err(Reason::Lost),
        State::InnerOnly => None,
        _ if is_inner || !call.is_whole() => {
            buffering::stop(ctx)?;
            None
        }
        _ if ctx.message.record_mode.is_some() && call.len() < ctx.block_thresh() => None,
        _ if ctx.message.record_mode.is_some() => one_record(ctx, call)?,
        _ if ctx.family() == Some(Family::Xts) => data_unit(ctx, call)?,
        State::Owned => buffering::update(ctx, call)?,
        State::Direct => match combining::update(ctx, call)? {
            Some(written) => {
                // No module had it.
                ctx.pending.module = None;
                Some(written)
            }
            None if is_split || call.len() >= ctx.block_thresh() => match buffering::start(ctx) {
                true => buffering::update(ctx, call)?,
                false => None,
            },
            None => None,
        },
    };
    Ok(match written {
        Some(written) => call.done(written),
        None => inner(ctx),
    })
}

fn one_record(ctx: &mut CipherCtx, call: &Update) -> Result<Option<usize>, Reason> {
    let records = ctx.message.record_mode.unwrap_or_default();
    record::update(ctx, records, call)
}

/// XTS starts every update from the same tweak, so that nothing is owned.
fn data_unit(ctx: &mut CipherCtx, call: &Update) -> Result<Option<usize>, Reason> {
    let len = call.len();
    if !XTS_UNIT_BYTES.contains(&len) || !call.can_work(0, 0, len) {
        return Ok(None);
    }
    let Some(tweak) = ctx.inner().updated_iv() else { return Ok(None) };
    blocks::work(ctx, tweak, &mut call.memory(0, 0, len)).map_err(|_| Reason::Lost)?;
    ctx.hot.taken = ctx.hot.taken.wrapping_add(len);
    Ok(Some(len))
}
