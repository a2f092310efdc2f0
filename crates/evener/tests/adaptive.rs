//! The adaptive policy at work: what it gives to a module, what it learns, what guards it. Costs are emulated, so that
//! what is right does not hang on this machine; asserted are counts and shares of core time, never times. Where a count hangs
//! on which thread gets a core first, the bound holds on a machine on which others have the cores most of the time.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::num::NonZero;
use std::time::Instant;

use evener::{CoreDrivers, ModuleSetup, Report, Setup, Submitted, run};
use evener_core::estimate::TUNING;
use evener_core::estimate::{ModuleSample, OVERHEAD_MAX};
use evener_core::plan::Policy;
use evener_core::{Algorithm, Budget, Estimator, Method, Nanos, Objective};
use evener_driver_emulated::{CostedCpu, Emulated, Fault, When};
use evener_driver_libcrypto::Libcrypto;
use evener_testing::cases::{Case, check_all, jobs, spaces};
use evener_testing::drivers::{libcrypto, plain_drivers, plain_setup};
use evener_testing::waiting::without_standstill;

/// A machine: what a job costs on the CPU path, and on the module path.
struct Machine {
    costs: &'static str,
    workers: usize,
    cores: usize,
    objective: Objective,
    learned: Estimator,
}

/// Jobs of a class that no number of tries gives a module, and that a module gets which comes late each time.
const A_SHARE: u64 = 32;

impl Machine {
    fn core_drivers(&self) -> CoreDrivers {
        let cpu = CostedCpu::new(Box::new(libcrypto()), self.costs.parse().unwrap());
        CoreDrivers::new(Box::new(cpu), None)
    }

    /// Runs all cases so many times over, through a stream; every result is compared with libcrypto's.
    fn run(&self, cases: &[Case], rounds: usize) -> Report {
        let mut memory: Vec<_> = (0..rounds).map(|_| spaces(cases)).collect();
        let module = self.module();
        let setup = Setup {
            policy: Policy::Adaptive,
            workers: (0..self.workers).map(|_| self.core_drivers()).collect(),
            modules: vec![ModuleSetup::new(Box::new(module), plain_drivers())],
            cores: self.cores,
            objective: self.objective,
            learned: self.learned.clone(),
            home_jobs: 4_096,
            backlog_jobs: 4_096,
            ..Setup::default()
        };
        let ((), report) = run(setup, |runtime| {
            let (mut sender, mut receiver) = runtime.stream();
            let mut all = memory.iter_mut().flat_map(|spaces| jobs(cases, spaces)).collect();
            assert_eq!(sender.submit_all(&mut all), Submitted::Yes);
            for _ in 0..rounds {
                let came: Vec<_> = cases.iter().map(|_| receiver.next().unwrap()).collect();
                check_all(cases, &came);
            }
        });
        assert_eq!(report.total().jobs, (cases.len() * rounds) as u64);
        report
    }

    fn module<'m>(&self) -> Emulated<'m> {
        Emulated::new(self.costs.parse().unwrap(), Box::new(libcrypto()))
    }

    /// A caller brings the cases one at a time, beside `module`.
    fn one_at_a_time(&self, cases: &[Case], module: Emulated<'_>) -> Report {
        let mut memory = spaces(cases);
        let setup = Setup {
            policy: Policy::Adaptive,
            callers: 1,
            modules: vec![ModuleSetup::new(Box::new(module), plain_drivers())],
            objective: self.objective,
            cores: self.cores,
            learned: self.learned.clone(),
            ..Setup::default()
        };
        let ((), report) = run(setup, |runtime| {
            let mut caller = runtime.caller(self.core_drivers());
            let mut came = Vec::new();
            for job in jobs(cases, &mut memory) {
                let mut single = vec![job];
                caller.crypt(&mut single);
                came.append(&mut single);
            }
            check_all(cases, &came);
        });
        assert_eq!(report.total().jobs, cases.len() as u64);
        report
    }
}

/// Jobs of one class.
fn equal_cases() -> Vec<Case> {
    (0..64).map(|seed| Case::encrypt(Algorithm::Aes128Cbc, seed, 64)).collect()
}

/// The class of the first case's job.
fn class(cases: &[Case]) -> evener_core::Class {
    let mut memory = spaces(cases);
    jobs(cases, &mut memory)[0].class()
}

/// The classes of all of them, in place and apart.
fn classes(cases: &[Case]) -> Vec<evener_core::Class> {
    let mut memory = spaces(cases);
    let mut classes: Vec<_> = jobs(cases, &mut memory).iter().map(|job| job.class()).collect();
    classes.sort();
    classes.dedup();
    classes
}

