//! One instant: cores pick threads, and threads take the steps that need no time.

use evener_core::Nanos;

use super::event_queue::Entry;
use super::thread::{Context, EventId, ModuleId, Step, ThreadId};
use super::{Engine, Stuck, World};

/// Steps that a thread takes before the other cores get their turn. Assumed, not measured: 1000, because only a thread that takes steps without computing gets there.
const STEPS_MAX: u32 = 1_000;

/// Decisions at one instant; more is a bug of a thread's author. Assumed, not measured: 100,000, because that is far above any need.
const DECISIONS_MAX: u32 = 100_000;

impl<S: World> Engine<'_, S> {
    /// Lets cores pick and threads step until all compute, spin or sleep, or the world is over.
    pub(super) fn settle(&mut self) -> Result<(), Stuck> {
        let mut decisions = 0;
        loop {
            let mut moved = false;
            for core in 0..self.cores.len() {
                moved |= self.settle_core(core);
                if self.world.is_over() {
                    return Ok(());
                }
            }
            if !moved {
                return Ok(());
            }
            decisions += 1;
            if decisions > DECISIONS_MAX {
                return Err(Stuck::Livelock { at: Nanos(self.now) });
            }
        }
    }

    /// One decision of one core; false where there is none to take.
    fn settle_core(&mut self, core: usize) -> bool {
        if self.cores[core].is_interrupted(self.now) {
            return false;
        }
        let Some(thread) = self.cores[core].current else {
            return self.pick(core) || self.rules.slice().is_none() && self.pull(core);
        };
        if let Some(event) = self.tasks[thread.0].waiting.spins_on {
            if !self.events[event.0].take() {
                return false;
            }
            let task = &mut self.tasks[thread.0];
            (task.waiting.spins_on, task.progress.remaining) = (None, 0);
        }
        if self.tasks[thread.0].progress.remaining > 0 {
            return false;
        }
        // The kernel brings a thread's slice up to date wherever the thread reads its own clock.
        let is_looked_at = self.rules.slice().is_some() && !cfg!(mutant = "looks_at_ticks_only");
        if is_looked_at && self.look(core) {
            return true;
        }
        self.step(core, thread);
        true
    }

    /// Asks a thread for its next step, and the next, until it spends time, sleeps or is pre-empted.
    fn step(&mut self, core: usize, thread: ThreadId) {
        for _ in 0..STEPS_MAX {
            let mut context = Context {
                now: Nanos(self.now),
                world: &mut self.world,
                interrupts: Nanos(self.interrupts),
                tasks: &self.tasks,
                events: &mut self.events,
            };
            match self.bodies[thread.0].next(&mut context) {
                Step::Compute(Nanos(0)) => {}
                Step::Compute(time) => return self.tasks[thread.0].progress.remaining = time.0,
                Step::Wait(event) => {
                    if self.waits(thread, event, None) {
                        return self.fall_asleep(core);
                    }
                }
                Step::WaitAtMost(event, time) => {
                    if self.waits(thread, event, Some(time)) {
                        return self.fall_asleep(core);
                    }
                }
                Step::Spin(event) => {
                    if !self.events[event.0].take() {
                        return self.tasks[thread.0].waiting.spins_on = Some(event);
                    }
                }
                Step::Sleep(time) => {
                    self.event_queue.add(self.now + time.0, Entry::Timer { thread });
                    return self.fall_asleep(core);
                }
                Step::Signal(event) => self.signal(event),
                Step::Submit { module, work, interrupt, done } => {
                    self.submit(core, module, [work, interrupt], done);
                }
                Step::Exit => return self.leave(core),
            }
            if self.world.is_over() || self.cores[core].current != Some(thread) {
                return;
            }
        }
    }

    /// Whether a thread has to wait for an event; if so, it is noted as its waiter, with a time limit or without.
    fn waits(&mut self, thread: ThreadId, event: EventId, at_most: Option<Nanos>) -> bool {
        if self.events[event.0].take() {
            return false;
        }
        self.events[event.0].waiter = Some(thread);
        self.tasks[thread.0].waiting.count += 1;
        if let Some(time) = at_most {
            let wait = self.tasks[thread.0].waiting.count;
            self.event_queue.add(self.now + time.0, Entry::Limit { thread, event, wait });
        }
        true
    }

    fn submit(&mut self, core: usize, module: ModuleId, [work, interrupt]: [Nanos; 2], done: EventId) {
        let (at, failed) = self.modules[module.0].submit(self.now, work.0);
        if at == self.now && interrupt.0 == 0 {
            // No thread has to wait for it, and so none gives up a core.
            self.events[done.0].failed = failed;
            return self.signal(done);
        }
        self.event_queue.add(at, Entry::Completion { done, failed, interrupt: interrupt.0, core });
    }
}
