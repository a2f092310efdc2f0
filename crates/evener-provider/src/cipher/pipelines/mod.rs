//! Pipelines: one context with many messages under one key, and calls that bring a piece of each (OpenSSL 3.5).
//!
//! Path of one call of encryption: every piece is looked at, and the whole call refused before anything is touched
//! where one does not fit -> held blocks that are full now go side by side -> then the bulk of all pieces -> the rest is
//! held, for each pipe as OpenSSL holds it in a context of its own (`buffering.rs`). Decryption of one message fills a core
//! by itself, so there each pipe has an inner context, and they take turns.
//!
//! The inner context of the cipher context is queried for what all pipes share: whether keys and IVs have the right length,
//! and whether the last block is padded.

pub(crate) mod state;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use evener::lanes;
use evener::regret::{Measurement, Way};
use evener_core::counts::Count;
use evener_core::job::Memory;
use evener_core::{BLOCK_BYTES, Direction, Job, Outcome, Padding, Session};
use zeroize::Zeroizing;

use super::calls;
use super::context::CipherCtx;
use super::engine::choice::ModuleChoice;
use super::engine::{BlockError, Fallback};
use super::lane::check::{self, LaneSample};
use super::message::State;
use super::message::key_session::KeySession;
use super::module_choice::choose_for_many;
use super::spans::{Cut, last_block};
use super::split::started;
use crate::core::errors::Reason;
use crate::counters;
use crate::ffi::reserve::zeroed;
use crate::fork;
use crate::inner_cipher::call::{Init, Update};
use crate::inner_cipher::context::OwnContext;
use state::{PipelineMessage, PipelineState};

/// Starts messages: with the key of `call` or the one before, each with its IV or the one before.
pub(crate) fn init(ctx: &mut CipherCtx, call: &Init<'_>, ivs: &[Option<&[u8]>]) -> Result<bool, Reason> {
    if ctx.message.state == State::Failed {
        ctx.message.state = State::InnerOnly;
    }
    calls::sync_inner(ctx)?;
    ctx.lose_sight();
    let before = ctx.pipes.take();
    if call.inner(ctx.row(), ctx.hot.inner) != 1 {
        return Ok(false);
    }
    let session = match (call.key, &before) {
        (Some(key), _) => {
            let algorithm = ctx.row().algorithm.ok_or(Reason::Pipes)?;
            let session = Session::new(algorithm, Direction::Encrypt, Padding::None, key);
            KeySession::new(session.map_err(|_| Reason::Pipes)?)
        }
        (None, Some(before)) if before.encrypts == call.encrypts => Arc::clone(&before.session),
        (None, _) => return Err(Reason::Pipes),
    };
    let before = before.map_or_else(Vec::new, |before| before.all.iter().map(|pipe| pipe.original).collect());
    let mut all = Vec::with_capacity(ivs.len());
    for (at, iv) in ivs.iter().enumerate() {
        let original = match iv {
            Some(iv) => (*iv).try_into().map_err(|_| Reason::Pipes)?,
            // As in a context that has never seen one.
            None => before.get(at).copied().unwrap_or_default(),
        };
        let inner = if call.encrypts { None } else { Some(decrypting(ctx, session.session(), &original)?) };
        all.push(PipelineMessage { original, chain: original, held: [0; BLOCK_BYTES], held_len: 0, inner });
    }
    ctx.pipes = Some(Box::new(PipelineState { encrypts: call.encrypts, session, padding: true, all }));
    Ok(true)
}

fn decrypting(
    ctx: &CipherCtx,
    session: &Session,
    iv: &[u8; BLOCK_BYTES],
) -> Result<OwnContext<'static>, Reason> {
    let own = OwnContext::new(ctx.row()).ok_or(Reason::Pipes)?;
    own.inner().init(false, Some(session.key()), Some(iv)).then_some(own).ok_or(Reason::Pipes)
}

/// A piece of each message; false where an inner context refused one and raised the reason.
pub(crate) fn update(ctx: &mut CipherCtx, calls: &[Update]) -> Result<bool, Reason> {
    with_pipes(ctx, calls.len(), |ctx, pipes| {
        if !pipes.encrypts {
            return Ok(inner_calls(pipes, ctx, calls, |own, call| {
                call.len() == 0 || own.inner().update(call)
            }));
        }
        let cuts: Vec<Cut> = pipes
            .all
            .iter()
            .zip(calls)
            .map(|(pipe, call)| Cut::of(pipe.held_len, call.len(), false))
            .collect();
        if !cuts.iter().zip(calls).all(|(cut, call)| call.can_pipe(cut.output())) {
            return Err(Reason::Pipes);
        }
        // Where pieces of several pipes share memory, the order of reading and writing is that of the pipes.
        let together = if are_tangled(calls, &cuts) { 1 } else { calls.len().max(1) };
        let session = Arc::clone(pipes.session.session());
        let groups = pipes.all.chunks_mut(together).zip(calls.chunks(together)).zip(cuts.chunks(together));
        for ((pipes, calls), cuts) in groups {
            encrypt(ctx, &session, pipes, calls, cuts)?;
        }
        calls.iter().zip(&cuts).for_each(|(call, cut)| {
            call.done(cut.output());
        });
        Ok(true)
    })
}