#[test]
fn a_module_that_costs_more_core_time_than_it_saves_gets_no_more_than_its_tries() {
    without_standstill(|| {
        let machine = Machine {
            costs: "emulated:d=400000+0,h=1000+0,c=50000+0",
            workers: 2,
            cores: 2,
            objective: Objective::Throughput,
            learned: Estimator::default(),
        };
        let (cases, began) = (equal_cases(), Instant::now());
        let report = machine.run(&cases, 32);
        // One more of each class in each second, for where others have the cores the run takes more than one; and one more each
        // time that the last took much less than those before.
        let tries = u64::from(TUNING.tries_max) + 1 + 2 * began.elapsed().as_secs();
        assert!(report.modules().jobs <= tries * classes(&cases).len() as u64, "{report:?}");
    });
}

#[test]
fn a_module_that_saves_core_time_gets_its_share() {
    without_standstill(|| {
        let machine = Machine {
            costs: "emulated:d=20000+0,h=200000+0,c=1000000+0",
            workers: 1,
            cores: 1,
            objective: Objective::Throughput,
            learned: Estimator::default(),
        };
        let report = machine.run(&equal_cases(), 4);
        // Alone it does about 256 x 1000 / (1000 + 220) = 210.
        assert!(report.modules().jobs >= A_SHARE, "{report:?}");
    });
}

/// Whatever a calibration on a bad day said of what clocks do not show.
#[test]
fn one_core_has_not_lost_more_time_than_has_passed() {
    without_standstill(|| {
        let mut learned = Estimator::new(1);
        learned.keep_overhead(0, OVERHEAD_MAX);
        let machine = Machine {
            costs: "emulated:d=20000+0,h=200000+0,c=5000000+0",
            workers: 1,
            cores: 1,
            objective: Objective::Throughput,
            learned,
        };
        let report = machine.run(&equal_cases(), 2);
        // 10 ms of core time would be no bargain beside 5 ms, and a request is back in much less than that.
        assert!(report.modules().jobs >= A_SHARE, "{report:?}");
    });
}

#[test]
fn a_module_that_is_new_is_tried_by_jobs_that_come_at_once_though_cores_know_what_they_take() {
    without_standstill(|| {
        let cases = equal_cases();
        let mut learned = Estimator::default();
        for class in classes(&cases) {
            learned.saw_cpu(class, Method::Plain, 64, 64 * 64, Nanos::from_millis(64));
        }
        let machine = Machine {
            costs: "emulated:d=20000+0,h=200000+0,c=1000000+0",
            workers: 1,
            cores: 1,
            objective: Objective::Throughput,
            learned,
        };
        let report = machine.run(&cases, 8);
        assert!(report.modules().jobs >= A_SHARE, "{report:?}");
    });
}

#[test]
fn a_run_of_a_few_milliseconds_tries_nothing_and_wakes_no_module() {
    without_standstill(|| {
        let machine = Machine {
            costs: "emulated:d=1000+0,h=1000+0,c=20000+0",
            workers: 2,
            cores: 2,
            objective: Objective::Throughput,
            learned: Estimator::default(),
        };
        let report = machine.run(&equal_cases(), 4);
        assert_eq!(report.modules().jobs, 0, "{report:?}");
    });
}

#[test]
fn what_one_run_learned_the_next_one_uses_from_its_start() {
    without_standstill(|| {
        let cases = equal_cases();
        let costs = "emulated:d=20000+0,h=200000+0,c=400000+0";
        let machine = |learned, objective| Machine { costs, workers: 1, cores: 1, objective, learned };
        let samples = |learned: &Estimator| learned.on_module(0, class(&cases)).h.samples;
        let first = machine(Estimator::default(), Objective::Throughput).run(&cases, 8).learned;
        assert!(samples(&first) > 0, "{first:?}");
        // Six milliseconds of work: without knowledge a module would not even be tried.
        let second = machine(first, Objective::Throughput).run(&cases[..16], 1).learned;
        assert!(samples(&second) > 0, "{second:?}");
        // For the least core time cores leave to it all that it is known to do for less, however late it comes.
        let jobs_of = |learned| machine(learned, Objective::Cpu).run(&cases[..16], 1).modules().jobs;
        let [ignorant, informed] = [Estimator::default(), informed([20_000, 200_000, 400_000], &cases)];
        assert_eq!(jobs_of(ignorant), 0);
        assert!(jobs_of(informed) > 0);
    });
}

