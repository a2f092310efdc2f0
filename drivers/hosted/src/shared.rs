//! A line that several runs, and callers who wait for single requests, share: who waits and finds nobody waiting at the line leads.
//!
//! `lock -> (seat, session, copy in, add, flush) -> wait: asleep at the line, or behind who is -> what came back -> (copy out)`. The lock
//! is held for looks and copies, and while a session is opened; never while requests are waited for. Where anything goes wrong the line is
//! over for all.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use evener_ring::{Mapping, Words as _};

use crate::control::Trouble;
use crate::line::Line;

/// A line, for all threads of one process.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Something came back, or who led is back.
    changed: Condvar,
    /// A word that a fork wipes: 1 in the process that made the line. None where the system has no such memory, and no line then.
    mark: Option<Mapping>,
}

#[derive(Debug)]
pub(crate) struct State {
    /// None: lost.
    line: Option<Line>,
    is_led: bool,
    followers: u32,
}

pub(crate) type Guard<'s> = MutexGuard<'s, State>;

impl Shared {
    pub(crate) fn new(line: Option<Line>) -> Self {
        let mark = Mapping::wiped_by_fork(1).ok();
        if let Some(mark) = &mark {
            mark.words()[0].store(1, Relaxed);
        }
        let line = line.filter(|_| mark.is_some());
        let state = State { line, is_led: false, followers: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new(), mark }
    }

    /// Whether this process made it. In a child, nothing of it may be touched: the region is not there, and the lock may be held by a thread
    /// that is not, either.
    pub(crate) fn is_ours(&self) -> bool {
        // Relaxed: a word that changes by a fork only.
        self.mark.as_ref().is_none_or(|mark| mark.words()[0].load(Relaxed) == 1)
    }

    /// The state is whole between any two statements, so a panic elsewhere does not spoil it.
    pub(crate) fn lock(&self) -> Guard<'_> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `is_there` holds, which asks for some of `count` requests more, or the line is lost, or for `patience`.
    pub(crate) fn wait<'s>(
        &'s self,
        mut state: Guard<'s>,
        count: u16,
        patience: Duration,
        is_there: impl Fn(&Line) -> bool,
    ) -> Guard<'s> {
        // Read when it is first needed: most waits end with the first call.
        let mut until = None;
        let mut is_first = true;
        loop {
            let any = state.try_with(Line::collect);
            if state.followers > 0 && any != Some(false) {
                self.changed.notify_all();
            }
            if state.line.as_ref().is_none_or(&is_there) {
                break;
            }
            let left = match until {
                _ if is_first => patience,
                Some(until) => Instant::saturating_duration_since(&until, Instant::now()),
                None => {
                    until = Some(Instant::now() + patience);
                    patience
                }
            };
            if left.is_zero() {
                break;
            }
            state = match state.is_led {
                true => self.follow(state, left),
                false => self.lead(state, count, left),
            };
            is_first = false;
        }
        if state.followers > 0 {
            self.changed.notify_all();
        }
        state
    }

    /// Sleeps at the line, without the lock.
    fn lead<'s>(&'s self, mut state: Guard<'s>, count: u16, left: Duration) -> Guard<'s> {
        // What others wait for counts, too.
        let count = if state.followers > 0 { 1 } else { count };
        if state.try_with(|line| line.look_awake(count, left)) != Some(false) {
            return state;
        }
        let Some(Some(waiter)) = state.try_with(|line| line.ask_for_call(count)) else { return state };
        state.is_led = true;
        drop(state);
        let slept = waiter.sleep(left);
        let mut state = self.lock();
        state.is_led = false;
        state.try_with(|_| slept);
        state
    }

    /// Sleeps until who leads has something, who may wait for more than the next that comes.
    fn follow<'s>(&'s self, mut state: Guard<'s>, left: Duration) -> Guard<'s> {
        if !matches!(state.try_with(|line| line.ask_for_call(1)), Some(Some(_))) {
            return state;
        }
        state.followers += 1;
        let (mut state, _) = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        state.followers -= 1;
        state
    }
}

impl State {
    pub(crate) const fn line(&mut self) -> Option<&mut Line> {
        self.line.as_mut()
    }

    pub(crate) const fn is_lost(&self) -> bool {
        self.line.is_none()
    }

    /// Does something with the line, which is over where that fails. None where it is lost, now or before.
    pub(crate) fn try_with<T>(&mut self, work: impl FnOnce(&mut Line) -> Result<T, Trouble>) -> Option<T> {
        let done = work(self.line.as_mut()?);
        if done.is_err() {
            self.end();
        }
        done.ok()
    }

    /// Ends the line, for all.
    pub(crate) fn end(&mut self) {
        self.line.take().into_iter().for_each(Line::end);
    }
}
