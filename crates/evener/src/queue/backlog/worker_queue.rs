//! The private side of one worker: what was dealt, handed, given or bound to it and to no other.
//!
//! Under the monitor a queue passes through three states: the worker that has nothing says [`IDLE`](WorkerQueue::set_idle), the
//! monitor that has a job takes the queue ([`take_idle`](WorkerQueue::take_idle)) and hands it over, and the worker that claims
//! it is [busy](WorkerQueue::set_busy) again.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};

use evener_core::Job;
use evener_core::plan::Dispatch;
use evener_ring::{Doorbell, Ring};

use crate::queue::ended_sessions::Cursor;

/// One worker's own queue.
pub(super) struct WorkerQueue<'m> {
    /// Jobs dealt, handed or given to this worker and no other.
    pub(super) dealt: Ring<Box<Job<'m>>>,
    /// Jobs that only this module may do.
    pub(super) module_only: Ring<Box<Job<'m>>>,
    /// Rung when jobs were put into this queue, and when the worker is to look elsewhere.
    pub(super) work: Doorbell,
    /// How far the worker has read the list of sessions that ended.
    pub(super) cursor: Cursor,
    /// Under the monitor: [`BUSY`], [`IDLE`] or [`SERVED`].
    state: AtomicU32,
    /// The module is out of service. Written by its worker.
    is_out_of_service: AtomicBool,
}

/// The worker is busy, or about to look at its queue. Written by the worker.
const BUSY: u32 = 0;
/// The queue is empty and the worker waits. Written by the worker, and by the monitor that had nothing to hand.
const IDLE: u32 = 1;
/// A job is on its way to the queue. Written by the monitor; the worker that wakes for another reason leaves it.
const SERVED: u32 = 2;

/// Single requests that wait for one module at most; more find it busy and go elsewhere. Assumed, not measured: 16, because
/// a caller behind so many is served sooner by its own core.
pub(super) const SINGLES_MAX: usize = 16;

impl WorkerQueue<'_> {
    /// A queue in a backlog of `jobs`. It holds one job under the monitor, single requests of callers where jobs are weighed,
    /// and up to the whole backlog where jobs are dealt out or bound to a module.
    pub(super) fn new(dispatch: Dispatch, jobs: usize, is_module: bool) -> Self {
        let dealt = match dispatch {
            Dispatch::SharedQueue | Dispatch::Monitor => 1,
            Dispatch::ByCost => SINGLES_MAX,
            Dispatch::RoundRobin => jobs,
        };
        Self {
            dealt: Ring::with_capacity(dealt),
            module_only: Ring::with_capacity(if is_module { jobs } else { 1 }),
            work: Doorbell::new(),
            cursor: Cursor::default(),
            state: AtomicU32::new(BUSY),
            is_out_of_service: AtomicBool::new(false),
        }
    }

    /// Whether jobs wait here.
    pub(super) fn has_jobs(&self) -> bool {
        !self.dealt.is_empty() || !self.module_only.is_empty()
    }

    /// The module is out of service: what is bound to it is to be taken away afterwards.
    pub(super) fn leave_service(&self) {
        self.is_out_of_service.store(true, Ordering::Relaxed);
        // Pairs with the fence in `is_out_of_service`: of two fences one is first, so either the caller that has put a job there sees that no
        // worker will take it, or the worker finds it when it takes all away.
        fence(Ordering::SeqCst);
    }

    /// Whether the module is out of service; to be checked again after a job was put here.
    pub(super) fn is_out_of_service(&self) -> bool {
        fence(Ordering::SeqCst);
        self.is_out_of_service.load(Ordering::Relaxed)
    }

    /// The worker found nothing here, for the monitor to see. Without effect where a job is on its way.
    pub(super) fn set_idle(&self) {
        // Only from BUSY: a worker that woke for another reason while a job is on its way is not reported idle twice.
        // The exchange may fail, which means that the monitor knows already.
        // Release pairs with the Acquire in `take_idle`.
        self.state.compare_exchange(BUSY, IDLE, Ordering::Release, Ordering::Relaxed).ok();
    }

    /// The worker has claimed what the monitor handed over.
    pub(super) fn set_busy(&self) {
        // Relaxed: the monitor touches the state again only after it has read IDLE.
        self.state.store(BUSY, Ordering::Relaxed);
    }

    /// Takes the queue of a worker that waits, to hand it a job; for the monitor.
    pub(super) fn take_idle(&self) -> bool {
        // Acquire pairs with the Release in `set_idle`: the queue is empty.
        let is_free = self.state.load(Ordering::Acquire) == IDLE;
        if is_free {
            self.state.store(SERVED, Ordering::Relaxed);
        }
        is_free
    }

    /// There was nothing to hand over after all.
    pub(super) fn stay_idle(&self) {
        self.state.store(IDLE, Ordering::Relaxed);
    }
}
