//! Every job is done exactly once, under every policy, whatever the module does. libcrypto judges.
#![allow(clippy::print_stdout, reason = "says which run a failure belongs to")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

mod support;

use std::sync::Arc;
use std::thread;

use evener::{Quarantine, Report, Setup, Submitted, run};
use evener_core::plan::Policy;
use evener_core::{Job, JobError};

use support::drivers::gated_kit;
use support::module::{Fault, Scripted, Seen, scripted};
use support::{Case, check_all, jobs, mixed_cases, plain_setup, rooms, without_standstill};

const FAULTS: [Fault; 6] =
    [Fault::None, Fault::Error, Fault::WrongBytes(9), Fault::Hang(9), Fault::Gone(9), Fault::Slow(9)];

/// Jobs that the module is handed before the CPU starts, where nothing goes wrong.
const TAKEN_FIRST: u64 = 12;

const JOB_COUNT: usize = 240;

/// How the jobs come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    /// One stream, two CPU workers.
    Stream,
    /// Two callers that do the CPU's work themselves.
    Callers,
}

/// A kit that lets the module begin, so that the scheduler does not decide whether it sees a job at all.
fn after_module(fault: Fault, seen: &Arc<Seen>, policy: Policy) -> evener::CpuKit {
    let seen = Arc::clone(seen);
    gated_kit(move || {
        policy == Policy::CpuOnly
            || seen.faults() > 0
            || (fault == Fault::None && seen.taken() >= TAKEN_FIRST)
    })
}

fn setup<'m>(policy: Policy, fault: Fault, door: Door) -> (Setup<'m>, Arc<Seen>) {
    let module = Scripted::new(fault);
    let seen = module.seen();
    let kit = |_| after_module(fault, &seen, policy);
    let (workers, callers) = match door {
        Door::Stream => (vec![kit(0), kit(1)], 0),
        Door::Callers => (Vec::new(), 2),
    };
    let setup = Setup { workers, callers, policy, modules: vec![scripted(module, 1)], ..Setup::default() };
    (setup, seen)
}

fn by_stream<'m>(setup: Setup<'m>, armed: Vec<Box<Job<'m>>>) -> (Vec<Box<Job<'m>>>, Report) {
    run(setup, |runtime| {
        let (mut inlet, mut outlet) = runtime.stream();
        thread::scope(|scope| {
            scope.spawn(move || {
                armed.into_iter().for_each(|job| assert_eq!(inlet.submit(job), Submitted::Yes));
            });
            std::iter::from_fn(|| outlet.next()).collect()
        })
    })
}

fn by_callers<'m>(
    setup: Setup<'m>,
    mut armed: Vec<Box<Job<'m>>>,
    kit: impl Fn() -> evener::CpuKit + Sync,
) -> (Vec<Box<Job<'m>>>, Report) {
    let second = armed.split_off(armed.len() / 2);
    run(setup, |runtime| {
        let crypt = |mut half: Vec<Box<Job<'m>>>| {
            let mut caller = runtime.caller(kit());
            let mut came = Vec::new();
            while !half.is_empty() {
                let mut burst = half.split_off(half.len().saturating_sub(40));
                caller.crypt(&mut burst);
                came.append(&mut burst);
            }
            came
        };
        thread::scope(|scope| {
            let one = scope.spawn(|| crypt(armed));
            let mut came = crypt(second);
            came.append(&mut one.join().unwrap());
            came
        })
    })
}

fn check_run(policy: Policy, fault: Fault, door: Door) {
    let cases = mixed_cases(JOB_COUNT);
    let mut rooms = rooms(&cases);
    let (setup, seen) = setup(policy, fault, door);
    let armed = jobs(&cases, &mut rooms);
    let (came, report) = match door {
        Door::Stream => by_stream(setup, armed),
        Door::Callers => by_callers(setup, armed, || after_module(fault, &seen, policy)),
    };
    check_all(&cases, &came);
    check_report(policy, fault, &cases, &report);
}

