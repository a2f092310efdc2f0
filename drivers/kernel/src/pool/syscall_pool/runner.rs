//! The life of a runner: what there is to do next, into the kernel with it, and back.
//!
//! | what there is | what it does | first |
//! |---|---|---|
//! | keys that are over | closes them | always, also when the pool is closed |
//! | nothing, and the pool is closed | ends | |
//! | a key that is wanted | opens it, and tells those who wait | before requests |
//! | a request | runs it, and puts it to the finished ones | |
//! | nothing | sleeps | |

use std::ffi::CStr;
use std::mem;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::{Guard, State, SyscallPool};
use crate::pool::device::{Device, Failure, Task};
use crate::pool::key_cache::Entry;
use crate::process::clock::thread_time;
use crate::process::served::Service;

impl<D: Device> Service for SyscallPool<D> {
    const NAME: &'static CStr = c"evener-kernel";

    fn serve(&self) {
        let _end = End(self);
        self.run();
    }
}

/// Notes that a runner has ended, also where the device panicked.
struct End<'p, D: Device>(&'p SyscallPool<D>);

impl<D: Device> Drop for End<'_, D> {
    fn drop(&mut self) {
        self.0.state().living -= 1;
        self.0.done.notify_all();
    }
}

impl<D: Device> SyscallPool<D> {
    /// A runner's life. All signals are blocked: one that ended a read early would cost the request another attempt.
    fn run(&self) {
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
            if let Some(key) = state.over.pop() {
                state = self.close_key(state, key);
                continue;
            }
            if state.is_closed {
                return None;
            }
            if let Some(key) = state.wanted.pop() {
                state = self.open_key(state, key);
                continue;
            }
            if let Some(next) = state.waiting.pop_front() {
                self.enter_kernel(&mut state);
                return Some(next);
            }
            state.idle += 1;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    fn open_key<'s>(&'s self, mut state: Guard<'s, D>, key: Arc<Entry<D::Key>>) -> Guard<'s, D> {
        self.enter_kernel(&mut state);
        drop(state);
        // The thread that wants it sees what came of it.
        _ = self.opened_by_device(&key);
        // Not under the lock, for the last share closes.
        drop(key);
        let mut state = self.state();
        self.leave_kernel(&mut state);
        self.opened.notify_all();
        state
    }

    fn opened_by_device<'k>(&self, key: &'k Entry<D::Key>) -> Result<&'k D::Key, Failure> {
        self.keys.opened(key, || self.device.open_key(key.spec, &key.bytes))
    }

    /// Closes a key that was given up; a runner that is in the kernel for that counts as running a request. One that a request still has goes
    /// with that.
    fn close_key<'s>(&'s self, mut state: Guard<'s, D>, mut key: Arc<Entry<D::Key>>) -> Guard<'s, D> {
        self.enter_kernel(&mut state);
        match Arc::get_mut(&mut key).map(Entry::take) {
            Some(opened) => {
                // Before the kernel is called, so that a child that is forked meanwhile finds it.
                state.closed.push(key);
                drop(state);
                drop(opened);
            }
            None => {
                // The share may be the last by now, which closes: not under the lock.
                drop(state);
                drop(key);
            }
        }
        let mut state = self.state();
        self.leave_kernel(&mut state);
        if state.is_closed {
            self.done.notify_one();
        }
        state
    }

    /// A runner calls the kernel, and may not come back.
    fn enter_kernel(&self, state: &mut State<D::Key>) {
        state.running += 1;
        if state.is_left {
            self.stuck.fetch_add(1, Ordering::Relaxed);
        }
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
}
