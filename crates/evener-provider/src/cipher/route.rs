//! Where an update that is worth it takes another way than the inner function.
//!
//! The way of one update of at least `thresh` bytes: refused forms go straight on -> a TLS record (`record.rs`), or a
//! unit of XTS, is raw work at once -> CBC encryption goes together with other threads' where they combine
//! (`combined.rs`) -> other messages are entered (`owned.rs`) and cut into raw work -> [`work`] gives each piece to the
//! first engine that takes it, and what an engine leaves undone to the plain way.

use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{PoisonError, RwLock};

use evener_core::Family;
use evener_core::job::Memory;
use evener_core::statistics::Count;

use super::combined;
use super::ctx::CipherCtx;
use super::message::State;
use super::raw::{Engine, Plain, Raw, RawError};
use super::{gcm, owned, record, split};
use crate::counted;
use crate::err::Reason;
use crate::ffi::cipher::Update;

/// Engines of this process, asked in this order.
static ENGINES: RwLock<Vec<&'static dyn Engine>> = RwLock::new(Vec::new());

/// Adds an engine behind those that are there. It is asked by every library context of the process.
pub fn add_engine(engine: &'static dyn Engine) {
    ENGINES.write().unwrap_or_else(PoisonError::into_inner).push(engine);
}

/// XTS: the largest data unit, 2^20 blocks (SP 800-38E), and the smallest.
const XTS_UNIT_BYTES: std::ops::RangeInclusive<usize> = 16..=(1 << 24);

/// Does one update of at least `thresh` bytes; returns what the inner function would.
pub(crate) fn update(ctx: &mut CipherCtx, call: &Update) -> Result<c_int, Reason> {
    if ctx.row().splits_gcm() && ctx.message.state != State::Failed {
        return gcm::update(ctx, call);
    }
    ctx.split = split::ask(ctx, call.len());
    let answer = by_state(ctx, call);
    if let (Some(split), Ok(1)) = (ctx.split.take(), &answer) {
        split.end();
    }
    answer
}

fn by_state(ctx: &mut CipherCtx, call: &Update) -> Result<c_int, Reason> {
    let is_split = ctx.split.as_ref().is_some_and(|split| split.helpers().is_some());
    // Where neither helpers come nor engines are asked, a context of our own costs more than handing back.
    let is_inner = call.len() < ctx.row().thresh && !is_split && ctx.message.records.is_none();
    let written = match ctx.message.state {
        State::Failed => return Err(Reason::Lost),
        State::InnerOnly => None,
        _ if is_inner || !call.is_whole() => {
            owned::leave(ctx)?;
            None
        }
        _ if ctx.message.records.is_some() && call.len() < ctx.row().raw_thresh => None,
        _ if ctx.message.records.is_some() => one_record(ctx, call)?,
        _ if ctx.family() == Some(Family::Xts) => data_unit(ctx, call)?,
        State::Owned => owned::update(ctx, call)?,
        State::Direct => match combined::update(ctx, call)? {
            Some(written) => Some(written),
            None if is_split || call.len() >= ctx.row().raw_thresh => match owned::enter(ctx) {
                true => owned::update(ctx, call)?,
                false => None,
            },
            None => None,
        },
    };
    Ok(match written {
        Some(written) => call.done(written),
        None => ctx.forward(call),
    })
}

fn one_record(ctx: &mut CipherCtx, call: &Update) -> Result<Option<usize>, Reason> {
    let records = ctx.message.records.unwrap_or_default();
    record::update(ctx, records, call)
}

/// XTS starts every update from the same tweak, so that nothing is owned.
fn data_unit(ctx: &CipherCtx, call: &Update) -> Result<Option<usize>, Reason> {
    let len = call.len();
    if !XTS_UNIT_BYTES.contains(&len) || !call.can_work(0, 0, len) {
        return Ok(None);
    }
    let Some(tweak) = ctx.inner().updated_iv() else { return Ok(None) };
    work(ctx, tweak, &mut call.memory(0, 0, len)).map_err(|()| Reason::Lost)?;
    Ok(Some(len))
}

/// Does raw work from `iv` on; an error where input was lost.
pub(super) fn work(ctx: &CipherCtx, iv: [u8; 16], memory: &mut Memory<'_>) -> Result<(), ()> {
    let (row, message) = (ctx.row(), &ctx.message);
    let plain = Plain::new(row, message.direction(), message.key());
    let Some(algorithm) = row.algorithm else { return Err(()) };
    let len = match memory {
        Memory::InPlace { input_bytes, .. } => *input_bytes,
        Memory::Apart { src, .. } => src.len(),
    };
    if let Some(done) = split::work(ctx, &iv, memory) {
        if done.is_ok() {
            ctx.went(Count::Split, len);
        }
        return done;
    }
    if len >= row.raw_thresh {
        let counts = ctx.counts();
        counts.routed.fetch_add(1, Relaxed);
        let engines = ENGINES.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(engine) = engines.iter().find(|engine| engine.takes(algorithm, message.direction(), len))
        {
            let mut raw = Raw {
                algorithm,
                direction: message.direction(),
                key: message.key(),
                iv,
                memory: lent(memory),
                plain,
            };
            match engine.run(&mut raw) {
                Ok(()) => {
                    ctx.went(Count::Routed, len);
                    return Ok(());
                }
                Err(RawError::Lost) => return Err(()),
                Err(RawError::Undone) => {
                    counts.redone.fetch_add(1, Relaxed);
                    counted::redone(ctx.statistics(), row.kind, message.direction(), len);
                }
            }
        }
    }
    plain.run(&iv, memory).map_err(|_| ())
}

fn lent<'m>(memory: &'m mut Memory<'_>) -> Memory<'m> {
    match memory {
        Memory::InPlace { room, input_bytes } => Memory::InPlace { room, input_bytes: *input_bytes },
        Memory::Apart { src, dst } => Memory::Apart { src, dst },
    }
}
