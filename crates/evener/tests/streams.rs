//! Streams: in order, bounded, and never stuck.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use evener::{Setup, StreamReceiver, StreamSender, Submitted, run};
use evener_core::plan::Policy;
use evener_core::{Algorithm, Job, JobError, Outcome};
use evener_testing::cases::{
    Case, cbc_cases, check_all, jobs, marks, mixed_cases, spaces, under_every_policy, with_jobs,
};
use evener_testing::drivers::{Fault, Scripted, plain_drivers, plain_setup, scripted, setup_with_module};
use evener_testing::waiting::without_standstill;
use proptest::prelude::*;

/// Feeds a stream from a thread of its own, `width` jobs at a time, and takes everything out.
fn pass<'m>(
    mut sender: StreamSender<'_, 'm>,
    mut receiver: StreamReceiver<'_, 'm>,
    mut armed: Vec<Box<Job<'m>>>,
    width: usize,
) -> Vec<Box<Job<'m>>> {
    thread::scope(|scope| {
        scope.spawn(move || {
            while !armed.is_empty() {
                let rest = armed.split_off(width.min(armed.len()));
                assert_eq!(sender.submit_all(&mut armed), Submitted::Yes);
                armed = rest;
            }
        });
        std::iter::from_fn(|| receiver.next()).collect()
    })
}

fn in_order(count: usize) -> Vec<u64> {
    (0..count as u64).collect()
}

proptest! {
    // Not shrunk: a case that stands still takes a minute to fail.
    #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn a_stream_comes_out_in_order_with_any_number_of_workers_and_any_sizes(
        workers in 1usize..5,
        home_jobs in 2usize..40,
        backlog_jobs in 2usize..40,
        width in 1usize..20,
        has_module: bool,
        policy in prop::sample::select(&Policy::ALL[..]),
        sizes in prop::collection::vec(0usize..5_000, 0..120),
    ) {
        without_standstill(move || {
            let case = |(seed, &len): (usize, &usize)| Case::encrypt(Algorithm::Aes256Gcm, seed, len);
            let cases: Vec<_> = sizes.iter().enumerate().map(case).collect();
            let mut spaces = spaces(&cases);
            let modules = if has_module { vec![scripted(Scripted::new(Fault::None), 8)] } else { Vec::new() };
            let setup = Setup { policy, modules, home_jobs, backlog_jobs, ..plain_setup(workers) };
            let armed = jobs(&cases, &mut spaces);
            let (came, report) = run(setup, |runtime| {
                let (sender, receiver) = runtime.stream();
                pass(sender, receiver, armed, width)
            });
            assert_eq!(marks(&came), in_order(cases.len()));
            check_all(&cases, &came);
            assert_eq!(report.total().jobs, cases.len() as u64);
        });
    }
}

#[test]
fn a_failed_job_does_not_stall_the_ones_behind_it() {
    without_standstill(|| {
        let mut cases: Vec<_> = (0..60).map(|seed| Case::decrypt(Algorithm::Aes128Gcm, seed, 300)).collect();
        cases[30] = Case::forged(Algorithm::Aes128Gcm, 30, 300);
        let mut spaces = spaces(&cases);
        let armed = jobs(&cases, &mut spaces);
        let (came, report) = run(plain_setup(2), |runtime| {
            let (sender, receiver) = runtime.stream();
            pass(sender, receiver, armed, 7)
        });
        assert_eq!(marks(&came), in_order(60));
        assert_eq!(came[30].outcome(), Outcome::Failed(JobError::NotAuthentic));
        check_all(&cases, &came);
        assert_eq!((report.total().jobs, report.total().failed), (59, 1));
        drop(came);
        assert_eq!(spaces[30][..300], [0; 300], "no plaintext stays behind a wrong tag");
    });
}

#[test]
fn a_stream_may_be_longer_than_its_home_and_the_backlog() {
    under_every_policy(cbc_cases(300), |policy, cases, armed| {
        let setup = Setup { home_jobs: 8, backlog_jobs: 4, ..setup_with_module(policy) };
        let (came, _) = run(setup, |runtime| {
            let (sender, receiver) = runtime.stream();
            pass(sender, receiver, armed, 300)
        });
        assert_eq!(marks(&came), in_order(300), "{policy}");
        check_all(cases, &came);
    });
}

#[test]
fn a_stream_holds_no_more_jobs_than_its_home_even_while_the_first_is_late() {
    with_jobs(cbc_cases(200), |_, armed| {
        // Jobs that came early wait for the first, which a hanging module has; meanwhile no more may go in.
        let modules = vec![scripted(Scripted::new(Fault::Hang(0)), 32)];
        let setup =
            Setup { policy: Policy::RoundRobin, modules, home_jobs: 16, backlog_jobs: 256, ..plain_setup(1) };
        let went_in = std::sync::atomic::AtomicU64::new(0);
        run(setup, |runtime| {
            let (mut sender, mut receiver) = runtime.stream();
            thread::scope(|scope| {
                scope.spawn(|| {
                    for job in armed {
                        assert_eq!(sender.submit(job), Submitted::Yes);
                        went_in.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    }
                    drop(sender);
                });
                let mut came_out = 0;
                while let Some(job) = receiver.next() {
                    assert_eq!(job.mark, came_out);
                    came_out += 1;
                    let ahead = went_in.load(std::sync::atomic::Ordering::SeqCst) + 1 - came_out;
                    assert!(ahead <= 17, "{ahead} jobs went in and did not come out");
                }
                assert_eq!(came_out, 200);
            });
        });
    });
}

