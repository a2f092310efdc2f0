//! What measurements stand on: the barrier, the tallies, the count of cores.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use evener::{ModuleSetup, Setup, Submitted, core_budget, run};
use evener_core::plan::Policy;
use evener_core::{Algorithm, Nanos};
use evener_testing::cases::{
    Case, cbc_cases, check_all, jobs, mixed_cases, spaces, under_every_policy, with_jobs,
};
use evener_testing::drivers::{
    Fault, Scripted, TestClock, gated_drivers, plain_drivers, plain_setup, scripted, setup_with_module,
};
use evener_testing::waiting::without_standstill;

#[test]
fn no_worker_starts_a_job_between_hold_and_release() {
    without_standstill(|| {
        for policy in Policy::ALL {
            let cases = cbc_cases(64);
            let mut memory: Vec<_> = (0..20).map(|_| spaces(&cases)).collect();
            let begun = Arc::new(AtomicU64::new(0));
            let core_drivers = || {
                let begun = Arc::clone(&begun);
                gated_drivers(move || begun.fetch_add(1, Ordering::SeqCst) < u64::MAX)
            };
            let module = Scripted::new(Fault::None);
            let log = module.seen();
            let setup = Setup {
                policy,
                workers: vec![core_drivers(), core_drivers(), core_drivers()],
                modules: vec![scripted(module, 1_000)],
                ..Setup::default()
            };
            run(setup, |runtime| {
                let (mut sender, mut receiver) = runtime.stream();
                let started = || begun.load(Ordering::SeqCst) + log.taken();
                for spaces in &mut memory {
                    runtime.hold();
                    let before = started();
                    assert_eq!(sender.submit_all(&mut jobs(&cases, spaces)), Submitted::Yes);
                    std::thread::yield_now();
                    assert_eq!(started(), before, "{policy}");
                    runtime.release();
                    let came: Vec<_> = (0..cases.len()).map(|_| receiver.next().unwrap()).collect();
                    check_all(&cases, &came);
                    assert!(started() > before);
                }
            });
        }
    });
}

#[test]
fn a_hold_in_the_middle_of_work_returns_when_everybody_stands() {
    under_every_policy(cbc_cases(400), |policy, cases, mut armed| {
        let setup = Setup { backlog_jobs: 512, home_jobs: 512, ..setup_with_module(policy) };
        let (came, _) = run(setup, |runtime| {
            let (mut sender, mut receiver) = runtime.stream();
            assert_eq!(sender.submit_all(&mut armed), Submitted::Yes);
            for _ in 0..20 {
                runtime.hold();
                let done = runtime.last_done();
                std::thread::yield_now();
                assert_eq!(runtime.last_done(), done, "{policy}: nothing is done while all stand");
                runtime.release();
            }
            drop(sender);
            std::iter::from_fn(|| receiver.next()).collect::<Vec<_>>()
        });
        check_all(cases, &came);
    });
}

#[test]
fn a_module_takes_no_more_jobs_once_it_is_held() {
    with_jobs(cbc_cases(300), |cases, mut armed| {
        let module = Scripted::new(Fault::Slow(0)).with_pause(Duration::from_millis(10));
        let log = module.seen();
        let setup = Setup {
            policy: Policy::ModuleOnly,
            modules: vec![ModuleSetup { timeout: Nanos::from_millis(60_000), ..scripted(module, 1_000) }],
            home_jobs: 512,
            ..Setup::default()
        };
        let (came, _) = run(setup, |runtime| {
            let (mut sender, mut receiver) = runtime.stream();
            assert_eq!(sender.submit_all(&mut armed), Submitted::Yes);
            drop(sender);
            runtime.hold();
            // All of them would take it three seconds, the four that it may hold a moment.
            assert!(log.taken() < 300);
            log.hurry.store(true, Ordering::SeqCst);
            runtime.release();
            std::iter::from_fn(|| receiver.next()).collect::<Vec<_>>()
        });
        check_all(cases, &came);
    });
}

