//! The module itself.

use std::time::{Duration, Instant};

use evener_core::{
    Algorithm, Direction, HasEnded, InlineDriver, Job, JobError, Nanos, Outcome, Profile, QueuedDriver,
    Refusal, TAG_BYTES_MAX,
};

use crate::control::{Control, Fault, Orders};
use crate::core_time::{Meter, wake_on_time};
use crate::preset::Preset;

/// A module that is not there.
///
/// A job costs `d` of core time on the thread that submits and polls, and all that this driver does is in it:
/// computing the result, going to sleep and waking up. What `poll` used is taken off the `d` of the next job.
/// A job whose result alone took more than `d`, because the machine is too slow for it, is counted as
/// [late](crate::Counters::late).
pub struct Emulated<'m> {
    profile: Profile,
    preset: Preset,
    /// Computes the results.
    computes: Box<dyn InlineDriver>,
    control: Control,
    /// When each unit is free; `None`: never, for it hangs.
    units: Vec<Option<Instant>>,
    held: Vec<Held<'m>>,
    /// Memory of published results, for the next ones.
    spare: Vec<Vec<u8>>,
    /// Jobs taken so far.
    taken: u64,
    meter: Meter,
    is_gone: bool,
    wakes_on_time: bool,
}

/// A job inside the module.
struct Held<'m> {
    job: Box<Job<'m>>,
    answer: Answer,
    /// `None`: never.
    ready: Option<Instant>,
}

/// What comes out for a job, apart from its memory until it is handed back.
struct Answer {
    outcome: Outcome,
    output: Vec<u8>,
    tag: [u8; TAG_BYTES_MAX],
    tag_bytes: usize,
}

impl<'m> Emulated<'m> {
    /// A module that costs what `preset` says and answers what `computes` computes.
    #[must_use]
    pub fn new(preset: Preset, computes: Box<dyn InlineDriver>) -> Self {
        Self {
            profile: preset.profile(),
            units: vec![Some(Instant::now()); preset.units()],
            preset,
            computes,
            control: Control::default(),
            held: Vec::new(),
            spare: Vec::new(),
            taken: 0,
            meter: Meter::new(),
            is_gone: false,
            wakes_on_time: false,
        }
    }

    /// The switches of this module, to keep when the module itself is handed to a runtime.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    fn take(&mut self, job: Box<Job<'m>>, orders: &Orders, began: Nanos) {
        self.taken += 1;
        self.control.count(|counters| counters.submitted += 1);
        let fault = orders.fault_of(self.taken);
        if fault != Fault::None {
            self.control.count(|counters| counters.faults += 1);
        }
        let cost = self.preset.cost(job.session().algorithm(), job.input_bytes()).unwrap_or_default();
        let answer = self.compute(&job).after(fault);
        // A module without `d` leaves its user's core alone: no thread can be late for that.
        if cost.d > Nanos::ZERO && !self.meter.use_up(began, cost.d) {
            self.control.count(|counters| counters.late += 1);
        }
        self.be_of(orders.units(self.preset.units()));
        let service = orders.service(cost.h, job.input_bytes());
        let ready = self.occupy(service.into(), fault == Fault::Hang);
        let late = if let Fault::Delay { by } = fault { by.into() } else { Duration::ZERO };
        self.held.push(Held { job, answer, ready: ready.map(|ready| ready + late) });
    }

    fn compute(&mut self, job: &Job<'_>) -> Answer {
        let session = job.session();
        let mut output = self.spare.pop().unwrap_or_default();
        output.resize(session.output_bytes_max(job.input_bytes()), 0);
        let mut twin = [Job::apart(job.input(), &mut output)];
        twin[0].arm(session, &job.iv()[..session.algorithm().iv_bytes()], job.input_bytes());
        twin[0].set_aad(job.aad());
        twin[0].set_tag(job.tag_given());
        match job.lengths_fit() {
            true => self.computes.run(&mut twin),
            false => twin[0].fail(JobError::BadLength),
        }
        let (outcome, tag, tag_bytes) = (twin[0].outcome(), *twin[0].tag_given(), twin[0].tag().len());
        drop(twin);
        Answer { outcome, output, tag, tag_bytes }
    }

    /// Changes the number of units; those that are free last, or never, go first.
    fn be_of(&mut self, units: usize) {
        if self.units.len() > units {
            self.units.sort_by_key(|unit| (unit.is_none(), *unit));
        }
        self.units.resize_with(units, || Some(Instant::now()));
    }

    /// Gives the unit that is free first a job for `h` from now, and says when it is ready.
    fn occupy(&mut self, h: Duration, hangs: bool) -> Option<Instant> {
        let works = |unit: &&mut Option<Instant>| unit.is_some();
        let unit = self.units.iter_mut().filter(works).min_by_key(|unit| **unit)?;
        let ready = unit.map(|free| free.max(Instant::now()) + h).filter(|_| !hangs);
        *unit = ready;
        ready
    }

    fn collect(&mut self, done: &mut Vec<Box<Job<'m>>>, deadline: Instant) -> usize {
        loop {
            let orders = self.control.orders();
            if self.is_gone || orders.is_gone(self.taken) {
                self.is_gone = true;
                return self.lose_all(done);
            }
            let now = Instant::now();
            let came = self.publish(now, done);
            if came > 0 || now >= deadline || self.held.is_empty() {
                return came;
            }
            if !self.wakes_on_time {
                self.wakes_on_time = true;
                wake_on_time();
            }
            let next = self.held.iter().filter_map(|held| held.ready).min();
            self.control.sleep(next.map_or(deadline, |next| next.min(deadline)), &orders);
        }
    }

    /// Hands back what is ready, in the order in which it became so.
    fn publish(&mut self, now: Instant, done: &mut Vec<Box<Job<'m>>>) -> usize {
        self.held.sort_by_key(|held| (held.ready.is_none(), held.ready));
        let came = self.held.partition_point(|held| held.ready.is_some_and(|at| at <= now));
        self.control.count(|counters| counters.completed += came as u64);
        for Held { mut job, mut answer, .. } in self.held.drain(..came) {
            answer.publish(&mut job);
            // It may be text in clear, and the next job may be another client's.
            answer.output.fill(0);
            self.spare.push(answer.output);
            done.push(job);
        }
        came
    }

    fn lose_all(&mut self, lost: &mut Vec<Box<Job<'m>>>) -> usize {
        let count = self.held.len();
        lost.extend(self.held.drain(..).map(|mut held| {
            held.job.fail(JobError::ModuleLost);
            held.job
        }));
        count
    }
}

