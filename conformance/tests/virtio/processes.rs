//! Several processes and one device: the second is refused, one after a killed one is not, and a forked child does
//! its jobs without it.

use std::env;

use evener::{Quarantine, Report};
use evener_core::driver::Unanswered;
use evener_core::{Algorithm, Direction, JobError, Nanos, Outcome, Padding, Refusal};
use evener_driver_virtio::Module;
use evener_testing::programs::{Process, is_right_in_child};
use evener_testing::requests::{Burst, JobSpec, Route, all_by, by_run, in_place, judged, session};

use super::sessions::job;
use super::{SILENCE, TestGuest, device, name, wait_for_the_host, works};

pub(super) fn do_not_disturb_each_other(test_guest: &mut TestGuest) {
    test_guest.test("processes::the_second_process_is_refused_until_the_first_is_killed_at_work");
    if test_guest.qmp.is_some() {
        test_guest.test_while_it_hangs(
            "processes::a_process_after_one_that_was_killed_with_requests_under_way_is_served",
        );
    }
    test_guest.test("processes::a_forked_child_does_its_jobs_without_the_device_and_its_parent_goes_on");
}

/// The variable that makes the test below use the device until it is killed.
const TO_BE_KILLED: &str = "VIRTIO_TEST_TO_BE_KILLED";
const READY: &str = "it has the device";

#[test]
#[ignore = "a part of another one, which runs it as a process"]
fn has_it_until_it_is_killed() {
    if env::var(TO_BE_KILLED).is_err() {
        return println!("skipped: no parent would kill it");
    }
    let module = device().expect("it is started in the guest");
    let (mut driver, specs) = (module.driver(), specs(40));
    let mut jobs: Burst<'static> = specs.iter().map(job).collect();
    let mut is_ready = false;
    loop {
        while let Some(job) = jobs.pop() {
            if let Err((job, _)) = driver.submit(job) {
                jobs.push(job);
                break;
            }
        }
        if !is_ready {
            driver.poll(&mut jobs, Nanos::ZERO);
            println!("{READY}");
            is_ready = true;
        }
        driver.poll(&mut jobs, Nanos::from_millis(10));
        jobs.iter_mut()
            .zip(&specs)
            .for_each(|(job, spec)| job.arm(spec.session.clone(), &spec.iv, spec.input.len()));
    }
}

fn specs(count: usize) -> Vec<JobSpec> {
    let key = session(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, 9);
    (0..count).map(|seed| JobSpec::noisy(&key, 4_096, seed)).collect()
}

/// A process that has the device and has given it as much as it takes.
fn first() -> Process {
    let mut first = Process::start("processes::has_it_until_it_is_killed", &[(TO_BE_KILLED, "1".as_ref())]);
    assert!(first.lines().any(|line| line.contains(READY)), "it has not got the device");
    first
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn the_second_process_is_refused_until_the_first_is_killed_at_work() {
    if device().is_none() {
        return;
    }
    for _ in 0..3 {
        let first = first();
        let error = Module::open(&name()).expect_err("another process has it");
        assert_eq!(error.to_string(), "virtio:0000:00:10.0 cannot be used: another process has 0000:00:10.0");
        // Killed, and waited for.
        drop(first);
        works();
    }
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn a_process_after_one_that_was_killed_with_requests_under_way_is_served() {
    if device().is_none() {
        return;
    }
    drop(first());
    wait_for_the_host();
    works();
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn a_forked_child_does_its_jobs_without_the_device_and_its_parent_goes_on() {
    let Some(module) = device() else { return };
    let (single, mut driver, specs) = (module.single(), module.driver(), specs(8));
    let (mut module, mut single, mut done) = (Some(module), Some(single), Burst::new());
    specs[..3].iter().for_each(|spec| assert!(driver.submit(job(spec)).is_ok()));
    // The device sees them; what it has done by now is not lost.
    driver.poll(&mut done, Nanos::ZERO);
    let held = driver.in_flight();
    let is_right = is_right_in_child(|| {
        let mut done = Burst::new();
        driver.poll(&mut done, SILENCE);
        assert_eq!(done.len(), held, "what it held comes back");
        let is_lost = |outcome| outcome == Outcome::Failed(JobError::ModuleLost);
        assert!(done.iter().all(|job| is_lost(job.outcome())));
        assert!(matches!(driver.submit(job(&specs[3])), Err((_, Refusal::Lost))));
        let asked = in_place(&**single.as_ref().expect("the child's"), &specs[3], SILENCE);
        assert_eq!(asked, Err(Unanswered::Failed(JobError::ModuleLost)));
        let mut route = ByRun::new(module.as_ref().expect("the child's"), SILENCE);
        super::are_right(&mut route, &specs);
        assert_eq!((route.by_module(), route.quarantine()), (0, Some(Quarantine::Lost)));
        // All that the child has of the device: when that ends, the parent's goes on.
        drop((module.take(), single.take()));
    });
    assert!(is_right, "see what the child said");
    done.extend(all_by(&mut *driver, Burst::new(), SILENCE));
    let mut outputs: Vec<Vec<u8>> = done.iter().map(|job| job.output().to_vec()).collect();
    let mut due: Vec<Vec<u8>> = specs[..3].iter().map(|spec| judged(spec).output).collect();
    outputs.sort();
    due.sort();
    assert!(outputs == due, "the parent's own");
    let asked = in_place(&**single.as_ref().expect("the parent's"), &specs[4], SILENCE);
    assert_eq!(asked, Ok(judged(&specs[4]).output));
    let mut route = ByRun::new(module.as_ref().expect("the parent's"), SILENCE);
    super::are_right(&mut route, &specs);
    assert_eq!((route.by_module(), route.quarantine()), (specs.len() as u64, None));
}

/// A device under a run, which redoes what the device leaves.
pub(super) struct ByRun<'a> {
    module: &'a Module,
    /// Silence after which it is taken for dead.
    timeout: Nanos,
    pub(super) report: Report,
}

impl<'a> ByRun<'a> {
    pub(super) fn new(module: &'a Module, timeout: Nanos) -> Self {
        Self { module, timeout, report: Report::default() }
    }

    pub(super) fn by_module(&self) -> u64 {
        self.report.modules().jobs
    }

    pub(super) fn quarantine(&self) -> Option<Quarantine> {
        self.report.workers.iter().find_map(|worker| worker.module.as_ref()).expect("a module").quarantine
    }
}

impl Route for ByRun<'_> {
    fn run<'m>(&mut self, jobs: Burst<'m>) -> Burst<'m> {
        let (jobs, report) = by_run(self.module.driver(), jobs, self.timeout);
        self.report = report;
        jobs
    }
}
