//! Block work by a module: a request in its queue, and the calling thread asleep or its job put aside.
//!
//! What it is in the literature: half-sync/half-async (Schmidt and Cranor, 1996), synchronous calls over a queue that another thread
//! serves; with the core as fallback, for a piece is taken over whole or not at all.
//!
//! | state of a piece | the program's memory | goes on by |
//! |---|---|---|
//! | submitted | as it was | its result, or silence beyond what is allowed: undone |
//! | answered, to be compared (`comparison.rs`) | as it was | right: taken over; wrong: undone, and the module is out of service |
//! | taken over | the result | |
//! | refused, for other processes are before it (docs/design/arbiter.md) | as it was | the inner cipher, at once |
//! | undone | as it was | the inner cipher |
//!
//! Path of many pieces of one call: all are put before the first is waited for, and all are taken over, or none.
//!
//! Path of one piece: session of the message -> where the module has a driver for single requests, this thread submits and waits
//! ([`Offload::run_single`]); else [`Offload::put`] copies the input -> sleep, or `ASYNC_pause_job` until the doorbell was rung -> a sample is
//! compared with what this core makes of it -> the result goes to where the program wants it.
//! Until then the program's memory is what it was, so whatever fails is done again by the inner cipher. When the context has the
//! key no more, the module gives it up.

use std::sync::Arc;

use evener::offload::policy::Measurement;
use evener::offload::{Admission, Answer, Offload, Pending, Request, SharedModule, Waker, timeout};
use evener_core::driver::{SILENCE_MAX, Text};
use evener_core::job::Memory;
use evener_core::job::SessionRef;
use evener_core::{Algorithm, Direction, Family, Job, Nanos, Session, SessionId};
use evener_fd::may_begin;

use crate::cipher::comparison::{ResultCheck, Sampler};
use crate::cipher::engine::registry::add_engine;
use crate::cipher::engine::{BlockBatch, BlockError, BlockRequest, Engine};
use crate::cipher::spans::{input_of, output_of};
use crate::ffi::async_job::{CurrentJob, WaitingJob};
use crate::fork;

/// Times that a job is put aside for one request; where the program allows no pause, each of them returns at once.
const PAUSES_MAX: u32 = 1_000;

/// A module as the route sees it.
pub(super) struct ModuleEngine {
    offload: Offload,
    sampler: Sampler,
    /// Where other processes may have it, too.
    shared: Option<SharedModule>,
    /// Whether it is made ready by the first update that might go there, or by the first that does.
    is_made_early: bool,
}

/// Adds a module behind those that are there; another crate that links this one as an rlib calls it from its initialiser.
pub fn add_module(offload: Offload) {
    add_engine(ModuleEngine::leaked(offload, None, false));
}

/// What `does` says of the ciphers whose messages are cut into block work.
pub(super) fn table(does: impl Fn(Algorithm, Direction) -> bool) -> impl Fn(Algorithm, Direction) -> bool {
    move |algorithm, direction| {
        let is_block_work =
            matches!(algorithm.family(), Family::Ecb | Family::Cbc | Family::Ctr | Family::Xts);
        is_block_work && does(algorithm, direction)
    }
}

