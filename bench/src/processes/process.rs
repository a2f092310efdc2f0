//! What one process does: it gets ready, waits for the start, and asks for one request after the other.
//!
//! A request: it is wanted -> a permit, where the mode has any -> the core's part is used up (the real result is computed in it) -> a unit, which works while the process sleeps ->
//! the result is copied out -> the permit is given back -> an [`Entry`] in the log. Some results are decrypted afterwards and compared with the text.

use std::sync::Arc;
use std::thread;

use evener_arbiter::{Module as Gate, Permit, WaitQueue};
use evener_core::{Direction, InlineDriver as _, Job, Nanos, Padding, Session};
use evener_driver_emulated::{Meter, wake_on_time};
use evener_driver_libcrypto::Libcrypto;
use nix::sys::resource::{UsageWho, getrusage};

use super::board::{Board, Entry, Ticks, Usage, Work, ticks_of};
use super::path::{Opened, Path};
use super::{Experiment, LISTS, Mode, Place};
use crate::error::BenchError;

/// What a process finds when it is forked.
pub(super) struct Start<'a> {
    pub(super) board: &'a Board,
    pub(super) experiment: &'a Experiment,
    pub(super) mode: Mode,
    /// The gate of the module, and those of the lists; empty where the mode has none.
    pub(super) gates: &'a [Gate],
    pub(super) number: usize,
    pub(super) requests: usize,
}

/// The life of a process.
pub(super) fn run(start: &Start<'_>) -> Result<(), BenchError> {
    let Start { board, experiment, requests, .. } = *start;
    let text: Vec<u8> = (0..experiment.bytes).map(|at| pattern(start.number, at)).collect();
    let mut space = vec![0; experiment.bytes];
    let mut sessions = Sessions::new(experiment, start.number)?;
    let opened = Opened::at(&experiment.place, start.mode)?;
    let mut worker = Worker { path: Path::new(&opened, &text, &mut space)?, meter: Meter::new() };
    let gate = start.gates.get(list_of(start));
    // The arbiter knows this process before the start.
    if gate.is_some_and(|gate| gate.capacity().is_none()) {
        return Err(lost("the arbiter has no place for this process".to_owned()));
    }
    wake_on_time();
    // What a first request takes that others do not, is not the round's. A session that is opened with a list's turn has its key then.
    if !(start.mode == Mode::Lists64 && matches!(experiment.place, Place::Kernel(_))) {
        worker.path.compute(&sessions.encrypts, &iv_of(0))?;
    }
    let mut result = vec![0; experiment.bytes];
    if !board.wait_for_start(experiment.limit) {
        return Err(lost("the start did not come".to_owned()));
    }
    let before = Usage::now()?;
    // The wait for a session is its first request's.
    let wanted = board.now();
    let session_permit = open_session(start, gate)?;
    let (mut late, mut compared) = (0, 0);
    for request in 0..requests {
        let since = if request == 0 { wanted } else { board.now() };
        let (entry, is_late) = worker.ask(start, &sessions, (request, since), &mut result)?;
        late += u32::from(is_late);
        board.write_entry(start.number, request, &entry);
        if (request + 1) % experiment.compare_every == 0 && request + 1 < requests {
            sessions.compare(&text, &result, request)?;
            compared += 1;
        }
    }
    // A session ends, and its key leaves the module, before the next of the list begins.
    drop(worker);
    drop(session_permit);
    let usage = Usage::now()?.since(&before);
    board.write_usage(start.number, &Usage { late, compared: compared + 1, ..usage });
    // The last result is compared when no process is measured any more: with few requests each that is a good part of the work.
    board.wait_for_all(experiment.limit);
    sessions.compare(&text, &result, requests.saturating_sub(1))
}

/// How requests are done.
struct Worker<'m> {
    path: Path<'m>,
    meter: Meter,
}

impl Worker<'_> {
    /// One request, wanted since then, and whether this machine was too slow for the core time that it emulates.
    fn ask(
        &mut self,
        start: &Start<'_>,
        sessions: &Sessions,
        (request, wanted): (usize, Ticks),
        result: &mut [u8],
    ) -> Result<(Entry, bool), BenchError> {
        let Start { board, experiment, mode, .. } = *start;
        let mut entry = Entry { wanted, ..Entry::default() };
        let predicted = experiment.request();
        let permit = match (mode, start.gates) {
            (Mode::Fifo, [gate]) => Some(gate.acquire(predicted, FOREVER)),
            (Mode::Flags, [gate]) => Some(gate.acquire_flag(predicted, FOREVER)),
            _ => None,
        };
        let permit = permit.transpose().map_err(|why| lost(format!("the arbiter: {why:?}")))?;
        if let Some(permit) = &permit {
            let ticket = |(queue, ticket): (WaitQueue, u32)| (queue == WaitQueue::Main).then_some(ticket);
            entry.ticket = permit.grant().ticket.and_then(ticket).map_or(0, |ticket| ticket.wrapping_add(1));
            entry.before = board.count_grant();
        }
        let began = self.meter.begin();
        self.path.compute(&sessions.encrypts, &iv_of(request))?;
        let mut is_late = false;
        if experiment.place == Place::Emulated && mode != Mode::Cores {
            is_late = experiment.core > Nanos::ZERO && !self.meter.use_up(began, experiment.core);
            let work = occupy(board, mode, start.number, ticks_of(experiment.service));
            (entry.begins, entry.ends) = (work.begins, work.ends);
            let began = self.meter.begin();
            sleep_until(board, work.ends);
            self.meter.owe(began);
        }
        result.copy_from_slice(self.path.result().ok_or_else(|| lost("a result is missing".to_owned()))?);
        entry.back = board.now();
        drop(permit);
        Ok((entry, is_late))
    }
}

