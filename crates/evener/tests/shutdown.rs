//! The end of a run, in order or not: nothing is lost, nothing hangs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use evener::{Cancel, CoreDrivers, Setup, Submitted, run};
use evener_core::plan::Policy;
use evener_core::{Job, JobError, Outcome};
use evener_testing::cases::{cbc_cases, check_all, jobs, spaces, under_every_policy};
use evener_testing::drivers::{
    Fault, Scripted, gated_drivers, plain_drivers, plain_setup, scripted, setup_with_module, watched,
};
use evener_testing::waiting::without_standstill;

#[test]
fn jobs_that_nobody_collects_are_finished_before_the_run_ends() {
    under_every_policy(cbc_cases(200), |policy, _, mut armed| {
        let (_, report) = run(setup_with_module(policy), |runtime| {
            let (mut sender, _outlet) = runtime.stream();
            assert_eq!(sender.submit_all(&mut armed), Submitted::Yes);
        });
        assert_eq!((report.total().jobs, report.total().failed), (200, 0), "{policy}");
    });
}

#[test]
fn jobs_that_come_in_the_last_moment_are_not_left_behind() {
    without_standstill(|| {
        // The end comes while the only worker looks around for the first time, sooner or later.
        let cases = cbc_cases(3);
        for _ in 0..500 {
            let mut spaces = spaces(&cases);
            let mut armed = jobs(&cases, &mut spaces);
            let (_, report) = run(plain_setup(1), |runtime| {
                let (mut sender, _outlet) = runtime.stream();
                assert_eq!(sender.submit_all(&mut armed), Submitted::Yes);
            });
            assert_eq!(report.total().jobs, 3);
        }
    });
}

#[test]
fn a_body_that_panics_ends_the_run_after_its_jobs() {
    under_every_policy(cbc_cases(100), |policy, _, mut armed| {
        let ended = catch_unwind(AssertUnwindSafe(|| {
            run(setup_with_module(policy), |runtime| {
                let (mut sender, _outlet) = runtime.stream();
                runtime.hold();
                assert_eq!(sender.submit_all(&mut armed), Submitted::Yes);
                panic!("on purpose");
            })
        }));
        let cause = ended.expect_err("the panic comes out");
        assert_eq!(cause.downcast_ref(), Some(&"on purpose"));
    });
}

/// A driver with a bug, which says that it is about to show.
fn panicking_drivers(has_panicked: &Arc<AtomicBool>) -> CoreDrivers {
    let has_panicked = Arc::clone(has_panicked);
    let driver = watched(move |_| {
        has_panicked.store(true, Ordering::SeqCst);
        panic!("a bug, on purpose");
    });
    CoreDrivers::new(Box::new(driver), None)
}

/// Runs `body` under every policy with workers that panic, and demands that a panic comes out. The module finishes
/// nothing before, so that it cannot do everything alone.
fn with_workers_that_panic(body: impl Fn(&evener::Runtime<'_, 'static>)) {
    for policy in Policy::ALL {
        if policy == Policy::ModuleOnly {
            continue; // It has no CPU worker.
        }
        let has_panicked = Arc::new(AtomicBool::new(false));
        let workers = vec![panicking_drivers(&has_panicked), panicking_drivers(&has_panicked)];
        let mut module = scripted(Scripted::new(Fault::Hang(0)), 32);
        module.redo = gated_drivers(move || has_panicked.load(Ordering::SeqCst));
        let setup = Setup { policy, modules: vec![module], workers, ..Setup::default() };
        assert!(catch_unwind(AssertUnwindSafe(|| run(setup, &body))).is_err(), "{policy}");
    }
}

fn leaked_jobs(count: usize) -> Vec<Box<Job<'static>>> {
    let cases = cbc_cases(count).leak();
    jobs(cases, spaces(cases).leak())
}

#[test]
fn the_panic_of_a_worker_reaches_whoever_waits_for_its_jobs() {
    without_standstill(|| {
        with_workers_that_panic(|runtime| {
            let (mut sender, mut receiver) = runtime.stream();
            _ = sender.submit_all(&mut leaked_jobs(50));
            drop(sender);
            while receiver.next().is_some() {}
        });
    });
}

#[test]
fn the_panic_of_a_worker_reaches_whoever_waits_for_space() {
    without_standstill(|| {
        with_workers_that_panic(|runtime| {
            let (mut sender, _outlet) = runtime.stream();
            _ = sender.submit_all(&mut leaked_jobs(5_000));
        });
    });
}

#[test]
fn the_panic_of_a_worker_reaches_whoever_waits_at_the_barrier() {
    without_standstill(|| {
        with_workers_that_panic(|runtime| {
            let (mut sender, receiver) = runtime.stream();
            loop {
                runtime.hold();
                _ = sender.submit_all(&mut leaked_jobs(20));
                runtime.release();
                receiver.wait_for_all();
            }
        });
    });
}

