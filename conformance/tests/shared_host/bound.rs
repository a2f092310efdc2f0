//! Sessions for modules only at a host that is killed: what it held fails and says so, and no core does any of it.
//!
//! Path: this program as a host, a process of its own -> a run in this one with one core beside that module -> the host is killed while it holds jobs
//! -> outcomes against the report's counts.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use evener::core::plan::Policy;
use evener::{CoreDrivers, ModuleSetup, Quarantine, Report};
use evener_core::{Algorithm, Direction, Job, JobError, Method, Outcome, Padding, Session};
use evener_driver_virtio::Module;
use evener_testing::drivers::libcrypto;
use evener_testing::programs::Process;
use evener_testing::requests::{Burst, JobSpec, judged, session};

use super::{Host, TIMEOUT, asked_at};

/// Time enough to be killed in the middle: half a second for all jobs.
const MODULE: &str = "emulated:d=0+0,h=5000000+0,depth=8";
const JOBS: usize = 100;
const BYTES: usize = 4_096;
/// Jobs of the module after which its host is killed.
const KILLED_AFTER: u64 = 20;
/// Name of the variable that says where the host is to be.
const FOLDER: &str = "HOST_TEST_FOLDER";

#[test]
#[ignore = "a part of another one, which runs it as a process"]
fn a_host() {
    let Some(folder) = std::env::var_os(FOLDER) else { return println!("skipped: {FOLDER} names no folder") };
    let _host = Host::start(folder.as_ref(), MODULE);
    loop {
        thread::park();
    }
}

#[test]
fn a_host_that_is_killed_fails_what_only_it_may_do_and_no_core_does_it() {
    let specs = specs();
    for policy in [Policy::ModuleOnly, Policy::SharedQueue, Policy::Adaptive] {
        let folder = tempfile::tempdir().expect("a folder");
        let host = Process::start("bound::a_host", &[(FOLDER, folder.path().as_os_str())]);
        let control = folder.path().join("control");
        let submitted = move || asked_at(&control, "report").ok()?["module"]["submitted"].as_u64();
        wait_until(|| submitted().is_some());
        let name = format!("hosted:{}", folder.path().join("host").display()).parse().expect("a name");
        let module = Module::open(&name).expect("it serves");
        // Known answers are none of the jobs.
        let killed_at = submitted().expect("it answers") + KILLED_AFTER;
        let killer = thread::spawn(move || {
            wait_until(|| submitted() >= Some(killed_at));
            drop(host);
        });
        let (jobs, report) = through(&module, &specs, policy);
        killer.join().expect("no panic");
        judge(&specs, &jobs, &report);
    }
}

fn wait_until(is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < TIMEOUT, "it never came to that");
        thread::sleep(Duration::from_millis(2));
    }
}

/// All of a session that is for modules only.
fn specs() -> Vec<JobSpec> {
    let free = session(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, 5);
    let bound = Session::new(free.algorithm(), free.direction(), free.padding(), free.key());
    let bound = Arc::new(bound.expect("as of the other").for_modules_only());
    (0..JOBS).map(|seed| JobSpec::noisy(&bound, BYTES, seed)).collect()
}

/// The jobs as they came back, in their order.
fn through(module: &Module, specs: &[JobSpec], policy: Policy) -> (Burst<'static>, Report) {
    let core_drivers = || CoreDrivers::new(Box::new(libcrypto()), None);
    let modules = vec![ModuleSetup { check_every: 1, ..ModuleSetup::new(module.driver(), core_drivers()) }];
    let setup =
        evener::Setup { policy, modules, workers: vec![core_drivers()], callers: 1, ..Default::default() };
    let job = |spec: &JobSpec| {
        let mut job = Job::in_place(spec.input.clone().leak());
        job.arm(Arc::clone(&spec.session), &spec.iv, BYTES);
        job
    };
    let mut jobs: Vec<_> = specs.iter().map(job).collect();
    let ((), report) = evener::run(setup, |runtime| runtime.caller(core_drivers()).crypt(&mut jobs));
    (jobs, report)
}

fn judge(specs: &[JobSpec], jobs: &[Box<Job<'static>>], report: &Report) {
    let mut failed = 0;
    for (spec, job) in specs.iter().zip(jobs) {
        match job.outcome() {
            Outcome::Failed(JobError::ModuleLost | JobError::NeedsModule) => {
                assert!(job.input() == spec.input, "it holds what was submitted");
                failed += 1;
            }
            outcome => {
                let right = judged(spec);
                assert_eq!(outcome, right.outcome);
                assert!(job.output() == right.output, "{}", spec.what());
            }
        }
    }
    let (total, plain) = (report.total(), report.method(Method::Plain));
    assert!(
        failed > 0 && report.modules().jobs >= KILLED_AFTER / 2,
        "it was killed in the middle: {total:?}"
    );
    assert_eq!((total.jobs + total.failed, total.failed), (JOBS as u64, failed), "each is counted once");
    assert_eq!((plain.jobs, total.redone), (0, 0), "no core did any");
    let module = report.workers.iter().find_map(|worker| worker.module.as_ref()).expect("a module's worker");
    assert_eq!((module.quarantine, module.checked), (Some(Quarantine::Lost), 0));
}
