//! Where bursts are run: one runtime of the process, opened with the first session, and a queue for each thread that works on a burst.
//!
//! A burst is cut into parts, which the calling thread and others, started for as long as it lasts, take one after the other. What is little runs where
//! it stands. `queues.rs` has the queues: a thread that finds none leaves its parts to the others.
#![allow(unsafe_code, reason = "room: memory that Python's objects lend goes to the queue of evener-c")]

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use evener::core::{Algorithm, Direction, Padding};
use evener_c::abi::Job;
use evener_c::queue::Queue;
use evener_c::runtime::{Request, Runtime};
use evener_c::{Error, Failure};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use super::queues::{self, Borrowed, locked};
use super::spans::Span;
use crate::exceptions::Kind;
use crate::ffi::Place;

/// A session of the process's runtime. When it goes, so does what queues that no burst uses made of its key.
pub(crate) struct Session {
    keyed: Arc<evener_c::session::Session>,
    // Dropped behind it, in the order of the fields.
    _wiped: WipedQueues,
}

/// Has idle queues wipe what they made of sessions that have ended.
struct WipedQueues;

impl Drop for WipedQueues {
    fn drop(&mut self) {
        // In a child of a fork the lock may be the parent's.
        if RUNTIME.get().is_some_and(|runtime| runtime.check_process().is_ok()) {
            queues::wipe_ended();
        }
    }
}

impl Session {
    pub(super) fn open(
        algorithm: Algorithm,
        direction: Direction,
        padding: Padding,
        key: &[u8],
    ) -> PyResult<Self> {
        let runtime = runtime().map_err(|failure| exception(&failure))?;
        let opened = evener_c::session::Session::open(runtime, algorithm.name(), direction, padding, key);
        let opened = opened.map_err(|failure| exception(&failure))?;
        Ok(Self { keyed: Arc::new(opened), _wiped: WipedQueues })
    }

    pub(super) fn core(&self) -> &evener::core::Session {
        self.keyed.keyed()
    }
}

/// How a job ended: with so many bytes of output, or why not.
pub(super) type Done = Result<usize, Error>;

/// A burst.
pub(super) struct Work {
    pub(super) spans: Vec<Span>,
    /// Associated data of each job; none at all where there is none.
    pub(super) aads: Vec<Place>,
    /// One behind the other, as the next.
    pub(super) ivs: Vec<u8>,
    /// To be checked, or, afterwards, those that were made.
    pub(super) tags: Vec<u8>,
    pub(super) results: Vec<Done>,
}

/// Status of a job that went well, as `EVENER_OK`.
const DONE: i32 = 0;
/// Jobs that a thread takes at a time at most: structures that stay in its caches.
const PART_JOBS_MAX: usize = 256;
/// Jobs that fill lanes some times.
const LANES_FULL: usize = 32;
/// Bytes of a part: short enough that threads end together. Assumed, not measured: 512 KiB, some 100 us.
const PART_BYTES: usize = 512 << 10;
/// What one thread runs: less than what it takes to start another. Assumed, not measured: 256 KiB, some 50 us of CBC or GCM in lanes.
const LITTLE_BYTES: usize = 256 << 10;

