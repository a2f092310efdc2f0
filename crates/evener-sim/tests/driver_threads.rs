//! Drivers with threads of their own: how many requests are worked on, and how often a core changes threads, by arithmetic.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use evener_core::Nanos;
use evener_core::plan::Policy;
use evener_sim::lab::{
    Arrivals, Class, ModuleCost, ModulePath, ModuleSide, Planned, Report, Runners, Setup, Workload, run,
};
use evener_sim::papers::am3358::{Model, Series, machine};

const JOBS: u32 = 400;

/// The module takes a hundred times as long for a request as the core.
const COST: ModuleCost = ModuleCost { d: Nanos::from_micros(10), h: Nanos::from_micros(1_000) };

/// One core, and a module with a unit for each request that may be outstanding.
fn module_only(jobs: u32, depth: u32, runners: Runners) -> Report {
    let path = ModulePath { runner_share: 0.5, runners, ..ModulePath::DIRECT };
    let mut setup: Setup = machine(&Series::Aes128.fit().costs, Model::Policy, 1, 200);
    setup.classes = vec![Class { bytes: 4_096, c: Nanos::from_millis(1) }];
    (setup.cpu.workers, setup.jitter) = (0, 0.0);
    let side = &mut setup.modules[0];
    side.spec.units = depth;
    *side = ModuleSide { costs: vec![COST], path, depth, check_every: 0, ..side.clone() };
    let workload = Workload::new(std::iter::repeat_n(0, jobs as usize), Arrivals::AtOnce, 0);
    let report = run(&setup, &workload, &mut Planned::new(Policy::ModuleOnly, 0, 1)).unwrap();
    assert_eq!((report.module_jobs(), report.lost()), (jobs, 0));
    report
}

#[test]
fn as_many_requests_are_worked_on_as_the_driver_has_threads_whatever_may_be_outstanding() {
    let each = (COST.h + COST.d).as_secs_f64();
    for (depth, count) in [(8, 1), (8, 2), (8, 4), (2, 2)] {
        let makespan = module_only(JOBS, depth, Runners { count, together: 1 }).makespan.as_secs_f64();
        let expected = f64::from(JOBS) / f64::from(count) * each;
        assert!((0.98..1.02).contains(&(makespan / expected)), "{depth} {count}: {makespan} {expected}");
    }
}

#[test]
fn threads_that_sleep_are_woken_for_all_that_was_given_when_results_are_asked_for() {
    let makespan = module_only(8, 8, Runners { count: 4, together: 8 }).makespan.as_secs_f64();
    let expected = 2.0 * (COST.h + COST.d).as_secs_f64();
    assert!((0.98..1.1).contains(&(makespan / expected)), "{makespan} {expected}");
}

#[test]
fn while_requests_wait_the_worker_gets_the_core_once_for_several_results() {
    // The core goes to the driver's thread once for each result, as it was idle until then, and to the worker where that is woken;
    // from the worker it goes back where the thread was not done.
    for (together, times) in [(1, 1.0), (4, 0.25)] {
        let report = module_only(JOBS, 8, Runners { count: 1, together });
        let beyond = report.switches as f64 / f64::from(JOBS) - 1.0;
        assert!((0.95 * times..2.05 * times).contains(&beyond), "{together}: {beyond}");
    }
    // Where nothing waits, it hears of each.
    let report = module_only(JOBS, 1, Runners { count: 1, together: 4 });
    assert!(report.switches >= u64::from(2 * JOBS - 2), "{}", report.switches);
}
