//! The fair-share scheduler: one run queue per core, ordered by priority and then by weighted core time, or by deadlines
//! (`deadline.rs`).
//!
//! By core time, a thread that wakes gets at most [`ByCoreTime::credit`] on those that ran meanwhile, and takes the core at
//! once if it is more than [`ByCoreTime::wakeup_granularity`] behind the thread there. Otherwise a thread
//! loses its core only at a tick: when its slice is over, or when it is a slice ahead of the next.

use evener_core::Nanos;

use super::thread::ThreadId;
use super::{Engine, World};

/// Which thread gets a core, by Linux's versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fairness {
    /// Up to 6.5 (CFS): the one that had least core time.
    ByCoreTime(ByCoreTime),
    /// From 6.6 on (EEVDF): of those that had not more than the mean, the one with the earliest deadline.
    ByDeadline {
        /// Core time that a thread asks for at a time.
        slice: Nanos,
    },
}

/// The numbers of [`Fairness::ByCoreTime`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByCoreTime {
    /// Time in which every runnable thread gets its slice.
    pub latency: Nanos,
    /// The least slice.
    pub granularity: Nanos,
    /// How far ahead a running thread must be for one that wakes to take its core.
    pub wakeup_granularity: Nanos,
    /// What a thread that slept is given on the others.
    pub credit: Nanos,
}

/// The scheduler's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerSpec {
    /// Which thread gets a core.
    pub fairness: Fairness,
    /// Time between ticks: one second over the kernel's HZ.
    pub tick: Nanos,
    /// When the first tick falls; 0: after one tick.
    pub phase: Nanos,
}

impl SchedulerSpec {
    /// Linux's defaults on one core (`kernel/sched_fair.c` of Linux 3.2): 6, 0.75 and 1 ms, half of the
    /// latency as credit; `hz` ticks per second, the first one after `phase` of a tick, in thousandths.
    ///
    /// # Panics
    ///
    /// With no ticks.
    #[must_use]
    pub fn linux(hz: u32, phase_permille: u32) -> Self {
        let fairness = Fairness::ByCoreTime(ByCoreTime {
            latency: Nanos::from_millis(6),
            granularity: Nanos::from_micros(750),
            wakeup_granularity: Nanos::from_millis(1),
            credit: Nanos::from_millis(3),
        });
        assert!(hz > 0, "a clock ticks");
        Self { fairness, tick: Nanos(1_000_000_000 / u64::from(hz)), phase: Nanos::ZERO }.at(phase_permille)
    }

    /// Linux's defaults from 6.6 on (`kernel/sched/fair.c` of 6.18): slices of 0.7 ms, times one and the binary logarithm of
    /// the number of cores, of which at most eight count.
    ///
    /// # Panics
    ///
    /// Without a core, or with no ticks.
    #[must_use]
    pub fn by_deadline(cores: usize, hz: u32, phase_permille: u32) -> Self {
        let slice = Nanos::from_micros(700 * u64::from(1 + cores.min(8).ilog2()));
        Self { fairness: Fairness::ByDeadline { slice }, ..Self::linux(hz, phase_permille) }
    }

    /// The same with the first tick after `phase_permille` of a tick, in thousandths.
    #[must_use]
    pub const fn at(self, phase_permille: u32) -> Self {
        Self { phase: Nanos(self.tick.0 * phase_permille as u64 / 1_000), ..self }
    }

    pub(super) fn first_tick(&self) -> u64 {
        if self.phase.0 > 0 { self.phase.0 } else { self.tick.0 }
    }

    /// The slice that a thread asks for, where that is the rule.
    pub(super) const fn slice(&self) -> Option<u64> {
        match self.fairness {
            Fairness::ByCoreTime(_) => None,
            Fairness::ByDeadline { slice } => Some(slice.0),
        }
    }
}

impl ByCoreTime {
    /// The slice of each of `runnable` threads.
    fn slice(&self, runnable: u64) -> u64 {
        if runnable <= self.latency.0 / self.granularity.0 {
            self.latency.0 / runnable
        } else {
            self.granularity.0
        }
    }
}