#[test]
fn a_module_that_is_known_to_be_too_slow_gets_nothing_from_the_start_and_cores_know_their_methods() {
    without_standstill(|| {
        let cases = equal_cases();
        let learned = informed([400_000, 1_000, 50_000], &cases);
        let costs = "emulated:d=400000+0,h=1000+0,c=50000+0";
        let objective = Objective::Throughput;
        let report = Machine { costs, workers: 2, cores: 2, objective, learned }.run(&cases, 2);
        assert_eq!(report.modules().jobs, 0, "{report:?}");
    });
}

#[test]
fn costs_that_lie_are_found_out_and_the_class_is_locked() {
    without_standstill(|| {
        let cases = equal_cases();
        let mut learned = Estimator::new(1);
        learned.saw_cpu(class(&cases), Method::Plain, 16, 16 * 64, Nanos(16 * 50_000));
        let lie = ModuleSample { jobs: 1, bytes: 64, d: Nanos(1_000), h: Nanos(1_000), now: Nanos(1) };
        learned.saw_module(0, class(&cases), &lie);
        learned.freeze();
        let costs = "emulated:d=1000000+0,h=1000+0,c=50000+0";
        let objective = Objective::Throughput;
        let report = Machine { costs, workers: 2, cores: 2, objective, learned }.run(&cases, 32);
        assert!(report.guarded.locks >= 1, "{:?}", report.guarded);
        // 5 ms, or 2 % of 2048 jobs of 50 us, at a loss of 950 us each, and what was under way.
        assert!(report.modules().jobs <= 16, "{report:?}");
    });
}

#[test]
fn a_class_that_modules_have_to_themselves_is_measured_on_a_core_now_and_then() {
    without_standstill(|| {
        let cases = equal_cases();
        let known = [20_000, 20_000, 1_000_000];
        let (costs, objective) = ("emulated:d=20000+0,h=20000+0,c=1000000+0", Objective::Cpu);
        let machine = Machine { costs, workers: 1, cores: 1, objective, learned: informed(known, &cases) };
        let guarded = machine.run(&cases, 4).guarded;
        // Of each of two classes; without any the guard would take all that the module costs for lost. A core that another program
        // has for a while loses something, too.
        assert!(guarded.control_jobs >= 2, "{guarded:?}");
        assert!(guarded.lost.0 < guarded.gained.0 / 4, "{guarded:?}");
    });
}

/// What a machine with these costs learns of the classes of `cases`, from so many true samples.
fn informed(costs: [u64; 3], cases: &[Case]) -> Estimator {
    let [d, h, c] = costs.map(Nanos);
    let mut learned = Estimator::new(1);
    for class in classes(cases) {
        for _ in 0..16 {
            learned.saw_cpu(class, Method::Plain, 1, 64, c);
            learned.saw_module(0, class, &ModuleSample { jobs: 1, bytes: 64, d, h, now: Nanos(1) });
        }
    }
    learned
}

/// Brings jobs one at a time, on as many cores as said, to a machine with these costs that knows them.
fn one_at_a_time(costs: &'static str, known: [u64; 3], cores: usize, objective: Objective) -> Report {
    let cases = equal_cases();
    let machine = Machine { costs, workers: 0, cores, objective, learned: informed(known, &cases) };
    machine.one_at_a_time(&cases, machine.module())
}

#[test]
fn a_single_request_goes_where_it_ends_sooner_and_some_show_what_a_core_would_take() {
    without_standstill(|| {
        let costs = "emulated:d=100000+0,h=500000+0,c=4000000+0";
        let report = one_at_a_time(costs, [100_000, 500_000, 4_000_000], 2, Objective::Throughput);
        // 10 ms of each of two classes first, which are three of 4 ms; later ones cost six times as much as what goes, and are few.
        assert!((6..16).contains(&report.guarded.control_jobs), "{:?}", report.guarded);
        // Where others have the cores, the module's thread comes late and the rest stays here.
        assert!(report.modules().jobs > 0, "{report:?}");
    });
}

#[test]
fn for_latency_the_end_decides_and_for_throughput_the_core_too() {
    without_standstill(|| {
        // With one core: on it a request takes 4 ms of its time; by way of the module it ends after 5.2 ms and takes 0.2.
        let costs = "emulated:d=200000+0,h=5000000+0,c=4000000+0";
        let of =
            |objective| one_at_a_time(costs, [200_000, 5_000_000, 4_000_000], 1, objective).modules().jobs;
        // One is sent now and then, to see whether it is still so.
        assert!(of(Objective::Latency) <= 1);
        assert!(of(Objective::Throughput) > 1);
    });
}

