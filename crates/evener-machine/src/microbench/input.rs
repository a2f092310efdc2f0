//! Jobs to measure with: their key, input and tags, and how they run on a core or on a module.

use std::sync::Arc;

use evener::SystemClock;
use evener::core::cost::Line;
use evener::core::driver::Clock as _;
use evener::core::driver::SILENCE_MAX;
use evener::core::estimate::ModuleSample;
use evener::core::{
    Direction, InlineDriver, Job, JobError, Nanos, Outcome, Padding, QueuedDriver, Session, TAG_BYTES_MAX,
};
use evener_driver_libcrypto::Libcrypto;

use super::{JobKind, NotMeasured, to_u64};
use crate::modules::OpenModule;

/// A session with a fixed key, which protects nothing.
pub(super) fn session(kind: &JobKind) -> Arc<Session> {
    let (algorithm, direction) = kind.operation;
    let key: Vec<u8> = (0..=254).take(algorithm.key_bytes().unwrap_or(32)).collect();
    let session = Session::new(algorithm, direction, Padding::None, &key);
    Arc::new(session.expect("the key has the algorithm's length, and there is something to decrypt"))
}

/// The input of jobs: zeros, or zeros encrypted where a tag is checked.
pub(super) struct Input {
    /// Of each job.
    bytes: usize,
    /// Of all jobs.
    pub(super) all: Vec<u8>,
    tag: [u8; TAG_BYTES_MAX],
}

impl Input {
    pub(super) fn new(kind: &JobKind, session: &Session, bytes: usize, jobs: usize) -> Self {
        let (mut one, mut tag) = (vec![0; bytes], [0; TAG_BYTES_MAX]);
        let (algorithm, direction) = kind.operation;
        if algorithm.is_aead() && direction == Direction::Decrypt {
            tag = seal(session, &mut one);
        }
        Self { bytes, all: one.repeat(jobs), tag }
    }

    /// Jobs over `all` and `space`, ready to run.
    pub(super) fn jobs<'m>(
        &'m self,
        session: &Arc<Session>,
        is_apart: bool,
        space: &'m mut [u8],
    ) -> Vec<Box<Job<'m>>> {
        if !is_apart {
            space.copy_from_slice(&self.all);
        }
        let spaces = space.chunks_exact_mut(self.bytes);
        let mut jobs: Vec<_> = match is_apart {
            true => {
                self.all.chunks_exact(self.bytes).zip(spaces).map(|(src, dst)| Job::apart(src, dst)).collect()
            }
            false => spaces.map(Job::in_place).collect(),
        };
        for job in &mut jobs {
            job.arm(Arc::clone(session), &IV[..session.algorithm().iv_bytes()], self.bytes);
            job.set_tag(&self.tag);
        }
        jobs
    }

    /// Core time of all jobs in bursts of `burst`; `None` where one fails.
    pub(super) fn run(
        &self,
        driver: &mut dyn InlineDriver,
        session: &Arc<Session>,
        is_apart: bool,
        burst: usize,
    ) -> Option<Nanos> {
        let mut space = vec![0; self.all.len()];
        let mut jobs = self.jobs(session, is_apart, &mut space);
        let start = SystemClock.thread_time();
        jobs.chunks_mut(burst).for_each(|burst| driver.run(burst));
        let core = SystemClock.thread_time() - start;
        jobs.iter().all(|job| is_done(job)).then_some(core)
    }

    /// What each job takes on a module of its own.
    pub(super) fn run_on_module(
        &self,
        module: &OpenModule,
        overhead: Line,
        session: &Arc<Session>,
        kind: &JobKind,
    ) -> Result<Vec<ModuleSample>, NotMeasured> {
        let mut space = vec![0; self.all.len()];
        let jobs = self.jobs(session, kind.is_apart, &mut space);
        let mut driver = module.driver();
        if !driver.supports(kind.operation.0, kind.operation.1) {
            return Err(NotMeasured::Unsupported);
        }
        jobs.into_iter().map(|job| run_one(&mut *driver, overhead, job)).collect()
    }
}

pub(super) const IV: [u8; 16] = [7; 16];

/// Encrypts for the session that is to decrypt.
fn seal(session: &Session, one: &mut [u8]) -> [u8; TAG_BYTES_MAX] {
    let key: Vec<u8> = (0..=254).take(session.algorithm().key_bytes().unwrap_or(32)).collect();
    let sealing = Session::new(session.algorithm(), Direction::Encrypt, Padding::None, &key);
    let bytes = one.len();
    let mut jobs = [Job::in_place(one)];
    jobs[0].arm(Arc::new(sealing.expect("as above")), &IV[..session.algorithm().iv_bytes()], bytes);
    Libcrypto::new().expect("it was there when the machine was looked at").run(&mut jobs);
    *jobs[0].tag_given()
}

/// One job on the module: core time of its path, and time in which only the module works.
fn run_one<'m>(
    driver: &mut (dyn QueuedDriver<'m> + 'm),
    overhead: Line,
    job: Box<Job<'m>>,
) -> Result<ModuleSample, NotMeasured> {
    let bytes = to_u64(job.input_bytes());
    let (core, wall) = (SystemClock.thread_time() + driver.core_time(), SystemClock.now());
    let mut done = Vec::new();
    driver.submit(job).map_err(|_| NotMeasured::Failed)?;
    while done.is_empty() && SystemClock.now() - wall < SILENCE_MAX {
        driver.poll(&mut done, SILENCE_MAX);
    }
    let clocked = SystemClock.thread_time() + driver.core_time() - core;
    let (d, all) = (clocked + overhead.at(bytes), SystemClock.now() - wall);
    if done.is_empty() {
        driver.abandon(&mut done);
    }
    let failed = |outcome| match outcome {
        Outcome::Done { .. } => None,
        Outcome::Failed(JobError::ModuleFull) => Some(NotMeasured::TooLong),
        _ => Some(NotMeasured::Failed),
    };
    done.iter().map(|job| job.outcome()).find_map(failed).map_or(Ok(()), Err)?;
    Ok(ModuleSample { jobs: 1, bytes, d, h: all - d, now: SystemClock.now() })
}

fn is_done(job: &Job<'_>) -> bool {
    matches!(job.outcome(), Outcome::Done { .. })
}
