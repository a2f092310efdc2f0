//! A scripted module: no time, no thread, faults at the job that the test names.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use evener::ModuleSetup;
use evener_core::estimate::{Learned, OnModule};
use evener_core::{
    Algorithm, Class, Direction, Estimator, HasEnded, InlineDriver as _, Job, JobError, Method, Nanos,
    Outcome, Profile, QueuedDriver, Refusal,
};
use evener_driver_libcrypto::Libcrypto;

use super::{TestClock, libcrypto, plain_drivers};

/// What the module does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Every third job fails.
    Error,
    /// Every job from this one on fails.
    Broken(u64),
    /// A bit is wrong in every result from this job on.
    WrongBytes(u64),
    /// Every job from this one on fails as not authentic.
    Denies(u64),
    /// Nothing is finished from this job on.
    Hang(u64),
    /// It goes away at this job.
    Gone(u64),
    /// From this job on it takes a while, until the test sets [hurry](ModuleLog::hurry).
    Slow(u64),
    /// From this job on it takes no job, though it holds none.
    Refuses(u64),
    /// From this job on it has no space for their keys.
    Full(u64),
    /// From this job on it takes other keys, and not theirs.
    RefusesKeys(u64),
}

/// What happened inside, for the test to see, and one switch.
#[derive(Debug, Default)]
pub struct ModuleLog {
    /// Jobs that were handed over.
    pub taken: AtomicU64,
    /// Faults that came to bear on a job.
    pub faults: AtomicU64,
    /// Refusals because it was full.
    pub refusals: AtomicU64,
    /// A slow module need not be slow any longer.
    pub hurry: AtomicBool,
}

impl ModuleLog {
    /// Faults that came to bear until now.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.faults.load(Ordering::SeqCst)
    }

    /// Jobs that were handed over until now.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::SeqCst)
    }
}

/// The module.
pub struct Scripted<'m> {
    profile: Profile,
    fault: Fault,
    /// Jobs that it takes before it says that it is full; less than the width it announces, at times.
    depth: usize,
    libcrypto: Libcrypto,
    held: VecDeque<(u64, Box<Job<'m>>)>,
    seen: Arc<ModuleLog>,
    algorithms: fn(Algorithm) -> bool,
    /// How long a slow module sleeps before each job.
    pause: Duration,
    clock: TestClock,
    /// What passes on the clock with each poll.
    poll_ns: Nanos,
}

impl Scripted<'_> {
    /// A module that does this wrong.
    #[must_use]
    pub fn new(fault: Fault) -> Self {
        let profile =
            Profile { name: "scripted".to_owned(), detail: String::new(), width: 4, emulated: true };
        Self {
            profile,
            fault,
            depth: 4,
            libcrypto: libcrypto(),
            held: VecDeque::new(),
            seen: Arc::default(),
            algorithms: |_| true,
            pause: Duration::from_micros(300),
            clock: TestClock::default(),
            poll_ns: Nanos::ZERO,
        }
    }

    /// Where it is slow it sleeps so long before each job.
    pub fn with_pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Each poll lasts so long on the tests' clock.
    pub fn on_clock(self, clock: &TestClock, poll_ns: Nanos) -> Self {
        Self { clock: clock.clone(), poll_ns, ..self }
    }

    /// It takes fewer jobs than it announces, and says so.
    pub fn with_depth(self, depth: usize) -> Self {
        Self { depth, ..self }
    }

    /// It does only these.
    pub fn only(self, algorithms: fn(Algorithm) -> bool) -> Self {
        Self { algorithms, ..self }
    }

    /// What happens inside.
    #[must_use]
    pub fn seen(&self) -> Arc<ModuleLog> {
        Arc::clone(&self.seen)
    }

    fn fault(&self) {
        self.seen.faults.fetch_add(1, Ordering::SeqCst);
    }

    fn is_gone(&self) -> bool {
        matches!(self.fault, Fault::Gone(from) if self.seen.taken() > from)
    }

    fn finish<'j>(&mut self, number: u64, mut job: Box<Job<'j>>) -> Box<Job<'j>> {
        match self.fault {
            Fault::Error if number % 3 == 2 => self.fail(&mut job, JobError::Module { code: 5 }),
            Fault::Broken(from) if number >= from => self.fail(&mut job, JobError::Module { code: 6 }),
            Fault::Full(from) if number >= from => self.fail(&mut job, JobError::ModuleFull),
            Fault::RefusesKeys(from) if number >= from => {
                self.fail(&mut job, JobError::KeyRefused { code: 22 });
            }
            Fault::Denies(from) if number >= from => self.fail(&mut job, JobError::NotAuthentic),
            _ => self.compute(number, &mut job),
        }
        job
    }

    fn fail(&self, job: &mut Job<'_>, error: JobError) {
        self.fault();
        job.fail(error);
    }

    /// Works on a copy, as a module does.
    fn compute(&mut self, number: u64, job: &mut Job<'_>) {
        let mut copy = job.input().to_vec();
        copy.resize(copy.len() + 16, 0);
        let mut working = [Job::in_place(&mut copy)];
        working[0].arm(job.session_ref(), job.iv(), job.input_bytes());
        working[0].set_aad(job.aad());
        working[0].set_tag(job.tag_given());
        self.libcrypto.run(&mut working);
        match working[0].outcome() {
            Outcome::Failed(error) => job.fail(error),
            _ => {
                let (mut output, mut tag) = (working[0].output().to_vec(), working[0].tag().to_vec());
                if matches!(self.fault, Fault::WrongBytes(from) if number >= from) {
                    self.fault();
                    output.iter_mut().chain(&mut tag).take(1).for_each(|byte| *byte ^= 4);
                }
                job.publish(&output, &tag);
            }
        }
    }
}