impl<S: World> Engine<'_, S> {
    /// Takes the current thread, which falls asleep, off its core.
    pub(super) fn fall_asleep(&mut self, core: usize) {
        if self.rules.slice().is_some() {
            self.record_lag(core);
        }
        self.leave(core);
    }

    /// Takes the current thread off its core.
    pub(super) fn leave(&mut self, core: usize) {
        self.cores[core].current = None;
        self.cores[core].raise_floor(&self.tasks);
    }

    /// Gives an idle core the first thread of its queue; false where the queue is empty.
    pub(super) fn pick(&mut self, core: usize) -> bool {
        if self.rules.slice().is_some() {
            self.drop_lingering(core);
        }
        let Some(thread) = self.take_first(core) else {
            self.cores[core].last = None;
            return false;
        };
        self.cores[core].switch_to(thread, &mut self.tasks[thread.0]);
        true
    }

    /// Moves to an idle core what the most loaded core would run next; false where no core has two threads.
    pub(super) fn pull(&mut self, core: usize) -> bool {
        let from = (0..self.cores.len()).max_by_key(|&other| self.cores[other].load()).unwrap_or(core);
        let waits = !self.cores[from].queue.is_empty();
        let busy = self.cores[from].load() > 1 || self.cores[from].is_interrupted(self.now);
        if from == core || !waits || !busy {
            return false;
        }
        let Some(thread) = self.take_first(from) else { return false };
        self.move_to(core, thread);
        self.cores[core].switch_to(thread, &mut self.tasks[thread.0]);
        true
    }

    fn take_first(&mut self, core: usize) -> Option<ThreadId> {
        let queue = &self.cores[core].queue;
        let first = match self.rules.fairness {
            Fairness::ByCoreTime(_) => (0..queue.len()).min_by_key(|&at| self.core_time_order(queue[at])),
            Fairness::ByDeadline { .. } => {
                (0..queue.len()).min_by_key(|&at| self.deadline_order(core, queue[at]))
            }
        };
        first.map(|first| self.cores[core].queue.remove(first))
    }

    /// Higher priority first, then the one with less virtual time.
    fn core_time_order(&self, thread: ThreadId) -> (i32, u64) {
        let task = &self.tasks[thread.0];
        (-task.spec.priority, task.vruntime)
    }

    /// Wakes a thread on the core that suits it.
    pub(super) fn wake(&mut self, thread: ThreadId) {
        let core = self.place(thread);
        self.move_to(core, thread);
        match self.rules.fairness {
            Fairness::ByCoreTime(rules) => {
                let behind = self.cores[core].floor.saturating_sub(rules.credit.0);
                let task = &mut self.tasks[thread.0];
                task.vruntime = task.vruntime.max(behind);
            }
            Fairness::ByDeadline { slice } => self.place_waking(core, thread, slice.0),
        }
        let Some(current) = self.cores[core].current else { return self.cores[core].queue.push(thread) };
        let (woken, running) = (self.tasks[thread.0].spec.priority, self.tasks[current.0].spec.priority);
        if woken > running || woken == running && self.takes_over(core, thread, current) {
            self.cores[core].queue.push(current);
            self.cores[core].switch_to(thread, &mut self.tasks[thread.0]);
        } else {
            self.cores[core].queue.push(thread);
        }
    }

    /// Whether a thread that wakes takes the core of one of the same priority.
    fn takes_over(&mut self, core: usize, thread: ThreadId, current: ThreadId) -> bool {
        match self.rules.fairness {
            Fairness::ByCoreTime(rules) => {
                let (woken, running) = (&self.tasks[thread.0], &self.tasks[current.0]);
                let margin = woken.weighted(rules.wakeup_granularity.0);
                running.vruntime.saturating_sub(woken.vruntime) > margin
            }
            Fairness::ByDeadline { slice } => self.preempts(core, thread, current, slice.0),
        }
    }

    fn place(&self, thread: ThreadId) -> usize {
        let home = self.tasks[thread.0].core;
        if self.cores[home].lingering.contains(&thread) {
            return home;
        }
        let idle = |&core: &usize| self.cores[core].is_idle(self.now);
        let all = 0..self.cores.len();
        let free = Some(home).filter(idle).or_else(|| all.clone().find(idle));
        let least = || all.min_by_key(|&core| (self.cores[core].load(), core != home));
        free.or_else(least).unwrap_or(home)
    }

    /// Makes a thread one of `core`'s, as far ahead there as it was where it came from.
    fn move_to(&mut self, core: usize, thread: ThreadId) {
        let task = &mut self.tasks[thread.0];
        if task.core != core {
            let ahead = i128::from(task.vruntime) - i128::from(self.cores[task.core].floor);
            let moved = i128::from(self.cores[core].floor) + ahead;
            task.vruntime = u64::try_from(moved.max(0)).unwrap_or(u64::MAX);
            task.core = core;
        }
    }

    /// A tick: the thread on the core goes back to the queue if its slice is over or it is a slice ahead.
    pub(super) fn tick(&mut self, core: usize) {
        self.cores[core].next_tick += self.rules.tick.0;
        if self.rules.slice().is_some() && self.cores[core].is_idle(self.now) {
            self.pull(core);
        }
        self.look(core);
    }

    /// A look at the thread on a core, at a tick or where it reads its own clock: whether it goes back to the queue.
    pub(super) fn look(&mut self, core: usize) -> bool {
        let Some(current) = self.cores[core].current else { return false };
        let is_over = self.is_slice_over(core, current);
        if is_over {
            self.cores[core].queue.push(current);
            self.cores[core].current = None;
        }
        is_over
    }

    fn is_slice_over(&mut self, core: usize, current: ThreadId) -> bool {
        let running = self.tasks[current.0];
        let rivals = self.cores[core].queue.iter().copied();
        let rivals = rivals.filter(|rival| self.tasks[rival.0].spec.priority >= running.spec.priority);
        let Some(first) = rivals.clone().min_by_key(|&rival| self.core_time_order(rival)) else {
            return false;
        };
        match self.rules.fairness {
            Fairness::ByCoreTime(rules) => {
                let slice = rules.slice(1 + rivals.count() as u64);
                let ahead = running.vruntime.saturating_sub(self.tasks[first.0].vruntime);
                running.progress.ran > slice || running.progress.ran >= rules.granularity.0 && ahead > slice
            }
            Fairness::ByDeadline { slice } => {
                self.tasks[current.0].renew(slice.0);
                running.vruntime >= running.due.deadline || running.vruntime >= running.due.shield
            }
        }
    }
}