#[test]
fn a_module_that_is_lost_gives_back_the_single_request_that_it_was_given() {
    without_standstill(|| {
        let cases = equal_cases();
        let costs = "emulated:d=1000+0,h=1000+0,c=4000000+0";
        let (objective, learned) = (Objective::Throughput, informed([1_000, 1_000, 4_000_000], &cases));
        let machine = Machine { costs, workers: 0, cores: 2, objective, learned };
        let module = machine.module();
        // The first of all: how many it would get hangs on when its thread gets a core.
        module.control().set_fault(Fault::Gone, When { from: 1, every: 1 });
        let report = machine.one_at_a_time(&cases, module);
        let lost = report.workers.iter().filter_map(|worker| worker.module.as_ref()?.quarantine);
        assert_eq!(lost.count(), 1, "{report:?}");
    });
}

#[test]
fn a_module_that_lies_locks_the_class_for_itself_and_not_for_another() {
    without_standstill(|| {
        let cases = equal_cases();
        let mut learned = Estimator::new(2);
        let sample = |d, h| ModuleSample { jobs: 1, bytes: 64, d: Nanos(d), h: Nanos(h), now: Nanos(1) };
        for class in classes(&cases) {
            learned.saw_cpu(class, Method::Plain, 16, 16 * 64, Nanos(16 * 1_000_000));
            learned.saw_module(0, class, &sample(1_000, 100_000));
            learned.saw_module(1, class, &sample(20_000, 200_000));
        }
        learned.freeze();
        let costs = "emulated:d=20000+0,h=200000+0,c=1000000+0";
        let machine = Machine { costs, workers: 1, cores: 1, objective: Objective::Throughput, learned };
        let mut memory: Vec<_> = (0..8).map(|_| spaces(&cases)).collect();
        let module = |costs: &str| {
            let module = Emulated::new(costs.parse().unwrap(), Box::new(Libcrypto::new().unwrap()));
            ModuleSetup::new(Box::new(module), plain_drivers())
        };
        let setup = Setup {
            policy: Policy::Adaptive,
            workers: vec![machine.core_drivers()],
            modules: vec![module("emulated:d=5000000+0,h=1000+0"), module(costs)],
            cores: machine.cores,
            learned: machine.learned,
            home_jobs: 4_096,
            backlog_jobs: 4_096,
            ..Setup::default()
        };
        let ((), report) = run(setup, |runtime| {
            let (mut sender, mut receiver) = runtime.stream();
            let mut all = memory.iter_mut().flat_map(|spaces| jobs(&cases, spaces)).collect();
            assert_eq!(sender.submit_all(&mut all), Submitted::Yes);
            (0..8 * cases.len()).for_each(|_| _ = receiver.next().unwrap());
        });
        let of = |at: usize| {
            report.workers.iter().filter_map(|worker| worker.module.as_ref()).nth(at).unwrap().tally.jobs
        };
        let (fewer, more) = (of(0).min(of(1)), of(0).max(of(1)));
        assert!(report.guarded.locks >= 1, "{:?}", report.guarded);
        assert!(fewer <= 16 && more >= A_SHARE, "{fewer}, {more}: {:?}", report.guarded);
    });
}

#[test]
fn a_budget_holds_core_time_down() {
    without_standstill(|| {
        let cases = equal_cases();
        let mut memory: Vec<_> = (0..200).map(|_| spaces(&cases)).collect();
        let costs: evener_driver_emulated::Preset = "emulated:d=1000+0,h=1000+0,c=20000+0".parse().unwrap();
        let core_drivers = |_| {
            let cpu = CostedCpu::new(Box::new(libcrypto()), costs.clone());
            CoreDrivers::new(Box::new(cpu), None)
        };
        let setup = Setup {
            workers: (0..2).map(core_drivers).collect(),
            budget: Some(Budget::new(30, NonZero::new(2).unwrap()).unwrap()),
            home_jobs: 16_384,
            backlog_jobs: 16_384,
            ..plain_setup(0)
        };
        let start = Instant::now();
        let ((), report) = run(setup, |runtime| {
            let (mut sender, mut receiver) = runtime.stream();
            let mut all = memory.iter_mut().flat_map(|spaces| jobs(&cases, spaces)).collect();
            assert_eq!(sender.submit_all(&mut all), Submitted::Yes);
            (0..200 * cases.len()).for_each(|_| _ = receiver.next().unwrap());
        });
        let wall = start.elapsed().as_secs_f64();
        // 256 ms of work: a third of a second at the least. A busy machine makes the share smaller, never greater.
        let core = report.total().jobs as f64 * 20e-6;
        assert!(core / (2.0 * wall) < 0.34, "{core} s of core time in {wall} s on 2 cores");
    });
}
