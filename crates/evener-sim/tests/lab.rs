//! Runs with what the papers did not try: depth, priority, faults, several cores and units, caps, jobs that come in time.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "says what was reached")]

use evener_core::plan::Policy;
use evener_core::{Cost, Nanos};
use evener_sim::bounds::{Requests, lower_bound};
use evener_sim::engine::{Faults, Slowdown, Stuck};
use evener_sim::lab::{
    Arrivals, Choice, Chooser, CpuCap, Planned, Report, Sample, Setup, View, Which, Workload, run,
};
use evener_sim::papers::am3358::{Mix, Model, Series, equal_jobs, machine};

/// Positions of sizes in the costs of paper 002.
const B1024: usize = 4;
const B8192: usize = 6;
const B16384: usize = 7;

fn costs() -> Vec<(u64, Cost)> {
    Series::Aes128.fit().costs
}

fn setup(change: impl FnOnce(&mut Setup)) -> Setup {
    let mut setup = machine(&costs(), Model::Policy, 1, 200);
    change(&mut setup);
    setup
}

fn policy(setup: &Setup, workload: &Workload, policy: Policy) -> Report {
    let mut planned = Planned::new(policy, setup.cpu.workers, u32::try_from(setup.modules.len()).unwrap());
    run(setup, workload, &mut planned).unwrap()
}

/// The module takes all it can, oldest first, the CPU what is left once the module has as much as it can do.
struct ModuleFirst {
    seen: Vec<Sample>,
    lost: u32,
}

impl Chooser for ModuleFirst {
    fn cpu_takes(&mut self, _: u32, _: &View<'_>) -> Choice {
        Choice::Take { which: Which::Oldest, jobs: 1 }
    }

    fn module_takes(&mut self, _: u32, _: &View<'_>) -> Choice {
        Choice::Take { which: Which::Oldest, jobs: 1 }
    }

    fn observe(&mut self, sample: &Sample) {
        self.seen.push(*sample);
    }

    fn lose(&mut self, _: u32) {
        self.lost += 1;
    }
}

fn module_first(setup: &Setup, workload: &Workload) -> (Report, ModuleFirst) {
    let mut chooser = ModuleFirst { seen: Vec::new(), lost: 0 };
    let report = run(setup, workload, &mut chooser).unwrap();
    (report, chooser)
}

fn all_done(report: &Report) -> bool {
    report.lost() == 0 && (report.cpu_jobs() + report.module_jobs()) as usize == report.jobs.len()
}

#[test]
fn two_requests_and_a_raised_priority_reach_the_asynchronous_bound() {
    let bound = |class: usize| lower_bound(&[(costs()[class].1, 4000)], Requests::Asynchronous) / 1e9;
    for class in [B8192, B16384] {
        let raised = setup(|setup| {
            (setup.modules[0].depth, setup.modules[0].priority, setup.jitter) = (2, 1, 0.0);
        });
        let makespan = module_first(&raised, &equal_jobs(class)).0.makespan.as_secs_f64();
        assert!((1.0..1.02).contains(&(makespan / bound(class))), "{class}: {makespan} {}", bound(class));
        let equal = setup(|setup| setup.modules[0].depth = 2);
        let without = module_first(&equal, &equal_jobs(class)).0.makespan.as_secs_f64();
        assert!(without > 1.1 * makespan, "{class}: {without} {makespan}");
    }
}

#[test]
fn a_chooser_is_told_what_every_job_took() {
    let (report, chooser) = module_first(&setup(|_| ()), &Mix::Tls.workload(&costs()));
    assert_eq!(chooser.seen.len(), report.jobs.len());
    for sample in &chooser.seen {
        let cost = costs()[sample.class].1;
        let (core, service) = match sample.worker.path {
            evener_sim::lab::Path::Cpu => (cost.c, Nanos::ZERO),
            evener_sim::lab::Path::Module => (cost.d, cost.h),
        };
        let near = |seen: Nanos, mean: Nanos| seen.0.abs_diff(mean.0) as f64 <= 0.05 * mean.0 as f64 + 2.0;
        assert!(near(sample.core + sample.interrupt, core) && near(sample.service, service), "{sample:?}");
        assert!(sample.wall >= sample.core + sample.service, "{sample:?}");
    }
    let interrupts: Nanos = chooser.seen.iter().map(|sample| sample.interrupt).sum();
    assert_eq!(interrupts, report.interrupts);
}

