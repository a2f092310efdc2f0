//! The verifier: checks what a module did against the CPU, the first jobs of each algorithm (a known answer before use),
//! then a sample. Input is captured before the module sees it, so that a job in place can be checked too.

use evener_core::job::Ticket;
use evener_core::{Algorithm, Job, Outcome};

use crate::CoreDrivers;
use crate::cpu::Capture;

/// Jobs per algorithm and direction that are always checked: a known answer before use. Assumed, not measured: 4, because a module that computes wrongly at all is wrong from the start.
const ALWAYS: u32 = 4;

/// The sampler.
pub(crate) struct Verifier<'m> {
    every: u32,
    /// Jobs so far, `[algorithm][direction]`.
    job_counts: Vec<[u32; 2]>,
    captured: Vec<(Ticket, Capture<'m>)>,
    pub(crate) checked: u64,
}

impl<'m> Verifier<'m> {
    pub(crate) fn new(every: u32) -> Self {
        let job_counts = vec![[0; 2]; Algorithm::ALL.len()];
        Self { every: every.max(1), job_counts, captured: Vec::new(), checked: 0 }
    }

    /// Captures a job that is about to be handed to the module, if its turn to be checked has come.
    pub(crate) fn capture(&mut self, job: &Job<'m>) {
        let session = job.session();
        if session.is_for_modules_only() {
            return;
        }
        let job_counts = &mut self.job_counts[session.algorithm().index()][session.direction() as usize];
        *job_counts = job_counts.wrapping_add(1);
        if *job_counts <= ALWAYS || *job_counts % self.every == 0 {
            self.captured.push((job.ticket, Capture::of(job)));
        }
    }

    /// The module did not take the job after all.
    pub(crate) fn drop_capture(&mut self, job: &Job<'m>) {
        self.capture_of(job);
    }

    /// Whether a job that came back was captured.
    pub(crate) fn is_to_check(&self, job: &Job<'m>) -> bool {
        self.captured.iter().any(|(ticket, _)| *ticket == job.ticket)
    }

    /// Compares a job that came back, if it was captured. Where the module was wrong the right result is put
    /// in its place and `false` returned.
    pub(crate) fn verify(&mut self, job: &mut Job<'m>, core_drivers: &mut CoreDrivers) -> bool {
        let Some(capture) = self.capture_of(job) else { return true };
        if matches!(job.outcome(), Outcome::Failed(error) if error.is_the_modules_fault()) {
            return true;
        }
        self.checked += 1;
        capture.check(job, |jobs| core_drivers.run_uncounted(jobs))
    }

    /// Forgets jobs that the module will not finish.
    pub(crate) fn clear(&mut self) {
        self.captured.clear();
    }

    fn capture_of(&mut self, job: &Job<'m>) -> Option<Capture<'m>> {
        let place = self.captured.iter().position(|(ticket, _)| *ticket == job.ticket)?;
        Some(self.captured.swap_remove(place).1)
    }
}