/// Which gate is this process's: that of its list, by its id, or the only one.
fn list_of(start: &Start<'_>) -> usize {
    if start.mode == Mode::Lists64 { std::process::id() as usize % LISTS } else { 0 }
}

/// The right to all of this process's requests, where the mode gives one for a session.
fn open_session(start: &Start<'_>, list: Option<&Gate>) -> Result<Option<Permit>, BenchError> {
    if start.mode != Mode::Lists64 {
        return Ok(None);
    }
    let list = list.ok_or_else(|| lost("there are no lists".to_owned()))?;
    let session = Nanos(start.experiment.request().0.saturating_mul(start.requests as u64));
    list.acquire(session, FOREVER).map(Some).map_err(|why| lost(format!("the list: {why:?}")))
}

/// A unit for a request. Without an order a process that finds none free goes on being runnable and looks again, as paper 001's model counts it; with one of permits, or with
/// the module's own queue, the request stands behind what the unit has.
fn occupy(board: &Board, mode: Mode, number: usize, span: Ticks) -> Work {
    match mode {
        Mode::Plain | Mode::Lists64 => loop {
            if let Some(work) = board.occupy_free(number, span) {
                return work;
            }
            thread::yield_now();
        },
        Mode::Queue | Mode::Fifo | Mode::Flags | Mode::Cores => board.occupy(span),
    }
}

fn sleep_until(board: &Board, then: Ticks) {
    loop {
        let left = board.left_until(then);
        if left.is_zero() {
            return;
        }
        thread::sleep(left);
    }
}

/// The key of a process, in both directions.
struct Sessions {
    encrypts: Arc<Session>,
    decrypts: Arc<Session>,
    iv_bytes: usize,
    judge: Libcrypto,
}

impl Sessions {
    fn new(experiment: &Experiment, number: usize) -> Result<Self, BenchError> {
        let algorithm = experiment.algorithm;
        let key: Vec<u8> =
            (0..algorithm.key_bytes().unwrap_or(16)).map(|at| pattern(number + 1, at)).collect();
        let session = |direction| {
            let made = Session::new(algorithm, direction, Padding::None, &key);
            made.map(Arc::new).map_err(|error| lost(format!("{algorithm}: {error:?}")))
        };
        let judge = Libcrypto::new().map_err(|error| lost(error.to_string()))?;
        let [encrypts, decrypts] = [session(Direction::Encrypt)?, session(Direction::Decrypt)?];
        Ok(Self { encrypts, decrypts, iv_bytes: algorithm.iv_bytes(), judge })
    }

    /// Whether a result is the encryption of the text: by libcrypto, from the result back.
    fn compare(&mut self, text: &[u8], result: &[u8], request: usize) -> Result<(), BenchError> {
        let mut clear = vec![0; text.len()];
        let mut job = [Job::apart(result, &mut clear)];
        job[0].arm(Arc::clone(&self.decrypts), &iv_of(request)[..self.iv_bytes], result.len());
        self.judge.run(&mut job);
        match job[0].output() == text && result != text {
            true => Ok(()),
            false => Err(lost(format!("the result of request {request} is wrong"))),
        }
    }
}

/// The kernel's words have 32 bits on some processors.
fn wide(word: impl Into<i64>) -> i64 {
    word.into()
}

fn count(word: impl Into<i64>) -> u32 {
    u32::try_from(wide(word)).unwrap_or(u32::MAX)
}

impl Usage {
    fn now() -> Result<Self, BenchError> {
        let usage = getrusage(UsageWho::RUSAGE_SELF).map_err(|error| lost(error.to_string()))?;
        let micros = |time: nix::sys::time::TimeVal| wide(time.tv_sec()) * 1_000_000 + wide(time.tv_usec());
        Ok(Self {
            voluntary: count(usage.voluntary_context_switches()),
            involuntary: count(usage.involuntary_context_switches()),
            core_us: count(micros(usage.user_time()) + micros(usage.system_time())),
            ..Self::default()
        })
    }

    fn since(self, before: &Self) -> Self {
        Self {
            voluntary: self.voluntary.wrapping_sub(before.voluntary),
            involuntary: self.involuntary.wrapping_sub(before.involuntary),
            core_us: self.core_us.wrapping_sub(before.core_us),
            ..self
        }
    }
}

fn iv_of(request: usize) -> [u8; 16] {
    (request as u128).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes()
}

/// Bytes that differ between processes.
fn pattern(number: usize, at: usize) -> u8 {
    (number.wrapping_mul(31).wrapping_add(at).wrapping_mul(167) >> 3).to_le_bytes()[0]
}

fn lost(reason: String) -> BenchError {
    BenchError::Library(reason)
}

/// The alarm ends a process before.
const FOREVER: Nanos = Nanos(u64::MAX);
