//! A worker of a module path: prepares requests, keeps up to `depth` of them outstanding, takes the oldest back.

use std::collections::VecDeque;

use evener_core::Nanos;

use crate::engine::{Context, EventId, Step, Thread};
use crate::round;

use super::backlog::JobId;
use super::chooser::{Path, Worker};
use super::crew::Desk;
use super::hall::{Answer, Hall, Took, pause};
use super::kernel::Request;
use super::{CHECKED_FIRST, ModulePath, ModuleSide};

/// A job on its way, with the core time of each part of the path.
#[derive(Clone, Copy)]
struct Errand {
    job: JobId,
    front: Nanos,
    kernel_front: Nanos,
    work: Nanos,
    kernel_back: Nanos,
    back: Nanos,
    /// What follows and is no cost of the path: hand-over and check.
    after: Nanos,
    done: EventId,
}

#[derive(Clone, Copy)]
enum Stage {
    /// Has room, or must make some.
    Ready,
    /// Has prepared a request.
    Front(Errand),
    /// Has waited for its oldest request.
    Returned(Errand),
    /// Has run what comes behind.
    Back(Errand),
}

pub(super) struct ModuleWorker {
    worker: Worker,
    path: ModulePath,
    desk: Desk,
    wake: EventId,
    bell: Option<EventId>,
    /// Events that no request uses: as many as may be outstanding.
    results: Vec<EventId>,
    claim: VecDeque<JobId>,
    outstanding: VecDeque<Errand>,
    stage: Stage,
    /// Jobs prepared so far.
    prepared: u32,
    is_lost: bool,
    signals: VecDeque<EventId>,
}

impl ModuleWorker {
    /// For module `at`. `results`: one event for each request that may be outstanding.
    pub(super) fn new(
        at: usize,
        side: &ModuleSide,
        desk: Desk,
        wake: EventId,
        bell: Option<EventId>,
        results: Vec<EventId>,
    ) -> Self {
        let index = u32::try_from(at).expect("modules are few");
        Self {
            worker: Worker { path: Path::Module, index },
            path: side.path,
            desk,
            wake,
            bell,
            results,
            claim: VecDeque::new(),
            outstanding: VecDeque::new(),
            stage: Stage::Ready,
            prepared: 0,
            is_lost: false,
            signals: VecDeque::new(),
        }
    }

    fn go(&mut self, stage: Stage, step: Step) -> Step {
        self.stage = stage;
        step
    }

    /// Takes a job if there is room and one to take; otherwise waits, for a request or for jobs.
    fn ready(&mut self, context: &mut Context<'_, Hall<'_>>) -> Step {
        let instead = match self.results.pop() {
            Some(done) if !self.is_lost => match self.fetch(context.world, context.now) {
                Ok(job) => {
                    let errand = self.prepare(context, job, done);
                    return self.go(Stage::Front(errand), Step::Compute(errand.front));
                }
                Err(instead) => {
                    self.results.push(done);
                    instead
                }
            },
            unused => {
                self.results.extend(unused);
                Step::Exit
            }
        };
        match self.outstanding.pop_front() {
            Some(oldest) => self.go(Stage::Returned(oldest), Step::Wait(oldest.done)),
            None => instead,
        }
    }

    /// The next job, or what to do instead.
    fn fetch(&mut self, hall: &mut Hall<'_>, now: Nanos) -> Result<JobId, Step> {
        if self.bell.is_some() {
            let at = hall.at(self.worker);
            return hall.hands[at].take().ok_or(Step::Wait(self.wake));
        }
        if self.claim.is_empty() {
            match hall.ask(self.worker, now, usize::MAX) {
                Answer::Jobs(jobs) => self.claim = jobs,
                Answer::Rest => return Err(Step::Wait(self.wake)),
                Answer::RestAtMost(time) => return Err(Step::WaitAtMost(self.wake, time)),
                Answer::Later(time) => return Err(Step::Sleep(time)),
            }
        }
        Ok(self.claim.pop_front().expect("a claim has been fetched"))
    }

