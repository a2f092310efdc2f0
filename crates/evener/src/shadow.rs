//! Checks what a module did against the CPU: the first jobs of each algorithm (a known answer before use),
//! then a sample. Input is captured before the module sees it, so that a job in place can be checked too.

use evener_core::job::Ticket;
use evener_core::{Algorithm, Job, JobError, Outcome, SessionRef, TAG_BYTES_MAX};
use zeroize::Zeroizing;

use crate::CpuKit;

/// Jobs per algorithm and direction that are always checked. A guess.
const ALWAYS: u32 = 4;

/// The sampler.
pub(crate) struct Shadow<'m> {
    every: u32,
    /// Jobs seen, `[algorithm][direction]`.
    seen: Vec<[u32; 2]>,
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

impl<'m> Shadow<'m> {
    pub(crate) fn new(every: u32) -> Self {
        let seen = vec![[0; 2]; Algorithm::ALL.len()];
        Self { every: every.max(1), seen, captured: Vec::new(), checked: 0 }
    }

    /// Captures a job that is about to be handed to the module, if its turn to be checked has come.
    pub(crate) fn before(&mut self, job: &Job<'m>) {
        let session = job.session();
        let seen = &mut self.seen[session.algorithm().index()][session.direction() as usize];
        *seen = seen.wrapping_add(1);
        if *seen <= ALWAYS || *seen % self.every == 0 {
            self.captured.push(Capture {
                ticket: job.ticket,
                session: job.session_ref(),
                iv: *job.iv(),
                aad: job.aad(),
                tag: *job.tag_given(),
                input: Zeroizing::new(job.input().to_vec()),
            });
        }
    }

    /// Compares a job that came back, if it was captured. Where the module was wrong the right result is put
    /// in its place and `false` returned.
    pub(crate) fn after(&mut self, job: &mut Job<'m>, kit: &mut CpuKit) -> bool {
        let Some(place) = self.captured.iter().position(|capture| capture.ticket == job.ticket) else {
            return true;
        };
        let capture = self.captured.swap_remove(place);
        if !matches!(job.outcome(), Outcome::Done { .. }) {
            return true;
        }
        self.checked += 1;
        let input_bytes = capture.input.len();
        let mut room = capture.input;
        room.resize(input_bytes.max(capture.session.output_bytes_max(input_bytes)), 0);
        let mut right = [Job::in_place(&mut room)];
        right[0].arm(capture.session, &capture.iv, input_bytes);
        right[0].set_aad(capture.aad);
        right[0].set_tag(&capture.tag);
        kit.run_uncounted(&mut right);
        settle(job, &right[0])
    }

    /// Forgets jobs that the module will not finish.
    pub(crate) fn forget_all(&mut self) {
        self.captured.clear();
    }
}

/// Whether a module's result is the right one; makes it so where it is not.
fn settle(job: &mut Job<'_>, right: &Job<'_>) -> bool {
    let ours = job.outcome() == right.outcome() && job.output() == right.output() && job.tag() == right.tag();
    if !ours {
        match right.outcome() {
            Outcome::Done { .. } => job.publish(right.output(), right.tag()),
            Outcome::Failed(error) => job.fail(error),
            Outcome::Pending => job.fail(JobError::Library),
        }
    }
    ours
}
