//! Runs without a body: threads come to them as they like, with bursts that they wait for or with queue pairs, also when they have ended.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use evener::{NoQueuePair, QueuePair, Resident, Setup};
use evener_core::job::Loan;
use evener_core::plan::Policy;
use evener_core::{Job, JobError, Nanos, Outcome};
use evener_testing::cases::{Case, cbc_cases, check_all, jobs, mixed_cases, spaces};
use evener_testing::drivers::{
    Fault, Scripted, gated_drivers, plain_drivers, plain_setup, scripted, watched,
};
use evener_testing::programs::is_right_in_child;
use evener_testing::waiting::without_standstill;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Cases that live as long as any run.
fn leaked(cases: Vec<Case>) -> &'static [Case] {
    cases.leak()
}

/// A job for each case.
fn armed(cases: &'static [Case]) -> Vec<Box<Job<'static>>> {
    jobs(cases, spaces(cases).leak())
}

/// A run under `policy` with two workers and a module without faults.
fn with_module(policy: Policy) -> Setup<'static> {
    Setup { policy, modules: vec![scripted(Scripted::new(Fault::None), 32)], ..plain_setup(2) }
}

fn start(setup: Setup<'static>) -> Resident {
    Resident::start(setup).unwrap()
}

/// Submits all and reaps all.
fn through(pair: &mut QueuePair<'static>, mut jobs: Vec<Box<Job<'static>>>) -> Vec<Box<Job<'static>>> {
    let (all, mut came) = (jobs.len(), Vec::new());
    while came.len() < all {
        pair.submit(&mut jobs);
        pair.wait(1, None);
        pair.reap(&mut came, 7);
    }
    assert_eq!(pair.in_flight(), 0);
    came
}

/// Whether a descriptor is readable, at once or within so many seconds.
fn is_readable(fd: &OwnedFd, seconds: i64) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: seconds, tv_nsec: 0 })).unwrap() > 0
}

#[test]
fn every_job_of_a_queue_pair_comes_back_once_under_every_policy() {
    without_standstill(|| {
        for policy in Policy::ALL {
            let (resident, cases) = (start(with_module(policy)), leaked(mixed_cases(300)));
            let mut pair = resident.queue_pair(64).unwrap();
            check_all(cases, &through(&mut pair, armed(cases)));
            assert_eq!(pair.depth(), 64);
        }
    });
}

#[test]
fn a_queue_pair_takes_from_the_front_what_fits_and_never_waits() {
    without_standstill(|| {
        for (policy, backlog_jobs) in
            Policy::ALL.into_iter().flat_map(|policy| [(policy, 4), (policy, 1_024)])
        {
            let may_go = Arc::new(AtomicBool::new(false));
            let gated = || {
                let gate = Arc::clone(&may_go);
                gated_drivers(move || gate.load(Ordering::SeqCst))
            };
            let mut module = scripted(Scripted::new(Fault::Hang(0)), 2);
            module.redo = gated();
            let setup = Setup {
                policy,
                backlog_jobs,
                modules: vec![module],
                workers: vec![gated()],
                ..Setup::default()
            };
            let resident = start(setup);
            let cases = leaked(mixed_cases(40));
            let (mut pair, mut jobs, mut came) = (resident.queue_pair(16).unwrap(), armed(cases), Vec::new());
            let mut taken = 0;
            while let more @ 1.. = pair.submit(&mut jobs) {
                taken += more;
                // A worker that stands at the gate may have taken some meanwhile.
                assert!(jobs.iter().map(|job| job.mark).eq(taken as u64..40), "{policy}: {taken} were taken");
            }
            assert!(taken >= backlog_jobs.min(16) && taken <= 16, "{policy}: {taken}");
            assert_eq!((pair.in_flight(), pair.reap(&mut came, 16)), (taken, 0));
            may_go.store(true, Ordering::SeqCst);
            came.extend(through_rest(&mut pair, taken));
            came.extend(through(&mut pair, jobs));
            check_all(cases, &came);
        }
    });
}

