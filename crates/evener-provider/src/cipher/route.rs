//! Where an update that is worth it takes another way than the inner function.
//!
//! The way of one update of at least `thresh` bytes: refused forms go straight on -> a TLS record (`record.rs`), or a
//! unit of XTS, is raw work at once -> CBC encryption goes together with other threads' where they combine
//! (`combined.rs`) -> other messages are entered (`owned.rs`) and cut into raw work -> [`work`] gives each piece to the
//! first engine that takes it, and what an engine leaves undone to the plain way.

use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{PoisonError, RwLock};

use evener::offload::policy::{Ask, Beside, Policy, Turn, policy};
use evener_core::guard::Load;
use evener_core::job::Memory;
use evener_core::statistics::{Count, Kind};
use evener_core::{Algorithm, BLOCK_BYTES, Class, Direction, Family, Job, Nanos, SessionId};

use super::combining;
use super::context::CipherCtx;
use super::engine::{Engine, Many, Plain, Raw, RawError};
use super::message::State;
use super::{buffering, gcm, record, split};
use crate::config::Guard;
use crate::core::errors::Reason;
use crate::ffi::async_job::Jobs;
use crate::inner_cipher::call::Update;

/// Engines of this process, asked in this order.
static ENGINES: RwLock<Vec<&'static dyn Engine>> = RwLock::new(Vec::new());

/// Adds an engine behind those that are there. It is asked by every library context of the process.
pub fn add_engine(engine: &'static dyn Engine) {
    ENGINES.write().unwrap_or_else(PoisonError::into_inner).push(engine);
}

/// Tells all engines that a session has ended. Not under the lock, for they may call the system.
pub(super) fn forget(session: SessionId) {
    let engine = |at: usize| ENGINES.read().unwrap_or_else(PoisonError::into_inner).get(at).copied();
    (0..).map_while(engine).for_each(|engine| engine.forget(session));
}

/// XTS: the largest data unit, 2^20 blocks (SP 800-38E), and the smallest.
const XTS_UNIT_BYTES: std::ops::RangeInclusive<usize> = 16..=(1 << 24);

/// Most engines between which a request has the choice.
const CHOICE_MAX: usize = 8;

/// The engine that wants work of this kind and length now.
fn engine(algorithm: Algorithm, direction: Direction, len: usize) -> Option<&'static dyn Engine> {
    let engines = ENGINES.read().unwrap_or_else(PoisonError::into_inner);
    engines.iter().copied().find(|engine| engine.takes(algorithm, direction, len))
}

/// Does one update of at least `thresh` bytes; returns what the inner function would.
pub(crate) fn update(ctx: &mut CipherCtx, call: &Update) -> Result<c_int, Reason> {
    if ctx.row().splits_gcm() && ctx.message.state != State::Failed {
        return gcm::update(ctx, call);
    }
    ctx.split = split::ask(ctx, call.len());
    ctx.module = if is_split(ctx) { None } else { ask(ctx, call) };
    let answer = by_state(ctx, call);
    let (split, module, job_turn) = (ctx.split.take(), ctx.module.take(), ctx.job_turn.take());
    if answer == Ok(1) {
        split.into_iter().for_each(|split| ctx.was_split(split, call.len()));
        module.into_iter().for_each(|asked| ctx.saw(Count::Locked, asked.end().into(), call.len()));
        job_turn.into_iter().for_each(|turn| ctx.saw(Count::Locked, turn.end().into(), call.len()));
    }
    answer
}

fn is_split(ctx: &CipherCtx) -> bool {
    ctx.split.as_ref().is_some_and(|split| split.helpers().is_some())
}

/// What the guard and the policy say about the update under way.
pub(crate) struct Asked {
    /// `None` where nobody judges.
    turn: Option<Turn>,
    /// The engine that is to do it.
    engine: Option<&'static dyn Engine>,
    /// Its own core time before.
    core: Nanos,
    beside: Beside,
}

impl Asked {
    /// Whether the update is to stay on the direct path.
    pub(crate) fn stays(&self) -> bool {
        self.engine.is_none()
    }

