//! What each AES job of a group needs, found out in one walk over the group.
//!
//! Jobs of one session mostly stand in a row, so what follows from the session alone is worked out where the
//! session changes; a job of 64 bytes takes the library 20 ns, and this walk is to stay a small part of that.

use std::ops::DerefMut;
use std::ptr;

use evener_core::{BLOCK_BYTES, Direction, Job, JobError, Padding, Session};

use super::padding_in_place::has_tail;
use super::{Multibuffer, group};
use crate::ffi::Refused;

/// What a job needs from the library.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    /// Place of its keys among those held.
    pub(crate) keys: usize,
    /// Bytes to work on, padding included; 0 where there is nothing to do.
    pub(crate) bytes: usize,
}

/// What follows from a session.
#[derive(Clone, Copy)]
struct Rule {
    keys: usize,
    /// Padding is added.
    pads: bool,
    /// Padding is taken away, so that there is at least a block.
    unpads: bool,
    /// The input ends on a block boundary.
    whole: bool,
}

impl Rule {
    fn new(session: &Session, keys: usize) -> Self {
        let (padded, encrypts) =
            (session.padding() == Padding::Pkcs7, session.direction() == Direction::Encrypt);
        let pads = padded && encrypts;
        Self {
            keys,
            pads,
            unpads: padded && !encrypts,
            whole: session.algorithm().needs_whole_blocks() && !pads,
        }
    }

    /// Bytes to work on, or `None` where the lengths do not fit: what [`Job::lengths_fit`] says.
    #[inline]
    fn bytes(self, text_bytes: usize, space_bytes: usize) -> Option<usize> {
        let whole = text_bytes / BLOCK_BYTES * BLOCK_BYTES;
        let bytes = if self.pads { whole + BLOCK_BYTES } else { text_bytes };
        let fits =
            (!self.whole || text_bytes == whole) && (text_bytes > 0 || !self.unpads) && bytes <= space_bytes;
        fits.then_some(bytes)
    }
}

/// What a walk over a group found out; kept for its memory.
#[derive(Default)]
pub(crate) struct Survey {
    /// One for each job, in the order of the group.
    pub(crate) needs: Vec<Need>,
    /// Least bytes of a job.
    pub(crate) shortest: usize,
    /// Most bytes of a job.
    pub(crate) longest: usize,
    /// Whether any job has a tail.
    pub(crate) tails: bool,
}

impl Multibuffer {
    /// Walks over jobs of AES in ECB, CBC or CTR: checks lengths, holds keys, notes what each job needs, and
    /// sets the outcome that it has if nothing goes wrong.
    ///
    /// Returns false where the jobs are not all of one algorithm and direction: then nothing of it counts.
    pub(crate) fn survey<'m, J>(&mut self, jobs: &mut [J]) -> bool
    where
        J: DerefMut<Target = Job<'m>>,
    {
        let Some(first) = jobs.first().map(|job| group(job)) else { return true };
        let (aes, manager) = (&mut self.aes, &self.manager);
        let mut last: *const Session = ptr::null();
        let mut rule = Rule { keys: 0, pads: false, unpads: false, whole: false };
        let (mut shortest, mut longest, mut tails) = (usize::MAX, 0, false);
        self.survey.needs.clear();
        self.survey.needs.resize(jobs.len(), Need { keys: 0, bytes: 0 });
        for (job, need) in jobs.iter_mut().zip(&mut self.survey.needs) {
            let session = job.session();
            // A session cannot move while jobs refer to it.
            if !ptr::eq(last, session) {
                if group(job) != first {
                    self.aes.release();
                    return false;
                }
                rule = Rule::new(session, aes.hold(session, |session| manager.aes_keys(session.key())));
                last = session;
            }
            let (text_bytes, space_bytes) = (job.input_bytes(), job.output_space());
            let bytes = rule.bytes(text_bytes, space_bytes);
            debug_assert_eq!(bytes.is_some(), job.lengths_fit());
            let is_refused = (rule.pads || rule.unpads) && job.shared_span().is_some();
            let bytes = match bytes {
                Some(_) if is_refused => {
                    job.fail(JobError::Unsupported);
                    0
                }
                Some(bytes) => {
                    job.done(bytes);
                    bytes
                }
                None => {
                    job.fail(JobError::BadLength);
                    0
                }
            };
            *need = Need { keys: rule.keys, bytes };
            (shortest, longest) = (shortest.min(bytes), longest.max(bytes));
            tails |= has_tail(text_bytes, bytes);
        }
        (self.survey.shortest, self.survey.longest, self.survey.tails) = (shortest, longest, tails);
        true
    }

    /// Ends the group: all that needed the library fails where the library refused.
    pub(crate) fn finish_group<'m, J>(&mut self, jobs: &mut [J], result: Result<(), Refused>)
    where
        J: DerefMut<Target = Job<'m>>,
    {
        if result.is_err() {
            let busy = jobs.iter_mut().zip(&self.survey.needs).filter(|(_, need)| need.bytes > 0);
            busy.for_each(|(job, _)| job.fail(JobError::Library));
        }
        self.aes.release();
    }
}