impl ModuleEngine {
    /// One that stays as long as the process: threads may be inside.
    pub(super) fn leaked(
        offload: Offload,
        shared: Option<SharedModule>,
        is_made_early: bool,
    ) -> &'static Self {
        Box::leak(Box::new(Self { offload, sampler: Sampler::new(), shared, is_made_early }))
    }

    /// Gets the right to have work there now; `turn` says for how long it may wait for that. Work that is not judged (`guard = off`) waits
    /// for as long as a module may be silent.
    fn acquire(&self, turn: Option<&Measurement>) -> Result<Option<Admission>, BlockError> {
        let Some(shared) = &self.shared else { return Ok(None) };
        let granted = match turn {
            Some(turn) => turn.acquire(shared),
            None => shared.acquire_unjudged(SILENCE_MAX),
        };
        granted.map(Some).map_err(|_| BlockError::Refused)
    }

    /// Waits for the result, or lets the program go on until it is there. False where a fork came between.
    fn wait(
        block_request: &BlockRequest<'_>,
        job: Option<WaitingJob<'_>>,
        pending: &Pending<'_>,
        generation: u32,
    ) -> bool {
        let Some(mut job) = job else { return true };
        let mut may_pause = true;
        for _ in 0..PAUSES_MAX {
            if pending.is_over() || !may_pause {
                break;
            }
            block_request.while_suspended(|| may_pause = job.wait());
            // The child of a fork has the job, too, and must not look at the parent's queue.
            if fork::generation() != generation {
                return false;
            }
        }
        true
    }

    /// A piece that has the right to go there.
    fn run_admitted(
        &self,
        block_request: &mut BlockRequest<'_>,
        session: &Arc<Session>,
    ) -> Result<(), BlockError> {
        let generation = fork::generation();
        let allowed = timeout(block_request.expected(), self.offload.ahead(generation));
        if block_request.job.is_none() {
            if let Some(done) = self.run_single(block_request, session, allowed, generation) {
                return done;
            }
        }
        let request =
            Request { session, iv: &block_request.iv, input: input_of(&block_request.memory), allowed };
        let job = block_request.job.map(CurrentJob::waiting);
        let waker = job.as_ref().map(|job| Box::new(job.doorbell()) as Box<dyn Waker>);
        let pending = self.offload.put(generation, &request, waker).ok_or(BlockError::Undone)?;
        if !Self::wait(block_request, job, &pending, generation) {
            pending.forget();
            return Err(BlockError::Undone);
        }
        let answer = pending.wait().ok_or(BlockError::Undone)?;
        self.take_over(block_request, answer.output(), generation)
    }

    /// Takes in one of many jobs, which is waited for.
    fn put(&self, job: &Job<'_>, generation: u32) -> Option<Pending<'_>> {
        let SessionRef::Shared(session) = job.session_ref() else { return None };
        let allowed = timeout(Nanos::ZERO, 0);
        let request = Request { session: &session, iv: job.iv(), input: job.input(), allowed };
        self.offload.put(generation, &request, None)
    }

    /// Whether those results of many whose turn it is are what this core makes of the same.
    fn are_right(&self, batch: &BlockBatch<'_, '_>, answers: &[Answer<'_>]) -> bool {
        batch.jobs.iter().zip(answers).all(|(job, answer)| {
            let (algorithm, direction) = (job.session().algorithm(), job.session().direction());
            let result = ResultCheck { algorithm, direction, iv: *job.iv(), input: job.input() };
            let part = self.sampler.part_of(algorithm, direction, job.input_bytes());
            part.is_none_or(|part| result.is_right(batch.fallback, answer.output(), part))
        })
    }

    /// Whether a result is right as far as it is compared. Where it is not, the module is out of service.
    fn is_right(
        &self,
        block_request: &BlockRequest<'_>,
        input: &[u8],
        output: &[u8],
        generation: u32,
    ) -> bool {
        let Some(part) = self.sampler.part_of(block_request.algorithm, block_request.direction, output.len())
        else {
            return true;
        };
        let result = ResultCheck {
            algorithm: block_request.algorithm,
            direction: block_request.direction,
            iv: block_request.iv,
            input,
        };
        // Else a module would be known by what it takes together with a core.
        let is_right = block_request.excluding(|| result.is_right(block_request.fallback, output, part));
        if !is_right {
            self.offload.computed_wrong(generation);
        }
        is_right
    }

    /// Puts a result to where the program wants it, unless a comparison shows it to be wrong.
    fn take_over(
        &self,
        block_request: &mut BlockRequest<'_>,
        output: &[u8],
        generation: u32,
    ) -> Result<(), BlockError> {
        if !self.is_right(block_request, input_of(&block_request.memory), output, generation) {
            return Err(BlockError::Undone);
        }
        match &mut block_request.memory {
            Memory::InPlace { space, .. } => space[..output.len()].copy_from_slice(output),
            Memory::Apart { dst, .. } => dst[..output.len()].copy_from_slice(output),
        }
        Ok(())
    }

    /// Waits for a request without the queue; `None` where it has to go there.
    fn run_single(
        &self,
        block_request: &mut BlockRequest<'_>,
        session: &Session,
        allowed: Nanos,
        generation: u32,
    ) -> Option<Result<(), BlockError>> {
        let iv = block_request.iv;
        let mut text =
            AwaitedRequest { module: self, block_request, taken: Err(BlockError::Undone), generation };
        self.offload.run_single(generation, session, &iv, &mut text, allowed)?;
        Some(text.taken)
    }
}

/// A piece of which this thread waits for the result.
struct AwaitedRequest<'l, 'r> {
    module: &'l ModuleEngine,
    block_request: &'l mut BlockRequest<'r>,
    taken: Result<(), BlockError>,
    generation: u32,
}

impl Text for AwaitedRequest<'_, '_> {
    fn input(&self) -> &[u8] {
        input_of(&self.block_request.memory)
    }

    fn take(&mut self, result: &[u8]) {
        self.taken = self.module.take_over(self.block_request, result, self.generation);
    }

    fn apart(&mut self) -> Option<(&[u8], &mut [u8])> {
        let Memory::Apart { src, dst } = &mut self.block_request.memory else { return None };
        let len = src.len();
        Some((src, &mut dst[..len]))
    }

    fn taken(&mut self) {
        let (input, output) =
            (input_of(&self.block_request.memory), output_of(&self.block_request.memory, self.input().len()));
        let is_right = self.module.is_right(self.block_request, input, output, self.generation);
        self.taken = if is_right { Ok(()) } else { Err(BlockError::Undone) };
    }
}

impl Engine for ModuleEngine {
    fn takes(&self, algorithm: Algorithm, direction: Direction, len_bytes: usize) -> bool {
        self.offload.takes(fork::generation(), algorithm, direction, len_bytes)
    }

    fn ahead(&self) -> u32 {
        self.offload.ahead(fork::generation())
    }

    fn core_time(&self) -> Nanos {
        self.offload.core_time(fork::generation())
    }

    fn shared(&self) -> Option<&SharedModule> {
        self.shared.as_ref()
    }

    fn prepare(&self) {
        let generation = fork::generation();
        if !self.is_made_early {
            return;
        }
        if generation != 0 && !may_begin() {
            // A child connects anew, and the program's filter may end it at that.
            return self.offload.forgo(generation);
        }
        self.shared.iter().for_each(SharedModule::prepare);
        self.offload.prepare(generation);
    }

    fn run(&self, block_request: &mut BlockRequest<'_>) -> Result<(), BlockError> {
        let session = block_request.session().ok_or(BlockError::Undone)?;
        let bytes = input_of(&block_request.memory).len();
        let permit = self.acquire(block_request.turn)?;
        let done = self.run_admitted(block_request, &session);
        if let Some(permit) = permit.filter(|_| done.is_ok()) {
            permit.count(1, bytes as u64);
        }
        done
    }

    fn run_batch(&self, batch: &mut BlockBatch<'_, '_>) -> Result<(), BlockError> {
        let generation = fork::generation();
        let permit = self.acquire(batch.turn)?;
        // All of them before the first is waited for.
        let pending = batch.jobs.iter().map(|job| self.put(job, generation)).collect::<Option<Vec<_>>>();
        let pending = pending.ok_or(BlockError::Undone)?;
        let answers = pending.into_iter().map(Pending::wait).collect::<Option<Vec<_>>>();
        let answers = answers.ok_or(BlockError::Undone)?;
        // Before anything is taken over: where one is wrong, all are done again.
        if !batch.excluding(|| self.are_right(batch, &answers)) {
            self.offload.computed_wrong(generation);
            return Err(BlockError::Undone);
        }
        for (job, answer) in batch.jobs.iter_mut().zip(&answers) {
            job.publish(answer.output(), &[]);
        }
        if let Some(permit) = permit {
            let bytes = batch.jobs.iter().map(|job| job.input_bytes() as u64).sum();
            permit.count(batch.jobs.len() as u64, bytes);
        }
        Ok(())
    }

    fn close_session(&self, session: SessionId) {
        self.offload.evict(fork::generation(), session);
    }
}
