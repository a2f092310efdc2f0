//! The kernel's part of a module path: a thread that takes requests from its inbox, one at a time.

use evener_core::Nanos;

use crate::engine::{Context, EventId, ModuleId, Step, Thread};
use crate::lab::state::{Request, RunState};

#[derive(Clone, Copy)]
enum Stage {
    Idle,
    /// Has prepared a request.
    Front(Request),
    /// Has handed it to the module.
    Handed(Request),
    /// The module has answered.
    Answered(Request),
    /// Has run what comes behind.
    Back(Request),
}

pub(crate) struct KernelThread {
    at: usize,
    module: ModuleId,
    doorbell: EventId,
    answered: EventId,
    waits: bool,
    stage: Stage,
}

impl KernelThread {
    /// For module `at`; `waits`: it sleeps while the module works, otherwise what is behind is an interrupt.
    pub(crate) const fn new(
        at: usize,
        module: ModuleId,
        [doorbell, answered]: [EventId; 2],
        waits: bool,
    ) -> Self {
        Self { at, module, doorbell, answered, waits, stage: Stage::Idle }
    }

    fn go(&mut self, stage: Stage, step: Step) -> Step {
        self.stage = stage;
        step
    }
}

impl Thread<RunState<'_>> for KernelThread {
    fn next(&mut self, context: &mut Context<'_, RunState<'_>>) -> Step {
        let module = self.module;
        match self.stage {
            Stage::Idle => match context.world.inboxes[self.at].pop_front() {
                Some(request) => self.go(Stage::Front(request), Step::Compute(request.path.front)),
                None => Step::Wait(self.doorbell),
            },
            Stage::Front(Request { work, path, done }) if !self.waits => {
                self.go(Stage::Idle, Step::Submit { module, work, interrupt: path.back, done })
            }
            Stage::Front(request) => {
                let step =
                    Step::Submit { module, work: request.work, interrupt: Nanos::ZERO, done: self.answered };
                self.go(Stage::Handed(request), step)
            }
            Stage::Handed(request) => self.go(Stage::Answered(request), Step::Wait(self.answered)),
            Stage::Answered(request) => {
                context.set_failed(request.done, context.has_failed(self.answered));
                self.go(Stage::Back(request), Step::Compute(request.path.back))
            }
            Stage::Back(request) => self.go(Stage::Idle, Step::Signal(request.done)),
        }
    }
}
