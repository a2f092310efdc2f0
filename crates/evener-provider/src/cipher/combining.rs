//! CBC encryption that threads of this program do together (docs/combining.md).
//!
//! Path of one update of whole blocks: does any caller combine now -> the chaining value out of the inner context -> the
//! burst -> the last block into the inner context, which stays the one that holds the truth about the message.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use evener::combine::{BYTES_MIN, Combiner, Request, Span, Verdict};
use evener::lanes;
use evener::regret::{Measurement, Way};
use evener_core::counts::Count;
use evener_core::job::Memory;
use evener_core::{Algorithm, BLOCK_BYTES, Family, InlineDriver, Nanos};
use evener_driver_multibuffer::Multibuffer;

use super::context::CipherCtx;
use super::spans::{input_of, last_block, output_mut, output_of};
use super::{in_flight, lane_check};
use crate::config::Combine;
use crate::core::errors::Reason;
use crate::fork;
use crate::inner_cipher::call::Update;
use crate::state::ProvCtx;

/// How many callers wait for each other whatever it is worth; 0: the controller decides.
static ALWAYS: AtomicU32 = AtomicU32::new(0);

/// Makes providers that are loaded from now on, with `combine = auto`, combine without a trial: `together` callers wait
/// for each other, 0 takes it back. For tests and measurements that link the provider in.
pub fn combine_always(together: u32) {
    ALWAYS.store(together, Relaxed);
}

/// Makes what a library context combines with. Never one for two of them: keys stay where they are.
///
/// # Errors
///
/// Why it cannot be had, for the administrator.
pub(crate) fn combiner() -> Result<Combiner, String> {
    // Now, so that a program without the library hears of it, and since it may be the last moment at which it can be opened.
    Multibuffer::find().map_err(|unavailable| unavailable.to_string())?;
    let driver = || Some(Box::new(Multibuffer::load().ok()?) as Box<dyn InlineDriver>);
    let (generation, cores) = (fork::generation(), evener::core_budget().workers());
    let made = match ALWAYS.load(Relaxed) {
        // Most programs end before anything is combined.
        0 => Some(Combiner::lazy(cores, driver)),
        together => Combiner::unguarded(generation, cores, together, driver),
    };
    made.ok_or_else(|| "libipsec-mb cannot be used".to_owned())
}

/// From which length on updates of a cipher are looked at; `usize::MAX`: never.
pub(crate) fn thresh(prov: &ProvCtx, algorithm: Option<Algorithm>) -> usize {
    let is_cbc = algorithm.is_some_and(|algorithm| algorithm.family() == Family::Cbc);
    match prov.settings.combine {
        Combine::Auto if is_cbc && prov.ways().combiner.is_some() => BYTES_MIN,
        Combine::Auto | Combine::Off => usize::MAX,
    }
}

/// One update of a message that is the inner context's; `None` where it is to go another way, and nothing was done.
pub(super) fn update(ctx: &mut CipherCtx, call: &Update) -> Result<Option<usize>, Reason> {
    let len = call.len();
    let Some(combiner) = ctx.combiner().filter(|_| lanes::are_in_service()) else { return Ok(None) };
    // Encryption holds nothing back, so that a message which stands on a block boundary has no bytes waiting inside.
    let fits = ctx.family() == Some(Family::Cbc)
        && ctx.message.encrypts
        && ctx.hot.taken % BLOCK_BYTES == 0
        && call.can_work(0, 0, len);
    if !fits {
        return Ok(None);
    }
    // In a job the program has others to go on with, and no thread needs to wait.
    let paused = in_flight::way(ctx.prov());
    let judged = paused.as_ref().and_then(|_| ctx.guard_turn(Way::Job, len));
    if judged.as_ref().is_some_and(Measurement::stays) {
        // A module that wants the update has a turn of its own.
        ctx.pending.job_turn = judged.filter(|_| ctx.pending.module.is_none());
        return Ok(None);
    }
    let turn = if paused.is_some() { None } else { combiner.wants(fork::generation(), len) };
    ctx.count_event(Count::Locked, combiner.take_locks(fork::generation()), len);
    if paused.is_none() && turn.is_none() {
        return Ok(None);
    }
    let Some(session) = session(ctx) else { return Ok(None) };
    let Some(iv) = ctx.inner().updated_iv() else { return Ok(None) };
    let mut memory = call.memory(0, 0, len);
    let sample = lane_check::sample(session.algorithm(), &iv, input_of(&memory));
    let request = Request { session: &session, iv: &iv, span: span(&mut memory) };
    let (verdict, away) = match (paused, turn) {
        (Some(way), _) => way.encrypt(request),
        (None, Some(turn)) => (turn.encrypt(request), Nanos::ZERO),
        (None, None) => (Verdict::Inline, Nanos::ZERO),
    };
    match verdict {
        Verdict::Inline => {
            ctx.count_event(Count::TakenBack, 1, len);
            return Ok(None);
        }
        Verdict::Failed(_) => return Err(ctx.fail()),
        Verdict::Combined => {}
    }
    if let Some(sample) = sample {
        let settled = sample.settle(ctx, session.key(), output_mut(&mut memory, len));
        settled.map_err(|()| ctx.fail())?;
    }
    let chain = last_block(output_of(&memory, len));
    if !ctx.inner().init(true, None, Some(&chain)) {
        return Err(ctx.fail());
    }
    ctx.message.iv_moved = true;
    ctx.hot.taken = ctx.hot.taken.wrapping_add(len);
    ctx.counts().combined.fetch_add(1, Relaxed);
    ctx.count_request(Count::Combined, len);
    judged.into_iter().for_each(|turn| ctx.count_event(Count::Locked, turn.end_without(away).into(), len));
    Ok(Some(len))
}

fn span<'m>(memory: &'m mut Memory<'_>) -> Span<'m> {
    match memory {
        Memory::InPlace { space, input_bytes } => Span::InPlace(&mut space[..*input_bytes]),
        Memory::Apart { src, dst } => Span::Apart(src, dst),
    }
}

/// The session of the captured key, made when it is first needed.
fn session(ctx: &CipherCtx) -> Option<Arc<evener_core::Session>> {
    ctx.message.session(ctx.row().algorithm?)
}
