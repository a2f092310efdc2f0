//! Where bursts are run: one runtime of the process, started with the first session, and a queue for each thread that brings a burst.
//!
//! A burst that is worth more than one core goes to the runtime's workers through a ring of jobs; what is little runs where it stands.
#![allow(unsafe_code, reason = "room: memory that Python's objects lend goes to the queue of evener-c")]

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use evener::core::{Algorithm, Direction, Padding};
use evener_c::abi::Job;
use evener_c::queue::Queue;
use evener_c::runtime::{Request, Runtime};
use evener_c::{Error, Failure};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use super::spans::Span;
use crate::exceptions::Kind;
use crate::ffi::Place;

/// A session of the process's runtime.
pub(crate) struct Session(evener_c::session::Session);

impl Session {
    pub(super) fn open(
        algorithm: Algorithm,
        direction: Direction,
        padding: Padding,
        key: &[u8],
    ) -> PyResult<Self> {
        let opened = evener_c::session::Session::open(runtime()?, algorithm.name(), direction, padding, key);
        opened.map(Self).map_err(|failure| exception(&failure))
    }

    pub(super) const fn core(&self) -> &evener::core::Session {
        self.0.keyed()
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

// SAFETY: the places in it are memory that `Views` has lent, or bytes that no other thread has yet, for as long as the burst lasts; which thread touches it makes no
// difference.
unsafe impl Send for Work {}

/// Status of a job that went well, as `EVENER_OK`.
const DONE: i32 = 0;
/// Jobs under way of one burst at most: enough for some bursts of every worker, few enough to stay in the caches.
const DEPTH: usize = 512;
/// Jobs that are waited for together: a wake-up for each would cost more than small ones take.
const WAITED_FOR: usize = 64;
/// What is run where it stands: less than what waking another thread takes. Assumed, not measured: 64 KiB, some 20 us of CBC or GCM in lanes.
const LITTLE_BYTES: usize = 64 << 10;

/// Runs all jobs.
///
/// # Errors
///
/// Where nothing could be run. What single jobs came to is in `results`.
pub(super) fn run(session: &Arc<Session>, work: &mut Work) -> PyResult<()> {
    let count = work.spans.len();
    work.results = vec![Ok(0); count];
    let algorithm = session.core().algorithm();
    let tag_bytes = algorithm.tag_bytes();
    if work.tags.is_empty() {
        work.tags = vec![0; count * tag_bytes];
    }
    let bytes: usize = work.spans.iter().map(|span| span.input.len).sum();
    let mut queue = borrow_queue()?;
    let burst = Burst { session, work, tag_bytes, iv_bytes: algorithm.iv_bytes() };
    let done = if count == 1 || bytes <= LITTLE_BYTES {
        burst.run_here(&mut queue)
    } else {
        burst.run_on_workers(&mut queue)
    };
    match done {
        Ok(()) => give_back(queue),
        Err(error) => {
            // It waits for what is under way, which is lent no longer than this call lasts.
            queue.close().ok();
            return Err(exception(&Failure::from(error)));
        }
    }
    Ok(())
}

struct Burst<'w> {
    session: &'w Arc<Session>,
    work: &'w mut Work,
    tag_bytes: usize,
    iv_bytes: usize,
}

impl Burst<'_> {
    fn run_here(mut self, queue: &mut Queue) -> Result<(), Error> {
        let mut jobs: Vec<Job> = (0..self.work.spans.len()).map(|number| self.job(number)).collect();
        let pointers: Vec<*mut Job> = jobs.iter_mut().map(|job| &raw mut *job).collect();
        // SAFETY: whole jobs over an open session, none of them twice; their memory is lent for the time of the call (see `Work`), and was seen not to
        // overlap.
        unsafe { queue.crypt(&pointers) }?;
        jobs.iter().for_each(|job| self.settle(job));
        Ok(())
    }

