//! Sessions for modules only: no core touches their jobs, whatever the policy and whatever the module does wrong.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use evener::{CoreDrivers, Report, Setup, run};
use evener_core::plan::Policy;
use evener_core::{Algorithm, Job, JobError, Outcome};
use evener_testing::cases::{Case, check_all, jobs, spaces};
use evener_testing::drivers::{Fault, Scripted, scripted, watched};
use evener_testing::waiting::without_standstill;

/// libcrypto on a core, which may not see a session that is for modules only.
fn core_drivers() -> CoreDrivers {
    let free = watched(|burst| {
        assert!(burst.iter().all(|job| !job.session().is_for_modules_only()), "a core was given its key");
    });
    CoreDrivers::new(Box::new(free), None)
}

/// Every third case is for modules only.
fn cases(count: usize) -> Vec<Case> {
    let case = |seed| {
        let case = Case::encrypt(Algorithm::Aes128Cbc, seed, (seed * 29) % 500);
        if seed % 3 == 0 { case.for_modules_only() } else { case }
    };
    (0..count).map(case).collect()
}

/// Runs them by a caller and two workers; what the module is comes from `module`.
fn run_with<'m>(
    policy: Policy,
    module: Option<Scripted<'m>>,
    jobs: &mut Vec<Box<Job<'m>>>,
    by_stream: bool,
) -> Report {
    let modules = module.into_iter().map(|module| {
        let setup = scripted(module, 1);
        evener::ModuleSetup { redo: core_drivers(), ..setup }
    });
    let setup = Setup {
        policy,
        modules: modules.collect(),
        workers: vec![core_drivers(), core_drivers()],
        callers: 1,
        ..Setup::default()
    };
    let ((), report) = run(setup, |runtime| {
        if !by_stream {
            return runtime.caller(core_drivers()).crypt(jobs);
        }
        let (mut sender, mut receiver) = runtime.stream();
        let mut armed = std::mem::take(jobs);
        assert_eq!(sender.submit_all(&mut armed), evener::Submitted::Yes);
        drop(sender);
        jobs.extend(std::iter::from_fn(|| receiver.next()));
    });
    report
}

#[test]
fn a_module_does_them_all_under_every_policy_that_has_one() {
    for policy in Policy::ALL.into_iter().filter(|policy| *policy != Policy::CpuOnly) {
        for by_stream in [false, true] {
            without_standstill(move || {
                let cases = cases(90);
                let mut spaces = spaces(&cases);
                let mut armed = jobs(&cases, &mut spaces);
                let module = Scripted::new(Fault::None);
                let log = module.seen();
                run_with(policy, Some(module), &mut armed, by_stream);
                check_all(&cases, &armed);
                assert!(log.taken() >= 30, "{policy:?}");
            });
        }
    }
}

/// What became of those that are for modules only; all others must be right.
fn bound_outcomes(cases: &[Case], armed: &[Box<Job<'_>>]) -> Vec<Outcome> {
    let (bound, free): (Vec<_>, Vec<_>) =
        armed.iter().partition(|job| cases[usize::try_from(job.mark).unwrap()].is_bound());
    free.iter().for_each(|job| cases[usize::try_from(job.mark).unwrap()].check(job));
    assert_eq!(armed.len(), cases.len());
    bound.iter().map(|job| job.outcome()).collect()
}

#[test]
fn without_a_module_they_fail_and_the_others_do_not() {
    for policy in Policy::ALL {
        without_standstill(move || {
            for by_stream in [false, true] {
                let cases = cases(30);
                let mut spaces = spaces(&cases);
                let mut armed = jobs(&cases, &mut spaces);
                let report = run_with(policy, None, &mut armed, by_stream);
                let outcomes = bound_outcomes(&cases, &armed);
                assert_eq!(outcomes, [Outcome::Failed(JobError::NeedsModule); 10], "{policy:?}");
                check_counts(&report, 30, 10);
            }
        });
    }
}

/// Each job is counted once, and with all that is counted of its worker: how the report is shown hangs on that.
fn check_counts(report: &Report, all: u64, failed: u64) {
    let total = report.total();
    assert_eq!((total.jobs, total.failed), (all - failed, failed), "{report:?}");
    let by_worker = |worker: &evener::WorkerReport| {
        let on_core: u64 = worker.methods.iter().map(|tally| tally.failed).sum();
        on_core + worker.module.as_ref().map_or(0, |module| module.tally.failed)
    };
    assert_eq!(report.workers.iter().map(by_worker).sum::<u64>(), failed, "{report:?}");
}

/// Faults, and what jobs may fail with.
const FAULTS: [(Fault, &[JobError]); 4] = [
    (Fault::Broken(5), &[JobError::Module { code: 6 }, JobError::NeedsModule, JobError::ModuleLost]),
    (Fault::Gone(5), &[JobError::ModuleLost, JobError::NeedsModule]),
    (Fault::Hang(5), &[JobError::ModuleLost, JobError::NeedsModule]),
    (Fault::Full(5), &[JobError::ModuleFull]),
];

#[test]
fn what_a_module_fails_is_returned_as_failed_and_done_nowhere_else() {
    for (fault, errors) in FAULTS {
        for policy in [Policy::ModuleOnly, Policy::SharedQueue, Policy::RoundRobin, Policy::Adaptive] {
            without_standstill(move || {
                let cases = cases(90);
                let mut spaces = spaces(&cases);
                let mut armed = jobs(&cases, &mut spaces);
                let report = run_with(policy, Some(Scripted::new(fault)), &mut armed, false);
                let outcomes = bound_outcomes(&cases, &armed);
                let failed: Vec<_> =
                    outcomes.into_iter().filter(|outcome| !matches!(outcome, Outcome::Done { .. })).collect();
                assert!(!failed.is_empty(), "{policy:?} {fault:?}");
                let is_said =
                    |outcome: &Outcome| matches!(outcome, Outcome::Failed(error) if errors.contains(error));
                assert!(failed.iter().all(is_said), "{policy:?} {fault:?}: {failed:?}");
                check_counts(&report, 90, failed.len() as u64);
            });
        }
    }
}
