//! Callers: bursts come back whole and in the caller's order, from as many threads as there are.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::thread;

use evener::{Report, Setup, run};
use evener_core::plan::Policy;
use evener_testing::cases::{Case, cbc_cases, check_all, jobs, marks, mixed_cases, spaces, with_jobs};
use evener_testing::drivers::{Fault, Scripted, plain_drivers, plain_setup, scripted, setup_with_module};
use evener_testing::waiting::without_standstill;

/// Memory for the jobs of one burst.
type Spaces = Vec<Vec<u8>>;

/// One thread per set of cases brings them as a burst, once for each of its memories, and checks each.
fn many_threads<'m>(setup: Setup<'m>, sets: &'m [Vec<Case>], memory: &'m mut [Vec<Spaces>]) -> Report {
    let ((), report) = run(setup, |runtime| {
        thread::scope(|scope| {
            for (cases, memory) in sets.iter().zip(memory) {
                let mut caller = runtime.caller(plain_drivers());
                scope.spawn(move || {
                    for spaces in memory {
                        let mut armed = jobs(cases, spaces);
                        caller.crypt(&mut armed);
                        assert_eq!(marks(&armed), (0..cases.len() as u64).collect::<Vec<_>>());
                        check_all(cases, &armed);
                    }
                });
            }
        });
    });
    report
}

#[test]
fn callers_on_several_threads_each_get_their_own_jobs_back_in_order() {
    without_standstill(|| {
        let sets = [50, 51, 52].map(mixed_cases);
        for policy in Policy::ALL {
            for workers in [0, 2] {
                let mut memory = sets.each_ref().map(|cases| (0..6).map(|_| spaces(cases)).collect());
                let modules = vec![scripted(Scripted::new(Fault::Error), 8)];
                let callers = if workers == 0 { 3 } else { 0 };
                let setup = Setup { policy, modules, callers, ..plain_setup(workers) };
                let total = many_threads(setup, &sets, &mut memory).total();
                assert_eq!(total.jobs + total.failed, 6 * (50 + 51 + 52), "{policy}, {workers} workers");
            }
        }
    });
}

#[test]
fn a_burst_of_mixed_algorithms_comes_back_in_the_callers_order() {
    with_jobs(mixed_cases(100), |cases, mut armed| {
        let ((), report) = run(Setup::default(), |runtime| runtime.caller(plain_drivers()).crypt(&mut armed));
        assert_eq!(marks(&armed), (0..100).collect::<Vec<_>>());
        check_all(cases, &armed);
        assert_eq!(report.total().jobs + report.total().failed, 100);
    });
}

#[test]
fn a_burst_may_be_wider_than_home_and_backlog() {
    without_standstill(|| {
        for policy in Policy::ALL {
            for workers in [0, 1] {
                let cases = cbc_cases(200);
                let mut spaces = spaces(&cases);
                let mut armed = jobs(&cases, &mut spaces);
                let modules = vec![scripted(Scripted::new(Fault::None), 8)];
                let callers = 1 - workers;
                let setup =
                    Setup { policy, modules, callers, home_jobs: 8, backlog_jobs: 4, ..plain_setup(workers) };
                run(setup, |runtime| runtime.caller(plain_drivers()).crypt(&mut armed));
                assert_eq!(marks(&armed), (0..200).collect::<Vec<_>>(), "{policy}, {workers} workers");
                check_all(&cases, &armed);
            }
        }
    });
}

#[test]
fn an_empty_burst_comes_back_empty() {
    without_standstill(|| {
        for policy in Policy::ALL {
            let mut none = Vec::new();
            run(setup_with_module(policy), |runtime| runtime.caller(plain_drivers()).crypt(&mut none));
            assert!(none.is_empty());
        }
    });
}

#[test]
fn streams_and_callers_share_a_run_without_mixing_their_jobs() {
    without_standstill(|| {
        for policy in Policy::ALL {
            let (streamed, called) = (mixed_cases(150), cbc_cases(150));
            let (mut streamed_spaces, mut called_spaces) = (spaces(&streamed), spaces(&called));
            let streamed_jobs = jobs(&streamed, &mut streamed_spaces);
            let mut called_jobs = jobs(&called, &mut called_spaces);
            let modules = vec![scripted(Scripted::new(Fault::None), 8)];
            let setup = Setup { policy, modules, ..plain_setup(2) };
            let (came, _) = run(setup, |runtime| {
                let (mut sender, mut receiver) = runtime.stream();
                thread::scope(|scope| {
                    scope.spawn(move || streamed_jobs.into_iter().for_each(|job| _ = sender.submit(job)));
                    let caller = scope.spawn(|| runtime.caller(plain_drivers()).crypt(&mut called_jobs));
                    let came: Vec<_> = std::iter::from_fn(|| receiver.next()).collect();
                    caller.join().unwrap();
                    came
                })
            });
            assert_eq!(marks(&came), (0..150).collect::<Vec<_>>(), "{policy}");
            check_all(&streamed, &came);
            check_all(&called, &called_jobs);
        }
    });
}
