//! Every job is done exactly once, under every policy, whatever the module does. libcrypto judges.
#![allow(clippy::print_stdout, reason = "says which run a failure belongs to")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use evener::{CoreDrivers, ModuleSetup, Quarantine, Report, Setup, Submitted, run};
use evener_core::plan::Policy;
use evener_core::{Job, JobError, Outcome};
use evener_driver_emulated::{self as emulated, Control, Counters, Emulated, When};
use evener_driver_libcrypto::Libcrypto;
use evener_testing::cases::{Case, check_all, jobs, mixed_cases, spaces, under_every_policy};
use evener_testing::drivers::{Fault, Scripted, cared_for, gated_drivers, plain_setup, scripted};
use evener_testing::waiting::without_standstill;

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

/// Which module there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The tests' own, which knows no time.
    Scripted,
    /// Evener's, whose jobs take time.
    Emulated,
}

/// Whether the module is at work, and faulty if it is to be: the CPU starts then, so that the scheduler does not
/// decide whether the module sees a job at all.
type IsUnderWay = Arc<dyn Fn() -> bool + Send + Sync>;

fn module<'m>(kind: Kind, fault: Fault) -> (ModuleSetup<'m>, IsUnderWay) {
    let enough = move |taken, faults| if fault == Fault::None { taken >= TAKEN_FIRST } else { faults > 0 };
    match kind {
        Kind::Scripted => {
            let module = Scripted::new(fault);
            let log = module.seen();
            (scripted(module, 1), Arc::new(move || enough(log.taken(), log.faults())))
        }
        Kind::Emulated => {
            let preset = "emulated:d=2000+0,h=50000+10,units=4,depth=4".parse().unwrap();
            let module = Emulated::new(preset, Box::new(Libcrypto::new().unwrap()));
            let control = module.control();
            order(&control, fault);
            let mut module = cared_for(Box::new(module), 1);
            let runs = Arc::new(AtomicU64::new(0));
            module.redo = counting_drivers(&runs);
            let is_under_way = move || {
                // Every result is checked by one run of the CPU; one more means that a job was lost and redone.
                let runs = runs.load(Ordering::SeqCst);
                let Counters { submitted, completed, faults, .. } = control.counters();
                let is_slower = matches!(fault, Fault::Slow(from) if submitted > from);
                if is_slower {
                    control.set_pace(300);
                }
                enough(submitted, faults + u64::from(is_slower) + u64::from(runs > completed))
            };
            (module, Arc::new(is_under_way))
        }
    }
}

/// Sets the fault of the emulated module from the start.
fn order(control: &Control, fault: Fault) {
    let from = |from| When { from: from + 1, every: 1 };
    match fault {
        Fault::Error => control.set_fault(emulated::Fault::Error { code: 5 }, When { from: 3, every: 3 }),
        Fault::WrongBytes(number) => control.set_fault(emulated::Fault::WrongBytes, from(number)),
        Fault::Hang(number) => control.set_fault(emulated::Fault::Hang, from(number)),
        Fault::Gone(number) => control.set_fault(emulated::Fault::Gone, from(number)),
        _ => {}
    }
}

/// A set of drivers that counts its runs.
fn counting_drivers(runs: &Arc<AtomicU64>) -> CoreDrivers {
    let runs = Arc::clone(runs);
    gated_drivers(move || runs.fetch_add(1, Ordering::SeqCst) < u64::MAX)
}

fn core_drivers(policy: Policy, is_under_way: &IsUnderWay) -> CoreDrivers {
    let is_under_way = Arc::clone(is_under_way);
    gated_drivers(move || policy == Policy::CpuOnly || is_under_way())
}

fn setup<'m>(policy: Policy, fault: Fault, door: Door, of: Kind) -> (Setup<'m>, IsUnderWay) {
    let (module, is_under_way) = module(of, fault);
    let core_drivers = || core_drivers(policy, &is_under_way);
    let (workers, callers) = match door {
        Door::Stream => (vec![core_drivers(), core_drivers()], 0),
        Door::Callers => (Vec::new(), 2),
    };
    (Setup { workers, callers, policy, modules: vec![module], ..Setup::default() }, is_under_way)
}

fn by_stream<'m>(setup: Setup<'m>, armed: Vec<Box<Job<'m>>>) -> (Vec<Box<Job<'m>>>, Report) {
    run(setup, |runtime| {
        let (mut sender, mut receiver) = runtime.stream();
        thread::scope(|scope| {
            scope.spawn(move || {
                armed.into_iter().for_each(|job| assert_eq!(sender.submit(job), Submitted::Yes));
            });
            std::iter::from_fn(|| receiver.next()).collect()
        })
    })
}

