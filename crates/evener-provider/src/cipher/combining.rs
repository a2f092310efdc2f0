//! CBC encryption that threads of this program do together (docs/design/combining.md).
//!
//! Path of one update, which may begin and end within a block: does any caller combine now ([`Group::of`]) -> what fills the held block goes to
//! the inner context -> of the whole blocks ([`blocks`]) the chaining value comes out of it, the burst follows, and the last block goes back into
//! it -> so does what is held of the rest. It stays the one that holds the truth about the message. A TLS record (`record.rs`) is whole blocks.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use evener::combine::{
    BYTES_MAX, BYTES_MIN, CombinedCall, Combiner, JOB_BYTES_MIN, Request, Span, Turn, Verdict, Waiting,
};
use evener::lanes;
use evener::regret::{Measurement, Way};
use evener_core::counts::Count;
use evener_core::job::Memory;
use evener_core::{Algorithm, BLOCK_BYTES, Family, Nanos};

use super::context::CipherCtx;
use super::engine::choice::ModuleChoice;
use super::in_flight::{self, Paused};
use super::lane::check;
use super::lane::source::LaneSource;
use super::message::State;
use super::module_choice;
use super::spans::{Cut, input_of, last_block, output_mut, output_of};
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
pub(crate) fn combiner(lanes: LaneSource, cores: usize) -> Result<Combiner, String> {
    let generation = fork::generation();
    match ALWAYS.load(Relaxed) {
        // Most programs end before anything is combined.
        0 => Ok(Combiner::lazy(cores, move || lanes.driver())),
        together => {
            Combiner::unguarded(generation, cores, Waiting::for_others(together), move || lanes.driver())
                .ok_or_else(|| "lanes cannot be used".to_owned())
        }
    }
}

/// From which length on updates of a cipher are looked at; `usize::MAX`: never.
pub(crate) fn thresh(prov: &ProvCtx, algorithm: Option<Algorithm>) -> usize {
    let is_cbc = algorithm.is_some_and(|algorithm| algorithm.family() == Family::Cbc);
    match prov.settings.combine {
        Combine::Auto if is_cbc && prov.ways().combiner.is_some() => JOB_BYTES_MIN,
        Combine::Auto | Combine::Off => usize::MAX,
    }
}

/// Whether an update is so short that only inside a job it would go together with others, and this thread runs none.
pub(crate) fn waits_for_no_job(ctx: &CipherCtx, len: usize) -> bool {
    let row = ctx.row();
    let others_from = row.thresholds.block_from.min(row.split_from(ctx.message.encrypts));
    (row.thresholds.combined_from..BYTES_MIN.min(others_from)).contains(&len)
        && ctx.message.state == State::Direct
        && in_flight::way(ctx.prov()).is_none()
}

/// Has the inner function do an update that might go together with others, and counts it for them, where none does now and it stays from modules; `None` where it
/// has to be looked at. Nearly all updates of a program whose threads do not combine end here.
pub(crate) fn forward_alone(ctx: &mut CipherCtx, call: &Update) -> Option<c_int> {
    let (row, len) = (ctx.row(), call.len());
    // A TLS record, too, is whole by the inner function.
    let is_direct = ctx.message.state == State::Direct;
    let may_combine = ctx.message.encrypts && (row.thresholds.combined_from..=BYTES_MAX).contains(&len);
    if !is_direct || !may_combine || !lanes::are_in_service() {
        return None;
    }
    let combiner = ctx.combiner().filter(|combiner| !combiner.is_combining(fork::generation()))?;
    let has_module = len >= row.thresholds.block_from;
    if in_flight::way(ctx.prov()).is_some() || has_module && !module_choice::stays_from_modules(ctx, len) {
        return None;
    }
    // Shorter ones only go together within jobs. Who begins to combine at this moment does without this one.
    let turn = if len < BYTES_MIN {
        Turn::default()
    } else {
        combiner.wants(fork::generation(), len - len % BLOCK_BYTES)
    };
    let answer = ctx.forward(call);
    turn.timed.into_iter().for_each(|timed| combiner.leave(fork::generation(), timed));
    Some(answer)
}

/// One update of a message that is the inner context's; `None` where it is to go another way, and nothing was done.
pub(super) fn update(ctx: &mut CipherCtx, call: &Update) -> Result<Option<usize>, Reason> {
    // Encryption holds back what is no whole block, and nothing else.
    let cut = Cut::of(ctx.hot.taken % BLOCK_BYTES, call.len(), false);
    if !ctx.message.encrypts || !call.can_work(cut.fill, cut.flushed(), cut.output()) {
        return Ok(None);
    }
    let Some(group) = Group::of(ctx, cut.bulk) else { return Ok(None) };
    pieces(ctx, call, &cut, group).map(Some)
}

