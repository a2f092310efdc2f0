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
use crate::fork;
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
    if let Some(timed) = ctx.pending.timed.take() {
        ctx.combiner().into_iter().for_each(|combiner| combiner.leave(fork::generation(), timed));
    }
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

/// Who does an update.
enum Way {
    /// No one does: part of its message is gone.
    Lost,
    Inner,
    /// The inner function, once the message is handed back to its context.
    InnerAgain,
    Record,
    DataUnit,
    Buffered,
    /// Other threads' CBC encryption goes with it; where none is there, it is buffered if that is worth it.
    Together {
        else_buffered: bool,
    },
}

/// The first row that fits an update:
///
/// | its message | the update | who does it |
/// |---|---|---|
/// | failed | any | none does |
/// | the inner context's for good | any | the inner function |
/// | any, but of TLS records | shorter than helpers and engines are used for, or kept by guard or policy, or no engine's | the inner function, to whose context the message goes back: a context of our own costs more |
/// | any | its lengths or its spaces do not fit | the same, which refuses it |
/// | of TLS records | shorter than block work, and than what threads encrypt together | the inner function |
/// | of TLS records | any | `record.rs` |
/// | of XTS | any | [`data_unit`] |
/// | owned | kept by guard or policy, or no engine's, and not split | the inner function, to whose context the message goes back |
/// | owned | any | `buffering.rs` |
/// | direct | any, from and to any byte of a block | `combining.rs` where threads combine; else block work and what helpers come for `buffering.rs`, and the rest the inner function |
fn way(ctx: &CipherCtx, call: &Update) -> Way {
    let (is_split, len, has_records) = (is_split(ctx), call.len(), ctx.message.record_mode.is_some());
    let is_block_work = len >= ctx.block_thresh();
    let may_combine = ctx.message.encrypts && len >= ctx.row().thresholds.combined_from;
    let is_inner = !is_block_work && !may_combine && !is_split && !has_records;
    match ctx.message.state {
        State::Failed => Way::Lost,
        State::InnerOnly => Way::Inner,
        _ if is_inner || !call.is_whole() => Way::InnerAgain,
        _ if has_records && !is_block_work && !may_combine => Way::Inner,
        _ if has_records => Way::Record,
        _ if ctx.family() == Some(Family::Xts) => Way::DataUnit,
        State::Owned if !is_block_work && !is_split => Way::InnerAgain,
        State::Owned => Way::Buffered,
        State::Direct => Way::Together { else_buffered: is_split || is_block_work },
    }
}

fn by_state(
    ctx: &mut CipherCtx,
    call: &Update,
    inner: impl FnOnce(&mut CipherCtx) -> c_int,
) -> Result<c_int, Reason> {
    let written = match way(ctx, call) {
        Way::Lost => return Err(Reason::Lost),
        Way::Inner => None,
        Way::InnerAgain => {
            buffering::stop(ctx)?;
            None
        }
        Way::Record => one_record(ctx, call)?,
        Way::DataUnit => data_unit(ctx, call)?,
        Way::Buffered => buffering::update(ctx, call)?,
        Way::Together { else_buffered } => match combining::update(ctx, call)? {
            Some(written) => {
                // No module had it.
                ctx.pending.module = None;
                Some(written)
            }
            None if else_buffered && buffering::start(ctx) => buffering::update(ctx, call)?,
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
