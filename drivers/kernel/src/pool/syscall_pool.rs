//! A pool of threads for blocking system calls: each runner calls the kernel with one request and sleeps there until it is answered.
//!
//! | call | what a runner does for it | how the caller learns the end |
//! |---|---|---|
//! | [`SyscallPool::submit`] | opens the key where nobody did, runs the request | [`SyscallPool::take`] |
//! | [`SyscallPool::open`] | opens a key for a caller who hands its requests to the kernel itself | it returns |
//! | [`SyscallPool::release_keys`] | closes keys | it does not |
//!
//! A request is `waiting -> running (a runner is in the kernel) -> finished -> taken`. A runner may never come back. Then its request,
//! with all memory that the kernel writes to, stays with it; no thread waits for it once [`SyscallPool::close`] has given it up, and
//! `stuck` counts it until it does come back.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use std::{io, mem};

use evener_core::{Nanos, Session};
use nix::sys::signal::SigSet;

use crate::pool::device::{Device, Failure, Task};
use crate::pool::key_cache::{Entry, KeyCache};
use crate::process::clock::thread_time;

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
    /// Runners that nobody waits for any more, of all pools of one module.
    stuck: Arc<AtomicUsize>,
    /// Results for which who waits is woken while requests wait behind them.
    together: usize,
}

type Guard<'s, D> = MutexGuard<'s, State<<D as Device>::Key>>;

struct State<K> {
    waiting: VecDeque<(Task, Arc<Entry<K>>)>,
    /// KeyCache that are to be opened.
    wanted: Vec<Arc<Entry<K>>>,
    /// KeyCache that are to be closed.
    over: Vec<Arc<Entry<K>>>,
    finished: Vec<Task>,
    /// Runners that are in the kernel.
    running: usize,
    /// Runners that sleep until there is something to do, or were woken for it and did not come yet.
    idle: usize,
    /// Somebody sleeps until something is done.
    is_awaited: bool,
    is_closed: bool,
    /// The driver left while runners were in the kernel.
    is_left: bool,
}

impl<D: Device> SyscallPool<D> {
    /// One where who waits for results is woken for so many together, or for fewer where runners find nothing more to do.
    pub(crate) fn new(device: Arc<D>, stuck: Arc<AtomicUsize>, together: usize) -> Self {
        let state = State {
            waiting: VecDeque::new(),
            wanted: Vec::new(),
            over: Vec::new(),
            finished: Vec::new(),
            running: 0,
            idle: 0,
            is_awaited: false,
            is_closed: false,
            is_left: false,
        };
        Self {
            device,
            keys: KeyCache::default(),
            state: Mutex::new(state),
            work: Condvar::new(),
            done: Condvar::new(),
            opened: Condvar::new(),
            core_ns: AtomicU64::new(0),
            stuck,
            together,
        }
    }

    /// Starts one more runner.
    pub(crate) fn start_runner(self: &Arc<Self>) -> io::Result<JoinHandle<()>> {
        let pool = Arc::clone(self);
        Builder::new().name("evener-kernel".to_owned()).spawn(move || pool.run())
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
        self.state().waiting.push_back((task, key));
        if cfg!(mutant = "woken_for_each_request") {
            self.work.notify_one();
        }
    }