/// The last part of each message.
pub(crate) fn last(ctx: &mut CipherCtx, calls: &[Update]) -> Result<bool, Reason> {
    with_pipes(ctx, calls.len(), |ctx, pipes| {
        if !pipes.encrypts {
            return Ok(inner_calls(pipes, ctx, calls, |own, call| own.inner().last(call)));
        }
        let padding = ctx.inner().padding().ok_or(Reason::Pipes)?;
        if !padding {
            let is_whole = pipes.all.iter().all(|pipe| pipe.held_len == 0);
            calls.iter().for_each(|call| {
                call.done(0);
            });
            return if is_whole { Ok(true) } else { Err(Reason::PartialBlock) };
        }
        if !calls.iter().all(|call| call.can_put(BLOCK_BYTES)) {
            return Err(Reason::Pipes);
        }
        for pipe in &mut pipes.all {
            let held = pipe.held_len;
            evener_core::padding::pad(&mut pipe.held, held);
        }
        let session = Arc::clone(pipes.session.session());
        flush(ctx, &session, pipes.all.iter_mut().zip(calls))?;
        calls.iter().for_each(|call| {
            call.done(BLOCK_BYTES);
        });
        Ok(true)
    })
}

/// The pipes leave the context for the time of a call: what is lost on the way stays lost.
fn with_pipes(
    ctx: &mut CipherCtx,
    count: usize,
    call: impl FnOnce(&CipherCtx, &mut PipelineState) -> Result<bool, Reason>,
) -> Result<bool, Reason> {
    let mut pipes = ctx.pipes.take().ok_or(Reason::Pipes)?;
    let done = if pipes.all.len() == count { call(ctx, &mut pipes) } else { Err(Reason::Pipes) };
    if !matches!(done, Err(Reason::Lost)) {
        ctx.pipes = Some(pipes);
    }
    done
}

/// One update of messages that share no memory.
fn encrypt(
    ctx: &CipherCtx,
    session: &Arc<Session>,
    pipes: &mut [PipelineMessage],
    calls: &[Update],
    cuts: &[Cut],
) -> Result<(), Reason> {
    // Input that lies in the way of the output is read first, as a program must expect of no library.
    let copies: Option<Vec<Zeroizing<Vec<u8>>>> =
        calls.iter().zip(cuts).map(|(call, cut)| copy_if_needed(call, cut)).collect();
    let copies = copies.ok_or(Reason::NoMemory)?;
    for ((pipe, call), cut) in pipes.iter_mut().zip(calls).zip(cuts) {
        call.copy_input(0, &mut pipe.held[pipe.held_len..pipe.held_len + cut.fill]);
        pipe.held_len += cut.fill;
    }
    let full = pipes.iter_mut().zip(calls).zip(cuts).filter(|(_, cut)| cut.flush).map(|(both, _)| both);
    flush(ctx, session, full)?;
    let mut works = Vec::with_capacity(pipes.len());
    for (((pipe, call), cut), copy) in pipes.iter_mut().zip(calls).zip(cuts).zip(&copies) {
        if cut.bulk > 0 {
            works.push((&mut pipe.chain, bulk(call, cut, copy)));
        }
    }
    run(ctx, session, works)?;
    for (((pipe, call), cut), copy) in pipes.iter_mut().zip(calls).zip(cuts).zip(&copies) {
        let start = cut.fill + cut.bulk;
        let rest = call.len() - start;
        let kept = &mut pipe.held[pipe.held_len..pipe.held_len + rest];
        match copy.get(start..) {
            Some(copy) if !copy.is_empty() => kept.copy_from_slice(copy),
            _ => call.copy_input(start, kept),
        }
        pipe.held_len += rest;
    }
    Ok(())
}

