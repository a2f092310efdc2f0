//! A job in the hands of a driver: taken apart, its memory lent, and its outcome set. For drivers and the runtime.

use std::{hint, mem};

use zeroize::Zeroizing;

use super::{Job, JobError, Outcome, Parts, TAG_BYTES_MAX};
use crate::job::algorithm::{Direction, Family};
use crate::job::session::Padding;
use crate::job::span::Span;

impl Job<'_> {
    /// The memory of a job that owns it, for a driver that works in it instead of in a copy; `None` of any other job. It comes
    /// back by [`Job::put_space`], or never: then the job ends as failed and its input is gone.
    pub fn lend_space(&mut self) -> Option<Zeroizing<Vec<u8>>> {
        match &mut self.span {
            Span::Owned { space } => Some(mem::take(space)),
            Span::InPlace { .. } | Span::Apart { .. } | Span::Shared(_) => None,
        }
    }

    /// Gives a job its memory back.
    pub fn put_space(&mut self, space: Zeroizing<Vec<u8>>) {
        self.span = Span::Owned { space };
    }

    /// Ends the job well; for drivers.
    #[inline]
    pub fn done(&mut self, written: usize) {
        self.outcome = Outcome::Done { written };
    }

    /// Ends a job whose driver made this tag of it: it is given out, or compared with the given one in the same time wherever the first difference is, and text that
    /// is not authentic is cleared; for drivers.
    pub fn done_with_tag(&mut self, written: usize, made: &[u8; 16]) {
        // Not by the kernels' comparison of tags: this crate stands below all that computes.
        let tag = &mut self.tag[..made.len()];
        let difference = tag.iter().zip(made).fold(0, |sum, (one, other)| sum | (one ^ other));
        let is_authentic = hint::black_box(difference) == 0;
        match self.session().direction() {
            Direction::Decrypt if !is_authentic => self.fail(JobError::NotAuthentic),
            Direction::Decrypt => self.done(written),
            Direction::Encrypt => {
                self.tag[..made.len()].copy_from_slice(made);
                self.done(written);
            }
        }
    }

    /// Ends the job badly; for drivers and the runtime. Clears the output where it must not be seen.
    pub fn fail(&mut self, error: JobError) {
        if matches!(error, JobError::NotAuthentic | JobError::BadPadding) {
            self.clear_output();
        }
        self.outcome = Outcome::Failed(error);
    }

    /// Makes a failed job pending again, to be redone from the same bytes.
    pub fn retry(&mut self) {
        self.outcome = Outcome::Pending;
    }

    /// Whether a driver may work on it without writing past its memory: whole blocks where needed, space for
    /// the output, at least a block for XTS.
    #[must_use]
    #[inline]
    pub fn lengths_fit(&self) -> bool {
        let session = self.session();
        let algorithm = session.algorithm();
        let padded_encryption =
            session.padding() == Padding::Pkcs7 && session.direction() == Direction::Encrypt;
        let whole = padded_encryption
            || !algorithm.needs_whole_blocks()
            || self.input_bytes % crate::BLOCK_BYTES == 0;
        let not_empty = match algorithm.family() {
            Family::Xts => self.input_bytes >= crate::BLOCK_BYTES,
            _ => session.padding() == Padding::None || padded_encryption || self.input_bytes > 0,
        };
        whole && not_empty && session.output_bytes_max(self.input_bytes) <= self.output_space()
    }

    /// The job taken apart for a driver.
    ///
    /// # Panics
    ///
    /// Where its memory is [shared](Job::shared): a bug of who gave it to a driver that takes no such job.
    #[inline]
    pub fn parts(&mut self) -> Parts<'_> {
        let memory = self.span.memory(self.input_bytes);
        Parts { iv: &self.iv, aad: self.aad, memory, tag: &mut self.tag }
    }

    /// Publishes a result that a module has made elsewhere, tag included.
    ///
    /// # Panics
    ///
    /// Where `output` or `tag` is longer than the job's space: a bug of the driver.
    pub fn publish(&mut self, output: &[u8], tag: &[u8]) {
        self.span.output_mut()[..output.len()].copy_from_slice(output);
        self.tag[..tag.len()].copy_from_slice(tag);
        self.done(output.len());
    }

    /// The tag that is to be checked, whole.
    #[must_use]
    pub const fn tag_given(&self) -> &[u8; TAG_BYTES_MAX] {
        &self.tag
    }

    /// Where a driver writes the tag or digest of a job that it cannot [take apart](Job::parts).
    pub const fn tag_mut(&mut self) -> &mut [u8; TAG_BYTES_MAX] {
        &mut self.tag
    }

    fn clear_output(&mut self) {
        let cleared = self.session().output_bytes_max(self.input_bytes);
        let span = self.span.output_mut();
        let cleared = cleared.min(span.len());
        span[..cleared].fill(0);
    }
}
