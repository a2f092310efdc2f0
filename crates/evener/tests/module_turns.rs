//! Runs at a module that other processes have, too: turns, and what cores do meanwhile. Libcrypto judges every result.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use evener::{ModuleSetup, Report, Setup, run};
use evener_arbiter::Module;
use evener_core::plan::Policy;
use evener_core::{Job, Nanos};
use evener_testing::arbiters::ArbiterFolder;
use evener_testing::cases::{cbc_cases, check_all, jobs, spaces};
use evener_testing::drivers::{Fault, Probe, Probed, Scripted, cared_for, module_is_best, plain_drivers};
use evener_testing::waiting::without_standstill;

const AGES: Nanos = Nanos::from_millis(4_000);

/// Looks whether the other of two processes is at the module, too.
struct Exclusive {
    /// What either process has there.
    held: Arc<[AtomicUsize; 2]>,
    process: usize,
}

impl<'m> Probe<'m> for Exclusive {
    fn after_submit(&mut self, _: bool, in_flight: usize) {
        self.held[self.process].store(in_flight, SeqCst);
        assert_eq!(self.held[1 - self.process].load(SeqCst), 0, "one process at a time");
    }

    fn after_poll(&mut self, _: &mut [Box<Job<'m>>], in_flight: usize) {
        self.held[self.process].store(in_flight, SeqCst);
    }
}

/// Runs jobs by one caller and one worker beside a module that is shared so.
fn share<'m>(policy: Policy, jobs: &mut Vec<Box<Job<'m>>>, setup: ModuleSetup<'m>, shared: Module) -> Report {
    let setup = Setup {
        policy,
        modules: vec![ModuleSetup { shared: Some(shared), ..setup }],
        workers: vec![plain_drivers()],
        learned: module_is_best(),
        callers: 1,
        ..Setup::default()
    };
    run(setup, |runtime| runtime.caller(plain_drivers()).crypt(jobs)).1
}

/// Jobs that the module did.
fn by_module(report: &Report) -> u64 {
    report.workers.iter().filter_map(|worker| worker.module.as_ref()).map(|module| module.tally.jobs).sum()
}

#[test]
fn two_runs_are_at_a_module_in_turns_and_neither_has_to_end_for_the_other() {
    without_standstill(|| {
        let folder = ArbiterFolder::new();
        let held: Arc<[AtomicUsize; 2]> = Arc::default();
        let cases = cbc_cases(200);
        let reports: Vec<Report> = thread::scope(|scope| {
            let process = |process: usize| {
                let (folder, held, cases) = (&folder, Arc::clone(&held), &cases);
                scope.spawn(move || {
                    let mut spaces = spaces(cases);
                    let mut armed = jobs(cases, &mut spaces);
                    let module = Box::new(Scripted::new(Fault::Slow(0)));
                    let setup = cared_for(Box::new(Probed::new(module, Exclusive { held, process })), 1_000);
                    let shared = folder.attach().module("one", 1);
                    let report = share(Policy::ModuleOnly, &mut armed, setup, shared);
                    check_all(cases, &armed);
                    report
                })
            };
            [process(0), process(1)].map(|process| process.join().unwrap()).into()
        });
        assert_eq!(reports.iter().map(by_module).collect::<Vec<_>>(), [200, 200]);
        // 60 ms of work each and a turn of 2 ms while the other waits: some of them were waited for.
        let end = folder.attach().snapshot();
        let waited = end.modules[0].counts.iter().find(|(count, _)| count.name() == "waited").unwrap().1;
        assert!(waited >= 4, "{end:?}");
        assert!(end.modules[0].holders.is_empty(), "{end:?}");
    });
}

#[test]
fn a_run_that_has_no_turn_is_done_by_its_cores_although_the_module_would_be_best() {
    without_standstill(|| {
        let folder = ArbiterFolder::new();
        let other = folder.attach();
        let held = other.module("one", 1).try_acquire(AGES).unwrap();
        let adaptive = || {
            let cases = cbc_cases(60);
            let mut spaces = spaces(&cases);
            let mut armed = jobs(&cases, &mut spaces);
            let setup = cared_for(Box::new(Scripted::new(Fault::None)), 1_000);
            let shared = folder.attach().module("one", 1);
            let report = share(Policy::Adaptive, &mut armed, setup, shared);
            check_all(&cases, &armed);
            report
        };
        let report = adaptive();
        assert_eq!((by_module(&report), report.total().jobs), (0, 60));
        let quarantines = report.workers.iter().filter_map(|worker| worker.module.as_ref()?.quarantine);
        assert_eq!(quarantines.count(), 0, "a module that others have is not taken for dead");
        drop(held);
        let report = adaptive();
        assert!(by_module(&report) > 0, "{report:?}");
    });
}
