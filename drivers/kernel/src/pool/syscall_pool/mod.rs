//! A pool of threads for blocking system calls: each runner calls the kernel with one request and sleeps there until it is answered.
//!
//! | call | what a runner does for it | how the caller learns the end |
//! |---|---|---|
//! | [`SyscallPool::submit`] | opens the key where that was not done, runs the request | [`SyscallPool::take`] |
//! | [`SyscallPool::open`] | opens a key for a caller who hands its requests to the kernel itself | it returns |
//! | [`SyscallPool::release_keys`] | closes keys | it does not |
//!
//! While all goes well runners neither allocate nor free, so that nothing of theirs is left in a forked child (`evener_ring::Served`): what they need room
//! for has it before they are woken, and keys that they closed are freed by those who give up the next ones. One that opens a key, says why a request failed or has the
//! last share of a key that was given up meanwhile does.
//!
//! A request is `waiting -> running (a runner is in the kernel) -> finished -> taken`. A runner may never come back. Then its request,
//! with all memory that the kernel writes to, stays with it; no thread waits for it once [`SyscallPool::close`] has given it up, and
//! `stuck` counts it until it does come back.

mod runner;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, mem};

use evener_core::{Nanos, Session};

use crate::pool::device::{Device, Task};
use crate::pool::key_cache::{Entry, KeyCache};
use crate::process::served::{Inherited, Served, leave_locked};

/// How long a driver that goes waits for requests in the kernel. Assumed, not measured: 100 ms.
pub(crate) const SHUTDOWN_GRACE: Duration = Duration::from_millis(100);

/// What driver and runners share.
pub(crate) struct SyscallPool<D: Device> {
    device: Arc<D>,
    pub(crate) keys: KeyCache<D::Key>,
    state: Mutex<State<D::Key>>,
    /// There is something to do, or nothing will ever be.
    work: Condvar,
    /// Something is done, or a runner has nothing to do any more.
    done: Condvar,
    /// A key was opened, or cannot be.
    opened: Condvar,
    /// Core time that runners used.
    core_ns: AtomicU64,
    /// Runners that are not waited for any more, of all pools of one module.
    stuck: Arc<AtomicUsize>,
    /// Results for which who waits is woken while requests wait behind them.
    together: usize,
}

type Guard<'s, D> = MutexGuard<'s, State<<D as Device>::Key>>;

struct State<K> {
    waiting: VecDeque<(Task, Arc<Entry<K>>)>,
    /// Keys that are to be opened.
    wanted: Vec<Arc<Entry<K>>>,
    /// Keys that are to be closed.
    over: Vec<Arc<Entry<K>>>,
    /// Keys that were closed.
    closed: Vec<Arc<Entry<K>>>,
    finished: Vec<Task>,
    /// Runners that were started and have not ended.
    living: usize,
    /// Runners that are in the kernel.
    running: usize,
    /// Runners that sleep until there is something to do, or were woken for it and did not come yet.
    idle: usize,
    /// A thread sleeps until something is done.
    is_awaited: bool,
    is_closed: bool,
    /// The driver left while runners were in the kernel.
    is_left: bool,
}

impl<K> State<K> {
    /// Whether a runner is in the kernel, or will be though the pool is closed.
    fn is_in_kernel(&self) -> bool {
        self.running > 0 || self.living > 0 && !self.over.is_empty()
    }
}

// Derived it would ask for one of `K`.
impl<K> Default for State<K> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            wanted: Vec::new(),
            over: Vec::new(),
            closed: Vec::new(),
            finished: Vec::new(),
            living: 0,
            running: 0,
            idle: 0,
            is_awaited: false,
            is_closed: false,
            is_left: false,
        }
    }
}

impl<D: Device> SyscallPool<D> {
    /// One where who waits for results is woken for so many together, or for fewer where runners find nothing more to do.
    pub(crate) fn new(device: Arc<D>, stuck: Arc<AtomicUsize>, together: usize) -> Self {
        Self {
            device,
            keys: KeyCache::default(),
            state: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
            opened: Condvar::new(),
            core_ns: AtomicU64::new(0),
            stuck,
            together,
        }
    }

    /// Starts one more runner.
    pub(crate) fn start_runner(this: &Served<Self>) -> io::Result<()> {
        this.state().living += 1;
        this.start(STACK_BYTES).inspect_err(|_| this.state().living -= 1)
    }

    pub(crate) fn device(&self) -> &D {
        &self.device
    }

    /// Core time that runners used so far.
    pub(crate) fn core_time(&self) -> Nanos {
        // Relaxed: a sum that is sampled.
        Nanos(self.core_ns.load(Ordering::Relaxed))
    }

