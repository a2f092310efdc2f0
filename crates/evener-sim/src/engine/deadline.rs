//! Fairness by deadlines, as Linux has it since 6.6 (EEVDF; `kernel/sched/fair.c` of 6.18 with its default features).
//!
//! A thread asks for a slice; its deadline is the virtual time at which it has had one. A thread that had more than the mean of its core
//! waits (is not *eligible*); of the others the one with the earliest deadline goes first. The thread that was picked keeps the core up
//! to the deadline that it had then, as long as it is eligible: its *shield*. A thread that falls asleep keeps what it is behind
//! the mean (*lag*), and no more than a tick of it. One that is ahead *lingers*: it is counted into the mean as if it waited, until
//! it would have the core next. One that wakes while it lingers goes on with the virtual time and the deadline that it had; so much was
//! measured, with a thread that computes for 371 us and sleeps for 404 beside two that compute only: it waited in mid-work, a slice at
//! a time and once in some nine turns, and hardly ever for a core to wake on. (Read alone, `DELAY_ZERO` in the source would have it begin
//! anew at the mean; why it does not was not found out.)

use std::cmp::Reverse;

use super::run_queue::Core;
use super::thread::{Task, ThreadId};
use super::{Engine, World};

impl Task {
    /// Asks for the next slice where it has had the last one.
    pub(super) fn renew(&mut self, slice: u64) {
        if self.vruntime >= self.due.deadline {
            self.due.deadline = self.vruntime + self.weighted(slice);
        }
    }
}

impl<S: World> Engine<'_, S> {
    /// Mean virtual time of the threads on a core, by weight, and the sum of their weights; nothing where there are none.
    fn mean(&self, core: usize) -> Option<(u64, u64)> {
        let Core { queue, lingering, current, .. } = &self.cores[core];
        let all = || queue.iter().chain(lingering).chain(current).map(|thread| &self.tasks[thread.0]);
        let weight: u64 = all().map(|task| u64::from(task.spec.weight)).sum();
        let sum: u128 = all().map(|task| u128::from(task.vruntime) * u128::from(task.spec.weight)).sum();
        let mean = sum.checked_div(u128::from(weight))?;
        Some((u64::try_from(mean).unwrap_or(u64::MAX), weight))
    }

    fn is_eligible(&self, core: usize, thread: ThreadId) -> bool {
        self.mean(core).is_none_or(|(mean, _)| self.tasks[thread.0].vruntime <= mean)
    }

    /// The order in which threads get a core: the least first.
    pub(super) fn deadline_order(&self, core: usize, thread: ThreadId) -> (Reverse<i32>, bool, u64) {
        let task = &self.tasks[thread.0];
        (Reverse(task.spec.priority), !self.is_eligible(core, thread), task.due.deadline)
    }

    /// Notes how far the thread on a core, which falls asleep, is behind the mean; one that is ahead lingers.
    pub(super) fn record_lag(&mut self, core: usize) {
        let Some(thread) = self.cores[core].current else { return };
        if self.is_eligible(core, thread) || cfg!(mutant = "nobody_lingers") {
            self.tasks[thread.0].due.lag = self.lag(core, thread);
        } else {
            self.cores[core].lingering.push(thread);
        }
    }

    /// How far a thread is behind the mean of its core, and no more than a tick.
    fn lag(&self, core: usize, thread: ThreadId) -> i64 {
        let Some((mean, _)) = self.mean(core) else { return 0 };
        let most = i64::try_from(self.rules.tick.0).unwrap_or(i64::MAX);
        let lag = i128::from(mean) - i128::from(self.tasks[thread.0].vruntime);
        i64::try_from(lag).unwrap_or(0).clamp(-most, most)
    }

    /// Lets those go that linger and would have the core next: they have lost what they were ahead.
    pub(super) fn drop_lingering(&mut self, core: usize) {
        loop {
            let Core { queue, lingering, .. } = &self.cores[core];
            let all = queue.iter().chain(lingering);
            let first = all.min_by_key(|&&thread| self.deadline_order(core, thread)).copied();
            let at = first.and_then(|first| lingering.iter().position(|&other| other == first));
            let Some(at) = at else { return };
            let thread = self.cores[core].lingering.remove(at);
            self.tasks[thread.0].due.lag = 0;
        }
    }

    /// Places a thread that wakes among those on its core: as far behind the new mean as it was, or where it still lingers.
    pub(super) fn place_waking(&mut self, core: usize, thread: ThreadId, slice: u64) {
        let lingering = &mut self.cores[core].lingering;
        if let Some(at) = lingering.iter().position(|&other| other == thread) {
            lingering.remove(at);
            return;
        }
        let mean = self.mean(core);
        let task = &mut self.tasks[thread.0];
        if let Some((mean, others)) = mean {
            let all = i128::from(others) + i128::from(task.spec.weight);
            let behind = i128::from(mean) - i128::from(task.due.lag) * all / i128::from(others);
            task.vruntime = u64::try_from(behind.max(0)).unwrap_or(u64::MAX);
        }
        task.due.deadline = task.vruntime + task.weighted(slice);
    }

    /// Whether a thread that has just come back goes before the one that runs.
    pub(super) fn preempts(&mut self, core: usize, thread: ThreadId, current: ThreadId, slice: u64) -> bool {
        self.tasks[current.0].renew(slice);
        // The mean is one with the thread itself.
        self.cores[core].queue.push(thread);
        let running = &self.tasks[current.0];
        let is_shielded = running.vruntime < running.due.shield && self.is_eligible(core, current);
        let rivals = self.cores[core].queue.iter().chain([&current]);
        let first = rivals.min_by_key(|&&rival| self.deadline_order(core, rival)).copied();
        self.cores[core].queue.pop();
        first == Some(thread) && !is_shielded
    }
}