#[test]
fn a_module_that_is_lost_loses_no_job_under_any_policy() {
    let lost_at = Some(Nanos::from_millis(100));
    let faulty = |depth| {
        setup(|setup| {
            setup.modules[0].spec.faults = Faults { slow: None, lost_at };
            setup.modules[0].depth = depth;
        })
    };
    for (name, depth) in Policy::ALL.into_iter().flat_map(|name| [(name, 1), (name, 2), (name, 8)]) {
        let report = policy(&faulty(depth), &equal_jobs(B8192), name);
        assert!(all_done(&report), "{name} {depth}: {report:?}", report = report.lost());
        let uses = name != Policy::CpuOnly;
        assert_eq!(report.modules[0].failed > 0, uses, "{name} {depth}");
        assert_eq!(report.module_jobs() > 0, uses, "{name} {depth}");
    }
    let (report, chooser) = module_first(&faulty(4), &equal_jobs(B16384));
    assert!(all_done(&report));
    assert_eq!((report.modules[0].failed, chooser.lost), (4, 1));
}

#[test]
fn a_module_that_slows_down_takes_fewer_jobs_of_the_shared_queue() {
    let at = Nanos::from_millis(500);
    let slow = setup(|setup| setup.modules[0].spec.faults.slow = Some(Slowdown { at, factor: 20 }));
    let reports = [setup(|_| ()), slow].map(|setup| policy(&setup, &equal_jobs(B8192), Policy::SharedQueue));
    assert!(reports.iter().all(all_done));
    assert!(reports[1].module_jobs() * 2 < reports[0].module_jobs(), "{}", reports[1].module_jobs());
    assert!(reports[1].makespan > reports[0].makespan);
}

#[test]
fn a_second_unit_does_not_help_a_path_with_one_request_and_doubles_one_with_many() {
    // Without core time on the path, the module is all there is.
    let makespan = |units, depth| {
        let setup = setup(|setup| {
            (setup.modules[0].spec.units, setup.modules[0].depth) = (units, depth);
            setup.modules[0].costs.iter_mut().for_each(|cost| cost.d = Nanos(100));
            setup.jitter = 0.0;
        });
        policy(&setup, &equal_jobs(B16384), Policy::ModuleOnly).makespan.as_secs_f64()
    };
    assert!((makespan(2, 1) / makespan(1, 1) - 1.0).abs() < 0.001);
    assert!((makespan(1, 4) / makespan(2, 4) - 2.0).abs() < 0.01);
}

#[test]
fn four_cores_do_four_times_as_much() {
    let makespan = |cores: usize| {
        let setup = setup(|setup| {
            (setup.cores, setup.cpu.workers) = (cores, u32::try_from(cores).unwrap());
        });
        policy(&setup, &equal_jobs(B1024), Policy::CpuOnly).makespan.as_secs_f64()
    };
    // The last claims differ in length by a few jobs.
    assert!((makespan(1) / makespan(4) - 4.0).abs() < 0.05, "{}", makespan(1) / makespan(4));
}

#[test]
fn several_modules_share_the_work() {
    let setup = setup(|setup| {
        setup.cores = 4;
        let second = setup.modules[0].clone();
        setup.modules.push(second);
    });
    for name in [Policy::ModuleOnly, Policy::SharedQueue, Policy::RoundRobin, Policy::Polling] {
        let report = policy(&setup, &equal_jobs(B16384), name);
        let [one, other] = [0, 1].map(|at: usize| f64::from(report.modules[at].worker.jobs));
        assert!(all_done(&report) && (one / other - 1.0).abs() < 0.05, "{name}: {one} {other}");
    }
}

#[test]
fn a_nice_cpu_worker_leaves_the_core_to_the_other_program() {
    let hog_share = |nice| {
        let setup = setup(|setup| (setup.hogs, setup.cpu.nice) = (1, nice));
        let report = policy(&setup, &equal_jobs(B8192), Policy::CpuOnly);
        report.hog().as_secs_f64() / report.makespan.as_secs_f64()
    };
    assert!((hog_share(0) - 0.5).abs() < 0.01, "{}", hog_share(0));
    assert!((hog_share(5) - 1024.0 / (1024.0 + 335.0)).abs() < 0.01, "{}", hog_share(5));
}