    /// Has the engine do many jobs at once; `None` where they are to stay.
    pub(super) fn run_many(
        &self,
        jobs: &mut [Box<Job<'_>>],
        plain: Plain<'_>,
    ) -> Option<Result<(), RawError>> {
        let turn = self.turn.as_ref();
        self.engine.map(|engine| engine.run_many(&mut Many { jobs, plain, turn }))
    }

    /// It is done. Whether its class was locked for what it took.
    pub(super) fn end(self) -> bool {
        let Some(turn) = self.turn else { return false };
        turn.end(|| self.engine.map_or(Nanos::ZERO, |engine| engine.core_time() - self.core))
    }
}

/// Asks about an update that an engine may want. Without engines there is nothing to regret.
fn ask(ctx: &CipherCtx, call: &Update) -> Option<Asked> {
    let (row, message) = (ctx.row(), &ctx.message);
    let is_message = matches!(message.state, State::Direct | State::Owned);
    if !is_message || call.len() < row.raw_thresh || ctx.prov().settings.guard == Guard::Off {
        return None;
    }
    // What comes of it is whole blocks: a record's padding makes it longer.
    let rest = if row.is_padded() { call.len() % BLOCK_BYTES } else { 0 };
    let whole = if message.records.is_some() { call.len() + BLOCK_BYTES - rest } else { call.len() - rest };
    let is_alone = ctx.prov().jobs.as_ref().and_then(Jobs::current).is_none();
    let beside = if is_alone { Beside::Nothing } else { Beside::Others };
    let (algorithm, direction) = (row.algorithm?, message.direction());
    let wanted = Wanted { algorithm, direction, longest: whole, bytes: whole, beside };
    // Before anything is asked: most requests of a program that no module pays for end here.
    let policy = policy()?;
    match is_alone && policy.is_unseen(wanted.class()) {
        true => Some(Asked { turn: None, engine: None, core: Nanos::ZERO, beside }),
        false => asked(ctx, policy, &wanted),
    }
}

/// The same about jobs of a pipeline. Inside an `ASYNC_JOB` they stay: its stack is too small for who leads at a module's desk, and
/// its thread has others to go on with.
pub(super) fn asked_many(ctx: &CipherCtx, algorithm: Algorithm, jobs: &[Box<Job<'_>>]) -> Option<Asked> {
    let prov = ctx.prov();
    let longest = jobs.iter().map(|job| job.input_bytes()).max()?;
    let in_job = || prov.jobs.as_ref().and_then(Jobs::current).is_some();
    if jobs.len() < 2 || longest < prov.raw_from || in_job() {
        return None;
    }
    let bytes = jobs.iter().map(|job| job.input_bytes()).sum();
    let (direction, beside) = (Direction::Encrypt, Beside::OthersOfCall);
    let wanted = Wanted { algorithm, direction, longest, bytes, beside };
    match prov.settings.guard {
        Guard::On => asked(ctx, policy()?, &wanted),
        Guard::Off => engine(algorithm, direction, longest).map(|engine| Asked {
            turn: None,
            engine: Some(engine),
            core: Nanos::ZERO,
            beside,
        }),
    }
}

/// Raw work that is asked about.
struct Wanted {
    algorithm: Algorithm,
    direction: Direction,
    /// Its longest piece.
    longest: usize,
    /// All of it.
    bytes: usize,
    beside: Beside,
}

impl Wanted {
    /// As costs are learned: in place and apart alike, for the module works in memory of its own.
    fn class(&self) -> Class {
        Class::of(self.algorithm, self.direction, self.longest, false)
    }
}

fn asked(ctx: &CipherCtx, policy: &'static Policy, wanted: &Wanted) -> Option<Asked> {
    let &Wanted { algorithm, direction, longest, bytes, beside } = wanted;
    let mut ahead = [None; CHOICE_MAX];
    let engines = ENGINES.read().unwrap_or_else(PoisonError::into_inner);
    for (ahead, engine) in ahead.iter_mut().zip(&*engines) {
        *ahead = engine.takes(algorithm, direction, longest).then(|| engine.ahead());
    }
    if ahead.iter().all(Option::is_none) {
        return None;
    }
    let kind = (beside as usize * Kind::CIPHERS + ctx.row().kind.index()) * 2 + direction as usize;
    let ask = Ask {
        load: Load { kind, bytes },
        class: wanted.class(),
        ahead: &ahead[..engines.len().min(CHOICE_MAX)],
        beside,
    };
    let mut turn = policy.begin(&ask);
    let engine = turn.module().map(|module| engines[module]);
    let core = engine.filter(|_| turn.is_timed()).map_or(Nanos::ZERO, |engine| engine.core_time());
    turn.begins();
    Some(Asked { turn: Some(turn), engine, core, beside })
}

fn by_state(ctx: &mut CipherCtx, call: &Update) -> Result<c_int, Reason> {
    let is_split = is_split(ctx);
    // Where neither helpers come nor engines are asked, a context of our own costs more than handing back.
    let thresh = ctx.raw_thresh().min(ctx.row().combined_from);
    let is_inner = call.len() < thresh && !is_split && ctx.message.records.is_none();
    let written = match ctx.message.state {
        State::Failed => return Err(Reason::Lost),
        State::InnerOnly => None,
        _ if is_inner || !call.is_whole() => {
            buffering::leave(ctx)?;
            None
        }
        _ if ctx.message.records.is_some() && call.len() < ctx.raw_thresh() => None,
        _ if ctx.message.records.is_some() => one_record(ctx, call)?,
        _ if ctx.family() == Some(Family::Xts) => data_unit(ctx, call)?,
        State::Owned => buffering::update(ctx, call)?,
        State::Direct => match combining::update(ctx, call)? {
            Some(written) => {
                // No module had it.
                ctx.module = None;
                Some(written)
            }
            None if is_split || call.len() >= ctx.raw_thresh() => match buffering::enter(ctx) {
                true => buffering::update(ctx, call)?,
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
    work(ctx, tweak, &mut call.memory(0, 0, len)).map_err(|_| Reason::Lost)?;
    Ok(Some(len))
}

/// Does raw work from `iv` on; an error says what became of the input. Undone is only what belongs to a record.
pub(super) fn work(ctx: &CipherCtx, iv: [u8; 16], memory: &mut Memory<'_>) -> Result<(), RawError> {
    let (row, message) = (ctx.row(), &ctx.message);
    let plain = Plain::new(row, message.direction(), message.key());
    let Some(algorithm) = row.algorithm else { return Err(RawError::Undone) };
    let len = match memory {
        Memory::InPlace { input_bytes, .. } => *input_bytes,
        Memory::Apart { src, .. } => src.len(),
    };
    if let Some(done) = split::work(ctx, &iv, memory) {
        if done.is_ok() {
            ctx.went(Count::Split, len);
        }
        return done.map_err(|()| RawError::Lost);
    }
    if len >= ctx.raw_thresh() {
        let counts = ctx.counts();
        counts.routed.fetch_add(1, Relaxed);
        if let Some(engine) = chosen(ctx, algorithm, len) {
            let mut raw = Raw {
                algorithm,
                direction: message.direction(),
                key: message.key(),
                iv,
                memory: lent(memory),
                plain,
                message,
                turn: ctx.module.as_ref().and_then(|asked| asked.turn.as_ref()),
                job: if is_alone(ctx) { None } else { ctx.prov().jobs.as_ref().and_then(Jobs::current) },
                counts,
            };
            match engine.run(&mut raw) {
                Ok(()) => {
                    ctx.went(Count::Routed, len);
                    return Ok(());
                }
                Err(RawError::Lost) => return Err(RawError::Lost),
                Err(RawError::Undone) => {
                    counts.redone.fetch_add(1, Relaxed);
                    ctx.saw(Count::Redone, 1, len);
                }
            }
        }
    }
    match plain.run(&iv, memory) {
        // There is no memory for a context of its own.
        Err(RawError::Undone) if message.records.is_none() => by_inner(ctx, &iv, memory),
        done => done,
    }
}

/// Whether it was found already that the update runs in no `ASYNC_JOB`.
fn is_alone(ctx: &CipherCtx) -> bool {
    ctx.module.as_ref().is_some_and(|asked| asked.beside == Beside::Nothing)
}

/// The engine for a piece: the one that was chosen for its update, or where nothing is asked the first that takes it.
fn chosen(ctx: &CipherCtx, algorithm: Algorithm, len: usize) -> Option<&'static dyn Engine> {
    let direction = ctx.message.direction();
    match &ctx.module {
        Some(asked) => asked.engine.filter(|engine| engine.takes(algorithm, direction, len)),
        None => engine(algorithm, direction, len),
    }
}

/// Raw work by the inner context, which stays behind an owned message and is told its place when that is handed back; a unit
/// of XTS begins with the same tweak again.
fn by_inner(ctx: &CipherCtx, iv: &[u8; 16], memory: &mut Memory<'_>) -> Result<(), RawError> {
    let (row, message, inner) = (ctx.row(), &ctx.message, ctx.inner());
    let ready = inner.init(message.encrypts, None, row.has_iv().then_some(&iv[..]))
        && (!row.is_padded() || inner.set_padding(false));
    let done = ready && inner.work(memory);
    let is_back = !row.is_padded() || inner.set_padding(message.padding);
    if done && is_back { Ok(()) } else { Err(RawError::Lost) }
}

fn lent<'m>(memory: &'m mut Memory<'_>) -> Memory<'m> {
    match memory {
        Memory::InPlace { room, input_bytes } => Memory::InPlace { room, input_bytes: *input_bytes },
        Memory::Apart { src, dst } => Memory::Apart { src, dst },
    }
}
