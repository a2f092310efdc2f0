//! The busy monitor of paper 002's polling: a thread that polls the workers and assigns a job to each that is idle.

use evener_core::Nanos;

use crate::engine::{Context, EventId, Step, Thread};
use crate::lab::state::RunState;

pub(crate) struct Monitor {
    doorbell: EventId,
    /// Core time for handing over one job.
    time: Nanos,
    wakes: Vec<EventId>,
    /// The order in which it looks at the workers: modules first.
    order: Vec<usize>,
    /// Whom it is about to serve.
    serves: Option<usize>,
}

impl Monitor {
    pub(crate) fn new(doorbell: EventId, time: Nanos, wakes: Vec<EventId>, cpu_workers: usize) -> Self {
        let order = (cpu_workers..wakes.len()).chain(0..cpu_workers).collect();
        Self { doorbell, time, wakes, order, serves: None }
    }
}

impl Thread<RunState<'_>> for Monitor {
    fn next(&mut self, context: &mut Context<'_, RunState<'_>>) -> Step {
        let state = &mut *context.world;
        if let Some(at) = self.serves.take() {
            if state.assign(at, context.now) {
                return Step::Signal(self.wakes[at]);
            }
            return Step::Spin(self.doorbell); // Nothing left, or nothing for this worker.
        }
        let is_free = |&&at: &&usize| {
            let worker = &state.workers[at];
            worker.busy.is_empty() && state.assigned[at].is_none() && !worker.is_lost
        };
        self.serves = self.order.iter().find(is_free).copied();
        match self.serves {
            Some(_) => Step::Compute(self.time),
            None => Step::Spin(self.doorbell),
        }
    }
}
