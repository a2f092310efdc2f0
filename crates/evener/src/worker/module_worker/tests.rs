//! What a module teaches that fails some of its requests, step by step in virtual time: workers of cores and of the module, as they are, on
//! one thread of the test.
//!
//! The worker with the earliest time takes its step ([`Machine::step`]) -> its drivers let time pass on a core, or beside them
//! ([`Times`]) -> a worker that rests is woken by its doorbell or its timeout -> the times at which requests went to the module are the result.

use std::sync::{Arc, Mutex};

use evener_core::cost::Line;
use evener_core::driver::Clock;
use evener_core::estimate::{Learned, OnModule};
use evener_core::plan::{Policy, Snapshot, Take};
use evener_core::{
    Algorithm, Direction, Estimator, HasEnded, InlineDriver, Job, JobError, Method, Nanos, Profile,
    QueuedDriver, Refusal, Session,
};
use evener_ring::Ticket;
use evener_testing::arbiters::ArbiterFolder;

use super::ModuleWorker;
use super::pending_samples::{GroupTime, Origin, SampleGroup};
use super::turns::Turns;
use crate::adaptive::Circumstances;
use crate::queue::test_support::{job, session};
use crate::state::Shared;
use crate::submit::caller::submit;
use crate::worker::cpu_worker::IdleSpan;
use crate::{CoreDrivers, ModuleSetup, Setup};

const BYTES: usize = 64;

const fn us(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

/// Cores, and threads that use them one after the other.
#[derive(Clone)]
struct Times(Arc<Mutex<State>>);

struct State {
    /// The worker that takes a step.
    worker: usize,
    /// By thread: its time, and what it has used of the cores.
    now: Vec<Nanos>,
    used: Vec<Nanos>,
    /// By core: when it is free.
    free: Vec<Nanos>,
    /// What all cores have done.
    worked: Nanos,
}

impl Times {
    fn new(threads: usize, cores: usize) -> Self {
        let (now, used, free) = (vec![us(1); threads], vec![Nanos::ZERO; threads], vec![Nanos::ZERO; cores]);
        Self(Arc::new(Mutex::new(State { worker: 0, now, used, free, worked: Nanos::ZERO })))
    }

    fn at<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().expect("no thread panics here"))
    }

    /// A thread goes on, at `when` at the earliest and as soon as it has a core.
    fn begin(&self, worker: usize, when: Nanos) {
        self.at(|state| {
            let core = state.free.iter().min().copied().unwrap_or_default();
            state.worker = worker;
            state.now[worker] = state.now[worker].max(when).max(core);
        });
    }

    /// It works on a core, of which its clock shows `shown`.
    fn work(&self, time: Nanos, shown: Nanos) {
        self.at(|state| {
            let worker = state.worker;
            let core = state.free.iter_mut().min().expect("a machine has a core");
            state.now[worker] = state.now[worker].max(*core) + time;
            state.used[worker] += shown;
            state.worked += time;
            *core = state.now[worker];
        });
    }

    /// It sleeps.
    fn sleep(&self, time: Nanos) {
        self.at(|state| state.now[state.worker] += time);
    }

    fn of(&self, worker: usize) -> Nanos {
        self.at(|state| state.now[worker])
    }
}

impl Clock for Times {
    fn now(&self) -> Nanos {
        self.at(|state| state.now[state.worker])
    }

    fn thread_time(&self) -> Nanos {
        self.at(|state| state.used[state.worker])
    }
}

/// What a job takes: on a core, of the module's path as its clock shows it and beside that, and of the module.
#[derive(Clone, Copy)]
struct Takes {
    c: Nanos,
    /// On a core, of the worker that serves the module.
    redo: Nanos,
    d: Nanos,
    overhead: Nanos,
    h: Nanos,
}

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    Fails,
    /// Its path takes so many times as long.
    Slow(u64),
}

/// Of the request of a number, where something began with another.
type Fates = fn(u64, u64) -> Fate;