/// The pieces of an update: what fills the held block, by the inner context; whole blocks; what is held back of the rest, by the inner
/// context again.
fn pieces(ctx: &mut CipherCtx, call: &Update, cut: &Cut, group: Group<'_>) -> Result<usize, Reason> {
    let inner = ctx.inner();
    let (from, to) = (cut.fill, cut.flushed());
    let mut is_well = cut.fill == 0 || inner.part(call, 0..cut.fill, 0) == Some(cut.flushed());
    let is_combined = is_well && blocks(ctx, &mut call.memory(from, to, cut.bulk), group)?;
    let rest = if is_combined { from + cut.bulk } else { from };
    let at = if is_combined { to + cut.bulk } else { to };
    is_well =
        is_well && (rest == call.len() || inner.part(call, rest..call.len(), at) == Some(cut.output() - at));
    if !is_well {
        return Err(ctx.fail());
    }
    ctx.hot.taken = ctx.hot.taken.wrapping_add(call.len());
    Ok(cut.output())
}

/// Those that a request may be encrypted together with.
pub(super) struct Group<'p> {
    session: Arc<evener_core::Session>,
    by: By<'p>,
    /// What the guard says of it.
    judged: Option<Measurement>,
}

/// Who is waited for.
enum By<'p> {
    /// Other jobs of its thread. The program has others to go on with, and no thread needs to wait.
    Job(Paused<'p>),
    /// Other threads.
    Threads(CombinedCall<'p>),
}

impl<'p> Group<'p> {
    /// Of a request of so many bytes; `None` where it is alone.
    pub(super) fn of(ctx: &mut CipherCtx, len: usize) -> Option<Self> {
        let combiner = ctx.combiner().filter(|_| lanes::are_in_service())?;
        if ctx.family() != Some(Family::Cbc) || !(JOB_BYTES_MIN..=BYTES_MAX).contains(&len) {
            return None;
        }
        let paused = in_flight::way(ctx.prov());
        if paused.is_none() && len < BYTES_MIN {
            return None;
        }
        let judged = paused.as_ref().and_then(|_| ctx.guard_turn(Way::Job, len));
        if judged.as_ref().is_some_and(Measurement::stays) {
            // A module that has the update has a turn of its own.
            ctx.pending.job_turn =
                judged.filter(|_| ctx.pending.module.as_ref().is_none_or(ModuleChoice::stays));
            return None;
        }
        let turn = match &paused {
            Some(_) => Turn::default(),
            None => combiner.wants(fork::generation(), len),
        };
        ctx.pending.timed = turn.timed;
        ctx.count_event(Count::Locked, combiner.take_locks(fork::generation()), len);
        let by = paused.map(By::Job).or_else(|| turn.combined.map(By::Threads))?;
        Some(Self { session: ctx.message.session(ctx.row().algorithm?)?, by, judged })
    }
}

/// Whole blocks of a message whose inner context holds nothing back, and gets the last one; false where they are left as they were.
pub(super) fn blocks(ctx: &mut CipherCtx, memory: &mut Memory<'_>, group: Group<'_>) -> Result<bool, Reason> {
    let Group { session, by, judged } = group;
    let len = input_of(memory).len();
    let Some(iv) = ctx.inner().updated_iv() else { return Ok(false) };
    let sample = check::sample(session.algorithm(), &iv, input_of(memory));
    let request = Request { session: &session, iv: &iv, span: span(memory) };
    let (verdict, away) = match by {
        By::Job(job) => job.encrypt(request),
        By::Threads(turn) => (turn.encrypt(request), Nanos::ZERO),
    };
    match verdict {
        Verdict::Inline => {
            ctx.count_event(Count::TakenBack, 1, len);
            return Ok(false);
        }
        Verdict::Failed(_) => return Err(ctx.fail()),
        Verdict::Combined => {}
    }
    if let Some(sample) = sample {
        let settled = sample.settle(ctx, session.key(), output_mut(memory, len));
        settled.map_err(|()| ctx.fail())?;
    }
    let chain = last_block(output_of(memory, len));
    if !ctx.inner().init(true, None, Some(&chain)) {
        return Err(ctx.fail());
    }
    ctx.message.iv_moved = true;
    ctx.counts().combined.fetch_add(1, Relaxed);
    ctx.count_request(Count::Combined, len);
    judged.into_iter().for_each(|turn| ctx.count_event(Count::Locked, turn.end_without(away).into(), len));
    Ok(true)
}

fn span<'m>(memory: &'m mut Memory<'_>) -> Span<'m> {
    match memory {
        Memory::InPlace { space, input_bytes } => Span::InPlace(&mut space[..*input_bytes]),
        Memory::Apart { src, dst } => Span::Apart(src, dst),
    }
}
