//! The verifier: checks what a module did against the CPU, the first jobs of each algorithm (a known answer before use),
//! then a sample. Input is captured before the module sees it, so that a job in place can be checked too.

use evener_core::job::Ticket;
use evener_core::{Algorithm, Job, JobError, Outcome, SessionRef, TAG_BYTES_MAX};
use zeroize::Zeroizing;

use crate::CoreDrivers;

/// Jobs per algorithm and direction that are always checked: a known answer before use. Assumed, not measured: 4, because a module that computes wrongly at all is wrong from the start.
const ALWAYS: u32 = 4;

/// The sampler.
pub(crate) struct Verifier<'m> {
    every: u32,
    /// Jobs so far, `[algorithm][direction]`.
    job_counts: Vec<[u32; 2]>,
    captured: Vec<Capture<'m>>,
    pub(crate) checked: u64,
}

/// What a job was before the module had it. The input may be plaintext, so it is wiped.
struct Capture<'m> {
    ticket: Ticket,
    session: SessionRef<'m>,
    iv: [u8; 16],
    aad: &'m [u8],
    tag: [u8; TAG_BYTES_MAX],
    input: Zeroizing<Vec<u8>>,
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
            self.captured.push(Capture {
                ticket: job.ticket,
                session: job.session_ref(),
                iv: *job.iv(),
                aad: job.aad(),
                tag: *job.tag_given(),
                input: with_space(job.input(), session.output_bytes_max(job.input_bytes())),
            });
        }
    }

    /// The module did not take the job after all.
    pub(crate) fn drop_capture(&mut self, job: &Job<'m>) {
        self.capture_of(job);
    }

    /// Whether a job that came back was captured.
    pub(crate) fn is_to_check(&self, job: &Job<'m>) -> bool {
        self.captured.iter().any(|capture| capture.ticket == job.ticket)
    }

    /// Compares a job that came back, if it was captured. Where the module was wrong the right result is put
    /// in its place and `false` returned.
    pub(crate) fn verify(&mut self, job: &mut Job<'m>, core_drivers: &mut CoreDrivers) -> bool {
        let Some(capture) = self.capture_of(job) else { return true };
        if matches!(job.outcome(), Outcome::Failed(error) if error.is_the_modules_fault()) {
            return true;
        }
        self.checked += 1;
        let (input_bytes, mut space) = (job.input_bytes(), capture.input);
        let mut right = [Job::in_place(&mut space)];
        right[0].arm(capture.session, &capture.iv, input_bytes);
        right[0].set_aad(capture.aad);
        right[0].set_tag(&capture.tag);
        core_drivers.run_uncounted(&mut right);
        settle(job, &right[0])
    }

    /// Forgets jobs that the module will not finish.
    pub(crate) fn clear(&mut self) {
        self.captured.clear();
    }

    fn capture_of(&mut self, job: &Job<'m>) -> Option<Capture<'m>> {
        let place = self.captured.iter().position(|capture| capture.ticket == job.ticket)?;
        Some(self.captured.swap_remove(place))
    }
}

/// A copy of `input` with space for `output_bytes`: at once, because a copy that grew would leave one unwiped.
fn with_space(input: &[u8], output_bytes: usize) -> Zeroizing<Vec<u8>> {
    let mut space = Zeroizing::new(vec![0; input.len().max(output_bytes)]);
    space[..input.len()].copy_from_slice(input);
    space
}

/// Whether a module's result is the right one; makes it so where it is not. Where the CPU's driver fails,
/// the module is believed.
fn settle(job: &mut Job<'_>, right: &Job<'_>) -> bool {
    if matches!(
        right.outcome(),
        Outcome::Failed(JobError::Unsupported | JobError::Library) | Outcome::Pending
    ) {
        return true;
    }
    let ours = job.outcome() == right.outcome() && job.output() == right.output() && job.tag() == right.tag();
    if !ours {
        match right.outcome() {
            Outcome::Failed(error) => job.fail(error),
            _ => job.publish(right.output(), right.tag()),
        }
    }
    ours
}