/// Reaps so many.
fn through_rest(pair: &mut QueuePair<'static>, count: usize) -> Vec<Box<Job<'static>>> {
    let mut came = Vec::new();
    assert_eq!(pair.wait(usize::MAX, None), count);
    assert_eq!(pair.reap(&mut came, usize::MAX), count);
    came
}

#[test]
fn what_a_queue_pair_says_that_waits_is_there_to_reap() {
    without_standstill(|| {
        let (resident, cases) = (start(plain_setup(3)), leaked(cbc_cases(16)));
        let mut pair = resident.queue_pair(16).unwrap();
        let (mut jobs, mut came) = (armed(cases), Vec::new());
        for round in 0..20_000 {
            assert_eq!(pair.submit(&mut jobs), 16);
            // One by one, so that the next is often still on its way in.
            for number in 0..16 {
                let waiting = pair.wait(1, None);
                let reaped = pair.reap(&mut came, 1);
                assert!(waiting >= 1 && reaped == 1, "{round}, {number}: of {waiting} came {reaped}");
            }
            check_all(cases, &came);
            // Those with an even mark lie in place.
            came.sort_unstable_by_key(|job| job.mark);
            cases.iter().zip(&mut came).step_by(2).for_each(|(case, job)| case.arm(job));
            cases.iter().zip(&mut came).skip(1).step_by(2).for_each(|(case, job)| case.arm_apart(job));
            jobs.append(&mut came);
        }
    });
}

#[test]
fn many_threads_with_callers_and_queue_pairs_share_a_resident_run() {
    without_standstill(|| {
        for policy in [Policy::CpuOnly, Policy::Adaptive, Policy::RoundRobin] {
            let resident = start(with_module(policy));
            thread::scope(|scope| {
                for _ in 0..3 {
                    let (mut pair, mut caller) =
                        (resident.queue_pair(32).unwrap(), resident.caller(plain_drivers()).unwrap());
                    scope.spawn(move || {
                        for _ in 0..5 {
                            let (cases, called) = (leaked(mixed_cases(90)), leaked(cbc_cases(60)));
                            check_all(cases, &through(&mut pair, armed(cases)));
                            let mut jobs = armed(called);
                            caller.crypt(&mut jobs);
                            check_all(called, &jobs);
                        }
                    });
                }
            });
            let total = resident.close().total();
            assert_eq!(total.jobs + total.failed, 3 * 5 * 150, "{policy}");
        }
    });
}

#[test]
fn a_report_has_every_job_that_is_back_while_the_run_goes_on() {
    without_standstill(|| {
        for policy in Policy::ALL {
            let resident = start(with_module(policy));
            let (mut pair, mut caller) =
                (resident.queue_pair(256).unwrap(), resident.caller(plain_drivers()).unwrap());
            let mut count = 0;
            for round in 1..=20 {
                let cases = leaked(mixed_cases(round));
                check_all(cases, &through(&mut pair, armed(cases)));
                let mut jobs = armed(cases);
                caller.crypt(&mut jobs);
                count += 2 * round as u64;
                let total = resident.report().total();
                assert_eq!(total.jobs + total.failed, count, "{policy}, round {round}");
            }
            drop(caller);
            let total = resident.close().total();
            assert_eq!(total.jobs + total.failed, count, "{policy}, in the end");
        }
    });
}

#[test]
fn callers_that_come_and_go_are_counted_once_and_no_count_ever_falls() {
    without_standstill(|| {
        let (resident, cases) = (start(plain_setup(1)), leaked(cbc_cases(3)));
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut before = 0;
                while !is_over.load(Ordering::SeqCst) {
                    let now = resident.report().total().jobs;
                    assert!(now >= before, "{now} after {before}");
                    before = now;
                }
            });
            for _ in 0..2_000 {
                resident.caller(plain_drivers()).unwrap().crypt(&mut armed(cases));
            }
            is_over.store(true, Ordering::SeqCst);
        });
        let report = resident.report();
        assert_eq!(
            (report.total().jobs, report.workers.len()),
            (6_000, 2),
            "of the worker and of all callers"
        );
        assert_eq!(resident.close().total().jobs, 6_000);
    });
}

#[test]
fn an_event_is_readable_while_finished_jobs_wait_and_no_wake_up_is_lost() {
    without_standstill(|| {
        let resident = start(plain_setup(2));
        let mut pair = resident.queue_pair(8).unwrap();
        let fd = pair.event().unwrap();
        assert!(!is_readable(&fd, 0), "nothing was submitted");
        for round in 0..3_000_usize {
            let cases = leaked(cbc_cases(1 + round % 5));
            let (mut jobs, mut came) = (armed(cases), Vec::new());
            pair.submit(&mut jobs);
            while came.len() < cases.len() {
                assert!(is_readable(&fd, 20), "{} of {} came", came.len(), cases.len());
                pair.reap(&mut came, 1 + round % 3);
            }
            check_all(cases, &came);
        }
        let cases = leaked(cbc_cases(2));
        pair.submit(&mut armed(cases));
        assert_eq!(pair.wait(2, None), 2);
        pair.reap(&mut Vec::new(), 1);
        assert!(is_readable(&fd, 20), "one still waits");
        while is_readable(&fd, 0) {
            pair.reap(&mut Vec::new(), 8);
        }
        assert_eq!(pair.in_flight(), 0);
    });
}

