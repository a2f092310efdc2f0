//! What callers bring and what becomes of it: whole blocks for CBC encryption, long enough that a yield is small beside them and so short that no caller
//! waits long for another's.

use evener_core::{BLOCK_BYTES, Direction, Family, Job, JobError, Outcome, Padding, Session};
use evener_ring::LendOutcome;

/// Shortest request that is combined, in bytes: shorter ones are done before a yield is (measured: at 4 KiB 0.8 to 1.6 x).
pub const BYTES_MIN: usize = 16 << 10;

/// The same of a request inside a job, whose thread goes on with others at the price of a pause and no yield; whether that pays is judged for each
/// power of two ([`crate::regret`]).
pub const JOB_BYTES_MIN: usize = 4 << 10;

/// Longest request that is combined, in bytes, so that those who share a burst with it wait some milliseconds at most, a
/// slice of the scheduler. Assumed, not measured: 1 MiB.
pub const BYTES_MAX: usize = 1 << 20;

/// Whole blocks to be encrypted by AES-CBC.
pub struct Request<'r> {
    /// Key and algorithm.
    pub session: &'r Session,
    /// The IV, or the last block of ciphertext before this.
    pub iv: &'r [u8; BLOCK_BYTES],
    /// Input and output.
    pub span: Span<'r>,
}

/// The memory of a request.
pub enum Span<'r> {
    /// Output replaces input.
    InPlace(&'r mut [u8]),
    /// Input, and space for as much output.
    Apart(&'r [u8], &'r mut [u8]),
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was encrypted; the output stands where it should.
    Combined,
    /// Nothing was touched: the caller does its work itself.
    Inline,
    /// It was begun and failed: what the output holds is not known, in place the input is lost.
    Failed(JobError),
}

impl From<LendOutcome<Outcome>> for Verdict {
    fn from(back: LendOutcome<Outcome>) -> Self {
        match back {
            LendOutcome::Answered(Outcome::Done { .. }) => Self::Combined,
            // Refused before anything was written.
            LendOutcome::Answered(Outcome::Failed(JobError::Unsupported | JobError::BadLength)) => {
                Self::Inline
            }
            LendOutcome::Answered(Outcome::Failed(error)) => Self::Failed(error),
            LendOutcome::Answered(Outcome::Pending) | LendOutcome::Broken => Self::Failed(JobError::Library),
            LendOutcome::Unused => Self::Inline,
        }
    }
}

pub(super) fn is_fitting(bytes: usize, least: usize) -> bool {
    (least..=BYTES_MAX).contains(&bytes) && bytes % BLOCK_BYTES == 0
}

/// Plain CBC encryption of whole blocks, at least so many bytes and not too many.
pub(crate) fn is_combinable(request: &Request<'_>, least: usize) -> bool {
    let (session, bytes) = (request.session, request.span.len());
    let space = match &request.span {
        Span::InPlace(_) => true,
        Span::Apart(src, dst) => src.len() <= dst.len(),
    };
    is_fitting(bytes, least)
        && space
        && session.algorithm().family() == Family::Cbc
        && session.direction() == Direction::Encrypt
        && session.padding() == Padding::None
}

impl Span<'_> {
    /// Bytes of input.
    pub(super) const fn len(&self) -> usize {
        match self {
            Self::InPlace(space) => space.len(),
            Self::Apart(src, _) => src.len(),
        }
    }
}

impl<'r> Request<'r> {
    pub(super) fn into_job(self) -> Box<Job<'r>> {
        let bytes = self.span.len();
        let mut job = match self.span {
            Span::InPlace(space) => Job::in_place(space),
            Span::Apart(src, dst) => Job::apart(src, dst),
        };
        job.arm(self.session, self.iv, bytes);
        job
    }
}
