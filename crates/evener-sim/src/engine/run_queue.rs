//! The run queue of a core: the thread that runs, those that wait, and the virtual time below which none falls.

use super::thread::{LEVEL, Task, ThreadId};

/// One core and its queue. Times in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Core {
    pub(super) current: Option<ThreadId>,
    pub(super) queue: Vec<ThreadId>,
    /// Threads that sleep and are still counted into the mean: by deadlines, such as were ahead of it.
    pub(super) lingering: Vec<ThreadId>,
    pub(super) next_tick: u64,
    pub(super) switches: u64,
    /// The least virtual time on this core; never falls.
    pub(super) floor: u64,
    /// The thread that had the core last; none after an idle time.
    pub(super) last: Option<ThreadId>,
    interrupted_until: u64,
}

impl Core {
    pub(super) const fn new(next_tick: u64) -> Self {
        Self {
            current: None,
            queue: Vec::new(),
            lingering: Vec::new(),
            next_tick,
            switches: 0,
            floor: LEVEL,
            last: None,
            interrupted_until: 0,
        }
    }

    pub(super) fn load(&self) -> usize {
        self.queue.len() + usize::from(self.current.is_some())
    }

    pub(super) const fn is_interrupted(&self, now: u64) -> bool {
        now < self.interrupted_until
    }

    pub(super) fn is_idle(&self, now: u64) -> bool {
        self.load() == 0 && !self.is_interrupted(now)
    }

    /// Takes the core for an interrupt, after those that run; returns its end.
    pub(super) fn interrupt(&mut self, now: u64, span: u64) -> u64 {
        self.interrupted_until = self.interrupted_until.max(now) + span;
        self.interrupted_until
    }

    /// Forgets ticks that fell while the core was idle or interrupted.
    pub(super) fn catch_up(&mut self, now: u64, tick: u64) {
        if self.next_tick < now {
            self.next_tick += (now - self.next_tick).div_ceil(tick) * tick;
        }
    }

    pub(super) fn raise_floor(&mut self, tasks: &[Task]) {
        let all = self.queue.iter().chain(&self.current);
        if let Some(least) = all.map(|thread| tasks[thread.0].vruntime).min() {
            self.floor = self.floor.max(least);
        }
    }

    pub(super) fn switch_to(&mut self, thread: ThreadId, task: &mut Task) {
        self.switches += u64::from(self.last != Some(thread));
        (self.last, self.current) = (Some(thread), Some(thread));
        task.progress.ran = 0;
        task.due.shield = task.due.deadline;
    }
}