#[test]
fn an_event_that_is_opened_late_tells_of_jobs_that_wait_already() {
    without_standstill(|| {
        let resident = start(plain_setup(1));
        for _ in 0..3 {
            // The same home serves one queue pair after the other.
            let mut pair = resident.queue_pair(8).unwrap();
            pair.submit(&mut armed(leaked(cbc_cases(3))));
            pair.wait(3, None);
            assert!(is_readable(&pair.event().unwrap(), 20));
            pair.reap(&mut Vec::new(), 8);
        }
    });
}

#[test]
fn a_wait_ends_with_its_time_or_with_what_is_on_its_way() {
    without_standstill(|| {
        let may_go = Arc::new(AtomicBool::new(false));
        let gate = Arc::clone(&may_go);
        let workers = vec![gated_drivers(move || gate.load(Ordering::SeqCst))];
        let resident = start(Setup { workers, ..Setup::default() });
        let mut pair = resident.queue_pair(8).unwrap();
        assert_eq!(pair.wait(5, None), 0, "nothing is on its way");
        pair.submit(&mut armed(leaked(cbc_cases(3))));
        assert_eq!(pair.wait(1, Some(Nanos::from_millis(2))), 0);
        may_go.store(true, Ordering::SeqCst);
        assert_eq!(pair.wait(5, None), 3);
    });
}

#[test]
fn what_no_worker_has_begun_comes_back_cancelled_and_what_follows_does_not() {
    without_standstill(|| {
        for policy in Policy::ALL {
            let (begun, may_go) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
            let drivers = || {
                let (begun, may_go) = (Arc::clone(&begun), Arc::clone(&may_go));
                let driver = watched(move |burst| {
                    begun.fetch_add(burst.len(), Ordering::SeqCst);
                    while !may_go.load(Ordering::SeqCst) {
                        thread::yield_now();
                    }
                });
                evener::CoreDrivers::new(Box::new(driver), None)
            };
            let mut module = scripted(Scripted::new(Fault::Hang(0)), 2);
            module.redo = drivers();
            let setup = Setup { policy, modules: vec![module], workers: vec![drivers()], ..Setup::default() };
            let resident = start(setup);
            let (mut pair, mut other) =
                (resident.queue_pair(256).unwrap(), resident.queue_pair(256).unwrap());
            let (cases, others) = (leaked(cbc_cases(150)), leaked(cbc_cases(20)));
            assert_eq!(pair.submit(&mut armed(cases)), 150);
            while begun.load(Ordering::SeqCst) == 0 && policy != Policy::ModuleOnly {
                thread::yield_now();
            }
            pair.cancel();
            assert_eq!(other.submit(&mut armed(others)), 20);
            let after = leaked(cbc_cases(10));
            assert_eq!(pair.submit(&mut armed_from(after, 150)), 10);
            may_go.store(true, Ordering::SeqCst);
            check_all(others, &through_rest(&mut other, 20));
            let came = through_rest(&mut pair, 160);
            let cancelled = came.iter().filter(|job| job.outcome() == Outcome::Failed(JobError::Cancelled));
            assert!(cancelled.clone().all(|job| job.mark < 150), "{policy}: what came after was cancelled");
            assert!(cancelled.count() > 0, "{policy}: something was still in the queue");
            for job in came.iter().filter(|job| job.outcome() != Outcome::Failed(JobError::Cancelled)) {
                let mark = usize::try_from(job.mark).unwrap();
                if mark < 150 { cases[mark].check(job) } else { after[mark - 150].check(job) }
            }
        }
    });
}

