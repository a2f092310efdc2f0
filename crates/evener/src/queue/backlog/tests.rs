//! The backlog: no thread sleeps over a job, no job is claimed twice, and the end is not before the last.

use super::worker_queue::SINGLES_MAX;
use super::*;
use crate::queue::test_support::{returns, unarmed_job as job};

pub(super) fn job_of(bytes: usize) -> Box<Job<'static>> {
    Job::apart(vec![0; bytes].leak(), &mut [])
}

/// The same, armed.
fn armed(bytes: usize) -> Box<Job<'static>> {
    let mut job = job_of(bytes);
    job.arm(crate::queue::test_support::session(), &[0; 16], bytes);
    job
}

pub(super) fn plan(dispatch: Dispatch) -> Plan {
    Plan { dispatch, cpu: Take::ONE, module: Take::ONE }
}

#[test]
fn nobody_sleeps_over_jobs_or_space_that_are_there() {
    for dispatch in [Dispatch::SharedQueue, Dispatch::RoundRobin] {
        let backlog = Backlog::new(&plan(dispatch), 4, 1, 0);
        assert_eq!(backlog.submit(&mut vec![job()]), 1);
        returns(move || {
            backlog.wait_for_work(0, None, || false);
            backlog.wait_for_space();
        });
    }
}

#[test]
fn what_no_module_takes_goes_the_way_of_cpu_only_until_modules_matter() {
    let backlog = Backlog::new(&plan(Dispatch::ByCost), 8, 1, 1);
    let small = armed(100).class();
    let waits = |queue: usize| backlog.class_queues().waiting(queue);
    backlog.submit(&mut vec![armed(100)]);
    assert_eq!((backlog.shared.len(), waits(0)), (0, 1), "nothing is known of a new class");
    backlog.class_queues().leave_alone(small, true);
    backlog.submit(&mut vec![armed(100), armed(90)]);
    assert_eq!((backlog.shared.len(), waits(0)), (2, 1));
    backlog.submit(&mut vec![armed(100), armed(5_000)]);
    assert_eq!(
        (backlog.shared.len(), waits(0), waits(1)),
        (2, 2, 1),
        "a burst with one that a module may take"
    );
    let mut rest = Vec::new();
    backlog.publish_to_modules(&mut rest);
    assert_eq!((backlog.shared.len(), waits(0), rest.len()), (0, 4, 0));
    backlog.class_queues().leave_alone(small, false);
    backlog.submit(&mut vec![armed(100)]);
    assert_eq!((backlog.shared.len(), waits(0)), (0, 5));
}

/// Who is told how many were taken keeps the others, and knows them by that alone.
#[test]
fn what_is_submitted_from_the_front_leaves_the_end_as_it_came() {
    for dispatch in [Dispatch::ByCost, Dispatch::SharedQueue, Dispatch::RoundRobin] {
        let backlog = Backlog::new(&plan(dispatch), 2, 1, 1);
        let came = [100, 101, 102, 5_000, 103];
        let mut jobs: Vec<_> = came.map(armed).into();
        let taken = backlog.submit_front(&mut jobs);
        assert!((1..came.len()).contains(&taken), "{dispatch:?}: {taken}");
        assert_eq!(
            jobs.iter().map(|job| job.input_bytes()).collect::<Vec<_>>(),
            came[taken..],
            "{dispatch:?}"
        );
    }
}

#[test]
fn a_job_that_was_given_to_a_module_is_seen_by_nobody_else() {
    let backlog = Backlog::new(&plan(Dispatch::ByCost), 8, 1, 2);
    assert!(backlog.push_to(2, job()).is_ok());
    assert!(backlog.has_nothing_for(0) && backlog.has_nothing_for(1) && !backlog.has_nothing_for(2));
    backlog.close();
    assert!(backlog.is_over(1) && !backlog.is_over(2));
    assert!(backlog.pop_given(1).is_none() && backlog.pop_given(2).is_some());
    assert!(
        (0..SINGLES_MAX).all(|_| backlog.push_to(1, job()).is_ok()) && backlog.push_to(1, job()).is_err()
    );
}

#[test]
fn the_end_is_not_before_the_last_job_is_claimed() {
    for dispatch in [Dispatch::SharedQueue, Dispatch::RoundRobin] {
        let backlog = Backlog::new(&plan(dispatch), 4, 1, 0);
        assert_eq!(backlog.submit(&mut vec![job()]), 1);
        assert!(!backlog.is_over(0));
        backlog.close();
        assert!(!backlog.is_over(0));
        assert_eq!(backlog.claim(Some(0), &Take::ONE, &mut Vec::new()), 1);
        assert!(backlog.is_over(0));
    }
}

#[test]
fn a_worker_that_wakes_for_another_reason_is_not_handed_a_second_job() {
    let backlog = Backlog::new(&plan(Dispatch::Monitor), 4, 1, 0);
    let mut jobs = vec![job(), job()];
    assert_eq!(backlog.submit(&mut jobs), 2);
    // Held, so that nothing sleeps here.
    backlog.hold();
    backlog.wait_for_work(0, None, || false);
    assert!(backlog.worker_queues[0].take_idle());
    backlog.wait_for_work(0, None, || false);
    backlog.serve();
    assert_eq!((backlog.worker_queues[0].dealt.len(), backlog.shared.len()), (0, 2));
    backlog.hand_to(&backlog.worker_queues[0]);
    assert_eq!(backlog.claim(Some(0), &Take::ONE, &mut jobs), 1);
    backlog.serve();
    assert!(backlog.worker_queues[0].dealt.is_empty(), "the worker is busy");
    backlog.wait_for_work(0, None, || false);
    backlog.serve();
    assert_eq!(backlog.worker_queues[0].dealt.len(), 1);
}