#[test]
fn no_wake_up_is_missed_however_often_everybody_sleeps() {
    without_standstill(|| {
        for policy in [Policy::CpuOnly, Policy::RoundRobin] {
            let cases = cbc_cases(1);
            let mut spaces = spaces(&cases);
            let modules = vec![scripted(Scripted::new(Fault::None), 1_000)];
            let setup = Setup { policy, modules, home_jobs: 2, backlog_jobs: 2, ..plain_setup(1) };
            let mut armed = jobs(&cases, &mut spaces);
            run(setup, |runtime| {
                let (mut sender, mut receiver) = runtime.stream();
                let mut job = armed.pop().unwrap();
                for _ in 0..8_000 {
                    cases[0].arm(&mut job);
                    assert_eq!(sender.submit(job), Submitted::Yes);
                    job = receiver.next().unwrap();
                }
                cases[0].check(&job);
            });
        }
    });
}

#[test]
fn a_thread_with_both_ends_may_put_in_as_many_as_it_took_out() {
    without_standstill(|| {
        let cases = cbc_cases(400);
        let mut spaces = spaces(&cases);
        let mut waiting: VecDeque<_> = jobs(&cases, &mut spaces).into();
        let (came, _) = run(Setup { home_jobs: 16, ..plain_setup(2) }, |runtime| {
            let (mut sender, mut receiver) = runtime.stream();
            let mut came = Vec::new();
            let mut space = 16;
            for out in (1..=16).cycle() {
                waiting.drain(..space.min(waiting.len())).for_each(|job| _ = sender.submit(job));
                let left = 400 - came.len();
                came.extend((0..out.min(left)).map(|_| receiver.next().unwrap()));
                space = out;
                if came.len() == 400 {
                    return came;
                }
            }
            came
        });
        assert_eq!(marks(&came), in_order(400));
        check_all(&cases, &came);
    });
}

#[test]
fn an_outlet_that_is_dropped_lets_the_inlet_go() {
    without_standstill(|| {
        for policy in [Policy::CpuOnly, Policy::RoundRobin, Policy::Polling] {
            let cases = cbc_cases(300);
            let mut spaces = spaces(&cases);
            let setup = Setup { home_jobs: 8, backlog_jobs: 4, ..setup_with_module(policy) };
            let mut armed = jobs(&cases, &mut spaces);
            run(setup, |runtime| {
                let (mut sender, mut receiver) = runtime.stream();
                thread::scope(|scope| {
                    let sender = scope.spawn(move || sender.submit_all(&mut armed));
                    assert_eq!(receiver.next().map(|job| job.mark), Some(0));
                    drop(receiver);
                    assert_eq!(sender.join().unwrap(), Submitted::NobodyListens, "{policy}");
                });
            });
        }
    });
}

#[test]
fn an_inlet_that_is_dropped_at_once_ends_the_stream() {
    without_standstill(|| {
        run(plain_setup(1), |runtime| {
            let (sender, mut receiver) = runtime.stream();
            drop(sender);
            assert!(receiver.next().is_none());
            assert!(receiver.next().is_none());
        });
    });
}

#[test]
fn many_streams_one_after_the_other_need_one_home() {
    without_standstill(|| {
        let cases = mixed_cases(40);
        run(Setup { homes: 1, ..plain_setup(2) }, |runtime| {
            for _ in 0..50 {
                let mut spaces = spaces(&cases);
                let (sender, receiver) = runtime.stream();
                drop(pass(sender, receiver, Vec::new(), 1));
                drop(runtime.caller(plain_drivers()));
                spaces.clear();
            }
        });
    });
}

#[test]
fn jobs_of_a_stream_that_was_given_up_never_reach_the_next() {
    without_standstill(|| {
        let (given_up, wanted) = (cbc_cases(40), cbc_cases(40));
        let (mut given_up_spaces, mut wanted_spaces) = (spaces(&given_up), spaces(&wanted));
        let mut armed = jobs(&given_up, &mut given_up_spaces);
        armed.iter_mut().for_each(|job| job.mark += 1_000);
        let mut later = jobs(&wanted, &mut wanted_spaces);
        let came = run(Setup { homes: 2, ..plain_setup(2) }, |runtime| {
            let (mut sender, receiver) = runtime.stream();
            // Held, so that they are still on their way when the stream is gone.
            runtime.hold();
            assert_eq!(sender.submit_all(&mut armed), Submitted::Yes);
            drop((sender, receiver));
            let (mut sender, mut receiver) = runtime.stream();
            assert_eq!(sender.submit_all(&mut later), Submitted::Yes);
            drop(sender);
            runtime.release();
            let came: Vec<_> = std::iter::from_fn(|| receiver.next()).collect();
            drop(receiver);
            // Both homes can be lived in again, once a worker that had some of the first stream's is back, too.
            thread::sleep(Duration::from_millis(300));
            let streams = [runtime.stream(), runtime.stream()];
            for (sender, mut receiver) in streams {
                drop(sender);
                assert!(receiver.next().is_none());
            }
            came
        });
        check_all(&wanted, &came.0);
    });
}

#[test]
fn waiting_for_all_leaves_all_to_be_taken_in_order() {
    with_jobs(mixed_cases(100), |cases, mut armed| {
        let (came, _) = run(plain_setup(2), |runtime| {
            let (mut sender, mut receiver) = runtime.stream();
            assert_eq!(sender.submit_all(&mut armed), Submitted::Yes);
            let first = receiver.next().unwrap();
            receiver.wait_for_all();
            let finished = runtime.last_done();
            let rest = (1..100).map(|_| receiver.next().unwrap());
            let came: Vec<_> = std::iter::once(first).chain(rest).collect();
            assert_eq!(runtime.last_done(), finished);
            came
        });
        assert_eq!(marks(&came), in_order(100));
        check_all(cases, &came);
    });
}
