//! A worker of a module path: prepares requests, keeps up to `depth` of them outstanding, takes the oldest back. Where the driver has
//! threads of its own it pushes requests to their queue and takes back what is done, several at a time (`state/driver_queue.rs`).

use std::collections::VecDeque;

use evener_core::Nanos;

use crate::engine::{Context, EventId, Step, Thread};
use crate::lab::chooser::{Path, Worker};
use crate::lab::state::{
    Answer, Call, JobId, ModulePort, PathTime, Request, RequestSlot, RunState, Took, part, pause,
};
use crate::lab::{CHECKED_FIRST, ModulePath, ModuleSide};

/// A job on its way, with the core time of each part of the path.
#[derive(Clone, Copy)]
struct InFlight {
    job: JobId,
    place: RequestSlot,
    own: PathTime,
    runner: PathTime,
    kernel: PathTime,
    work: Nanos,
    /// What follows and is no cost of the path: hand-over and check.
    after: Nanos,
}

#[derive(Clone, Copy)]
enum Stage {
    /// Has space, or must make some.
    Ready,
    /// Has prepared a request.
    Front(InFlight),
    /// Has polled the driver, or waited for results.
    Polling,
    /// Has waited for a request.
    Returned(InFlight),
    /// Has run what comes behind.
    Back(InFlight),
}

pub(crate) struct ModuleWorker {
    worker: Worker,
    path: ModulePath,
    port: ModulePort,
    wake: EventId,
    doorbell: Option<EventId>,
    /// Places that no request has, the one that was longest without first: as threads wait in line.
    places: VecDeque<RequestSlot>,
    claim: VecDeque<JobId>,
    /// In the order in which they were begun.
    outstanding: VecDeque<InFlight>,
    /// Places of requests that the driver gave back.
    returned: VecDeque<usize>,
    stage: Stage,
    /// Jobs prepared so far.
    prepared: u32,
    is_lost: bool,
    signals: VecDeque<EventId>,
}

