//! Raw work by a module: a request at its desk, and the calling thread asleep or its job put aside.
//!
//! The way of many pieces of one call: all are put before the first is waited for, and all are taken over, or none.
//!
//! The way of one piece: session of the message -> [`Offload::put`] copies the input -> sleep, or `ASYNC_pause_job` until the
//! bell was rung -> a sample is compared with what this core makes of it -> the result goes to where the program wants it.
//! Until then the program's memory is what it was, so whatever fails is done again by the inner cipher. When the context has the
//! key no more, the module gives it up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use evener::offload::{Answer, Bell, Offload, Pending, Request, patience};
use evener_core::job::Memory;
use evener_core::job::SessionRef;
use evener_core::{Algorithm, Direction, Family, Job, Nanos, Session, SessionId};
use zeroize::Zeroizing;

use crate::cipher::owned::{input_of, output_of};
use crate::cipher::raw::{Engine, Many, Raw, RawError};
use crate::cipher::route::add_engine;
use crate::fork;

/// Results that are compared with this core's: the first of each algorithm and direction, and one in so many later on, for a
/// comparison costs what a core takes for the request. A guess.
const CHECKED_FIRST: u32 = 4;
const CHECKED: u32 = 256;

/// Times that a job is put aside for one request; where the program allows no pause, each of them returns at once.
const PAUSES_MAX: u32 = 1_000;

/// A module as the route sees it.
pub(super) struct Module {
    offload: Offload,
    /// Results so far, by algorithm and direction.
    seen: Vec<[AtomicU32; 2]>,
}

/// Adds a module behind those that are there; another crate that links this one as an rlib calls it from its initialiser.
pub fn add_module(offload: Offload) {
    add_engine(Module::leaked(offload));
}

/// What `does` says of the ciphers whose messages are cut into raw work.
pub(super) fn table(does: impl Fn(Algorithm, Direction) -> bool) -> impl Fn(Algorithm, Direction) -> bool {
    move |algorithm, direction| {
        let is_raw = matches!(algorithm.family(), Family::Ecb | Family::Cbc | Family::Ctr | Family::Xts);
        is_raw && does(algorithm, direction)
    }
}