const fn failing(is_so: bool) -> Fate {
    if is_so { Fate::Fails } else { Fate::Done }
}

/// A core that takes its time and changes nothing.
struct Core(Times, Nanos, Profile);

impl InlineDriver for Core {
    fn profile(&self) -> &Profile {
        &self.2
    }

    fn supports(&self, _: Algorithm, _: Direction) -> bool {
        true
    }

    fn run(&mut self, burst: &mut [Box<Job<'_>>]) {
        let time = Nanos(self.1.0 * burst.len() as u64);
        self.0.work(time, time);
        burst.iter_mut().for_each(|job| job.done(BYTES));
    }

    fn evict(&mut self, _: HasEnded<'_>) {}
}

/// A module that does the same, one job after the other.
struct Failing {
    times: Times,
    takes: Takes,
    profile: Profile,
    fates: Fates,
    first: u64,
    held: Vec<(Nanos, Fate, Box<Job<'static>>)>,
    free: Nanos,
    /// When each request came.
    came: Arc<Mutex<Vec<Nanos>>>,
}

impl QueuedDriver<'static> for Failing {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn supports(&self, _: Algorithm, _: Direction) -> bool {
        true
    }

    fn submit(&mut self, job: Box<Job<'static>>) -> Result<(), (Box<Job<'static>>, Refusal)> {
        assert!(self.held.len() < self.profile.width as usize, "it is given no more than it takes");
        let mut came = self.came.lock().expect("no thread panics here");
        came.push(self.times.now());
        let fate = (self.fates)(came.len() as u64, self.first);
        let Takes { d, overhead, h, .. } = self.takes;
        let d = if let Fate::Slow(by) = fate { Nanos(d.0 * by) } else { d };
        self.times.work(d + overhead, d);
        self.free = self.free.max(self.times.now()) + h;
        self.held.push((self.free, fate, job));
        Ok(())
    }

    fn poll(&mut self, done: &mut Vec<Box<Job<'static>>>, timeout: Nanos) -> usize {
        let next = self.held.iter().map(|(ready, ..)| *ready).min().unwrap_or(Nanos(u64::MAX));
        self.times.sleep((next - self.times.now()).min(timeout));
        let now = self.times.now();
        let (ready, held): (Vec<_>, Vec<_>) = self.held.drain(..).partition(|(ready, ..)| *ready <= now);
        self.held = held;
        let count = ready.len();
        done.extend(ready.into_iter().map(|(_, fate, mut job)| {
            match fate {
                Fate::Fails => job.fail(JobError::Module { code: 5 }),
                Fate::Done | Fate::Slow(_) => job.done(BYTES),
            }
            job
        }));
        count
    }

    fn in_flight(&self) -> usize {
        self.held.len()
    }

    fn abandon(&mut self, given_back: &mut Vec<Box<Job<'static>>>) {
        given_back.extend(self.held.drain(..).map(|(_, _, mut job)| {
            job.fail(JobError::ModuleLost);
            job
        }));
    }

    fn evict(&mut self, _: HasEnded<'_>) {}
}

/// A machine in the midst of a run.
struct Machine {
    times: Times,
    shared: &'static Shared<'static>,
    module: ModuleWorker<'static, 'static>,
    cores: Vec<CoreDrivers>,
    take: Take,
    /// By worker: whether it rests, until when, and by which doorbell it is woken.
    resting: Vec<Option<(Nanos, Ticket<'static>, IdleSpan)>>,
    session: &'static Session,
    /// Jobs that are to be submitted.
    idle: Vec<Box<Job<'static>>>,
    /// How many are brought at a time.
    burst: usize,
    came: Arc<Mutex<Vec<Nanos>>>,
}

/// What a machine is made of.
#[derive(Clone, Copy)]
struct Kind {
    cores: usize,
    /// Requests outstanding.
    width: u32,
    takes: Takes,
    /// Whether core and module take turns: the module is the kernel's.
    takes_turns: bool,
    /// What is known beforehand of the module.
    known: Option<Takes>,
    /// Jobs under way, and how many are brought at a time.
    jobs: usize,
    burst: usize,
}

impl Machine {
    fn new(kind: &Kind, fates: Fates, first: u64) -> Self {
        let times = Times::new(kind.cores + 1, kind.cores);
        let profile =
            |width| Profile { name: "stepped".to_owned(), detail: String::new(), width, emulated: true };
        let core_drivers = |each| CoreDrivers::new(Box::new(Core(times.clone(), each, profile(1))), None);
        let came: Arc<Mutex<Vec<Nanos>>> = Arc::default();
        let driver = Failing {
            times: times.clone(),
            takes: kind.takes,
            profile: profile(kind.width),
            fates,
            first,
            held: Vec::new(),
            free: Nanos::ZERO,
            came: Arc::clone(&came),
        };
        let session = session();
        let setup = Setup {
            policy: Policy::Adaptive,
            clock: Arc::new(times.clone()),
            cores: kind.cores,
            home_jobs: kind.jobs,
            backlog_jobs: kind.jobs,
            learned: learned(kind, session),
            ..Setup::default()
        };
        let cpu_workers = u32::try_from(kind.cores).expect("cores are few");
        let plan = setup.policy.plan(&Snapshot { cpu_workers, module_workers: 1, cpu_width: 1 });
        let module = ModuleSetup::new(Box::new(driver), core_drivers(kind.takes.redo));
        let shared: &'static Shared<'static> =
            Box::leak(Box::new(Shared::new(setup, plan, kind.cores, std::slice::from_ref(&module))));
        let mut cores: Vec<CoreDrivers> = (0..kind.cores).map(|_| core_drivers(kind.takes.c)).collect();
        cores.iter_mut().for_each(|core_drivers| shared.adopt(core_drivers, String::new));
        assert!(shared.completions[0].acquire(kind.jobs));
        Self {
            module: ModuleWorker::new(shared, kind.cores, module),
            times,
            shared,
            cores,
            take: plan.cpu,
            resting: (0..=kind.cores).map(|_| None).collect(),
            session,
            idle: (0..kind.jobs).map(|_| job(session, BYTES)).collect(),
            burst: kind.burst,
            came,
        }
    }

    /// When requests went to the module within so much time.
    fn run(mut self, time: Nanos) -> Vec<Nanos> {
        while self.times.now() < time {
            self.submit();
            self.step();
        }
        assert_eq!(self.module.quarantine, None);
        let came = self.came.lock().expect("no thread panics here");
        came.clone()
    }

    /// Time in which no core worked until the jobs of a burst were back.
    fn idle_in_burst(mut self) -> Nanos {
        self.submit();
        while self.idle.len() < self.burst {
            self.step();
            self.shared.completions[0].drain(&mut self.idle);
        }
        self.times.now() - self.times.at(|state| state.worked)
    }

    /// Brings jobs again that have come back, once there are enough of them.
    fn submit(&mut self) {
        let completions = &self.shared.completions[0];
        let came = completions.drain(&mut self.idle);
        completions.release(u32::try_from(came).expect("jobs are few"));
        if self.idle.len() >= self.burst {
            self.idle.iter_mut().for_each(|job| job.arm(self.session, &[0; 16], BYTES));
            submit(self.shared, 0, &mut self.idle);
        }
    }

    fn step(&mut self) {
        (0..self.resting.len()).for_each(|worker| self.poll_doorbell(worker));
        let when = |worker: usize| match &self.resting[worker] {
            Some((until, ..)) => *until,
            None => self.times.of(worker),
        };
        let worker = (0..self.resting.len()).min_by_key(|&worker| when(worker)).expect("there are workers");
        assert!(when(worker) < Nanos(u64::MAX), "no worker would ever do anything");
        self.wake(worker, when(worker));
        if worker < self.cores.len() { self.step_core(worker) } else { self.step_module() }
    }

    /// Wakes a worker whose bell was rung.
    fn poll_doorbell(&mut self, worker: usize) {
        let Some((until, ticket, rest)) = self.resting[worker].take() else { return };
        let doorbell = self.shared.backlog.doorbell_of(worker);
        let is_rung = doorbell.wait(ticket, Some(std::time::Duration::ZERO));
        // Nothing is rung between.
        let until = if is_rung { self.times.now() } else { until };
        self.resting[worker] = Some((until, doorbell.listen(), rest));
    }

    fn wake(&mut self, worker: usize, when: Nanos) {
        self.times.begin(worker, when);
        let Some((_, _, rest)) = self.resting[worker].take() else { return };
        if worker < self.cores.len() {
            self.shared.end_idle(&rest);
        } else {
            self.module.mark_core();
        }
    }

    fn step_core(&mut self, worker: usize) {
        let mut burst = Vec::new();
        if let Err(timeout) = self.shared.run_claim(worker, &self.take, &mut self.cores[worker], &mut burst) {
            let idle = self.shared.begin_idle(worker);
            self.rest(worker, timeout, idle);
        }
    }

    fn step_module(&mut self) {
        if !self.module.works() {
            self.module.feedback.as_mut().expect("the policy learns").rest();
            self.rest(self.cores.len(), self.module.claim_wait, IdleSpan::default());
        }
    }

    /// As `Backlog::wait_for_work`.
    fn rest(&mut self, worker: usize, timeout: Option<Nanos>, rest: IdleSpan) {
        let backlog = &self.shared.backlog;
        let is_module = worker == self.cores.len();
        let sleeps = is_module && !backlog.class_queues().modules_matter() || backlog.has_nothing_for(worker);
        let until = match timeout {
            Some(timeout) if !sleeps => self.times.now() + timeout,
            _ => Nanos(u64::MAX),
        };
        self.resting[worker] = Some((until, backlog.doorbell_of(worker).listen(), rest));
    }
}

/// What is known of the costs at the beginning: of cores all, of the module what the kind says.
fn learned(kind: &Kind, session: &'static Session) -> Estimator {
    let class = job(session, BYTES).class();
    let restored = |time: Nanos| Learned::kept(time.0 as f64, BYTES as f64, 16);
    let mut learned = Estimator::new(1);
    learned.keep_cpu(class, Method::Plain, 0, restored(kind.takes.c));
    if let Some(Takes { d, h, .. }) = kind.known {
        learned.keep_module(0, class, OnModule { d: restored(d), h: restored(h), ..OnModule::default() });
    }
    if kind.takes_turns {
        learned.keep_overhead(0, Line { fixed_ns: kind.takes.overhead.0, per_byte_ps: 0 });
        learned.pair_up(0, 16);
    }
    learned
}

/// Requests that came in the whole of a run, and in its last tenth.
fn counts(kind: &Kind, time: Nanos, fates: Fates, first: u64) -> (usize, usize) {
    let came = Machine::new(kind, fates, first).run(time);
    (came.len(), came.iter().filter(|when| when.0 > time.0 / 10 * 9).count())
}

const fn healthy(_: u64, _: u64) -> Fate {
    Fate::Done
}

/// On two cores, or one; a request is back later than a core would have done it.
fn two_cores() -> Kind {
    let takes = Takes { c: us(1_000), redo: us(1_000), d: us(100), overhead: us(0), h: us(600) };
    Kind { cores: 2, width: 2, takes, takes_turns: false, known: Some(takes), jobs: 256, burst: 1 }
}

/// The module's path works on the only core, and is faster than that.
fn turns() -> Kind {
    let takes = Takes { c: us(400), redo: us(400), d: us(60), overhead: us(150), h: us(100) };
    let known = Some(Takes { d: us(210), h: us(420), ..takes });
    Kind { cores: 1, width: 2, takes, takes_turns: true, known, jobs: 4_000, burst: 4_000 }
}

/// Holds runs with two requests that fail, the first of them of these numbers, against a run with none.
fn fail_two(name: &str, kind: &Kind, time: Nanos, first: &[u64]) {
    let gaps: [Fates; 3] = [
        |number, first| failing(number == first || number == first + 1),
        |number, first| failing(number == first || number == first + 2),
        |number, first| failing(number == first || number == first + 3),
    ];
    let (all, all_last) = counts(kind, time, healthy, 0);
    assert!(all_last >= 32, "{name}: it is of use");
    for &first in first {
        for (gap, fates) in gaps.into_iter().enumerate() {
            let (some, last) = counts(kind, time, fates, first);
            let second = first + gap as u64 + 1;
            assert!(some * 100 >= all * 95, "{name}, {first} and {second} fail: {some} of {all}");
            assert!(last * 100 >= all_last * 95, "{name}, {first} and {second} fail: {last} of {all_last}");
        }
    }
}

#[test]
fn two_requests_that_fail_change_nothing_of_what_a_module_is_given() {
    let two = two_cores();
    for (name, kind) in [
        ("two cores", two),
        ("two cores, one request", Kind { width: 1, ..two }),
        ("two cores, a new module", Kind { known: None, ..two }),
        ("two cores, bursts", Kind { jobs: 24, burst: 24, ..two }),
        ("one core", Kind { cores: 1, ..two }),
        ("one core, bursts", Kind { cores: 1, jobs: 24, burst: 24, ..two }),
    ] {
        fail_two(name, &kind, Nanos::from_millis(800), &[1, 2, 3, 4, 9, 60]);
    }
}

#[test]
fn two_requests_that_fail_in_a_turn_or_at_its_end_change_nothing_of_what_a_module_is_given() {
    let turns = turns();
    fail_two("turns", &turns, Nanos::from_millis(1_000), &[2, 24, 60]);
    // It is thought to be so slow that it has nothing but its turns at first; the second one shows otherwise.
    let takes = Takes { d: us(560), h: us(1_120), ..turns.takes };
    let slow = Kind { known: Some(takes), ..turns };
    fail_two("turns, thought slow", &slow, Nanos::from_millis(4_500), &[1, 13, 14, 15, 18, 22, 23, 24, 25]);
}

#[test]
fn a_module_whose_tries_have_all_failed_is_asked_again_after_a_second() {
    let (kind, time) = (Kind { known: None, ..two_cores() }, Nanos::from_millis(2_500));
    let (all, all_last) = counts(&kind, time, healthy, 0);
    let (some, last) = counts(&kind, time, |number, first| failing(number <= first), 4);
    assert!(last * 100 > all_last * 95 && some * 100 > all * 55, "{some} of {all}");
}

#[test]
fn a_module_that_would_come_last_of_all_is_asked_again_after_long() {
    // The first two are believed to take 12 ms each, and the cores are done with four jobs in two: so 1000 of that.
    let kind = Kind { known: None, jobs: 4, burst: 4, ..two_cores() };
    let fates: Fates = |number, _| if number <= 2 { Fate::Slow(20) } else { Fate::Done };
    let came = Machine::new(&kind, fates, 0).run(Nanos::from_millis(14_000));
    let before = came.iter().filter(|when| **when < Nanos::from_millis(12_000)).count();
    // No number of tries are so many.
    assert!(before == 2 && came.len() > 16, "{before} of {}", came.len());
}

#[test]
fn a_module_that_fails_more_than_it_is_worth_is_left_alone_for_longer_and_longer() {
    let takes = Takes { c: us(1_000), redo: us(1_000), d: us(600), overhead: us(0), h: us(100) };
    let kind = Kind { cores: 1, takes, known: Some(takes), ..two_cores() };
    let of = |fates| counts(&kind, Nanos::from_millis(10_000), fates, 0).0;
    // Two of three cost 600 us each, and the third saves 400; one of nine costs as much, and the others save 3200.
    let most = of(|number, _| failing(number % 3 != 0));
    let few = of(|number, _| failing(number % 9 == 0));
    assert!(most < 200 && few > 5_000, "{most} {few}");
}

#[test]
fn what_a_core_takes_to_redo_a_request_is_no_measure_for_the_module() {
    // Its cores do many jobs side by side, each in an eighth of the time that one takes by itself.
    let takes = Takes { c: us(100), redo: us(800), d: us(60), overhead: us(150), h: us(100) };
    let kind = Kind { takes, known: Some(Takes { d: us(210), h: us(420), ..takes }), ..turns() };
    let of = |fates| counts(&kind, Nanos::from_millis(6_000), fates, 0).0;
    let (all, some) = (of(healthy), of(|number, _| failing(number % 24 > 20)));
    assert!(all > 24 && some <= all + 24, "{all} {some}");
}

#[test]
fn what_a_check_takes_of_the_only_core_is_left_out_of_what_is_told_next_and_nothing_else_is() {
    let after_a_check = |kind: &Kind| {
        let Machine { mut module, .. } = Machine::new(kind, healthy, 0);
        let class = job(session(), BYTES).class();
        let [passed, overhead, besides] = [us(300), us(100), Nanos::ZERO];
        let (held, jobs, bytes) = (2, 1, BYTES as u64);
        let part = SampleGroup {
            origin: Origin {
                class,
                held,
                circumstances: Circumstances { opened_key: false, is_alone: true },
            },
            jobs,
            bytes,
            time: GroupTime { passed, excluded: besides, overhead },
        };
        module.feedback.as_mut().expect("the policy learns").pending.add(part);
        module.progress = us(5_000);
        module.exclude(us(1_000));
        (module.progress, module.feedback.expect("the policy learns").pending.jobs())
    };
    assert_eq!(after_a_check(&turns()), (us(6_000), 1));
    // Elsewhere the module works on meanwhile, and for how long is unknown.
    assert_eq!(after_a_check(&two_cores()), (us(5_000), 0));
}

#[test]
fn the_only_core_goes_on_as_soon_as_the_module_is_left_nothing() {
    for turn in [210, 350] {
        let takes = Takes { d: us(60), overhead: us(turn - 60), ..turns().takes };
        let known = Some(Takes { d: us(turn), h: us(8 * turn), ..takes });
        for jobs in (20..400).step_by(4) {
            let kind = Kind { width: 8, takes, known, jobs, burst: jobs, ..turns() };
            let idle = Machine::new(&kind, healthy, 0).idle_in_burst();
            // What the module takes beside the path for the last request, and the microsecond at which all begins.
            assert!(idle <= takes.h + us(1), "{turn} us, {jobs} jobs: {idle}");
        }
    }
}

/// Whether a worker beside two cores asks for a turn and claims nothing, with so many jobs before it at a module that works on each for `h`; it then has no turn any more.
fn asks_in_vain(h: Nanos, jobs: usize) -> bool {
    let takes = Takes { c: us(1_000), redo: us(1_000), d: us(100), overhead: us(0), h };
    let kind = Kind { cores: 2, width: 2, takes, takes_turns: false, known: Some(takes), jobs, burst: jobs };
    let folder = ArbiterFolder::new();
    let (arbiter, other) = (folder.attach(), folder.attach());
    let mut machine = Machine::new(&kind, healthy, 0);
    machine.module.turns = Turns::new(Some(arbiter.module("one", 1)));
    machine.submit();
    let has_claimed = machine.module.claim();
    let grants: u64 = other.snapshot().processes.iter().map(|process| process.grants).sum();
    if has_claimed || grants == 0 {
        return false;
    }
    assert!(
        other.module("one", 1).try_acquire(us(1)).is_ok(),
        "h {h:?}, {jobs} jobs: nobody else has a turn"
    );
    true
}

#[test]
fn a_worker_that_finds_nothing_to_claim_gives_its_turn_back_before_it_sleeps() {
    // The last jobs end sooner on cores, so the plan leaves them there.
    let all = [500, 1_500, 3_000, 20_000].into_iter().flat_map(|h| (1..=4).map(move |jobs| (us(h), jobs)));
    assert!(all.filter(|&(h, jobs)| asks_in_vain(h, jobs)).count() > 0);
}