fn check_report(policy: Policy, fault: Fault, cases: &[Case], report: &Report) {
    let goes_well = cases.iter().filter(|case| case.goes_well()).count() as u64;
    let total = report.total();
    assert_eq!((total.jobs, total.failed), (goes_well, JOB_COUNT as u64 - goes_well), "{report:?}");
    let quarantine = report.workers.iter().find_map(|worker| worker.module.as_ref()).map(|m| m.quarantine);
    let expected = match fault {
        _ if policy == Policy::CpuOnly => None,
        Fault::WrongBytes(_) => Some(Some(Quarantine::WrongResult)),
        Fault::Hang(_) => Some(Some(Quarantine::Hung)),
        Fault::Gone(_) => Some(Some(Quarantine::Lost)),
        _ => Some(None),
    };
    assert_eq!(quarantine, expected);
    assert_eq!(report.modules().jobs > 0, policy != Policy::CpuOnly, "offloaded: {report:?}");
    let (failed_by_module, redone) =
        (expected.flatten().is_some() || fault == Fault::Error, total.redone > 0);
    assert_eq!(redone, failed_by_module && policy != Policy::CpuOnly, "{report:?}");
}

fn check_policy(policy: Policy) {
    without_standstill(move || {
        for fault in FAULTS {
            for door in [Door::Stream, Door::Callers] {
                println!("{policy}, {fault:?}, {door:?}");
                check_run(policy, fault, door);
            }
        }
    });
}

#[test]
fn cpu_only_does_every_job_once_and_never_asks_the_module() {
    check_policy(Policy::CpuOnly);
}

#[test]
fn module_only_does_every_job_once_whatever_the_module_does() {
    check_policy(Policy::ModuleOnly);
}

#[test]
fn round_robin_does_every_job_once_whatever_the_module_does() {
    check_policy(Policy::RoundRobin);
}

#[test]
fn polling_does_every_job_once_whatever_the_module_does() {
    check_policy(Policy::Polling);
}

#[test]
fn shared_queue_does_every_job_once_whatever_the_module_does() {
    check_policy(Policy::SharedQueue);
}

#[test]
fn round_robin_deals_the_same_number_to_everybody() {
    without_standstill(|| {
        for door in [Door::Stream, Door::Callers] {
            let cases = mixed_cases(JOB_COUNT);
            let mut rooms = rooms(&cases);
            let (setup, seen) = setup(Policy::RoundRobin, Fault::None, door);
            let armed = jobs(&cases, &mut rooms);
            let kit = || after_module(Fault::None, &seen, Policy::RoundRobin);
            let (_, report) = match door {
                Door::Stream => by_stream(setup, armed),
                Door::Callers => by_callers(setup, armed, kit),
            };
            let offloaded = report.modules().jobs + report.modules().failed;
            assert_eq!(offloaded, JOB_COUNT as u64 / 3, "{door:?}: {report:?}");
        }
    });
}

#[test]
fn what_no_driver_can_do_fails_once_and_holds_nobody_up() {
    without_standstill(|| {
        for policy in Policy::ALL {
            let cases = mixed_cases(20);
            let mut rooms = rooms(&cases);
            let mut too_short = [0; 8];
            let module = scripted(Scripted::new(Fault::None), 1);
            let setup = Setup { policy, modules: vec![module], ..plain_setup(1) };
            let mut armed = jobs(&cases, &mut rooms);
            let mut misfit = Job::in_place(&mut too_short);
            misfit.mark = cases.len() as u64;
            misfit.arm(armed[0].session_ref(), &[0; 16], 8);
            armed.insert(10, misfit);
            let (mut came, _) = by_stream(setup, armed);
            let misfit = came.remove(10);
            assert_eq!(misfit.outcome(), evener_core::Outcome::Failed(JobError::BadLength), "{policy}");
            check_all(&cases, &came);
        }
    });
}