/// Runs all jobs, on this thread and as many more as are worth it.
///
/// # Errors
///
/// Where no thread could run anything, and nothing was written. What single jobs came to is in `results`.
pub(super) fn run(session: &Session, work: &mut Work) -> PyResult<()> {
    let Work { spans, aads, ivs, tags, results } = work;
    let algorithm = session.core().algorithm();
    let (tag_bytes, iv_bytes) = (algorithm.tag_bytes(), algorithm.iv_bytes());
    *results = vec![Ok(0); spans.len()];
    tags.resize(spans.len() * tag_bytes, 0);
    let bytes: usize = spans.iter().map(|span| span.input.len).sum();
    let burst = Burst { session, spans, aads, ivs, iv_bytes, tag_bytes };
    let threads = if bytes <= LITTLE_BYTES { 1 } else { threads() };
    let full = LANES_FULL.min(spans.len().div_ceil(threads)).max(1);
    let part_jobs = (PART_BYTES * spans.len() / bytes.max(1)).clamp(full, PART_JOBS_MAX);
    let parts = parts(results, tags, part_jobs, tag_bytes);
    let threads = threads.min(parts.len());
    let parts = Mutex::new(parts.into_iter());
    let take_parts = |queue: Borrowed| burst.take_parts(&parts, queue);
    thread::scope(|scope| {
        // Others do the parts of a helper that finds no queue.
        let help = || runtime().ok().and_then(queues::borrow_to_help).map_or(Ok(()), take_parts);
        let helper = |_| thread::Builder::new().name("evener-python".to_owned()).spawn_scoped(scope, help);
        // Where no further thread is to be had, those there are do all of it.
        let helpers: Vec<_> = (1..threads).map_while(|number| helper(number).ok()).collect();
        let own = runtime().and_then(queues::borrow);
        let (own, unable) = match own {
            Ok(queue) => (take_parts(queue), None),
            Err(failure) => (Ok(()), Some(failure)),
        };
        let ended = helpers.into_iter().map(|helper| helper.join().unwrap_or(Err(Error::Panic)));
        ended.fold(own, Result::and)?;
        // Who had a queue went on until no part was left.
        unable.filter(|_| locked(&parts).len() > 0).map_or(Ok(()), Err)
    })
    .map_err(|failure: Failure| exception(&failure))
}

/// A run of jobs whose outcomes one thread writes.
struct Part<'w> {
    /// Number of its first job.
    first: usize,
    results: &'w mut [Done],
    tags: &'w mut [u8],
}

fn parts<'w>(
    results: &'w mut [Done],
    mut tags: &'w mut [u8],
    part_jobs: usize,
    tag_bytes: usize,
) -> Vec<Part<'w>> {
    let of_part = |(number, results): (usize, &'w mut [Done])| {
        let own;
        (own, tags) = std::mem::take(&mut tags).split_at_mut(results.len() * tag_bytes);
        Part { first: number * part_jobs, results, tags: own }
    };
    results.chunks_mut(part_jobs).enumerate().map(of_part).collect()
}

/// What the threads of a burst share.
#[derive(Clone, Copy)]
struct Burst<'w> {
    session: &'w Session,
    spans: &'w [Span],
    aads: &'w [Place],
    ivs: &'w [u8],
    iv_bytes: usize,
    tag_bytes: usize,
}

impl Burst<'_> {
    /// Runs parts until none is left.
    fn take_parts<'w>(
        &self,
        parts: &Mutex<impl Iterator<Item = Part<'w>>>,
        mut borrowed: Borrowed,
    ) -> Result<(), Error> {
        // The queue gives back what it has of them where it ends early.
        let mut jobs = Vec::new();
        loop {
            let Some(part) = locked(parts).next() else { break };
            // The first part is as long as any.
            jobs.resize_with(part.results.len().max(jobs.len()), || Job::ZERO);
            self.run(part, &mut borrowed.queue, &mut jobs)?;
        }
        borrowed.give_back();
        Ok(())
    }

    /// Runs a part by structures that were used for others, or are zero.
    fn run(&self, part: Part<'_>, queue: &mut Queue, jobs: &mut [Job]) -> Result<(), Error> {
        let jobs = &mut jobs[..part.results.len()];
        for (number, job) in (part.first..).zip(jobs.iter_mut()) {
            self.fill(job, number);
        }
        let count = jobs.len();
        let tags = || (0..count).map(|place| place * self.tag_bytes..(place + 1) * self.tag_bytes);
        for (job, tag) in jobs.iter_mut().zip(tags()) {
            job.tag[..self.tag_bytes].copy_from_slice(&part.tags[tag]);
        }
        let pointers: Vec<*mut Job> = jobs.iter_mut().map(|job| &raw mut *job).collect();
        // SAFETY: whole jobs over an open session, none of them twice; the memory that they name is lent by Python's objects for longer than this call,
        // and was seen not to overlap. When the call returns no job is under way.
        unsafe { queue.crypt(&pointers) }?;
        for ((job, result), tag) in jobs.iter().zip(part.results).zip(tags()) {
            *result = match job.status {
                DONE => Ok(job.written),
                status => Err(Error::ALL
                    .into_iter()
                    .find(|error| *error as i32 == status)
                    .unwrap_or(Error::Library)),
            };
            part.tags[tag].copy_from_slice(&job.tag[..self.tag_bytes]);
        }
        Ok(())
    }

    /// Makes a structure that of a job of the burst. Field by field, for it is three lines of the cache.
    fn fill(&self, job: &mut Job, number: usize) {
        let (span, aad) = (self.spans[number], self.aads.get(number));
        job.session = Arc::as_ptr(&self.session.keyed);
        job.src = span.input.start.cast::<c_void>().cast_const();
        job.src_len = span.input.len;
        job.dst = span.output.start.cast();
        job.dst_space = span.output.len;
        job.aad = aad.map_or(std::ptr::null(), |aad| aad.start.cast::<c_void>().cast_const());
        job.aad_len = aad.map_or(0, |aad| aad.len);
        job.iv[..self.iv_bytes].copy_from_slice(&self.ivs[number * self.iv_bytes..][..self.iv_bytes]);
    }
}

