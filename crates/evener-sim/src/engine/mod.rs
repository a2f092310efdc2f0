//! The engine runs threads on cores under a fair-share scheduler, and modules beside them, in virtual time.
//!
//! Path of one instant: cores pick threads and threads take their steps until all of them compute, spin or
//! sleep (`steps.rs`) -> the clock jumps to the next event -> the thread that computes is charged -> that one
//! thing happens: a request or timer ends, the world moves, a tick falls.
//!
//! The scheduler is a re-implementation of Linux's completely fair scheduler of the years of paper 002, one run
//! queue per core (`scheduler.rs`, `run_queue.rs`), or of its successor by deadlines (`deadline.rs`). What is simplified: a context switch
//! costs nothing (the costs of a job contain it), a slice does not depend on weights, and between cores there is neither a cost of moving nor a
//! periodic balance: a thread that wakes goes to its last core if that is idle, else to any idle core, else to
//! the least loaded one; a core without work pulls the thread that the most loaded core would run next: at once, or, by deadlines, at
//! its next tick, because newer kernels let a core whose sleeps are short not search for itself (`sched_balance_newidle` in
//! `kernel/sched/fair.c`). By deadlines, a thread that computed reads its own clock at the end of the step, and its slice is
//! brought up to date there as well as at ticks. Emulated costs and paths to modules do so at each job; a core's real methods do at one burst
//! in 32, which is simplified too.

mod deadline;
mod due;
mod event_queue;
mod module;
mod run_queue;
mod scheduler;
mod steps;
mod thread;
mod weight;

use evener_core::Nanos;

use event_queue::{Entry, EventQueue};
pub use module::{Faults, ModuleSpec, Slowdown};
pub use scheduler::{ByCoreTime, Fairness, SchedulerSpec};
pub use thread::{Context, EventId, ModuleId, Step, Thread, ThreadId, ThreadSpec};
pub use weight::weight_of_nice;

use module::Module;
use run_queue::Core;
use thread::{Event, Task};

/// What the threads share, and what happens outside of them.
pub trait World {
    /// Whether the run has ended.
    fn is_over(&self) -> bool;

    /// When the next thing happens that no thread does; `None`: never again.
    fn next_happening(&self) -> Option<Nanos>;

    /// Lets everything happen that is due at `now`; events to signal go to `signals`.
    fn happen(&mut self, now: Nanos, signals: &mut Vec<EventId>);
}

/// Why a run cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stuck {
    /// Every thread sleeps and nothing will wake one.
    #[error("every thread sleeps at {at} and nothing will wake one")]
    Deadlock {
        /// When.
        at: Nanos,
    },
    /// The run is longer than it may be.
    #[error("the run is not over after {limit} of virtual time")]
    TooLong {
        /// The limit.
        limit: Nanos,
    },
    /// A thread takes step after step without spending time.
    #[error("a thread does not get ahead at {at}")]
    Livelock {
        /// When.
        at: Nanos,
    },
}

/// One simulation.
pub struct Engine<'w, S> {
    now: u64,
    end_max: u64,
    rules: SchedulerSpec,
    cores: Vec<Core>,
    tasks: Vec<Task>,
    bodies: Vec<Box<dyn Thread<S> + 'w>>,
    events: Vec<Event>,
    modules: Vec<Module>,
    event_queue: EventQueue,
    interrupts: u64,
    signals: Vec<EventId>,
    /// What the threads share.
    pub world: S,
}

impl<'w, S: World> Engine<'w, S> {
    /// A machine of `cores` cores without threads. The run may last `end_max` of virtual time.
    ///
    /// # Panics
    ///
    /// Without a core.
    #[must_use]
    pub fn new(cores: usize, rules: SchedulerSpec, end_max: Nanos, world: S) -> Self {
        assert!(cores > 0, "a machine has a core");
        Self {
            now: 0,
            end_max: end_max.0,
            rules,
            cores: vec![Core::new(rules.first_tick()); cores],
            tasks: Vec::new(),
            bodies: Vec::new(),
            events: Vec::new(),
            modules: Vec::new(),
            event_queue: EventQueue::default(),
            interrupts: 0,
            signals: Vec::new(),
            world,
        }
    }

    /// Adds a thread, runnable at once, on the least loaded core.
    pub fn spawn(&mut self, spec: ThreadSpec, body: impl Thread<S> + 'w) -> ThreadId {
        let id = ThreadId(self.tasks.len());
        let core = (0..self.cores.len()).min_by_key(|&core| self.cores[core].load()).unwrap_or(0);
        let mut task = Task::new(spec, core);
        match self.rules.slice() {
            Some(slice) => task.due.deadline = task.vruntime + task.weighted(slice),
            None if spec.is_rested => task.vruntime = 0,
            None => {}
        }
        self.tasks.push(task);
        self.bodies.push(Box::new(body));
        self.cores[core].queue.push(id);
        id
    }