/// A job for each case, marked from `first` on.
fn armed_from(cases: &'static [Case], first: u64) -> Vec<Box<Job<'static>>> {
    let mut jobs = armed(cases);
    jobs.iter_mut().for_each(|job| job.mark += first);
    jobs
}

#[test]
fn after_its_end_a_run_gives_up_what_is_brought_and_gives_out_what_was_finished() {
    without_standstill(|| {
        for policy in Policy::ALL {
            let resident = start(with_module(policy));
            let (mut pair, mut caller) =
                (resident.queue_pair(64).unwrap(), resident.caller(plain_drivers()).unwrap());
            let cases = leaked(cbc_cases(40));
            assert_eq!(pair.submit(&mut armed(cases)), 40);
            _ = resident.close();
            check_all(cases, &through_rest(&mut pair, 40));
            let late = through(&mut pair, armed(cases));
            assert!(late.iter().all(|job| job.outcome() == Outcome::Failed(JobError::Cancelled)), "{policy}");
            let mut late = armed(cases);
            caller.crypt(&mut late);
            assert!(late.iter().all(|job| job.outcome() == Outcome::Failed(JobError::Cancelled)), "{policy}");
        }
    });
}

#[test]
fn nothing_is_lost_where_a_run_ends_while_threads_submit() {
    without_standstill(|| {
        for round in 0..200 {
            let policy = Policy::ALL[round % Policy::ALL.len()];
            let resident = start(with_module(policy));
            let (pair, caller) =
                (resident.queue_pair(16).unwrap(), resident.caller(plain_drivers()).unwrap());
            let bring = thread::spawn(move || bring_until_the_end(pair, caller));
            if round % 3 == 0 {
                thread::sleep(Duration::from_micros(50 * round as u64));
            }
            drop(resident);
            bring.join().unwrap();
        }
    });
}

/// Brings bursts until one is given up; each job comes back.
fn bring_until_the_end(mut pair: QueuePair<'static>, mut caller: evener::Caller<'static, 'static>) {
    let is_over =
        |jobs: &[Box<Job<'_>>]| jobs.iter().any(|job| job.outcome() == Outcome::Failed(JobError::Cancelled));
    loop {
        let came = through(&mut pair, armed(leaked(cbc_cases(5))));
        let mut called = armed(leaked(cbc_cases(4)));
        caller.crypt(&mut called);
        assert_eq!((came.len(), called.len()), (5, 4));
        if is_over(&came) && is_over(&called) {
            return;
        }
    }
}

#[test]
fn a_queue_pair_needs_workers_and_a_home() {
    without_standstill(|| {
        let none = start(Setup { callers: 1, ..Setup::default() });
        assert_eq!(none.queue_pair(8).err(), Some(NoQueuePair::NoWorkers));
        let few = start(Setup { homes: 2, ..plain_setup(1) });
        let (first, _second) = (few.queue_pair(8).unwrap(), few.queue_pair(8).unwrap());
        assert_eq!(few.queue_pair(8).err(), Some(NoQueuePair::NoHome));
        assert!(few.caller(plain_drivers()).is_none());
        drop(first);
        // The free home was one for eight.
        assert_eq!(few.queue_pair(9).unwrap().depth(), 16);
        assert_eq!(few.queue_pair(65_536).unwrap().depth(), 65_536);
        assert!(few.queue_pair(8).is_ok());
    });
}

#[test]
fn a_box_serves_request_after_request_over_memory_that_it_is_lent() {
    without_standstill(|| {
        let resident = start(plain_setup(1));
        let mut pair = resident.queue_pair(4).unwrap();
        let cases = leaked(mixed_cases(60));
        let mut boxes = vec![Job::in_place(&mut [])];
        for (number, case) in cases.iter().enumerate() {
            let space = vec![0; case.space_bytes()].leak();
            let job = &mut boxes[0];
            if number % 2 == 0 {
                job.lend(Loan::InPlace(space));
                case.arm(job);
            } else {
                job.lend(Loan::Apart { src: &case.input, dst: space });
                case.arm_apart(job);
            }
            assert_eq!(pair.submit(&mut boxes), 1);
            pair.wait(1, None);
            pair.reap(&mut boxes, 1);
            case.check(&boxes[0]);
        }
    });
}

#[test]
fn a_run_without_workers_starts_no_thread_and_its_callers_work_until_it_is_closed() {
    // A child has the thread that forked, and no other.
    let ran = is_right_in_child(|| {
        let resident = start(Setup { callers: 1, ..Setup::default() });
        assert_eq!(std::fs::read_dir("/proc/self/task").unwrap().count(), 1);
        let cases = leaked(cbc_cases(20));
        let mut caller = resident.caller(plain_drivers()).unwrap();
        let mut burst = armed(cases);
        caller.crypt(&mut burst);
        check_all(cases, &burst);
        assert_eq!(resident.queue_pair(8).err(), Some(NoQueuePair::NoWorkers));
        assert_eq!(resident.close().total().jobs, 20);
    });
    assert!(ran);
}