/// What users have said of the runtime, until it is there.
static REQUEST: Mutex<Option<Request>> = Mutex::new(None);
static RUNTIME: OnceLock<Arc<Runtime>> = OnceLock::new();

fn runtime() -> Result<&'static Arc<Runtime>, Failure> {
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let asked = locked(&REQUEST);
    // Another thread may have opened it meanwhile.
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let mut request = asked.clone().unwrap_or_default();
    // A burst has threads of its own. Only a module's jobs need those of the runtime.
    if request.modules.is_empty() {
        request.threads = Some(0);
    }
    let opened = Runtime::open(&request)?;
    Ok(RUNTIME.get_or_init(|| Arc::new(opened)))
}

/// Threads that a burst has, the one that brings it among them.
fn threads() -> usize {
    let asked = locked(&REQUEST).as_ref().and_then(|request| request.threads);
    asked.unwrap_or_else(|| evener::core_budget().workers()).max(1)
}

/// Says how bursts are run, before the first session.
#[pyfunction]
pub(crate) fn configure(
    py: Python<'_>,
    threads: Option<usize>,
    modules: Vec<String>,
    policy: Option<String>,
) -> PyResult<()> {
    crate::process::enter()?;
    if RUNTIME.get().is_some() {
        return Err(PyRuntimeError::new_err(
            "there was a session already: configure comes before the first one",
        ));
    }
    // The lock is held while another thread opens the runtime.
    py.detach(|| *locked(&REQUEST) = Some(Request { threads, modules, policy, no_cost_cache: false }));
    Ok(())
}

/// What bursts have done so far.
#[pyfunction]
pub(crate) fn statistics(py: Python<'_>) -> PyResult<HashMap<&'static str, u64>> {
    crate::process::enter()?;
    let Some(runtime) = RUNTIME.get() else { return Ok(HashMap::new()) };
    let it = py.detach(|| evener_c::statistics(runtime)).map_err(|failure| exception(&failure))?;
    Ok(HashMap::from([
        ("jobs", it.jobs),
        ("bytes", it.bytes),
        ("failed", it.failed),
        ("lane_jobs", it.lane_jobs),
        ("lane_bytes", it.lane_bytes),
        ("module_jobs", it.module_jobs),
        ("module_bytes", it.module_bytes),
        ("redone", it.redone),
        ("checked", it.checked),
        ("lost_modules", it.lost_modules),
    ]))
}

/// A call that failed as a whole.
fn exception(failure: &Failure) -> PyErr {
    match failure.error {
        Error::Key => Kind::InvalidKey.exception(&failure.text),
        Error::Invalid | Error::Algorithm => PyValueError::new_err(failure.text.clone()),
        Error::Module | Error::Unsupported => Kind::Unsupported.exception(&failure.text),
        _ => PyRuntimeError::new_err(failure.text.clone()),
    }
}
