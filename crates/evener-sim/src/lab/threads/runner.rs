//! A thread of a driver: calls the kernel with one request at a time and sleeps there until it is done.

use evener_core::Nanos;

use crate::engine::{Context, EventId, Step, Thread};
use crate::lab::Opening;
use crate::lab::state::{Call, KeyState, ModulePort, Request, RunState};

#[derive(Clone, Copy)]
enum Stage {
    /// Looks for the next request.
    Idle,
    /// Has slept until there may be one.
    Asleep,
    /// Has no key yet.
    Keyless(Call),
    /// Has worked for one.
    Opening(Call),
    /// Has slept for one.
    Opened(Call),
    /// Has it, and wakes the threads that wait for it.
    Waking(Call),
    /// Has prepared a request.
    Front(Call),
    /// Has handed it to the kernel.
    Handed(Call),
    /// The kernel has answered.
    Answered(Call),
    /// Has run what comes behind.
    Back(Call),
}

pub(crate) struct Runner {
    /// Of which module.
    module: usize,
    port: ModulePort,
    doorbell: EventId,
    answered: EventId,
    /// Threads that wait for the key that it has opened.
    wake: Vec<EventId>,
    stage: Stage,
}

impl Runner {
    /// For `module`; `port` is where the kernel takes requests.
    pub(crate) const fn new(module: usize, port: ModulePort, [doorbell, answered]: [EventId; 2]) -> Self {
        Self { module, port, doorbell, answered, wake: Vec::new(), stage: Stage::Idle }
    }

    fn go(&mut self, stage: Stage, step: Step) -> Step {
        self.stage = stage;
        step
    }

    /// Goes on with a request where there is a key; opens it, or waits for the thread that does.
    fn acquire_key(&mut self, state: &mut RunState<'_>, call: Call) -> Step {
        let module = self.module;
        let Opening { driver, .. } = state.setup.modules[module].opening;
        match &mut state.keys[module] {
            KeyState::Open => self.go(Stage::Front(call), Step::Compute(call.path.front)),
            KeyState::Opening(waiting) => {
                waiting.push(self.answered);
                self.go(Stage::Keyless(call), Step::Wait(self.answered))
            }
            key @ KeyState::Unknown => {
                *key = KeyState::Opening(Vec::new());
                self.go(Stage::Opening(call), Step::Compute(driver))
            }
        }
    }

    /// Wakes the threads that waited for the key, and goes on.
    fn wake_waiters(&mut self, call: Call) -> Step {
        match self.wake.pop() {
            Some(waiting) => self.go(Stage::Waking(call), Step::Signal(waiting)),
            None => self.go(Stage::Front(call), Step::Compute(call.path.front)),
        }
    }
}

impl Thread<RunState<'_>> for Runner {
    fn next(&mut self, context: &mut Context<'_, RunState<'_>>) -> Step {
        let module = self.module;
        match self.stage {
            Stage::Idle => match context.world.driver_queues[module].pop(self.doorbell) {
                Some(call) => self.acquire_key(context.world, call),
                None => self.go(Stage::Asleep, Step::Wait(self.doorbell)),
            },
            Stage::Asleep => {
                context.world.driver_queues[module].record_awake();
                self.stage = Stage::Idle;
                self.next(context)
            }
            Stage::Keyless(call) => self.acquire_key(context.world, call),
            Stage::Opening(call) => {
                let Opening { wait, .. } = context.world.setup.modules[module].opening;
                self.go(
                    Stage::Opened(call),
                    if wait > Nanos::ZERO { Step::Sleep(wait) } else { Step::Compute(wait) },
                )
            }
            Stage::Opened(call) => {
                if let KeyState::Opening(waiting) =
                    std::mem::replace(&mut context.world.keys[module], KeyState::Open)
                {
                    self.wake = waiting;
                }
                self.wake_waiters(call)
            }
            Stage::Waking(call) => self.wake_waiters(call),
            Stage::Front(call) => {
                let request = Request { done: self.answered, ..call.request };
                let step = context.world.submit(module, &self.port, request);
                self.go(Stage::Handed(call), step)
            }
            Stage::Handed(call) => self.go(Stage::Answered(call), Step::Wait(self.answered)),
            Stage::Answered(call) => {
                context.set_failed(call.request.done, context.has_failed(self.answered));
                self.go(Stage::Back(call), Step::Compute(call.path.back))
            }
            Stage::Back(call) => {
                self.stage = Stage::Idle;
                let woken = context.world.driver_queues[module].finish(call.place);
                woken.map_or_else(|| self.next(context), Step::Signal)
            }
        }
    }
}