    fn run_on_workers(mut self, queue: &mut Queue) -> Result<(), Error> {
        let count = self.work.spans.len();
        let mut jobs: Vec<Job> = (0..count.min(DEPTH)).map(|_| self.job(0)).collect();
        let mut free: Vec<*mut Job> = jobs.iter_mut().map(|job| &raw mut *job).collect();
        let (mut ready, mut came) = (Vec::with_capacity(free.len()), [std::ptr::null_mut(); DEPTH]);
        let (mut next, mut settled) = (0, 0);
        while settled < count {
            while next < count {
                let Some(job) = free.pop() else { break };
                // SAFETY: it points into `jobs`, which stays where it is, and no queue has it.
                unsafe { job.write(self.job(next)) };
                ready.push(job);
                next += 1;
            }
            // SAFETY: as in `run_here`; they are given back before this returns, or the queue is closed.
            let taken = unsafe { queue.submit(&ready) }?;
            ready.drain(..taken);
            let reaped = queue.reap(&mut came, WAITED_FOR.min(queue.in_flight()), None)?;
            for &job in &came[..reaped] {
                // SAFETY: it points into `jobs`, and the queue has given it back.
                self.settle(unsafe { &*job });
                free.push(job);
            }
            settled += reaped;
        }
        Ok(())
    }

    fn job(&self, number: usize) -> Job {
        let (span, aad) = (self.work.spans[number], self.work.aads.get(number));
        let mut job = Job {
            session: &raw const self.session.0,
            src: span.input.start.cast::<c_void>().cast_const(),
            src_len: span.input.len,
            dst: span.output.start.cast(),
            dst_space: span.output.len,
            aad: aad.map_or(std::ptr::null(), |aad| aad.start.cast::<c_void>().cast_const()),
            aad_len: aad.map_or(0, |aad| aad.len),
            iv: [0; 16],
            tag: [0; 64],
            user_data: number as u64,
            written: 0,
            status: 0,
            reserved0: 0,
            reserved: [0; 4],
        };
        job.iv[..self.iv_bytes].copy_from_slice(&self.work.ivs[number * self.iv_bytes..][..self.iv_bytes]);
        job.tag[..self.tag_bytes]
            .copy_from_slice(&self.work.tags[number * self.tag_bytes..][..self.tag_bytes]);
        job
    }

    fn settle(&mut self, job: &Job) {
        let number = usize::try_from(job.user_data).unwrap_or_default();
        self.work.results[number] = match job.status {
            DONE => Ok(job.written),
            status => {
                Err(Error::ALL.into_iter().find(|error| *error as i32 == status).unwrap_or(Error::Library))
            }
        };
        self.work.tags[number * self.tag_bytes..][..self.tag_bytes]
            .copy_from_slice(&job.tag[..self.tag_bytes]);
    }
}

/// What users have said of the runtime, until it is there.
static REQUEST: Mutex<Option<Request>> = Mutex::new(None);
static RUNTIME: OnceLock<Arc<Runtime>> = OnceLock::new();
/// Those that no burst uses.
static QUEUES: Mutex<Vec<Queue>> = Mutex::new(Vec::new());

fn runtime() -> PyResult<&'static Arc<Runtime>> {
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let mut request = locked(&REQUEST);
    let opened = Runtime::open(&request.take().unwrap_or_default()).map_err(|failure| exception(&failure))?;
    Ok(RUNTIME.get_or_init(|| Arc::new(opened)))
}

fn borrow_queue() -> PyResult<Queue> {
    if let Some(queue) = locked(&QUEUES).pop() {
        return Ok(queue);
    }
    Queue::open(runtime()?, DEPTH).map_err(|failure| exception(&failure))
}

fn give_back(queue: Queue) {
    locked(&QUEUES).push(queue);
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says how bursts are run, before the first session.
#[pyfunction]
pub(crate) fn configure(
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
    *locked(&REQUEST) = Some(Request { threads, modules, policy, no_cost_cache: false });
    Ok(())
}

/// What bursts have done so far.
#[pyfunction]
pub(crate) fn statistics() -> PyResult<HashMap<&'static str, u64>> {
    crate::process::enter()?;
    let Some(runtime) = RUNTIME.get() else { return Ok(HashMap::new()) };
    let it = evener_c::statistics(runtime).map_err(|failure| exception(&failure))?;
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
