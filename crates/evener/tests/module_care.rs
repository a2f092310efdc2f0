//! A module that lies, hangs or refuses is found out, and only the report shows it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use evener::{ModuleReport, ModuleSetup, Quarantine, Report, Setup, run};
use evener_core::driver::Clock as _;
use evener_core::plan::Policy;
use evener_core::{Algorithm, Family, JobError, Nanos};
use evener_testing::cases::{Case, cbc_cases, check_all, jobs, mixed_cases, spaces};
use evener_testing::drivers::{
    Fault, ModuleLog, Scripted, Stopped, TestClock, module_is_best, plain_drivers, scripted,
};
use evener_testing::waiting::without_standstill;

/// Runs `cases` as one burst of one caller under `module_only`; every result must be libcrypto's.
fn offload(cases: &[Case], module: Scripted<'_>, check_every: u32) -> (ModuleReport, Report) {
    let mut spaces = spaces(cases);
    let modules = vec![scripted(module, check_every)];
    let setup = Setup { policy: Policy::ModuleOnly, modules, ..Setup::default() };
    let mut armed = jobs(cases, &mut spaces);
    let ((), report) = run(setup, |runtime| runtime.caller(plain_drivers()).crypt(&mut armed));
    check_all(cases, &armed);
    let module = report.workers.iter().find_map(|worker| worker.module.clone()).expect("there is a module");
    (module, report)
}

fn log_of(module: Scripted<'static>) -> (Scripted<'static>, Arc<ModuleLog>) {
    let log = module.seen();
    (module, log)
}

#[test]
fn a_module_that_hangs_is_quarantined_and_its_jobs_are_redone_exactly_once() {
    without_standstill(|| {
        let cases = cbc_cases(60);
        let (module, log) = log_of(Scripted::new(Fault::Hang(20)));
        let (module, report) = offload(&cases, module, 1_000);
        assert_eq!(module.quarantine, Some(Quarantine::Hung));
        let held = log.taken() - 20;
        assert!((1..=4).contains(&held), "{held} jobs were held at the end");
        assert_eq!((module.tally.jobs, report.total().redone, report.total().jobs), (20, held, 60));
    });
}

#[test]
fn a_process_that_was_stopped_while_it_waited_keeps_its_module() {
    without_standstill(|| {
        for (late, quarantine) in [(1, None), (2, Some(Quarantine::Hung))] {
            let cases = cbc_cases(4);
            let mut spaces = spaces(&cases);
            let module = ModuleSetup {
                timeout: Nanos::from_millis(400),
                ..ModuleSetup::new(Box::new(Stopped::new(late)), plain_drivers())
            };
            let setup = Setup { policy: Policy::ModuleOnly, modules: vec![module], ..Setup::default() };
            let mut armed = jobs(&cases, &mut spaces);
            let ((), report) = run(setup, |runtime| runtime.caller(plain_drivers()).crypt(&mut armed));
            check_all(&cases, &armed);
            let module = report.workers.iter().find_map(|worker| worker.module.clone()).unwrap();
            assert_eq!(module.quarantine, quarantine, "{late}");
        }
    });
}

#[test]
fn wrong_bytes_from_the_first_job_are_found_by_the_first_check() {
    without_standstill(|| {
        let (module, report) = offload(&cbc_cases(60), Scripted::new(Fault::WrongBytes(0)), 1_000);
        assert_eq!(module.quarantine, Some(Quarantine::WrongResult));
        assert!(module.checked <= 4 && module.tally.jobs == 0, "{report:?}");
    });
}

#[test]
fn with_every_result_checked_no_wrong_byte_gets_out() {
    without_standstill(|| {
        for from in 0..12 {
            let (module, _) = offload(&mixed_cases(60), Scripted::new(Fault::WrongBytes(from)), 1);
            assert_eq!(module.quarantine, Some(Quarantine::WrongResult), "from {from}");
        }
    });
}

#[test]
fn a_module_that_denies_what_is_authentic_is_found_out() {
    without_standstill(|| {
        let cases: Vec<_> =
            (0..40).map(|seed| Case::decrypt(Algorithm::Aes256Gcm, seed, seed * 11)).collect();
        let (module, _) = offload(&cases, Scripted::new(Fault::Denies(7)), 1);
        assert_eq!(module.quarantine, Some(Quarantine::WrongResult));
    });
}