    /// Takes a request in. Runners who are in the kernel look for it before they sleep; those who sleep are woken when the submitter asks
    /// for results ([`Self::take`]): on one core a runner that is woken for each request keeps the next one from being given.
    pub(crate) fn submit(&self, task: Task, key: Arc<Entry<D::Key>>) {
        let mut state = self.state();
        state.waiting.push_back((task, key));
        let results = state.waiting.len() + state.living;
        state.finished.reserve(results);
        drop(state);
        if cfg!(mutant = "woken_for_each_request") {
            self.work.notify_one();
        }
    }

    /// The key of a session. One that makes space for it is closed by a runner.
    pub(crate) fn key(&self, session: &Session) -> Arc<Entry<D::Key>> {
        self.keys.entry(session, |surplus| self.release_keys(vec![surplus]))
    }

    /// Has a runner open a key where that was not done yet; false where it did not come back in that time.
    pub(crate) fn open(&self, key: &Arc<Entry<D::Key>>, timeout: Duration) -> bool {
        if KeyCache::known(key).is_some() {
            return true;
        }
        let until = Instant::now() + timeout;
        let mut state = self.state();
        state.wanted.push(Arc::clone(key));
        self.work.notify_one();
        while KeyCache::known(key).is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.opened.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Has a runner close keys: that is a call into the kernel, of which a module that hangs makes a long one.
    pub(crate) fn release_keys(&self, keys: Vec<Arc<Entry<D::Key>>>) {
        if keys.is_empty() {
            return;
        }
        if cfg!(mutant = "keys_closed_by_who_gives_them_up") {
            return drop(keys);
        }
        let mut state = self.state();
        state.over.extend(keys);
        let closed = Vec::with_capacity(state.over.len() + state.living);
        let closed = mem::replace(&mut state.closed, closed);
        let is_heard = state.idle > 0;
        drop(state);
        if is_heard {
            self.work.notify_one();
        }
        drop(closed);
    }

    /// What is finished, after up to `timeout` where nothing is.
    pub(crate) fn take(&self, timeout: Duration) -> Vec<Task> {
        let mut state = self.wake_for_what_waits(self.state());
        if state.finished.is_empty() && !timeout.is_zero() {
            let nothing = |state: &mut State<D::Key>| state.finished.is_empty();
            state.is_awaited = true;
            let woken = self.done.wait_timeout_while(state, timeout, nothing);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            state.is_awaited = false;
        }
        if state.finished.is_empty() {
            return Vec::new();
        }
        let results = Vec::with_capacity(state.waiting.len() + state.living);
        mem::replace(&mut state.finished, results)
    }

    /// Wakes as many runners as there are requests that none has begun.
    fn wake_for_what_waits<'s>(
        &'s self,
        state: MutexGuard<'s, State<D::Key>>,
    ) -> MutexGuard<'s, State<D::Key>> {
        // A wake-up of no thread is a system call all the same.
        let wanted = state.idle.min(state.waiting.len());
        if wanted == 0 {
            return state;
        }
        // Who is woken wants the lock.
        drop(state);
        (0..wanted).for_each(|_| self.work.notify_one());
        self.state()
    }

    /// Forgets what no runner has begun, and gives it back; what runners have stays with them.
    pub(crate) fn drop_waiting(&self) {
        let waiting = mem::take(&mut self.state().waiting);
        // Outside the lock: memory is wiped, keys may go.
        drop(waiting);
    }

    /// Ends runners that are idle and waits up to `timeout` for the others, and for keys that are to be closed, as long as there is a runner for it; those that stay are left.
    pub(crate) fn close(&self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let mut state = self.state();
        state.is_closed = true;
        self.work.notify_all();
        while state.is_in_kernel() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.is_left = true;
                // Relaxed: read before a driver is made, which may be a moment late.
                self.stuck.fetch_add(state.running, Ordering::Relaxed);
                return false;
            }
            state.is_awaited = true;
            state = self.done.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Waits until the runners of a pool that was closed have ended; none of them is in the kernel, or will be.
    pub(crate) fn wait_for_runners(&self) {
        let living = |state: &mut State<D::Key>| state.living > 0;
        drop(self.done.wait_while(self.state(), living));
    }

    /// The state is whole between any two statements, so a panic elsewhere does not spoil it.
    fn state(&self) -> Guard<'_, D> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Device> Inherited for SyscallPool<D> {
    /// What a thread of the other process was changing is forgotten, and a request or key that a runner has is not reached from here: the rest is whole.
    fn is_whole(&mut self) -> bool {
        leave_locked(&mut self.state);
        self.keys.is_whole()
    }
}

/// Of a runner, which calls the kernel and little else.
const STACK_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests;