#[test]
fn a_cap_on_both_paths_with_interrupts_holds_and_one_on_cpu_workers_alone_does_not() {
    let share = |cap: Option<CpuCap>| {
        let setup = setup(|setup| {
            (setup.modules[0].depth, setup.modules[0].priority, setup.cpu.cap) = (2, 1, cap);
        });
        let (report, _) = module_first(&setup, &equal_jobs(B16384));
        (report.crypto() + report.interrupts).as_secs_f64() / report.makespan.as_secs_f64()
    };
    assert!(share(None) > 0.99);
    for cap in [0.5, 0.7] {
        let whole = CpuCap { share: cap, holds_module_path: true, counts_interrupts: true };
        let held = share(Some(whole));
        assert!((cap - 0.02..cap + 0.02).contains(&held), "{cap}: {held}");
        let part = CpuCap { holds_module_path: false, counts_interrupts: false, ..whole };
        assert!(share(Some(part)) > cap + 0.02, "{cap}: {}", share(Some(part)));
    }
}

#[test]
fn jobs_that_come_in_time_wait_longer_the_busier_the_core_is() {
    // One server, jobs of constant length: the mean wait is rho / (2 (1 - rho)) of a job (Pollaczek, Khinchine).
    let job = costs()[B1024].1.c;
    let service = job.as_secs_f64();
    for (rho, mean) in [(0.5, Nanos(job.0 * 2)), (0.8, Nanos(job.0 * 5 / 4))] {
        let workload = Workload::new(std::iter::repeat_n(B1024, 400_000), Arrivals::Poisson { mean }, 11);
        let setup = setup(|setup| setup.jitter = 0.0);
        let report = policy(&setup, &workload, Policy::CpuOnly);
        assert!(all_done(&report));
        let sojourns = report.jobs.iter().map(|job| (job.ended.unwrap().0 - job.arrived).as_secs_f64());
        let wait = sojourns.sum::<f64>() / 400_000.0 - service;
        let theory = service * rho / (2.0 * (1.0 - rho));
        println!("{rho}: {wait} {theory}");
        assert!((wait / theory - 1.0).abs() < 0.05, "{rho}: {wait} {theory}");
    }
}

#[test]
fn bursts_have_longer_tails_than_a_steady_stream_of_the_same_rate() {
    let tail = |arrivals| {
        let workload = Workload::new([B8192; 8_000], arrivals, 3);
        let report = policy(&setup(|_| ()), &workload, Policy::SharedQueue);
        assert!(all_done(&report));
        assert!(report.latency(500) <= report.latency(990) && report.latency(990) <= report.latency(1_000));
        report.latency(990)
    };
    let (on, off) = (Nanos::from_millis(100), Nanos::from_millis(300));
    let steady = tail(Arrivals::Poisson { mean: Nanos::from_micros(1_200) });
    let bursty = tail(Arrivals::Bursts { mean: Nanos::from_micros(300), on, off });
    assert!(bursty > Nanos(2 * steady.0), "{bursty} {steady}");
}

#[test]
fn polling_serves_jobs_that_come_in_time_too() {
    let workload = Workload::new([B8192; 500], Arrivals::Poisson { mean: Nanos::from_millis(2) }, 3);
    let report = policy(&setup(|_| ()), &workload, Policy::Polling);
    assert!(all_done(&report) && report.monitor > Nanos::from_millis(100), "{}", report.monitor);
}

#[test]
fn nothing_to_do_takes_no_time_and_nobody_to_do_it_is_an_error() {
    let none = Workload::new([], Arrivals::AtOnce, 0);
    assert_eq!(policy(&setup(|_| ()), &none, Policy::SharedQueue).makespan, Nanos::ZERO);
    let no_workers = setup(|setup| (setup.cpu.workers, setup.modules) = (0, Vec::new()));
    let run = run(&no_workers, &equal_jobs(B1024), &mut Planned::new(Policy::SharedQueue, 0, 0));
    assert_eq!(run, Err(Stuck::Deadlock { at: Nanos::ZERO }));
}
