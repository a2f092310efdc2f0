//! Whether an engine does an update: the guard and the policy decide before anything of it is begun.

use evener::offload::policy::{Concurrency, Policy, Query, policy};
use evener_core::counts::Kind;
use evener_core::guard::RequestSize;
use evener_core::{Algorithm, BLOCK_BYTES, Class, Direction, Job, Nanos};

use super::context::CipherCtx;
use super::engine::choice::ModuleChoice;
use super::engine::registry;
use super::message::State;
use crate::config::Guard;
use crate::ffi::async_job::Jobs;
use crate::fork;
use crate::inner_cipher::call::Update;
use crate::state::rows::CipherRow;

/// Most engines between which a request has the choice.
const CHOICE_MAX: usize = 8;

/// Whether an update of `len` bytes is the inner function's because only a module could have it otherwise, and none takes such work, or the policy keeps it without a look. Nearly all updates of a program that
/// no module pays for end here, so whether they run in a job is not asked.
pub(crate) fn stays_unseen(ctx: &mut CipherCtx, len: usize) -> bool {
    let is_direct = ctx.message.state == State::Direct && ctx.message.record_mode.is_none();
    is_direct && ctx.row().is_for_modules_alone(ctx.message.encrypts, len) && stays_from_modules(ctx, len)
}

/// Whether no module takes an update of `len` bytes, or the policy keeps it without a look.
pub(super) fn stays_from_modules(ctx: &mut CipherCtx, len: usize) -> bool {
    ctx.hot.unseen.take(len) || begins_unseen_run(ctx, len).unwrap_or_default()
}

/// Keeps some updates like this one, which is the first of them: those that no module takes, or so many as the policy says.
fn begins_unseen_run(ctx: &mut CipherCtx, len: usize) -> Option<bool> {
    let (row, message) = (ctx.row(), &ctx.message);
    if ctx.prov().settings.guard == Guard::Off {
        return None;
    }
    let (algorithm, direction, bytes) = (row.algorithm?, message.direction(), whole_blocks(row, len));
    let wanted = ctx.hot.unseen.next();
    let granted = match registry::is_unwanted(algorithm, direction, bytes, fork::generation()) {
        true => wanted,
        false => policy()?.take_unsampled(Class::of(algorithm, direction, bytes, false), wanted),
    };
    Some(ctx.hot.unseen.begin(len, granted))
}

/// Bytes of an update that are no rest of a block.
fn whole_blocks(row: &CipherRow, len: usize) -> usize {
    if row.is_padded() { len - len % BLOCK_BYTES } else { len }
}

/// Asks about an update that an engine may want. Without engines there is nothing to regret.
pub(super) fn choose_for_update(ctx: &CipherCtx, call: &Update) -> Option<ModuleChoice> {
    let (row, message) = (ctx.row(), &ctx.message);
    let is_message = matches!(message.state, State::Direct | State::Owned);
    if !is_message || call.len() < row.thresholds.block_from {
        return None;
    }
    registry::prepare(fork::generation());
    if ctx.prov().settings.guard == Guard::Off {
        return None;
    }
    // What comes of it is whole blocks: a record's padding makes it longer.
    let whole = whole_blocks(row, call.len());
    let whole = if message.record_mode.is_some() { whole + BLOCK_BYTES } else { whole };
    let is_alone = ctx.prov().ways().jobs.as_ref().and_then(Jobs::current).is_none();
    let concurrency = if is_alone { Concurrency::Alone } else { Concurrency::SameThread };
    let (algorithm, direction) = (row.algorithm?, message.direction());
    let wanted = Request { algorithm, direction, longest: whole, bytes: whole, concurrency };
    // Before any query: most requests of a program that no module pays for end here.
    let policy = policy()?;
    let kept = ModuleChoice { turn: None, engine: None, core: Nanos::ZERO, concurrency };
    if policy.is_unsampled(wanted.class(), concurrency) {
        return Some(kept);
    }
    let chosen = choose(ctx, policy, &wanted);
    // Where no engine takes it nothing is to be learned; where there is none at all, messages are cut into blocks as `threshold` says.
    if chosen.is_none() && registry::all().is_empty() { None } else { chosen.or(Some(kept)) }
}

/// The same about jobs of a pipeline. Inside an `ASYNC_JOB` they stay: its stack is too small for a leader of a module's queue, and
/// its thread has others to go on with.
pub(super) fn choose_for_many(
    ctx: &CipherCtx,
    algorithm: Algorithm,
    jobs: &[Box<Job<'_>>],
) -> Option<ModuleChoice> {
    let prov = ctx.prov();
    let longest = jobs.iter().map(|job| job.input_bytes()).max()?;
    let in_job = || prov.ways().jobs.as_ref().and_then(Jobs::current).is_some();
    if jobs.len() < 2 || longest < prov.ways().raw_from || in_job() {
        return None;
    }
    let bytes = jobs.iter().map(|job| job.input_bytes()).sum();
    let (direction, concurrency) = (Direction::Encrypt, Concurrency::SameCall);
    let wanted = Request { algorithm, direction, longest, bytes, concurrency };
    match prov.settings.guard {
        Guard::On => choose(ctx, policy()?, &wanted),
        Guard::Off => registry::engine(algorithm, direction, longest).map(|engine| ModuleChoice {
            turn: None,
            engine: Some(engine),
            core: Nanos::ZERO,
            concurrency,
        }),
    }
}

/// Block work that is to be decided on.
struct Request {
    algorithm: Algorithm,
    direction: Direction,
    /// Its longest piece.
    longest: usize,
    /// All of it.
    bytes: usize,
    concurrency: Concurrency,
}

impl Request {
    /// As costs are learned: in place and apart alike, for the module works in memory of its own.
    fn class(&self) -> Class {
        Class::of(self.algorithm, self.direction, self.longest, false)
    }
}

/// Who does it; `None` where no engine takes such work.
fn choose(ctx: &CipherCtx, policy: &'static Policy, wanted: &Request) -> Option<ModuleChoice> {
    let &Request { algorithm, direction, longest, bytes, concurrency } = wanted;
    let (mut ahead, mut shared) = ([None; CHOICE_MAX], [None; CHOICE_MAX]);
    let engines = registry::all();
    for ((ahead, shared), &engine) in ahead.iter_mut().zip(&mut shared).zip(&*engines) {
        *ahead = engine.takes(algorithm, direction, longest).then(|| engine.ahead());
        *shared = engine.shared();
    }
    if ahead.iter().all(Option::is_none) {
        return None;
    }
    let kind = (concurrency as usize * Kind::CIPHERS + ctx.row().kind.index()) * 2 + direction as usize;
    let query = Query {
        size: RequestSize { kind, bytes },
        class: wanted.class(),
        ahead: &ahead[..engines.len().min(CHOICE_MAX)],
        shared: &shared,
        concurrency,
    };
    let mut turn = policy.begin(&query);
    let engine = turn.module().map(|module| engines[module]);
    let core = engine.filter(|_| turn.is_timed()).map_or(Nanos::ZERO, |engine| engine.core_time());
    turn.begins();
    Some(ModuleChoice { turn: Some(turn), engine, core, concurrency })
}
