//! Drivers of modules, called directly or under a run that has no other worker.

use evener::core::plan::Policy;
use evener::{ModuleSetup, Report, Setup, run};
use evener_core::driver::{SingleDriver, Text, Unanswered};
use evener_core::{JobError, Nanos, QueuedDriver};

use super::{Burst, JobSpec};
use crate::drivers::plain_drivers;

/// Gives a module's driver jobs as it takes them, and returns all of them.
///
/// # Panics
///
/// Where nothing of what it holds comes back for `timeout`.
pub fn all_by<'m>(driver: &mut dyn QueuedDriver<'m>, mut jobs: Burst<'m>, timeout: Nanos) -> Burst<'m> {
    let mut done = Burst::new();
    while !jobs.is_empty() || driver.in_flight() > 0 {
        while let Some(mut job) = jobs.pop() {
            if !job.lengths_fit() {
                // As the runtime does, which specs no module then.
                job.fail(JobError::BadLength);
                done.push(job);
                continue;
            }
            if let Err((job, _)) = driver.submit(job) {
                jobs.push(job);
                break;
            }
        }
        let held = driver.in_flight();
        let came = driver.poll(&mut done, timeout);
        assert!(came > 0 || held == 0, "{} does not answer", driver.profile().name);
    }
    done
}

/// Has a run do jobs by a module alone, of which each result is checked and which is taken for dead after `timeout`.
#[must_use]
pub fn by_run<'m>(
    driver: Box<dyn QueuedDriver<'m> + 'm>,
    mut jobs: Burst<'m>,
    timeout: Nanos,
) -> (Burst<'m>, Report) {
    let module = ModuleSetup { check_every: 1, timeout, ..ModuleSetup::new(driver, plain_drivers()) };
    let setup = Setup { policy: Policy::ModuleOnly, modules: vec![module], callers: 1, ..Setup::default() };
    run(setup, |runtime| {
        runtime.caller(plain_drivers()).crypt(&mut jobs);
        jobs
    })
}

/// What comes of a text that is replaced.
///
/// # Errors
///
/// As of [`SingleDriver::run_single`].
///
/// # Panics
///
/// Where the text was not shown its result once, or was shown one though there is none.
pub fn in_place(driver: &dyn SingleDriver, spec: &JobSpec, timeout: Nanos) -> Result<Vec<u8>, Unanswered> {
    let mut text = InPlace { input: &spec.input, results: Vec::new() };
    let done = driver.run_single(spec.session.with_iv(&iv(spec)), &mut text, timeout);
    assert_eq!(text.results.len(), usize::from(done.is_ok()), "shown once, or not at all");
    done.map(|()| text.results.remove(0))
}

/// What comes of a text whose result is to stand beside it.
///
/// # Errors
///
/// As of [`SingleDriver::run_single`].
///
/// # Panics
///
/// Where the text was given its result not once, or was given one though there is none.
pub fn apart(driver: &dyn SingleDriver, spec: &JobSpec, timeout: Nanos) -> Result<Vec<u8>, Unanswered> {
    let mut text = Apart { input: &spec.input, output: vec![0; spec.input.len()], is_taken: false };
    let done = driver.run_single(spec.session.with_iv(&iv(spec)), &mut text, timeout);
    assert_eq!(text.is_taken, done.is_ok(), "told once, or not at all");
    done.map(|()| text.output)
}

/// A nonce has less than a block.
fn iv(spec: &JobSpec) -> [u8; 16] {
    let mut iv = [0; 16];
    iv[..spec.iv.len()].copy_from_slice(&spec.iv);
    iv
}

/// A text whose result is to stand beside it.
struct Apart<'a> {
    input: &'a [u8],
    output: Vec<u8>,
    is_taken: bool,
}

impl Text for Apart<'_> {
    fn input(&self) -> &[u8] {
        self.input
    }

    fn take(&mut self, _: &[u8]) {
        unreachable!("the result has a place of its own");
    }

    fn apart(&mut self) -> Option<(&[u8], &mut [u8])> {
        Some((self.input, &mut self.output))
    }

    fn taken(&mut self) {
        assert!(!self.is_taken);
        self.is_taken = true;
    }
}

/// A text that keeps what it is given.
struct InPlace<'a> {
    input: &'a [u8],
    results: Vec<Vec<u8>>,
}

impl Text for InPlace<'_> {
    fn input(&self) -> &[u8] {
        self.input
    }

    fn take(&mut self, result: &[u8]) {
        self.results.push(result.to_vec());
    }
}