impl ModuleWorker {
    /// For module `at`. `places`: one for each request that may be outstanding.
    pub(crate) fn new(
        at: usize,
        side: &ModuleSide,
        port: ModulePort,
        wake: EventId,
        doorbell: Option<EventId>,
        places: Vec<RequestSlot>,
    ) -> Self {
        let index = u32::try_from(at).expect("modules are few");
        Self {
            worker: Worker { path: Path::Module, index },
            path: side.path,
            port,
            wake,
            doorbell,
            places: places.into(),
            claim: VecDeque::new(),
            outstanding: VecDeque::new(),
            returned: VecDeque::new(),
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

    /// Settles what is back; takes a job if there is space and one to take; otherwise waits, for a request or for jobs.
    fn ready(&mut self, context: &mut Context<'_, RunState<'_>>) -> Step {
        if let Some(place) = self.returned.pop_front() {
            let in_flight = self.outstanding.iter().find(|in_flight| in_flight.place.index == place);
            let in_flight = *in_flight.expect("what is back was outstanding");
            return self.take_back(context, in_flight);
        }
        let instead = match self.places.pop_front() {
            Some(place) if !self.is_lost => match self.fetch(context.world, context.now) {
                Ok(job) => {
                    let in_flight = self.prepare(context, job, place);
                    return self.go(Stage::Front(in_flight), Step::Compute(in_flight.own.front));
                }
                Err(instead) => {
                    self.places.push_front(place);
                    instead
                }
            },
            unused => {
                self.places.extend(unused);
                Step::Exit
            }
        };
        match self.outstanding.front() {
            Some(_) if self.has_runners() => {
                let queue = &mut context.world.driver_queues[self.module()];
                self.signals.extend(queue.threads_to_wake());
                self.stage = Stage::Polling;
                self.next(context)
            }
            Some(&oldest) => self.go(Stage::Returned(oldest), Step::Wait(oldest.place.done)),
            None => instead,
        }
    }

    /// Takes what the driver has done, or waits until it has done something.
    fn poll_driver(&mut self, context: &mut Context<'_, RunState<'_>>) -> Step {
        match context.world.driver_queues[self.module()].take_finished() {
            Ok(places) => {
                self.returned = places;
                self.stage = Stage::Ready;
                self.next(context)
            }
            Err(done) => Step::Wait(done),
        }
    }

    fn has_runners(&self) -> bool {
        self.path.runner_share > 0.0
    }

    fn module(&self) -> usize {
        self.worker.index as usize
    }

    /// Takes a request off those that are outstanding; returns how many were begun before it.
    fn remove(&mut self, in_flight: &InFlight) -> usize {
        let of_same_place = |other: &InFlight| other.place.index == in_flight.place.index;
        let nth = self.outstanding.iter().position(of_same_place).expect("it was outstanding");
        self.outstanding.remove(nth);
        nth
    }

    /// The next job, or what to do instead.
    fn fetch(&mut self, state: &mut RunState<'_>, now: Nanos) -> Result<JobId, Step> {
        if self.doorbell.is_some() {
            let at = state.at(self.worker);
            return state.assigned[at].take().ok_or(Step::Wait(self.wake));
        }
        if self.claim.is_empty() {
            match state.next_jobs(self.worker, now, usize::MAX) {
                Answer::Jobs(jobs) => self.claim = jobs,
                Answer::Rest => return Err(Step::Wait(self.wake)),
                Answer::RestAtMost(time) => return Err(Step::WaitAtMost(self.wake, time)),
                Answer::Later(time) => return Err(Step::Sleep(time)),
            }
        }
        Ok(self.claim.pop_front().expect("a claim has been fetched"))
    }

    /// Lays out what the job will take.
    fn prepare(
        &mut self,
        context: &mut Context<'_, RunState<'_>>,
        job: JobId,
        place: RequestSlot,
    ) -> InFlight {
        let state = &mut *context.world;
        let class = state.start_job(self.worker, job, context.now);
        let cost = state.setup.modules[self.worker.index as usize].costs[class];
        let [core, work] = [cost.d, cost.h].map(|time| {
            let factor = state.draw();
            state.vary(factor, time)
        });
        let ModulePath { kernel_share, runner_share, front, .. } = self.path;
        let (kernel, runner) = (part(core, kernel_share), part(core, runner_share));
        let own = core - kernel - runner;
        let [mut own, runner, kernel] = [own, runner, kernel].map(|whole| PathTime::of(whole, front));
        self.prepared += 1;
        let side = &state.setup.modules[self.worker.index as usize];
        if self.prepared == 1 && self.has_runners() {
            own.front += side.opening.own;
        }
        let is_checked = is_checked(self.prepared, side.check_every);
        let check = if is_checked { state.setup.classes[class].c } else { Nanos::ZERO };
        InFlight { job, place, own, runner, kernel, work, after: side.hand_over + check }
    }

    /// Hands a prepared request to the driver's thread, or to the kernel where there is none.
    fn hand_in(&mut self, state: &mut RunState<'_>, in_flight: InFlight) -> Step {
        self.outstanding.push_back(in_flight);
        let InFlight { place, runner, kernel, work, .. } = in_flight;
        let (module, request) = (self.module(), Request { path: kernel, work, done: place.done });
        self.stage = Stage::Ready;
        if !self.has_runners() {
            return state.submit(module, &self.port, request);
        }
        state.driver_queues[module].push(Call { path: runner, request, place: place.index });
        Step::Compute(Nanos::ZERO)
    }

    /// A request has come back, well or not.
    fn take_back(&mut self, context: &mut Context<'_, RunState<'_>>, in_flight: InFlight) -> Step {
        if !context.has_failed(in_flight.place.done) {
            return self.go(Stage::Back(in_flight), Step::Compute(in_flight.own.back + in_flight.after));
        }
        self.is_lost = true;
        self.places.push_back(in_flight.place);
        let nth = self.remove(&in_flight);
        self.signals =
            context.world.fail_job(self.worker, (nth, in_flight.job), std::mem::take(&mut self.claim));
        self.stage = Stage::Ready;
        self.next(context)
    }

    fn end(&mut self, context: &mut Context<'_, RunState<'_>>, in_flight: InFlight) -> Step {
        let InFlight { own, runner, kernel, work: service, .. } = in_flight;
        let clocked = own.whole() + runner.whole() + kernel.front;
        let took = match self.path.kernel_waits {
            true => Took { core: clocked + kernel.back, interrupt: Nanos::ZERO, service },
            false => Took { core: clocked, interrupt: kernel.back, service },
        };
        let nth = self.remove(&in_flight);
        context.world.finish_job(self.worker, (nth, in_flight.job), context.now, took);
        self.places.push_back(in_flight.place);
        self.signals.extend(self.doorbell);
        self.stage = Stage::Ready;
        pause(context, Path::Module).map_or_else(|| self.next(context), Step::Sleep)
    }
}

impl Thread<RunState<'_>> for ModuleWorker {
    fn next(&mut self, context: &mut Context<'_, RunState<'_>>) -> Step {
        if let Some(event) = self.signals.pop_front() {
            return Step::Signal(event);
        }
        match self.stage {
            Stage::Ready => self.ready(context),
            Stage::Front(in_flight) => self.hand_in(context.world, in_flight),
            Stage::Polling => self.poll_driver(context),
            Stage::Returned(in_flight) => self.take_back(context, in_flight),
            Stage::Back(in_flight) => self.end(context, in_flight),
        }
    }
}

/// Whether the result of a module's job is checked, by its number from 1.
const fn is_checked(number: u32, every: u32) -> bool {
    every > 0 && (number <= CHECKED_FIRST || number % every == 0)
}