impl<'m> QueuedDriver<'m> for Emulated<'m> {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn supports(&self, algorithm: Algorithm, direction: Direction) -> bool {
        self.preset.cost(algorithm, 0).is_some() && self.computes.supports(algorithm, direction)
    }

    fn submit(&mut self, job: Box<Job<'m>>) -> Result<(), (Box<Job<'m>>, Refusal)> {
        let began = self.meter.begin();
        let orders = self.control.orders();
        if self.is_gone || orders.is_gone(self.taken + 1) {
            self.is_gone = true;
            return Err((job, Refusal::Lost));
        }
        if self.held.len() >= orders.depth(self.preset.depth()) {
            return Err((job, Refusal::Full));
        }
        self.take(job, &orders, began);
        Ok(())
    }

    fn poll(&mut self, done: &mut Vec<Box<Job<'m>>>, timeout: Nanos) -> usize {
        let began = self.meter.begin();
        let came = self.collect(done, Instant::now() + Duration::from(timeout));
        self.meter.owe(began);
        came
    }

    fn in_flight(&self) -> usize {
        self.held.len()
    }

    fn abandon(&mut self, given_back: &mut Vec<Box<Job<'m>>>) {
        self.lose_all(given_back);
        // As after a reset: units that hung take jobs again.
        self.units.fill(Some(Instant::now()));
    }

    fn evict(&mut self, has_ended: HasEnded<'_>) {
        self.computes.evict(has_ended);
    }
}

impl Answer {
    /// The answer that a module with `fault` gives instead.
    fn after(mut self, fault: Fault) -> Self {
        match fault {
            Fault::Error { code } => self.outcome = Outcome::Failed(JobError::Module { code }),
            Fault::WrongBytes => self.spoil(),
            Fault::None | Fault::Delay { .. } | Fault::Hang | Fault::Gone => {}
        }
        self
    }

    /// Flips a bit and says that all went well, even of data that is not authentic.
    fn spoil(&mut self) {
        let written = match self.outcome {
            Outcome::Done { written } => written,
            Outcome::Failed(_) | Outcome::Pending => self.output.len(),
        };
        self.outcome = Outcome::Done { written };
        match self.output[..written].last_mut() {
            Some(byte) => *byte ^= 1,
            None => self.tag[0] ^= 1,
        }
    }

    fn publish(&self, job: &mut Job<'_>) {
        match self.outcome {
            Outcome::Done { written } => job.publish(&self.output[..written], &self.tag[..self.tag_bytes]),
            Outcome::Failed(error) => job.fail(error),
            Outcome::Pending => job.fail(JobError::Library),
        }
    }
}
