//! A worker of the CPU path: it claims at the chooser, computes job after job of its claim, and claims again.

use std::collections::VecDeque;

use evener_core::Nanos;

use crate::engine::{Context, EventId, Step, Thread};
use crate::lab::chooser::{Path, Worker};
use crate::lab::state::{Answer, JobId, RunState, Took, pause};

pub(crate) struct CpuWorker {
    worker: Worker,
    wake: EventId,
    /// Of the monitor that hands it jobs, where there is one.
    doorbell: Option<EventId>,
    claim: VecDeque<JobId>,
    /// The job it computes, and what that takes.
    running: Option<(JobId, Nanos)>,
    /// Whether the monitor does not know yet that it is free.
    must_ring: bool,
}

impl CpuWorker {
    pub(crate) const fn new(worker: Worker, wake: EventId, doorbell: Option<EventId>) -> Self {
        Self { worker, wake, doorbell, claim: VecDeque::new(), running: None, must_ring: false }
    }

    /// Ends the job it has computed; the pause that the cap asks for.
    fn end(&mut self, context: &mut Context<'_, RunState<'_>>) -> Option<Nanos> {
        let (job, core) = self.running.take()?;
        let took = Took { core, interrupt: Nanos::ZERO, service: Nanos::ZERO };
        context.world.finish_job(self.worker, (0, job), context.now, took);
        self.must_ring = true;
        pause(context, Path::Cpu)
    }

    /// Fills the claim, or says what to do instead.
    fn fetch(&mut self, state: &mut RunState<'_>, now: Nanos) -> Option<Step> {
        if self.doorbell.is_some() {
            let at = state.at(self.worker);
            let Some(job) = state.assigned[at].take() else { return Some(Step::Wait(self.wake)) };
            self.claim.push_back(job);
            return None;
        }
        match state.next_jobs(self.worker, now, usize::MAX) {
            Answer::Jobs(jobs) => self.claim = jobs,
            Answer::Rest => return Some(Step::Wait(self.wake)),
            Answer::RestAtMost(time) => return Some(Step::WaitAtMost(self.wake, time)),
            Answer::Later(time) => return Some(Step::Sleep(time)),
        }
        None
    }
}

impl Thread<RunState<'_>> for CpuWorker {
    fn next(&mut self, context: &mut Context<'_, RunState<'_>>) -> Step {
        if let Some(time) = self.end(context) {
            return Step::Sleep(time);
        }
        if let Some(doorbell) = self.doorbell.filter(|_| std::mem::replace(&mut self.must_ring, false)) {
            return Step::Signal(doorbell);
        }
        if self.claim.is_empty() {
            if let Some(step) = self.fetch(context.world, context.now) {
                return step;
            }
        }
        let job = self.claim.pop_front().expect("a claim has been fetched");
        let class = context.world.start_job(self.worker, job, context.now);
        let factor = context.world.draw();
        let time = context.world.vary(factor, context.world.setup.classes[class].c);
        self.running = Some((job, time));
        Step::Compute(time + context.world.setup.cpu.hand_over)
    }
}