fn by_callers<'m>(
    setup: Setup<'m>,
    mut armed: Vec<Box<Job<'m>>>,
    core_drivers: impl Fn() -> CoreDrivers + Sync,
) -> (Vec<Box<Job<'m>>>, Report) {
    let second = armed.split_off(armed.len() / 2);
    run(setup, |runtime| {
        let crypt = |mut half: Vec<Box<Job<'m>>>| {
            let mut caller = runtime.caller(core_drivers());
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

fn check_run(policy: Policy, fault: Fault, door: Door, of: Kind) -> Report {
    let cases = mixed_cases(JOB_COUNT);
    let mut spaces = spaces(&cases);
    let (setup, is_under_way) = setup(policy, fault, door, of);
    let armed = jobs(&cases, &mut spaces);
    let (came, report) = match door {
        Door::Stream => by_stream(setup, armed),
        Door::Callers => by_callers(setup, armed, || core_drivers(policy, &is_under_way)),
    };
    check_all(&cases, &came);
    check_report(policy, fault, &cases, &report);
    report
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
    let may_be_redone = policy != Policy::CpuOnly && (expected.flatten().is_some() || fault == Fault::Error);
    // A module may go away while it holds nothing.
    let must_be_redone = may_be_redone && !matches!(fault, Fault::Gone(_));
    assert!(total.redone == 0 || may_be_redone, "{report:?}");
    assert!(total.redone > 0 || !must_be_redone, "{report:?}");
}

fn check_policy(policy: Policy) {
    without_standstill(move || {
        for of in [Kind::Scripted, Kind::Emulated] {
            for fault in FAULTS {
                for door in [Door::Stream, Door::Callers] {
                    println!("{policy}, {of:?}, {fault:?}, {door:?}");
                    check_run(policy, fault, door, of);
                }
            }
        }
    });
}

/// A test per policy, so that each has the time of a test.
macro_rules! policies {
    ($($name:ident: $policy:ident;)*) => {
        $(
            #[test]
            fn $name() {
                check_policy(Policy::$policy);
            }
        )*
    };
}

policies! {
    cpu_only_does_every_job_once_and_never_asks_the_module: CpuOnly;
    module_only_does_every_job_once_whatever_the_module_does: ModuleOnly;
    round_robin_does_every_job_once_whatever_the_module_does: RoundRobin;
    polling_does_every_job_once_whatever_the_module_does: Polling;
    shared_queue_does_every_job_once_whatever_the_module_does: SharedQueue;
}

#[test]
fn round_robin_deals_the_same_number_to_everybody() {
    without_standstill(|| {
        for door in [Door::Stream, Door::Callers] {
            let modules = check_run(Policy::RoundRobin, Fault::None, door, Kind::Scripted).modules();
            assert_eq!(modules.jobs + modules.failed, JOB_COUNT as u64 / 3, "{door:?}");
        }
    });
}

#[test]
fn round_robin_waits_for_a_full_desk_instead_of_passing_it_over() {
    without_standstill(|| {
        let cases = mixed_cases(JOB_COUNT);
        let mut spaces = spaces(&cases);
        let modules = vec![scripted(Scripted::new(Fault::Slow(0)), 1)];
        let setup = Setup { policy: Policy::RoundRobin, modules, backlog_jobs: 4, ..plain_setup(2) };
        let (came, report) = by_stream(setup, jobs(&cases, &mut spaces));
        check_all(&cases, &came);
        let modules = report.modules();
        assert_eq!(modules.jobs + modules.failed, JOB_COUNT as u64 / 3);
    });
}

#[test]
fn what_no_driver_can_do_fails_once_and_holds_nobody_up() {
    under_every_policy(mixed_cases(20), |policy, cases, mut armed| {
        let mut misfit = Job::in_place(vec![0; 8].leak());
        misfit.mark = cases.len() as u64;
        misfit.arm(armed[0].session_ref(), &[0; 16], 8);
        armed.insert(10, misfit);
        let module = scripted(Scripted::new(Fault::None), 1);
        let (mut came, _) = by_stream(Setup { policy, modules: vec![module], ..plain_setup(1) }, armed);
        let misfit = came.remove(10);
        assert_eq!(misfit.outcome(), Outcome::Failed(JobError::BadLength), "{policy}");
        check_all(cases, &came);
    });
}