    /// Lays out what the job will take.
    fn prepare(&mut self, context: &mut Context<'_, Hall<'_>>, job: JobId, done: EventId) -> Errand {
        let hall = &mut *context.world;
        let class = hall.begin(self.worker, job, context.now);
        let cost = hall.setup.modules[self.worker.index as usize].costs[class];
        let [core, work] = [cost.d, cost.h].map(|time| {
            let factor = hall.draw();
            hall.vary(factor, time)
        });
        let kernel = part(core, self.path.kernel_share);
        let own = core - kernel;
        let (front, kernel_front) = (part(own, self.path.front), part(kernel, self.path.front));
        let (back, kernel_back) = (own - front, kernel - kernel_front);
        self.prepared += 1;
        let side = &hall.setup.modules[self.worker.index as usize];
        let is_checked = is_checked(self.prepared, side.check_every);
        let check = if is_checked { hall.setup.classes[class].c } else { Nanos::ZERO };
        Errand { job, front, kernel_front, work, kernel_back, back, after: side.hand_over + check, done }
    }

    /// Hands a prepared request to the kernel's thread, or to the module where there is none.
    fn hand_in(&mut self, hall: &mut Hall<'_>, errand: Errand) -> Step {
        self.outstanding.push_back(errand);
        let Errand { kernel_front: front, work, kernel_back: back, done, .. } = errand;
        if self.desk.kernel.is_none() {
            let step = Step::Submit { module: self.desk.module, work, interrupt: Nanos::ZERO, done };
            return self.go(Stage::Ready, step);
        }
        hall.inboxes[self.worker.index as usize].push_back(Request { front, work, back, done });
        self.go(Stage::Ready, Step::Signal(self.desk.bell))
    }

    /// A request has come back, well or not.
    fn take_back(&mut self, context: &mut Context<'_, Hall<'_>>, errand: Errand) -> Step {
        if !context.has_failed(errand.done) {
            return self.go(Stage::Back(errand), Step::Compute(errand.back + errand.after));
        }
        self.is_lost = true;
        self.results.push(errand.done);
        self.signals = context.world.fail(self.worker, errand.job, std::mem::take(&mut self.claim));
        self.stage = Stage::Ready;
        self.next(context)
    }

    fn end(&mut self, context: &mut Context<'_, Hall<'_>>, errand: Errand) -> Step {
        let Errand { front, kernel_front, kernel_back, back, .. } = errand;
        let seen = front + kernel_front + back;
        let took = match self.path.kernel_waits {
            true => Took { core: seen + kernel_back, interrupt: Nanos::ZERO, service: errand.work },
            false => Took { core: seen, interrupt: kernel_back, service: errand.work },
        };
        context.world.end(self.worker, errand.job, context.now, took);
        self.results.push(errand.done);
        self.signals.extend(self.bell);
        self.stage = Stage::Ready;
        pause(context, Path::Module).map_or_else(|| self.next(context), Step::Sleep)
    }
}

impl Thread<Hall<'_>> for ModuleWorker {
    fn next(&mut self, context: &mut Context<'_, Hall<'_>>) -> Step {
        if let Some(event) = self.signals.pop_front() {
            return Step::Signal(event);
        }
        match self.stage {
            Stage::Ready => self.ready(context),
            Stage::Front(errand) => self.hand_in(context.world, errand),
            Stage::Returned(errand) => self.take_back(context, errand),
            Stage::Back(errand) => self.end(context, errand),
        }
    }
}

/// Whether the result of a module's job is checked, by its number from 1.
const fn is_checked(number: u32, every: u32) -> bool {
    every > 0 && (number <= CHECKED_FIRST || number % every == 0)
}

fn part(whole: Nanos, share: f64) -> Nanos {
    Nanos(round(whole.as_secs_f64() * 1e9 * share))
}
