//! A job as it was before another way than the plain one had it, so that the plain one can do it again: in place, too.

use std::sync::atomic::Ordering::Relaxed;

use evener_core::{Job, JobError, Outcome, SessionRef, TAG_BYTES_MAX};
use zeroize::Zeroizing;

/// What a job was. The input may be plaintext, so it is wiped.
pub(crate) struct Capture<'m> {
    session: SessionRef<'m>,
    iv: [u8; 16],
    aad: &'m [u8],
    tag: [u8; TAG_BYTES_MAX],
    input_bytes: usize,
    input: Zeroizing<Vec<u8>>,
}

impl<'m> Capture<'m> {
    /// What `job` is now. Of shared memory bytes as they are read, once.
    pub(crate) fn of(job: &Job<'m>) -> Self {
        let session = job.session();
        let input_bytes = job.input_bytes();
        // At once, because a copy that grew would leave one unwiped.
        let mut input = Zeroizing::new(vec![0; session.output_bytes_max(input_bytes).max(input_bytes)]);
        match job.shared_span() {
            Some(span) => input.iter_mut().zip(span.src).for_each(|(byte, from)| *byte = from.load(Relaxed)),
            None => input[..input_bytes].copy_from_slice(job.input()),
        }
        let (session, iv, aad, tag) = (job.session_ref(), *job.iv(), job.aad(), *job.tag_given());
        Self { session, iv, aad, tag, input_bytes, input }
    }

    /// Whether the result of `job` is what `plain` makes of the same; makes it so where it is not. Where `plain` fails, `job` is believed.
    pub(crate) fn check(mut self, job: &mut Job<'m>, plain: impl FnOnce(&mut [Box<Job<'_>>])) -> bool {
        let mut space = std::mem::take(&mut self.input);
        let right = self.run(&mut space, plain);
        settle(job, &right)
    }

    /// Whether `other` and `plain` make the same of it, each in memory of its own: for a job whose memory changes while they work.
    pub(crate) fn compare(
        mut self,
        other: impl FnOnce(&mut [Box<Job<'_>>]),
        plain: impl FnOnce(&mut [Box<Job<'_>>]),
    ) -> bool {
        let mut spaces = [self.input.clone(), std::mem::take(&mut self.input)];
        let [one, two] = &mut spaces;
        let mut made = self.run(one, other);
        let right = self.run(two, plain);
        settle(&mut made, &right)
    }

    fn run<'r>(&self, space: &'r mut [u8], driver: impl FnOnce(&mut [Box<Job<'_>>])) -> Box<Job<'r>>
    where
        'm: 'r,
    {
        let mut jobs = [Job::in_place(space)];
        jobs[0].arm(self.session.clone(), &self.iv, self.input_bytes);
        jobs[0].set_aad(self.aad);
        jobs[0].set_tag(&self.tag);
        driver(&mut jobs);
        let [job] = jobs;
        job
    }
}

/// Whether a result is the right one; makes it so where it is not. Where the core's plain driver fails, it is believed.
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
