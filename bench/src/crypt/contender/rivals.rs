//! Rivals' rounds: OpenSSL with one context for each thread, the multi-buffer library in a bare loop, and a copy. All get their jobs in chunks from one list.

use evener_core::job::{Memory as JobMemory, Parts};
use evener_core::{InlineDriver as _, Job, Nanos};
use evener_driver_libcrypto::{CipherContext, Libcrypto};
use evener_driver_multibuffer::{BareLoop, BareSpan};

use super::run::jobs;
use crate::crypt::rounds::{chunks_of, lock, run_rounds};
use crate::crypt::visit::{Visit, arm_all};
use crate::crypt::workload::{Memory, Span, Spec, Workload};
use crate::error::BenchError;

/// A claim of the rivals: jobs next to each other. Single ones cost memory-bound algorithms 17 to 35 %.
const CHUNK_JOBS: usize = 16;

/// A claim of the bare loop: four fills of its lanes.
pub(super) const BARE_CHUNK_JOBS: usize = 64;

pub(super) fn openssl(
    load: &Workload,
    memory: &mut Memory,
    workers: usize,
    budget: Nanos,
) -> Result<Visit, BenchError> {
    let library = |error: &dyn std::fmt::Display| BenchError::Library(error.to_string());
    if !load.session.algorithm().is_cipher() {
        let mut jobs = jobs(load, memory);
        arm_all(&mut jobs, load);
        let chunks = chunks_of(jobs, CHUNK_JOBS);
        let drivers: Result<Vec<_>, _> = (0..workers).map(|_| Libcrypto::new()).collect();
        let mut drivers = drivers.map_err(|error| library(&error))?;
        let work = drivers.iter_mut().map(|driver| |chunk: &mut Vec<Box<Job<'_>>>| driver.run(chunk));
        return Ok(run_rounds(&chunks, work.collect(), load.turns, budget, || ()));
    }
    let spans = load.spans(memory).into_iter().zip(&load.jobs);
    let rivals: Vec<_> = spans.map(|(span, spec)| Rival { span, spec: *spec }).collect();
    let chunks = chunks_of(rivals, CHUNK_JOBS);
    let contexts: Result<Vec<_>, _> = (0..workers).map(|_| CipherContext::new(&load.session)).collect();
    let mut contexts = contexts.map_err(|error| library(&error))?;
    let work = contexts
        .iter_mut()
        .map(|context| |chunk: &mut Vec<Rival<'_>>| chunk.iter_mut().for_each(|rival| rival.run(context)));
    let restore = || {
        if load.wants_restoring() {
            chunks.iter().for_each(|chunk| lock(chunk).iter_mut().for_each(|rival| rival.restore(load)));
        }
    };
    Ok(run_rounds(&chunks, work.collect(), load.turns, budget, restore))
}

pub(super) fn bare(
    load: &Workload,
    memory: &mut Memory,
    workers: usize,
    budget: Nanos,
) -> Result<Visit, BenchError> {
    let spans = load.spans(memory).into_iter().zip(&load.jobs);
    let spans: Vec<_> = spans
        .map(|(span, spec)| match span.source {
            Some(source) => BareSpan::apart(spec.iv, source, span.space),
            None => BareSpan::in_place(spec.iv, span.space, spec.input_bytes),
        })
        .collect();
    let chunks = chunks_of(spans, BARE_CHUNK_JOBS);
    let loops: Result<Vec<_>, _> = (0..workers).map(|_| BareLoop::load(load.session.key())).collect();
    let mut loops = loops.map_err(|error| BenchError::Library(error.to_string()))?;
    let work = loops.iter_mut().map(|bare| |chunk: &mut Vec<BareSpan<'_>>| bare.encrypt(chunk));
    Ok(run_rounds(&chunks, work.collect(), load.turns, budget, || ()))
}

/// Copies the input of all jobs to where their output lies; what is encrypted in place is read, changed and written back, for a copy onto itself
/// would be left out.
pub(super) fn copy(load: &Workload, memory: &mut Memory, workers: usize, budget: Nanos) -> Visit {
    let chunks = chunks_of(load.spans(memory), CHUNK_JOBS);
    let copy = |span: &mut Span<'_>| match span.source {
        Some(source) => span.space[..source.len()].copy_from_slice(source),
        None => span.space.iter_mut().for_each(|byte| *byte = !*byte),
    };
    let work = (0..workers).map(|_| |chunk: &mut Vec<Span<'_>>| chunk.iter_mut().for_each(copy));
    run_rounds(&chunks, work.collect(), load.turns, budget, || ())
}

/// One job of OpenSSL's.
struct Rival<'m> {
    span: Span<'m>,
    spec: Spec,
}

impl Rival<'_> {
    fn run(&mut self, context: &mut CipherContext) {
        let input_bytes = self.spec.input_bytes;
        let memory = match self.span.source {
            Some(source) => JobMemory::Apart { src: source, dst: &mut *self.span.space },
            None => JobMemory::InPlace { space: &mut *self.span.space, input_bytes },
        };
        let parts = Parts { iv: &self.spec.iv, aad: &[], memory, tag: &mut self.spec.tag };
        let written = context.run_parts(parts);
        debug_assert!(written.is_ok(), "{written:?}");
    }

    fn restore(&mut self, load: &Workload) {
        self.span.space[..self.spec.input_bytes].copy_from_slice(load.input_of(&self.spec));
    }
}