    /// Adds a module.
    pub fn attach(&mut self, spec: ModuleSpec) -> ModuleId {
        self.modules.push(Module::new(spec));
        ModuleId(self.modules.len() - 1)
    }

    /// A new event, not set.
    pub fn event(&mut self) -> EventId {
        self.events.push(Event::default());
        EventId(self.events.len() - 1)
    }

    /// Runs until the world says that it is over; returns how long that took.
    ///
    /// # Errors
    ///
    /// [`Stuck`].
    pub fn run(&mut self) -> Result<Nanos, Stuck> {
        loop {
            self.settle()?;
            if self.world.is_over() {
                return Ok(Nanos(self.now));
            }
            let Some(next) = self.next_instant() else {
                return Err(Stuck::Deadlock { at: Nanos(self.now) });
            };
            if next > self.end_max {
                return Err(Stuck::TooLong { limit: Nanos(self.end_max) });
            }
            self.advance(next);
            self.process_due();
        }
    }

    /// Core time of a thread so far, by its own clock: without interrupts.
    #[must_use]
    pub fn core_time(&self, thread: ThreadId) -> Nanos {
        Nanos(self.tasks[thread.0].progress.core_time)
    }

    /// Core time of all interrupts so far; no thread's clock has it.
    #[must_use]
    pub const fn interrupt_time(&self) -> Nanos {
        Nanos(self.interrupts)
    }

    /// How often a core went over to another thread.
    #[must_use]
    pub fn switches(&self) -> u64 {
        self.cores.iter().map(|core| core.switches).sum()
    }

    /// How long the module has worked, summed over its units.
    #[must_use]
    pub fn busy_time(&self, module: ModuleId) -> Nanos {
        self.modules[module.0].busy_until(self.now)
    }

    /// When something happens next.
    fn next_instant(&mut self) -> Option<u64> {
        let outside = self.world.next_happening().map(|at| at.0.max(self.now));
        let mut next = [self.event_queue.next(), outside].into_iter().flatten().min();
        for core in &mut self.cores {
            core.catch_up(self.now, self.rules.tick.0);
            let Some(thread) = core.current.filter(|_| !core.is_interrupted(self.now)) else { continue };
            let task = &self.tasks[thread.0];
            let computed =
                if task.waiting.spins_on.is_some() { u64::MAX } else { self.now + task.progress.remaining };
            let own = computed.min(core.next_tick);
            next = Some(next.map_or(own, |at| at.min(own)));
        }
        next
    }

    /// Moves the clock and charges the threads that compute.
    fn advance(&mut self, to: u64) {
        let span = to - self.now;
        for core in &self.cores {
            let running = core.current.filter(|_| !core.is_interrupted(self.now));
            if let Some(thread) = running {
                self.tasks[thread.0].charge(span);
            }
        }
        self.now = to;
        for core in &mut self.cores {
            core.raise_floor(&self.tasks);
        }
    }

    /// One thing that is due: an entry of the event queue, else the world, else the ticks.
    fn process_due(&mut self) {
        if let Some(entry) = self.event_queue.take_due(self.now) {
            return self.process_entry(entry);
        }
        if self.world.next_happening().is_some_and(|at| at.0 <= self.now) {
            let mut signals = std::mem::take(&mut self.signals);
            self.world.happen(Nanos(self.now), &mut signals);
            for event in signals.drain(..) {
                self.signal(event);
            }
            return self.signals = signals;
        }
        for core in 0..self.cores.len() {
            if self.cores[core].next_tick == self.now {
                self.tick(core);
            }
        }
    }

    fn process_entry(&mut self, entry: Entry) {
        match entry {
            Entry::Timer { thread } => self.wake(thread),
            Entry::Limit { thread, event, wait } => {
                let waits = self.events[event.0].waiter == Some(thread);
                if waits && self.tasks[thread.0].waiting.count == wait {
                    self.events[event.0].waiter = None;
                    self.wake(thread);
                }
            }
            Entry::InterruptEnd { done } => self.signal(done),
            Entry::Completion { done, failed, interrupt, core } => {
                self.events[done.0].failed = failed;
                if interrupt == 0 || failed {
                    return self.signal(done);
                }
                self.interrupts += interrupt;
                let end = self.cores[core].interrupt(self.now, interrupt);
                if let Some(thread) = self.cores[core].current {
                    self.tasks[thread.0].interrupt(interrupt);
                }
                self.event_queue.add(end, Entry::InterruptEnd { done });
            }
        }
    }

    /// Sets an event, or wakes the thread that waits for it.
    fn signal(&mut self, event: EventId) {
        match self.events[event.0].waiter.take() {
            Some(thread) => self.wake(thread),
            None => self.events[event.0].is_set = true,
        }
    }
}
