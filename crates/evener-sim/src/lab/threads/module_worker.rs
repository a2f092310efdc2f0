//! A worker of a module path: prepares requests, keeps up to `depth` of them outstanding, takes the oldest back. Where the driver has
//! threads of its own it gives requests to them and takes back what is done, several at a time (`driver_queue.rs`).

use std::collections::VecDeque;

use evener_core::Nanos;

use crate::engine::{Context, EventId, Step, Thread};
use crate::lab::chooser::{Path, Worker};
use crate::lab::state::{Answer, Call, Desk, Hall, JobId, Place, Request, Took, pause};
use crate::lab::{CHECKED_FIRST, ModulePath, ModuleSide};
use crate::rounding::round;

/// A job on its way, with the core time of each part of the path.
#[derive(Clone, Copy)]
struct Errand {
    job: JobId,
    place: Place,
    own: Part,
    runner: Part,
    kernel: Part,
    work: Nanos,
    /// What follows and is no cost of the path: hand-over and check.
    after: Nanos,
}

/// Core time before the module's work and behind it.
#[derive(Clone, Copy)]
struct Part {
    front: Nanos,
    back: Nanos,
}

impl Part {
    fn of(whole: Nanos, front: f64) -> Self {
        let front = part(whole, front);
        Self { front, back: whole - front }
    }

    fn whole(self) -> Nanos {
        self.front + self.back
    }
}

#[derive(Clone, Copy)]
enum Stage {
    /// Has room, or must make some.
    Ready,
    /// Has prepared a request.
    Front(Errand),
    /// Has asked the driver for results, or waited for some.
    Asked,
    /// Has waited for a request.
    Returned(Errand),
    /// Has run what comes behind.
    Back(Errand),
}

pub(crate) struct ModuleWorker {
    worker: Worker,
    path: ModulePath,
    desk: Desk,
    wake: EventId,
    bell: Option<EventId>,
    /// Places that no request has, the one that was longest without first: as threads wait in line.
    places: VecDeque<Place>,
    claim: VecDeque<JobId>,
    /// In the order in which they were begun.
    outstanding: VecDeque<Errand>,
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
        desk: Desk,
        wake: EventId,
        bell: Option<EventId>,
        places: Vec<Place>,
    ) -> Self {
        let index = u32::try_from(at).expect("modules are few");
        Self {
            worker: Worker { path: Path::Module, index },
            path: side.path,
            desk,
            wake,
            bell,
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

    /// Settles what is back; takes a job if there is room and one to take; otherwise waits, for a request or for jobs.
    fn ready(&mut self, context: &mut Context<'_, Hall<'_>>) -> Step {
        if let Some(place) = self.returned.pop_front() {
            let errand = self.outstanding.iter().find(|errand| errand.place.index == place);
            let errand = *errand.expect("what is back was outstanding");
            return self.take_back(context, errand);
        }
        let instead = match self.places.pop_front() {
            Some(place) if !self.is_lost => match self.fetch(context.world, context.now) {
                Ok(job) => {
                    let errand = self.prepare(context, job, place);
                    return self.go(Stage::Front(errand), Step::Compute(errand.own.front));
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
                let desk = &mut context.world.driver_desks[self.module()];
                self.signals.extend(desk.wake_for_what_waits());
                self.stage = Stage::Asked;
                self.next(context)
            }
            Some(&oldest) => self.go(Stage::Returned(oldest), Step::Wait(oldest.place.done)),
            None => instead,
        }
    }

    /// Takes what the driver has done, or waits until it has done something.
    fn ask(&mut self, context: &mut Context<'_, Hall<'_>>) -> Step {
        match context.world.driver_desks[self.module()].take() {
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
    fn take_off(&mut self, errand: &Errand) -> usize {
        let of_same_place = |other: &Errand| other.place.index == errand.place.index;
        let nth = self.outstanding.iter().position(of_same_place).expect("it was outstanding");
        self.outstanding.remove(nth);
        nth
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
    fn prepare(&mut self, context: &mut Context<'_, Hall<'_>>, job: JobId, place: Place) -> Errand {
        let hall = &mut *context.world;
        let class = hall.begin(self.worker, job, context.now);
        let cost = hall.setup.modules[self.worker.index as usize].costs[class];
        let [core, work] = [cost.d, cost.h].map(|time| {
            let factor = hall.draw();
            hall.vary(factor, time)
        });
        let ModulePath { kernel_share, runner_share, front, .. } = self.path;
        let (kernel, runner) = (part(core, kernel_share), part(core, runner_share));
        let own = core - kernel - runner;
        let [mut own, runner, kernel] = [own, runner, kernel].map(|whole| Part::of(whole, front));
        self.prepared += 1;
        let side = &hall.setup.modules[self.worker.index as usize];
        if self.prepared == 1 && self.has_runners() {
            own.front += side.opening.own;
        }
        let is_checked = is_checked(self.prepared, side.check_every);
        let check = if is_checked { hall.setup.classes[class].c } else { Nanos::ZERO };
        Errand { job, place, own, runner, kernel, work, after: side.hand_over + check }
    }

    /// Hands a prepared request to the driver's thread, or to the kernel where there is none.
    fn hand_in(&mut self, hall: &mut Hall<'_>, errand: Errand) -> Step {
        self.outstanding.push_back(errand);
        let Errand { place, runner, kernel: Part { front, back }, work, .. } = errand;
        let (module, request) = (self.module(), Request { front, work, back, done: place.done });
        self.stage = Stage::Ready;
        if !self.has_runners() {
            return hall.hand_in(module, &self.desk, request);
        }
        let Part { front, back } = runner;
        hall.driver_desks[module].give(Call { front, back, request, place: place.index });
        Step::Compute(Nanos::ZERO)
    }

    /// A request has come back, well or not.
    fn take_back(&mut self, context: &mut Context<'_, Hall<'_>>, errand: Errand) -> Step {
        if !context.has_failed(errand.place.done) {
            return self.go(Stage::Back(errand), Step::Compute(errand.own.back + errand.after));
        }
        self.is_lost = true;
        self.places.push_back(errand.place);
        let nth = self.take_off(&errand);
        self.signals = context.world.fail(self.worker, (nth, errand.job), std::mem::take(&mut self.claim));
        self.stage = Stage::Ready;
        self.next(context)
    }

    fn end(&mut self, context: &mut Context<'_, Hall<'_>>, errand: Errand) -> Step {
        let Errand { own, runner, kernel, work: service, .. } = errand;
        let seen = own.whole() + runner.whole() + kernel.front;
        let took = match self.path.kernel_waits {
            true => Took { core: seen + kernel.back, interrupt: Nanos::ZERO, service },
            false => Took { core: seen, interrupt: kernel.back, service },
        };
        let nth = self.take_off(&errand);
        context.world.end(self.worker, (nth, errand.job), context.now, took);
        self.places.push_back(errand.place);
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
            Stage::Asked => self.ask(context),
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