#[test]
fn a_run_that_ends_while_workers_are_held_does_their_jobs() {
    under_every_policy(cbc_cases(50), |policy, _, mut armed| {
        let (_, report) = run(setup_with_module(policy), |runtime| {
            let (mut sender, _outlet) = runtime.stream();
            runtime.hold();
            runtime.hold();
            assert_eq!(sender.submit_all(&mut armed), Submitted::Yes);
        });
        assert_eq!(report.total().jobs, 50, "{policy}");
    });
}

#[test]
fn a_worker_whose_module_is_out_of_service_is_not_waited_for() {
    without_standstill(|| {
        let cases = cbc_cases(40);
        let (mut first, mut second) = (spaces(&cases), spaces(&cases));
        let module = Scripted::new(Fault::Gone(0));
        let log = module.seen();
        let core_drivers = gated_drivers(move || log.faults() > 0);
        let modules = vec![scripted(module, 32)];
        let setup =
            Setup { policy: Policy::SharedQueue, workers: vec![core_drivers], modules, ..Setup::default() };
        run(setup, |runtime| {
            let (mut sender, mut receiver) = runtime.stream();
            for spaces in [&mut first, &mut second] {
                runtime.hold();
                assert_eq!(sender.submit_all(&mut jobs(&cases, spaces)), Submitted::Yes);
                runtime.release();
                let came: Vec<_> = (0..cases.len()).map(|_| receiver.next().unwrap()).collect();
                check_all(&cases, &came);
            }
        });
    });
}

#[test]
fn tallies_count_each_job_and_byte_once() {
    under_every_policy(mixed_cases(210), |policy, cases, mut armed| {
        let modules = vec![scripted(Scripted::new(Fault::Error), 8)];
        let setup = Setup { policy, modules, callers: 1, ..plain_setup(2) };
        let ((), report) = run(setup, |runtime| runtime.caller(plain_drivers()).crypt(&mut armed));
        let well: Vec<&Case> = cases.iter().filter(|case| case.goes_well()).collect();
        let bytes: usize = well.iter().map(|case| case.input.len()).sum();
        let total = report.total();
        assert_eq!((total.jobs, total.bytes), (well.len() as u64, bytes as u64), "{policy}");
        assert_eq!(total.failed, (cases.len() - well.len()) as u64, "{policy}");
    });
}

#[test]
fn the_time_at_the_barrier_is_no_cost_of_the_module() {
    without_standstill(|| {
        // A clock that runs with every look at it: standing at the barrier looks at nothing, yet a minute passes.
        let clock = TestClock::default();
        let cases = [Case::encrypt(Algorithm::Aes128Cbc, 1, 100)];
        let mut spaces = spaces(&cases);
        let module = Scripted::new(Fault::None).on_clock(&clock, Nanos(7));
        let setup = Setup {
            policy: Policy::ModuleOnly,
            modules: vec![scripted(module, 1_000)],
            clock: Arc::new(clock.clone()),
            ..Setup::default()
        };
        let mut armed = jobs(&cases, &mut spaces);
        let (_, report) = run(setup, |runtime| {
            let (mut sender, mut receiver) = runtime.stream();
            runtime.hold();
            assert_eq!(sender.submit_all(&mut armed), Submitted::Yes);
            clock.pass(Nanos::from_millis(60_000));
            runtime.release();
            assert!(receiver.next().is_some());
        });
        assert_eq!(report.modules().sampled.core, Nanos(7));
    });
}

#[test]
fn the_core_budget_is_what_this_process_may_use() {
    let budget = core_budget();
    let all = std::thread::available_parallelism().unwrap().get();
    // The standard library knows affinity and quota too, from other hands; it rounds a quota down.
    assert!(budget.allowed >= 1 && budget.workers() <= budget.allowed);
    assert!((all..=all + 1).contains(&budget.workers()), "{budget:?}, {all}");
}