/// Encrypts held blocks that are full, to the start of the output.
fn flush<'p>(
    ctx: &CipherCtx,
    session: &Arc<Session>,
    full: impl Iterator<Item = (&'p mut PipelineMessage, &'p Update)>,
) -> Result<(), Reason> {
    let mut full: Vec<_> = full.collect();
    let works = full.iter_mut().map(|(pipe, _)| {
        let PipelineMessage { chain, held, .. } = &mut **pipe;
        (chain, Memory::InPlace { space: held, input_bytes: BLOCK_BYTES })
    });
    run(ctx, session, works.collect())?;
    for (pipe, call) in full {
        call.put_output(0, &pipe.held);
        pipe.held_len = 0;
    }
    Ok(())
}

/// Whole blocks of several messages side by side, each from its chaining value, which is moved behind them.
fn run(
    ctx: &CipherCtx,
    session: &Arc<Session>,
    works: Vec<(&mut [u8; BLOCK_BYTES], Memory<'_>)>,
) -> Result<(), Reason> {
    let (chains, memories): (Vec<_>, Vec<_>) = works.into_iter().unzip();
    let mut jobs: Vec<Box<Job<'_>>> = Vec::with_capacity(memories.len());
    for ((mark, chain), memory) in (0..).zip(&chains).zip(memories) {
        let (mut job, bytes) = match memory {
            Memory::InPlace { space, input_bytes } => (Job::in_place(space), input_bytes),
            Memory::Apart { src, dst } => (Job::apart(src, dst), src.len()),
        };
        // Shared: a module's queue keeps it for as long as the module has the job.
        job.arm(Arc::clone(session), chain.as_slice(), bytes);
        job.mark = mark;
        jobs.push(job);
    }
    let bytes = jobs.iter().map(|job| job.input_bytes()).sum();
    // One alone is faster the plain way.
    let drivers = ctx.prov().ways().in_flight.as_ref().filter(|_| jobs.len() > 1 && lanes::are_in_service());
    let choice = choose_for_many(ctx, session.algorithm(), &jobs);
    if by_module(ctx, session, choice.as_ref(), &mut jobs)? {
        ctx.count_event(Count::Locked, choice.is_some_and(ModuleChoice::end).into(), bytes);
        return move_on(chains, jobs);
    }
    // What would have gone to a module and stays is timed as the other ways are.
    let stayed = choice.filter(ModuleChoice::stays);
    let judged = drivers.and_then(|_| ctx.guard_turn(Way::Pipeline, bytes));
    let stays = judged.as_ref().is_some_and(Measurement::stays);
    let watched = if stays || drivers.is_none() { None } else { jobs.first() };
    let sample = watched.and_then(|job| check::sample(session.algorithm(), job.iv(), job.input()));
    let is_burst = !stays && drivers.is_some_and(|drivers| drivers.burst(fork::generation(), &mut jobs));
    if is_burst {
        sample.into_iter().try_for_each(|sample| check(ctx, session, sample, &jobs))?;
        side_by_side(ctx, &jobs)?;
    } else {
        in_turn(ctx, session, &mut jobs)?;
    }
    ctx.count_event(Count::Locked, stayed.is_some_and(ModuleChoice::end).into(), bytes);
    // One for which no driver was free is no measurement.
    let measured = judged.filter(|_| stays || is_burst);
    measured.into_iter().for_each(|turn| ctx.count_event(Count::Locked, turn.end().into(), bytes));
    move_on(chains, jobs)
}

/// Has a module do all of them, where one is to and can; else they are as they were.
fn by_module(
    ctx: &CipherCtx,
    session: &Session,
    choice: Option<&ModuleChoice>,
    jobs: &mut [Box<Job<'_>>],
) -> Result<bool, Reason> {
    let fallback = Fallback::new(ctx.row(), Direction::Encrypt, session.key());
    let Some(done) = choice.and_then(|choice| choice.run_batch(jobs, fallback)) else { return Ok(false) };
    let (counts, count) = (ctx.counts(), u32::try_from(jobs.len()).unwrap_or(u32::MAX));
    // Those that others keep from the module never went there.
    let went = if done == Err(BlockError::Refused) { 0 } else { count };
    counts.routed.fetch_add(went, Relaxed);
    match done {
        Ok(()) => count_requests(ctx, jobs, Count::Routed),
        Err(BlockError::Undone) => {
            counts.redone.fetch_add(count, Relaxed);
            ctx.count_redone(count, jobs.iter().map(|job| job.input_bytes()).sum());
        }
        Err(BlockError::Refused) => {}
        Err(BlockError::Lost) => return Err(Reason::Lost),
    }
    Ok(done.is_ok())
}

/// Moves the chaining values behind what was done.
fn move_on(chains: Vec<&mut [u8; BLOCK_BYTES]>, mut jobs: Vec<Box<Job<'_>>>) -> Result<(), Reason> {
    // A driver may sort a burst.
    jobs.sort_unstable_by_key(|job| job.mark);
    for (chain, job) in chains.into_iter().zip(&jobs) {
        *chain = last_block(&job.output_span()[..job.input_bytes()]);
    }
    Ok(())
}

/// Compares the first of many messages; an error where it was wrong, for then the others may be, whose input is lost.
fn check(
    ctx: &CipherCtx,
    session: &Session,
    sample: LaneSample,
    jobs: &[Box<Job<'_>>],
) -> Result<(), Reason> {
    // A driver may sort a burst.
    let Some(job) = jobs.iter().find(|job| job.mark == 0) else { return Ok(()) };
    let mut output = Zeroizing::new(job.output_span()[..job.input_bytes()].to_vec());
    let is_right = sample.settle(ctx, session.key(), &mut output) == Ok(true);
    is_right.then_some(()).ok_or(Reason::Lost)
}

/// Counts a burst; an error where a message of it failed.
fn side_by_side(ctx: &CipherCtx, jobs: &[Box<Job<'_>>]) -> Result<(), Reason> {
    ctx.counts().pipelined.fetch_add(u32::try_from(jobs.len()).unwrap_or(0), Relaxed);
    count_requests(ctx, jobs, Count::Combined);
    let is_done = jobs.iter().all(|job| matches!(job.outcome(), Outcome::Done { .. }));
    is_done.then_some(()).ok_or(Reason::Lost)
}

/// Counts each message as a request that went the way `what`.
fn count_requests(ctx: &CipherCtx, jobs: &[Box<Job<'_>>], what: Count) {
    for job in jobs {
        let (kind, bytes) = (ctx.row().kind, job.input_bytes());
        counters::count_request(ctx.statistics(), kind, Direction::Encrypt, bytes, what);
    }
}

/// One after the other by the inner cipher, in one context.
fn in_turn(ctx: &CipherCtx, session: &Session, jobs: &mut [Box<Job<'_>>]) -> Result<(), Reason> {
    if jobs.is_empty() {
        return Ok(());
    }
    let own = started(ctx.row(), true, session.key()).ok_or(Reason::Lost)?;
    let mut work = |job: &mut Box<Job<'_>>| {
        let mut parts = job.parts();
        own.inner().init(true, None, Some(parts.iv)) && own.inner().work(&mut parts.memory)
    };
    jobs.iter_mut().all(&mut work).then_some(()).ok_or(Reason::Lost)
}

/// Whether the output of one pipe touches memory of another.
fn are_tangled(calls: &[Update], cuts: &[Cut]) -> bool {
    let both = || calls.iter().zip(cuts);
    both().enumerate().any(|(at, (call, cut))| {
        let output = call.output_range(cut.output());
        let meets = |range: &std::ops::Range<usize>| range.start < output.end && output.start < range.end;
        both().enumerate().any(|(other, (call, cut))| {
            at != other && (meets(&call.input_range()) || meets(&call.output_range(cut.output())))
        })
    })
}

/// A call of each inner context in turn.
fn inner_calls(
    pipes: &mut PipelineState,
    ctx: &CipherCtx,
    calls: &[Update],
    step: impl Fn(&OwnContext<'static>, &Update) -> bool,
) -> bool {
    let Some(padding) = ctx.inner().padding() else { return false };
    let is_new = padding != pipes.padding;
    pipes.padding = padding;
    pipes.all.iter().zip(calls).all(|(pipe, call)| {
        let Some(own) = &pipe.inner else { return false };
        (!is_new || own.inner().set_padding(padding)) && step(own, call)
    })
}

/// The input, where it can be worked on neither in its place nor apart from the output; else nothing. `None` without memory for it.
fn copy_if_needed(call: &Update, cut: &Cut) -> Option<Zeroizing<Vec<u8>>> {
    if cut.bulk == 0 || call.can_work(cut.fill, cut.flushed(), cut.output()) {
        return Some(Zeroizing::default());
    }
    let mut copy = Zeroizing::new(zeroed(call.len())?);
    call.copy_input(0, &mut copy);
    Some(copy)
}

/// The bulk of a piece, read from `copy` where there is one.
fn bulk<'c>(call: &'c Update, cut: &Cut, copy: &'c [u8]) -> Memory<'c> {
    match copy.get(cut.fill..cut.fill + cut.bulk) {
        Some(src) => Memory::Apart { src, dst: &mut call.space(cut.output())[cut.flushed()..] },
        None => call.memory(cut.fill, cut.flushed(), cut.bulk),
    }
}