impl<'m> QueuedDriver<'m> for Scripted<'m> {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn supports(&self, algorithm: Algorithm, _: Direction) -> bool {
        (self.algorithms)(algorithm)
    }

    fn submit(&mut self, job: Box<Job<'m>>) -> Result<(), (Box<Job<'m>>, Refusal)> {
        assert!(job.lengths_fit() && job.outcome() == Outcome::Pending, "jobs come armed and checked");
        let refuses = matches!(self.fault, Fault::Refuses(from) if self.seen.taken() >= from);
        if self.held.len() >= self.depth || refuses {
            self.seen.faults.fetch_add(refuses.into(), Ordering::SeqCst);
            self.seen.refusals.fetch_add(1, Ordering::SeqCst);
            return Err((job, Refusal::Full));
        }
        if self.is_gone() {
            return Err((job, Refusal::Lost));
        }
        let number = self.seen.taken.fetch_add(1, Ordering::SeqCst);
        if self.is_gone() || matches!(self.fault, Fault::Hang(from) if number >= from) {
            self.fault();
        }
        self.held.push_back((number, job));
        Ok(())
    }

    fn poll(&mut self, done: &mut Vec<Box<Job<'m>>>, timeout: Nanos) -> usize {
        let before = done.len();
        self.clock.pass(self.poll_ns);
        if self.is_gone() {
            self.abandon(done);
            return done.len() - before;
        }
        match self.fault {
            Fault::Hang(from) => {
                let stuck = self.held.iter().position(|(number, _)| *number >= from);
                let finished: Vec<_> = self.held.drain(..stuck.unwrap_or(self.held.len())).collect();
                if finished.is_empty() {
                    sleep(timeout.into());
                }
                finished.into_iter().for_each(|(number, job)| done.push(self.finish(number, job)));
            }
            Fault::Slow(from) if self.seen.taken() > from && !self.seen.hurry.load(Ordering::SeqCst) => {
                self.fault();
                sleep(self.pause);
                let oldest = self.held.pop_front();
                oldest.into_iter().for_each(|(number, job)| done.push(self.finish(number, job)));
            }
            // The newest first: the trait promises no order.
            _ => {
                while let Some((number, job)) = self.held.pop_back() {
                    let job = self.finish(number, job);
                    done.push(job);
                }
            }
        }
        done.len() - before
    }

    fn in_flight(&self) -> usize {
        self.held.len()
    }

    fn abandon(&mut self, given_back: &mut Vec<Box<Job<'m>>>) {
        given_back.extend(self.held.drain(..).map(|(_, mut job)| {
            job.fail(JobError::ModuleLost);
            job
        }));
    }

    fn evict(&mut self, _: HasEnded<'_>) {}
}

/// The module with the CPU to redo what it fails.
#[must_use]
pub fn scripted<'m>(module: Scripted<'m>, check_every: u32) -> ModuleSetup<'m> {
    cared_for(Box::new(module), check_every)
}

/// A module with the CPU to redo what it fails. Silence of 50 ms is enough to take it for dead.
#[must_use]
pub fn cared_for<'m>(module: Box<dyn QueuedDriver<'m> + 'm>, check_every: u32) -> ModuleSetup<'m> {
    let timeout = Nanos::from_millis(50);
    ModuleSetup { check_every, timeout, ..ModuleSetup::new(module, plain_drivers()) }
}

/// Costs of a module that does everything for nothing, and of cores that take for ever: so the adaptive policy waits for
/// it as the papers' policies do.
#[must_use]
pub fn module_is_best() -> Estimator {
    let mut costs = Estimator::new(1);
    for class in (0..Class::COUNT).filter_map(Class::from_index) {
        let restored = |ns| Learned::kept(ns, 1_024.0, 16);
        costs.keep_cpu(class, Method::Plain, 0, restored(1e9));
        costs.keep_module(0, class, OnModule { d: restored(1e3), h: restored(1e3), ..OnModule::default() });
    }
    costs.freeze();
    costs
}
