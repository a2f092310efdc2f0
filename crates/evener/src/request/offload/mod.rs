//! A module that serves single requests of a program's own threads: each sleeps until its result is there, or is put aside.
//!
//! One request: [`Offload::put`] copies it into a buffer (`buffers.rs`) -> it waits in the queue -> of the callers that wait one
//! leads: it hands over whatever waits, sleeps in the driver's poll, lays out what came back, and makes space for the next to
//! lead (`request_queue/`) -> [`Pending::wait`] (`pending.rs`) takes one's own result, which the caller copies to where it belongs.
//!
//! Callers that wait need not go through the queue: where the module has a driver for single requests [`Offload::run_single`] asks that one,
//! which takes less time than a queue for jobs of all threads.
//!
//! A session that has ended leaves no key at the module: [`Offload::evict`].
//!
//! No thread is started for callers that wait; requests of callers that were put aside are led by a helper thread of the queue. The
//! caller's memory is read by `put` and never written: so a module that hangs keeps no caller, and what it failed is done
//! again from the same bytes. A child of fork begins with a queue and a driver of its own and never touches its parent's.

mod abilities;
mod buffers;
mod pending;
mod queue_state;
mod request_queue;

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use evener_core::driver::SILENCE_MAX;
use evener_core::driver::{SingleDriver, Text};
use evener_core::{Algorithm, Direction, Nanos, QueuedDriver, Session, SessionId};
use evener_ring::{PerFork, Served};

use abilities::Abilities;
pub use buffers::ROOM_BYTES_MAX;
pub use pending::{Answer, Pending};
pub use queue_state::OutOfService;
use request_queue::{RequestQueue, Submission};

pub use super::policy;
pub use super::shared_module::{Admission, SharedModule};
use crate::module_limits::{SILENCE_MIN, TIMES_EXPECTED};
pub use evener_arbiter::Refused;

/// Wakes a caller that was put aside; may be called by any thread, once and at any time after.
pub trait Waker: Send {
    /// Wakes it.
    fn wake(&self);
}

/// Makes the driver of a process.
pub type MakeDriver = dyn Fn() -> Box<dyn QueuedDriver<'static>> + Send + Sync;

/// Makes the driver for a process's single requests; `None` where the module has none.
pub type MakeSingle = dyn Fn() -> Option<Box<dyn SingleDriver>> + Send + Sync;

/// A module, and who waits for it.
pub struct Offload {
    name: String,
    abilities: Arc<Abilities>,
    make_driver: Arc<MakeDriver>,
    make_single: Option<Box<MakeSingle>>,
    queues: PerFork<Served<RequestQueue>>,
}

/// One request.
pub struct Request<'a> {
    /// Key, algorithm and direction; without padding.
    pub session: &'a Arc<Session>,
    /// IV, counter or tweak.
    pub iv: &'a [u8; 16],
    /// What is worked on; as much comes out.
    pub input: &'a [u8],
    /// Silence after which the module is taken for dead.
    pub allowed: Nanos,
}

impl Offload {
    /// A module of that name, which does what `does` says: now, and when a driver was made, for some know no sooner. `make_driver` is called
    /// once in a process, when the first request comes: there may be threads then, and in a child of fork the parent's are not there.
    pub fn new(
        name: String,
        does: impl Fn(Algorithm, Direction) -> bool + Send + Sync + 'static,
        make_driver: impl Fn() -> Box<dyn QueuedDriver<'static>> + Send + Sync + 'static,
    ) -> Self {
        let abilities = Arc::new(Abilities::new(does));
        let make_driver: Arc<MakeDriver> = Arc::new(abilities.asked_again_after(make_driver));
        Self { name, abilities, make_driver, make_single: None, queues: PerFork::default() }
    }

    /// The same, where callers that wait ask a driver of their own. `make_single` is called once in a process; where it makes none, and what
    /// that one does not take, goes to the queue.
    #[must_use]
    pub fn single(
        self,
        make_single: impl Fn() -> Option<Box<dyn SingleDriver>> + Send + Sync + 'static,
    ) -> Self {
        let make_single = self.abilities.asked_again_after(make_single);
        Self { make_single: Some(Box::new(make_single)), ..self }
    }

    /// Its name, as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it does this at all.
    pub fn does(&self, algorithm: Algorithm, direction: Direction) -> bool {
        self.abilities.has(algorithm, direction)
    }