#[test]
fn a_cancelled_run_finishes_what_was_started_and_fails_the_rest() {
    without_standstill(|| {
        for policy in Policy::ALL {
            let cases = cbc_cases(300);
            let mut spaces = spaces(&cases);
            let cancel = Cancel::default();
            // The wish to stop comes while bursts are in the drivers' hands.
            let started = Arc::new(AtomicU64::new(0));
            let core_drivers = || {
                let (cancel, started) = (cancel.clone(), Arc::clone(&started));
                gated_drivers(move || {
                    if started.fetch_add(1, Ordering::SeqCst) == 5 {
                        cancel.cancel();
                    }
                    true
                })
            };
            let mut module = scripted(Scripted::new(Fault::None), 1);
            module.redo = core_drivers();
            let setup = Setup {
                policy,
                workers: vec![core_drivers(), core_drivers()],
                modules: vec![module],
                cancel: cancel.clone(),
                home_jobs: 512,
                ..Setup::default()
            };
            let mut armed = jobs(&cases, &mut spaces);
            let (came, report) = run(setup, |runtime| {
                let (mut sender, mut receiver) = runtime.stream();
                // The jobs of one claim are started together, so more than one claim is needed.
                while let Some(few) =
                    (!armed.is_empty()).then(|| armed.split_off(armed.len().saturating_sub(8)))
                {
                    few.into_iter().for_each(|job| assert_eq!(sender.submit(job), Submitted::Yes));
                }
                drop(sender);
                std::iter::from_fn(|| receiver.next()).collect::<Vec<_>>()
            });
            let is_cancelled = |job: &Job<'_>| job.outcome() == Outcome::Failed(JobError::Cancelled);
            let (cancelled, finished): (Vec<_>, Vec<_>) = came.iter().partition(|job| is_cancelled(job));
            assert_eq!(came.len(), 300);
            finished.iter().for_each(|job| cases[usize::try_from(job.mark).unwrap()].check(job));
            assert!(!cancelled.is_empty() && !finished.is_empty(), "{policy}: {} finished", finished.len());
            let total = report.total();
            assert_eq!((total.jobs, total.failed), (finished.len() as u64, cancelled.len() as u64));
        }
    });
}

#[test]
fn a_cancelled_job_is_as_it_was_submitted() {
    without_standstill(|| {
        let cases = cbc_cases(20);
        let mut spaces = spaces(&cases);
        let cancel = Cancel::default();
        cancel.cancel();
        let mut armed = jobs(&cases, &mut spaces);
        let ((), report) = run(Setup { cancel, ..Setup::default() }, |runtime| {
            runtime.caller(plain_drivers()).crypt(&mut armed);
        });
        for (job, case) in armed.iter().zip(&cases) {
            assert_eq!(job.outcome(), Outcome::Failed(JobError::Cancelled));
            assert_eq!(job.input(), case.input);
        }
        assert_eq!(report.total().failed, 20);
    });
}

/// What a thread leaves to its own end, and takes long for.
struct Last;

static LAST_DONE: AtomicU64 = AtomicU64::new(0);

impl Drop for Last {
    fn drop(&mut self) {
        thread::sleep(Duration::from_millis(50));
        LAST_DONE.fetch_add(1, Ordering::SeqCst);
    }
}

thread_local! {
    static LAST: Last = const { Last };
}

#[test]
fn a_run_that_has_ended_has_no_thread_left_that_is_about_to_end() {
    let cases = cbc_cases(20);
    let mut spaces = spaces(&cases);
    let mut armed = jobs(&cases, &mut spaces);
    // As libcrypto has memory for each thread, which it frees with it, and once more with the process.
    let driver = watched(|_| LAST.with(|_| ()));
    let workers = vec![CoreDrivers::new(Box::new(driver), None)];
    run(Setup { workers, ..Setup::default() }, |runtime| {
        let (mut sender, _outlet) = runtime.stream();
        assert_eq!(sender.submit_all(&mut armed), Submitted::Yes);
    });
    assert_eq!(LAST_DONE.load(Ordering::SeqCst), 1);
}

#[test]
fn a_run_without_jobs_ends() {
    without_standstill(|| {
        for policy in Policy::ALL {
            let (answer, report) = run(setup_with_module(policy), |_| 7);
            assert_eq!((answer, report.total().jobs), (7, 0));
        }
        let (_, report) = run(Setup::default(), |_| ());
        assert_eq!(report.workers.len(), 0);
    });
}

#[test]
fn a_body_that_panics_on_another_thread_leaves_the_others_their_jobs() {
    without_standstill(|| {
        let cases = cbc_cases(64);
        let mut spaces = spaces(&cases);
        let setup = Setup {
            policy: Policy::SharedQueue,
            callers: 2,
            homes: 3,
            modules: vec![scripted(Scripted::new(Fault::None), 1)],
            ..plain_setup(1)
        };
        let mut armed = jobs(&cases, &mut spaces);
        let mut lost = armed.split_off(32);
        let began = AtomicBool::new(false);
        run(setup, |runtime| {
            thread::scope(|scope| {
                let panics = scope.spawn(|| {
                    let mut caller = runtime.caller(panicking_drivers(&Arc::default()));
                    began.store(true, Ordering::SeqCst);
                    caller.crypt(&mut lost);
                });
                while !began.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
                // Whether it panics depends on which thread takes its jobs; either way its completions are not given to us with its jobs.
                drop(panics.join());
                let mut caller = runtime.caller(plain_drivers());
                caller.crypt(&mut armed);
            });
        });
        check_all(&cases[..32], &armed);
    });
}