    /// The key of a session. One that makes room for it is closed by a runner.
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
        let is_heard = state.idle > 0;
        drop(state);
        if is_heard {
            self.work.notify_one();
        }
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
        mem::take(&mut state.finished)
    }

    /// Wakes as many runners as there are requests that none has begun.
    fn wake_for_what_waits<'s>(
        &'s self,
        state: MutexGuard<'s, State<D::Key>>,
    ) -> MutexGuard<'s, State<D::Key>> {
        // A bell that nobody hears is a system call all the same.
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

    /// Ends runners that are idle and waits up to `timeout` for the others; those that stay are left.
    pub(crate) fn close(&self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let mut state = self.state();
        state.is_closed = true;
        self.work.notify_all();
        while state.running > 0 {
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

    /// A runner's life.
    fn run(&self) {
        // A signal that ended a read early would cost the request another attempt. Nothing depends on it.
        SigSet::all().thread_block().ok();
        let mut mark = thread_time();
        while let Some((mut task, key)) = self.next() {
            task.answer = self.opened_by_device(&key).and_then(|opened| self.device.run(opened, &mut task));
            // Before the task is seen, so that a key whose last request is back can be closed.
            drop(key);
            let now = thread_time();
            self.core_ns.fetch_add((now - mem::replace(&mut mark, now)).0, Ordering::Relaxed);
            self.finish(task);
        }
    }

    fn next(&self) -> Option<(Task, Arc<Entry<D::Key>>)> {
        let mut state = self.state();
        loop {
            if !state.over.is_empty() {
                state = self.close_keys(state);
                continue;
            }
            if state.is_closed {
                return None;
            }
            if let Some(key) = state.wanted.pop() {
                state = self.open_key(state, &key);
                continue;
            }
            if let Some(next) = state.waiting.pop_front() {
                state.running += 1;
                return Some(next);
            }
            state.idle += 1;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    fn open_key<'s>(&'s self, mut state: Guard<'s, D>, key: &Entry<D::Key>) -> Guard<'s, D> {
        state.running += 1;
        drop(state);
        // The thread that wants it sees what came of it.
        _ = self.opened_by_device(key);
        let mut state = self.state();
        self.leave_kernel(&mut state);
        self.opened.notify_all();
        state
    }

    fn opened_by_device<'k>(&self, key: &'k Entry<D::Key>) -> Result<&'k D::Key, Failure> {
        self.keys.opened(key, || self.device.open_key(key.spec, &key.bytes))
    }

    /// Closes what was given up; a runner that is in the kernel for that counts as running a request.
    fn close_keys<'s>(&'s self, mut state: Guard<'s, D>) -> Guard<'s, D> {
        let over = mem::take(&mut state.over);
        state.running += 1;
        drop(state);
        drop(over);
        let mut state = self.state();
        self.leave_kernel(&mut state);
        if state.is_closed {
            self.done.notify_one();
        }
        state
    }

    /// A runner came back from the kernel.
    fn leave_kernel(&self, state: &mut State<D::Key>) {
        state.running -= 1;
        if state.is_left {
            self.stuck.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn finish(&self, task: Task) {
        let mut state = self.state();
        self.leave_kernel(&mut state);
        if !state.is_left {
            state.finished.push(task);
        }
        // While requests wait here the module has work: each wake-up costs as much core time as the module takes for a request.
        let is_enough = state.waiting.is_empty() || state.finished.len() >= self.together || state.is_closed;
        let is_heard = state.is_awaited && (is_enough || cfg!(mutant = "woken_for_each"));
        drop(state);
        if is_heard {
            self.done.notify_one();
        }
    }

    /// The state is whole between any two statements, so a panic elsewhere does not spoil it.
    fn state(&self) -> Guard<'_, D> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::device::Spec;
    use evener_core::{Algorithm, Direction, Padding};
    use zeroize::Zeroizing;

    /// A device that works on a request for each leave that it is given.
    #[derive(Default)]
    struct OneByOne {
        leaves: Mutex<usize>,
        given: Condvar,
    }

    impl Device for OneByOne {
        type Key = ();

        fn takes(&self, _: Algorithm, _: usize, _: usize) -> bool {
            true
        }

        fn open_key(&self, _: Spec, _: &[u8]) -> Result<(), Failure> {
            Ok(())
        }

        fn run(&self, (): &(), _: &mut Task) -> Result<(), Failure> {
            let leaves = self.given.wait_while(self.leaves.lock().unwrap(), |leaves| *leaves == 0);
            *leaves.unwrap() -= 1;
            Ok(())
        }
    }

    /// A pool of such a device, and so many requests at it.
    fn desk_with(requests: usize) -> (Arc<OneByOne>, Arc<SyscallPool<OneByOne>>) {
        let device: Arc<OneByOne> = Arc::default();
        let pool = Arc::new(SyscallPool::new(Arc::clone(&device), Arc::default(), 3));
        (0..requests as u64).for_each(|number| give(&pool, number));
        (device, pool)
    }

    fn give(pool: &SyscallPool<OneByOne>, number: u64) {
        let session =
            Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[9; 16]).unwrap();
        let spec = Spec { algorithm: session.algorithm(), direction: session.direction() };
        let task = Task::over(number, spec, [0; 16], Zeroizing::default(), 0);
        pool.submit(task, pool.key(&session));
    }

    /// Waits until the pool looks like that.
    fn wait_until(pool: &SyscallPool<OneByOne>, is_so: impl Fn(&State<()>) -> bool) {
        while !is_so(&pool.state()) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn who_takes_results_is_woken_for_some_together_and_for_the_last_ones_at_once() {
        const REQUESTS: usize = 5;
        let (device, pool) = desk_with(REQUESTS);
        let runner = pool.start_runner().unwrap();
        let taken: Vec<usize> = std::thread::scope(|scope| {
            let taker = scope.spawn(|| {
                let (mut taken, mut all) = (Vec::new(), 0);
                while all < REQUESTS {
                    taken.push(pool.take(Duration::from_secs(60)).len());
                    all += taken[taken.len() - 1];
                }
                taken
            });
            for ended in 1..=REQUESTS {
                wait_until(&pool, |state| state.is_awaited);
                *device.leaves.lock().unwrap() += 1;
                device.given.notify_one();
                wait_until(&pool, |state| state.waiting.len() + state.running == REQUESTS - ended);
                // Who was woken has the time to take what there is.
                std::thread::sleep(Duration::from_millis(20));
            }
            taker.join().unwrap()
        });
        assert_eq!(taken, [3, 2]);
        assert!(pool.close(Duration::from_secs(60)));
        runner.join().unwrap();
    }
    #[test]
    fn runners_that_sleep_are_woken_for_all_that_was_given_when_who_gave_it_asks_for_results() {
        let (device, pool) = desk_with(0);
        let runners = [pool.start_runner().unwrap(), pool.start_runner().unwrap()];
        wait_until(&pool, |state| state.idle == 2);
        (0..3).for_each(|number| give(&pool, number));
        // Who was woken has the time to begin.
        std::thread::sleep(Duration::from_millis(20));
        let running = pool.state().running;
        assert_eq!(running, 0);
        assert!(pool.take(Duration::ZERO).is_empty());
        wait_until(&pool, |state| (state.waiting.len(), state.running) == (1, 2));
        *device.leaves.lock().unwrap() += 3;
        device.given.notify_all();
        wait_until(&pool, |state| state.finished.len() == 3);
        assert!(pool.close(Duration::from_secs(60)));
        runners.into_iter().for_each(|runner| runner.join().unwrap());
    }
}