#[test]
fn a_forged_tag_is_the_datas_fault_not_the_modules() {
    without_standstill(|| {
        let cases: Vec<_> = (0..40).map(|seed| Case::forged(Algorithm::Aes256Gcm, seed, seed * 11)).collect();
        let (module, report) = offload(&cases, Scripted::new(Fault::None), 1);
        assert_eq!((module.quarantine, module.tally.failed, report.total().redone), (None, 40, 0));
        assert_eq!(module.checked, 40);
    });
}

#[test]
fn a_sample_is_checked_and_the_first_of_each_algorithm_always() {
    without_standstill(|| {
        let (module, _) = offload(&cbc_cases(100), Scripted::new(Fault::None), 25);
        // 1 to 4, then 25, 50, 75, 100.
        assert_eq!((module.checked, module.tally.jobs), (8, 100));
    });
}

#[test]
fn a_refusal_because_it_is_full_is_not_taken_for_a_second_job() {
    without_standstill(|| {
        // It announces a width of 4 and takes 2: every other job is refused once and stays captured or not.
        let cases = cbc_cases(100);
        for _ in 0..3 {
            let (module, log) = log_of(Scripted::new(Fault::None).with_depth(2));
            let (module, _) = offload(&cases, module, 25);
            assert!(log.refusals.load(std::sync::atomic::Ordering::SeqCst) > 0);
            assert_eq!((module.quarantine, module.tally.jobs, log.taken()), (None, 100, 100));
        }
    });
}

#[test]
fn a_capture_of_one_burst_never_judges_the_next() {
    without_standstill(|| {
        let (first, second) = (cbc_cases(60), mixed_cases(60));
        let (mut first_spaces, mut second_spaces) = (spaces(&first), spaces(&second));
        let module = scripted(Scripted::new(Fault::None).with_depth(1), 1);
        let setup = Setup { policy: Policy::ModuleOnly, modules: vec![module], ..Setup::default() };
        let ((), report) = run(setup, |runtime| {
            let mut caller = runtime.caller(plain_drivers());
            for (cases, spaces) in [(&first, &mut first_spaces), (&second, &mut second_spaces)] {
                let mut armed = jobs(cases, spaces);
                caller.crypt(&mut armed);
                check_all(cases, &armed);
            }
        });
        let module = report.workers.iter().find_map(|worker| worker.module.clone()).unwrap();
        assert_eq!((module.quarantine, module.checked), (None, 120));
    });
}

#[test]
fn a_module_that_refuses_though_it_holds_nothing_is_taken_for_dead() {
    without_standstill(|| {
        let (module, report) = offload(&cbc_cases(30), Scripted::new(Fault::Refuses(10)), 1_000);
        assert_eq!(module.quarantine, Some(Quarantine::Hung));
        // What it never took is done by the CPU, not redone.
        assert_eq!((module.tally.jobs, report.total().redone, report.total().jobs), (10, 0, 30));
    });
}

#[test]
fn errors_in_a_row_end_a_modules_service_but_errors_now_and_then_do_not() {
    without_standstill(|| {
        let (broken, _) = offload(&cbc_cases(60), Scripted::new(Fault::Broken(10)), 1_000);
        assert_eq!(broken.quarantine, Some(Quarantine::Errors(JobError::Module { code: 6 })));
        let (wavering, report) = offload(&cbc_cases(60), Scripted::new(Fault::Error), 1_000);
        assert_eq!(wavering.quarantine, None);
        assert_eq!((wavering.tally.jobs, report.total().redone), (40, 20));
    });
}

#[test]
fn a_module_without_space_for_more_keys_is_not_blamed_and_the_cpu_does_what_it_leaves() {
    without_standstill(|| {
        let (module, report) = offload(&cbc_cases(60), Scripted::new(Fault::Full(10)), 1_000);
        assert_eq!((module.quarantine, module.tally.jobs, report.total().redone), (None, 10, 50));
    });
}

#[test]
fn keys_that_a_module_refuses_are_used_by_the_cpu_and_count_as_its_errors() {
    without_standstill(|| {
        let (module, report) = offload(&cbc_cases(60), Scripted::new(Fault::RefusesKeys(10)), 1_000);
        assert_eq!(module.quarantine, Some(Quarantine::Errors(JobError::KeyRefused { code: 22 })));
        assert_eq!((module.tally.jobs, module.tally.failed, report.total().jobs), (10, 0, 60));
        assert!((8..=16).contains(&report.total().redone), "what it refused until it was out: {report:?}");
    });
}