impl Module {
    /// One that stays as long as the process: threads may be inside.
    pub(super) fn leaked(offload: Offload) -> &'static Self {
        let seen = Algorithm::ALL.iter().map(|_| Default::default()).collect();
        Box::leak(Box::new(Self { offload, seen }))
    }

    /// Waits for the result, or lets the program go on until it is there. False where a fork came between.
    fn rest(raw: &Raw<'_>, pending: &Pending<'_>, generation: u32) -> bool {
        let Some(job) = raw.job else { return true };
        for _ in 0..PAUSES_MAX {
            if pending.is_over() {
                break;
            }
            raw.aside(|| job.rest());
            // The child of a fork has the job, too, and must not look at the parent's desk.
            if fork::generation() != generation {
                return false;
            }
        }
        true
    }

    /// Whether it is the turn of such a result to be compared.
    fn is_compared(&self, algorithm: Algorithm, direction: Direction) -> bool {
        // Relaxed: a count.
        let number = self.seen[algorithm.index()][direction as usize].fetch_add(1, Relaxed);
        number < CHECKED_FIRST || number % CHECKED == 0
    }

    /// Whether the module's result is what this core makes of the same, which the program's memory then has.
    fn is_right(raw: &mut Raw<'_>, output: &[u8]) -> Option<bool> {
        // Else a module would be known by what it takes together with a core.
        raw.besides(|raw| {
            let (plain, iv) = (raw.plain, raw.iv);
            plain.run(&iv, &mut raw.memory).ok()?;
            Some(output_of(&raw.memory, output.len()) == output)
        })
    }

    /// Takes in one of many jobs, which is waited for.
    fn put(&self, job: &Job<'_>, generation: u32) -> Option<Pending<'_>> {
        let SessionRef::Shared(session) = job.session_ref() else { return None };
        let allowed = patience(Nanos::ZERO, 0);
        let request = Request { session: &session, iv: job.iv(), input: job.input(), allowed };
        self.offload.put(generation, &request, None)
    }

    /// Whether those results of many whose turn it is are what this core makes of the same.
    fn are_right(&self, many: &Many<'_, '_>, answers: &[Answer<'_>]) -> bool {
        many.jobs.iter().zip(answers).all(|(job, answer)| {
            let session = job.session();
            if !self.is_compared(session.algorithm(), session.direction()) {
                return true;
            }
            let (mut room, input_bytes) = (Zeroizing::new(job.input().to_vec()), job.input_bytes());
            let made = many.plain.run(job.iv(), &mut Memory::InPlace { room: &mut room, input_bytes });
            made.is_err() || room[..] == *answer.output()
        })
    }

    /// Puts a result to where the program wants it.
    fn take_over(&self, raw: &mut Raw<'_>, output: &[u8], is_compared: bool, generation: u32) {
        match is_compared.then(|| Self::is_right(raw, output)).flatten() {
            Some(true) => return,
            Some(false) => return self.offload.computed_wrong(generation),
            None => {}
        }
        match &mut raw.memory {
            Memory::InPlace { room, .. } => room[..output.len()].copy_from_slice(output),
            Memory::Apart { dst, .. } => dst[..output.len()].copy_from_slice(output),
        }
    }

    /// Has this thread ask the module itself. In place, and where it is compared, the result comes to a room first, so that the
    /// input is there until the module is done.
    fn call(&self, raw: &mut Raw<'_>, session: &Arc<Session>, generation: u32) -> Result<(), RawError> {
        let (iv, is_compared) = (raw.iv, self.is_compared(raw.algorithm, raw.direction));
        let request = |input| Request { session, iv: &iv, input, allowed: Nanos::ZERO };
        if let (Memory::Apart { src, dst }, false) = (&mut raw.memory, is_compared) {
            let output = &mut dst[..src.len()];
            let is_done = self.offload.call_into(generation, &request(src), output);
            return if is_done { Ok(()) } else { Err(RawError::Undone) };
        }
        let answer = self.offload.call(generation, &request(input_of(&raw.memory)));
        let answer = answer.ok_or(RawError::Undone)?;
        self.take_over(raw, answer.output(), is_compared, generation);
        Ok(())
    }
}

impl Engine for Module {
    fn takes(&self, algorithm: Algorithm, direction: Direction, len_bytes: usize) -> bool {
        self.offload.takes(fork::generation(), algorithm, direction, len_bytes)
    }

    fn ahead(&self) -> u32 {
        self.offload.ahead(fork::generation())
    }

    fn core_time(&self) -> Nanos {
        self.offload.core_time(fork::generation())
    }

    fn run(&self, raw: &mut Raw<'_>) -> Result<(), RawError> {
        let session = raw.session().ok_or(RawError::Undone)?;
        let generation = fork::generation();
        if raw.job.is_none() && self.offload.is_called() {
            return self.call(raw, &session, generation);
        }
        let request = Request {
            session: &session,
            iv: &raw.iv,
            input: input_of(&raw.memory),
            allowed: patience(raw.expected(), self.offload.ahead(generation)),
        };
        let bell = raw.job.map(|job| Box::new(job.doorbell()) as Box<dyn Bell>);
        let pending = self.offload.put(generation, &request, bell).ok_or(RawError::Undone)?;
        if !Self::rest(raw, &pending, generation) {
            pending.forget();
            return Err(RawError::Undone);
        }
        let answer = pending.wait().ok_or(RawError::Undone)?;
        let is_compared = self.is_compared(raw.algorithm, raw.direction);
        self.take_over(raw, answer.output(), is_compared, generation);
        Ok(())
    }

    fn run_many(&self, many: &mut Many<'_, '_>) -> Result<(), RawError> {
        let generation = fork::generation();
        // All of them before the first is waited for.
        let pending = many.jobs.iter().map(|job| self.put(job, generation)).collect::<Option<Vec<_>>>();
        let pending = pending.ok_or(RawError::Undone)?;
        let answers = pending.into_iter().map(Pending::wait).collect::<Option<Vec<_>>>();
        let answers = answers.ok_or(RawError::Undone)?;
        // Before anything is taken over: where one is wrong, all are done again.
        if !many.besides(|| self.are_right(many, &answers)) {
            self.offload.computed_wrong(generation);
            return Err(RawError::Undone);
        }
        for (job, answer) in many.jobs.iter_mut().zip(&answers) {
            job.publish(answer.output(), &[]);
        }
        Ok(())
    }

    fn forget(&self, session: SessionId) {
        self.offload.forget(fork::generation(), session);
    }
}
