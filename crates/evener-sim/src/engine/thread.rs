//! Threads as state machines: each returns its next step whenever the last one is done.

use evener_core::Nanos;

use super::due::Due;

/// A thread of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub(super) usize);

/// An event of the simulation: set until a thread has waited for it, like a semaphore that holds at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub(super) usize);

/// A module of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub(super) usize);

/// What a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Uses a core for this long.
    Compute(Nanos),
    /// Sleeps until the event is set, and takes it.
    Wait(EventId),
    /// The same, but sleeps no longer than this.
    WaitAtMost(EventId, Nanos),
    /// Sleeps this long.
    Sleep(Nanos),
    /// Uses a core until the event is set, and takes it.
    Spin(EventId),
    /// Sets an event or wakes the thread that waits for it, which may take the core at once.
    Signal(EventId),
    /// Hands a request to a module and goes on.
    Submit {
        /// Which module.
        module: ModuleId,
        /// How long the module works on it.
        work: Nanos,
        /// How long its end interrupts the core it was submitted from.
        interrupt: Nanos,
        /// Set when it has ended and the interrupt has run, or when it has failed.
        done: EventId,
    },
    /// Ends the thread.
    Exit,
}

/// The body of a thread.
pub trait Thread<S> {
    /// The next step; the one before is done.
    fn next(&mut self, context: &mut Context<'_, S>) -> Step;
}

/// How the scheduler sees a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadSpec {
    /// Threads of a higher priority go first, always. 0 is usual.
    pub priority: i32,
    /// Share among threads of the same priority, as the kernel counts it: 1024 is usual
    /// ([`weight_of_nice`](super::weight_of_nice)).
    pub weight: u32,
    /// Whether it has slept for long when the run begins. By core time it then has all the credit that a sleeper gets
    /// ([`ByCoreTime::credit`](super::ByCoreTime::credit)) when it is first woken; others begin level.
    pub is_rested: bool,
}

impl Default for ThreadSpec {
    fn default() -> Self {
        Self { priority: 0, weight: super::weight_of_nice(0), is_rested: false }
    }
}

/// What a thread sees at a step.
pub struct Context<'a, S> {
    /// The time.
    pub now: Nanos,
    /// Core time of all interrupts so far.
    pub interrupts: Nanos,
    /// What the threads share.
    pub world: &'a mut S,
    pub(super) tasks: &'a [Task],
    pub(super) events: &'a mut [Event],
}

impl<S> Context<'_, S> {
    /// Core time of a thread so far, without interrupts.
    #[must_use]
    pub fn core_time(&self, thread: ThreadId) -> Nanos {
        Nanos(self.tasks[thread.0].progress.core_time)
    }

    /// Whether the request whose end set this event last has failed.
    #[must_use]
    pub fn has_failed(&self, done: EventId) -> bool {
        self.events[done.0].failed
    }

    /// Says of an event whether it stands for a failure; for threads that pass a module's answer on.
    pub fn set_failed(&mut self, done: EventId, failed: bool) {
        self.events[done.0].failed = failed;
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Event {
    pub(super) is_set: bool,
    pub(super) failed: bool,
    pub(super) waiter: Option<ThreadId>,
}

impl Event {
    /// Whether it was set; it is not any more.
    pub(super) const fn take(&mut self) -> bool {
        std::mem::replace(&mut self.is_set, false)
    }
}

/// Virtual time at the start: far enough from nothing for any credit.
pub(super) const LEVEL: u64 = 1 << 40;

/// A thread as the scheduler keeps it. Times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) spec: ThreadSpec,
    /// The core it runs on or ran on last.
    pub(super) core: usize,
    /// Weighted core time; the queue's order.
    pub(super) vruntime: u64,
    /// What counts where threads are ordered by deadlines.
    pub(super) due: Due,
    pub(super) progress: Progress,
    pub(super) waiting: Waiting,
}

/// How far a thread is. Times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// What is left of its step.
    pub(super) remaining: u64,
    /// Core time since it was picked.
    pub(super) ran: u64,
    /// Core time since its start.
    pub(super) core_time: u64,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) spins_on: Option<EventId>,
    /// How often it waited for an event so far, so that a time limit is known to be its own.
    pub(super) count: u64,
}

impl Task {
    pub(super) const fn new(spec: ThreadSpec, core: usize) -> Self {
        Self {
            spec,
            core,
            vruntime: LEVEL,
            due: Due::NONE,
            progress: Progress { remaining: 0, ran: 0, core_time: 0 },
            waiting: Waiting { spins_on: None, count: 0 },
        }
    }

    /// Adds core time that it used.
    pub(super) fn charge(&mut self, span: u64) {
        self.interrupt(span);
        self.progress.core_time += span;
        self.progress.remaining = self.progress.remaining.saturating_sub(span);
    }

    /// Adds core time that an interrupt took from it: the scheduler counts it, the thread's clock does not.
    pub(super) fn interrupt(&mut self, span: u64) {
        self.vruntime += self.weighted(span);
        self.progress.ran += span;
    }

    /// `span` as virtual time: the lighter the thread, the longer.
    pub(super) fn weighted(&self, span: u64) -> u64 {
        span * 1024 / u64::from(self.spec.weight)
    }
}