#[test]
fn a_module_whose_costs_are_known_is_not_waited_for_as_long_as_one_that_nobody_knows() {
    // A tenth of a second on the tests' clock for each look; of 64 times 4 requests of 2 us the least silence counts.
    let clock = TestClock::default();
    let cases = cbc_cases(40);
    let mut spaces = spaces(&cases);
    // It announces more than it takes, so that its worker looks often.
    let module = Scripted::new(Fault::Hang(0)).with_depth(2).on_clock(&clock, Nanos::from_millis(100));
    let timeout = Nanos::from_millis(3_600_000);
    let modules = vec![ModuleSetup { timeout, ..scripted(module, 1_000) }];
    let setup = Setup {
        policy: Policy::Adaptive,
        modules,
        learned: module_is_best(),
        clock: Arc::new(clock.clone()),
        callers: 1,
        ..Setup::default()
    };
    let mut armed = jobs(&cases, &mut spaces);
    let ((), report) = run(setup, |runtime| runtime.caller(plain_drivers()).crypt(&mut armed));
    check_all(&cases, &armed);
    let module = report.workers.iter().find_map(|worker| worker.module.clone()).unwrap();
    assert_eq!(module.quarantine, Some(Quarantine::Hung));
    assert!(clock.now() < Nanos::from_millis(60_000), "{}", clock.now());
}

#[test]
fn what_the_module_does_not_do_is_done_by_the_cpu_and_not_called_redone() {
    without_standstill(|| {
        let cases = mixed_cases(70);
        let module = Scripted::new(Fault::None).only(|algorithm| algorithm.family() == Family::Cbc);
        let (module, report) = offload(&cases, module, 1);
        // Two of seven kinds are CBC.
        assert_eq!((module.tally.jobs, report.total().redone), (20, 0));
    });
}

#[test]
fn a_slow_module_is_not_a_dead_one() {
    without_standstill(|| {
        let (module, _) = offload(&cbc_cases(60), Scripted::new(Fault::Slow(10)), 1);
        assert_eq!((module.quarantine, module.tally.jobs), (None, 60));
    });
}

#[test]
fn a_run_without_cpu_workers_survives_the_loss_of_its_only_module() {
    without_standstill(|| {
        // A stream has no caller that could help, so the module's thread goes on as a core.
        let cases = cbc_cases(60);
        let mut spaces = spaces(&cases);
        let module = scripted(Scripted::new(Fault::Gone(5)), 1);
        let setup =
            Setup { policy: Policy::SharedQueue, callers: 1, modules: vec![module], ..Setup::default() };
        let armed = jobs(&cases, &mut spaces);
        let (came, _) = run(setup, |runtime| {
            let (mut sender, mut receiver) = runtime.stream();
            armed.into_iter().for_each(|job| _ = sender.submit(job));
            drop(sender);
            std::iter::from_fn(|| receiver.next()).collect::<Vec<_>>()
        });
        check_all(&cases, &came);
    });
}

#[test]
fn patience_counts_from_the_last_result_not_from_the_start() {
    without_standstill(|| {
        // Each result takes 30 of the 50 ms allowed, all of them together 1.8 s.
        let clock = TestClock::default();
        let cases = cbc_cases(60);
        let mut spaces = spaces(&cases);
        let module = Scripted::new(Fault::Slow(0)).on_clock(&clock, Nanos::from_millis(30));
        let modules = vec![scripted(module, 1_000)];
        let setup =
            Setup { policy: Policy::ModuleOnly, modules, clock: Arc::new(clock.clone()), ..Setup::default() };
        let mut armed = jobs(&cases, &mut spaces);
        let ((), report) = run(setup, |runtime| runtime.caller(plain_drivers()).crypt(&mut armed));
        check_all(&cases, &armed);
        let module = report.workers.iter().find_map(|worker| worker.module.clone()).unwrap();
        assert_eq!((module.quarantine, module.tally.jobs), (None, 60));
        assert_eq!(module.tally.sampled.wall, Nanos::from_millis(60 * 30));
    });
}