    /// Whether it takes such a request now: it does it, it is in service, and there are buffers of that size.
    /// `generation` counts forks, here and in all that follows.
    pub fn takes(&self, generation: u32, algorithm: Algorithm, direction: Direction, bytes: usize) -> bool {
        let fits = bytes <= ROOM_BYTES_MAX && self.does(algorithm, direction);
        fits && self.queues.get(generation).is_none_or(|queue| queue.is_in_service())
    }

    /// Requests that a new one would find before it.
    pub fn ahead(&self, generation: u32) -> u32 {
        self.queues.get(generation).map_or(0, |queue| queue.ahead())
    }

    /// Core time that the driver's threads and the queue's helper used so far.
    pub fn core_time(&self, generation: u32) -> Nanos {
        self.queues.get(generation).map_or(Nanos::ZERO, |queue| queue.core_time())
    }

    /// Why it is out of service in this process; `None` while it is not.
    pub fn why_out(&self, generation: u32) -> Option<OutOfService> {
        self.queues.get(generation).and_then(|queue| queue.why_out())
    }

    /// Takes it out of service in this process, which has no right to make what its requests would need.
    pub fn forgo(&self, generation: u32) {
        self.queue(generation).put_out(OutOfService::Lost);
    }

    /// Takes it out of service: it computed wrong.
    pub fn computed_wrong(&self, generation: u32) {
        // Saturating: 0 would say that none was.
        _ = WRONG.fetch_update(Relaxed, Relaxed, |count| count.checked_add(1));
        self.queue(generation).put_out(OutOfService::WrongResult);
    }

    /// Makes what requests of this process need, before the first of them: later the program may have no right to. To be called once in a
    /// process, which waits for it.
    pub fn prepare(&self, generation: u32) {
        let queue = self.queue(generation);
        match &self.make_single {
            Some(make) => queue.prepare_single(make),
            None => queue.prepare(),
        }
    }

    /// Takes a request in. `waker` is called when its result is there, or will never be; without one the caller has to wait.
    ///
    /// `None` where the module is out of service, or has no buffer: nothing was touched.
    pub fn put(
        &self,
        generation: u32,
        request: &Request<'_>,
        waker: Option<Box<dyn Waker>>,
    ) -> Option<Pending<'_>> {
        let queue = self.queue(generation);
        let submission = Submission { request, waker };
        RequestQueue::put(queue, submission).map(|number| Pending { queue, number, is_over: false })
    }

    /// Waits for a request for as long as is allowed, and gives `text` the result. Whether it did; `None` where such requests go to the
    /// queue, by [`Offload::put`].
    pub fn run_single(
        &self,
        generation: u32,
        session: &Session,
        iv: &[u8; 16],
        text: &mut dyn Text,
        allowed: Nanos,
    ) -> Option<bool> {
        let make = self.make_single.as_ref()?;
        let queue = self.queue(generation);
        let (algorithm, bytes) = (session.algorithm(), text.input().len());
        queue.run_single(make, |driver| {
            driver.takes(algorithm, bytes).then(|| driver.run_single(session.with_iv(iv), text, allowed))
        })
    }

    /// Has the module give up the keys of a session that has ended: now where it is at rest, else by the caller that comes back from it
    /// first. In a child of fork that never asked it nothing is done, for the keys are its parent's.
    pub fn evict(&self, generation: u32, session: SessionId) {
        if let Some(queue) = self.queues.get(generation) {
            queue.evict(session);
        }
    }

    fn queue(&self, generation: u32) -> &Served<RequestQueue> {
        self.queues.of(generation, || Served::new(RequestQueue::new(Arc::clone(&self.make_driver))))
    }
}

/// Silence after which a module is taken for dead that is known to take `expected` for a request and has so many before it: as
/// in the runtime.
#[must_use]
pub fn timeout(expected: Nanos, ahead: u32) -> Nanos {
    match expected {
        Nanos::ZERO => SILENCE_MAX,
        each => {
            let all = each.0.saturating_mul(TIMES_EXPECTED).saturating_mul(u64::from(ahead) + 1);
            Nanos(all).clamp(SILENCE_MIN, SILENCE_MAX)
        }
    }
}

/// Results of modules of this process that were wrong.
static WRONG: AtomicU32 = AtomicU32::new(0);

/// Results of all modules so far, in this process and in those that it was forked from, that were not a core's.
#[must_use]
pub fn wrong_results() -> u32 {
    // Relaxed: a sum that is shown.
    WRONG.load(Relaxed)
}

// A panic on the way leaves the driver with its leader, and the queue out of service: nothing is seen half done.
impl UnwindSafe for Offload {}
impl RefUnwindSafe for Offload {}

impl fmt::Debug for Offload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Offload({})", self.name)
    }
}
