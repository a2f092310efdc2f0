//! Holds what is to be done: a job is one request to work on a span of memory with a session.
//!
//! `Idle -> armed (Pending) -> Done | Failed -> armed again ...`. A job owns the right to its span for as
//! long as it lives, travels as a box of eight bytes through every queue, and is armed anew instead of being
//! made anew.

pub mod algorithm;
pub mod class;
pub mod method;
mod outcome;
pub mod padding;
pub mod session;

use std::ops::Deref;
use std::sync::Arc;
use std::{fmt, mem};

use zeroize::Zeroizing;

use crate::job::algorithm::{Direction, Family};
use crate::job::class::Class;
use crate::job::session::{Padding, Session};

pub use self::outcome::{JobError, Outcome};

/// Longest tag or digest in bytes (SHA-256).
pub const TAG_BYTES_MAX: usize = 32;

/// A session that a job borrows or shares. Borrowing costs nothing; sharing counts references.
#[derive(Clone, Debug)]
pub enum SessionRef<'m> {
    /// Lives longer than all jobs.
    Borrowed(&'m Session),
    /// Lives until the last job has come back.
    Shared(Arc<Session>),
}

impl Deref for SessionRef<'_> {
    type Target = Session;
    #[inline]
    fn deref(&self) -> &Session {
        match self {
            Self::Borrowed(session) => session,
            Self::Shared(session) => session,
        }
    }
}

impl<'m> From<&'m Session> for SessionRef<'m> {
    fn from(session: &'m Session) -> Self {
        Self::Borrowed(session)
    }
}

impl From<Arc<Session>> for SessionRef<'_> {
    fn from(session: Arc<Session>) -> Self {
        Self::Shared(session)
    }
}

/// The memory of a job.
enum Span<'m> {
    /// Input stands at the start of `room`, output replaces it.
    InPlace { room: &'m mut [u8] },
    /// Input and output lie apart.
    Apart { src: &'m [u8], dst: &'m mut [u8] },
    /// As in place, in memory of the job's own; nothing while a driver works in it.
    Owned { room: Zeroizing<Vec<u8>> },
}

/// One request. See the module's head for its life.
pub struct Job<'m> {
    session: Option<SessionRef<'m>>,
    iv: [u8; 16],
    aad: &'m [u8],
    span: Span<'m>,
    /// Bytes of input, from the start of the span.
    input_bytes: usize,
    tag: [u8; TAG_BYTES_MAX],
    outcome: Outcome,
    /// The caller's own mark; never read by Evener.
    pub mark: u64,
    /// Place in its stream, written by the runtime when the job is submitted.
    pub ticket: Ticket,
}

/// Where a job goes when it is finished, and its turn there. Written by the runtime only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticket {
    /// Index of the stream or caller that submitted the job.
    pub owner: u32,
    /// Turn within it.
    pub turn: u32,
}

/// What a driver works on: the parts of a job, taken apart once.
pub struct Parts<'j> {
    /// IV, nonce, counter block or tweak; the first [`crate::Algorithm::iv_bytes`] count.
    pub iv: &'j [u8; 16],
    /// Associated data (AEAD only).
    pub aad: &'j [u8],
    /// The memory.
    pub memory: Memory<'j>,
    /// Tag or digest: read when an AEAD decrypts, written otherwise.
    pub tag: &'j mut [u8; TAG_BYTES_MAX],
}

/// The memory of a job as a driver sees it.
pub enum Memory<'j> {
    /// `input_bytes` of input at the start of `room`; output replaces it and may use all of `room`.
    InPlace {
        /// Input and room for output.
        room: &'j mut [u8],
        /// Length of the input.
        input_bytes: usize,
    },
    /// Input and output do not overlap.
    Apart {
        /// The input, whole.
        src: &'j [u8],
        /// Room for output.
        dst: &'j mut [u8],
    },
}

impl<'m> Job<'m> {
    /// An idle job over memory that is input and output at once.
    #[must_use]
    pub fn in_place(room: &'m mut [u8]) -> Box<Self> {
        Self::over(Span::InPlace { room }, 0)
    }

    /// An idle job that reads `src` and writes `dst`. For hashes `dst` may be empty.
    #[must_use]
    pub fn apart(src: &'m [u8], dst: &'m mut [u8]) -> Box<Self> {
        let input_bytes = src.len();
        Self::over(Span::Apart { src, dst }, input_bytes)
    }

    /// An idle job over memory of its own, input and output at once.
    #[must_use]
    pub fn owning(room: Zeroizing<Vec<u8>>) -> Box<Self> {
        Self::over(Span::Owned { room }, 0)
    }

    /// The memory of a job that owns it, for a driver that works in it instead of in a copy; `None` of any other job. It comes
    /// back by [`Job::put_room`], or never: then the job ends as failed and its input is gone.
    pub fn lend_room(&mut self) -> Option<Zeroizing<Vec<u8>>> {
        match &mut self.span {
            Span::Owned { room } => Some(mem::take(room)),
            Span::InPlace { .. } | Span::Apart { .. } => None,
        }
    }

    /// Gives a job its memory back.
    pub fn put_room(&mut self, room: Zeroizing<Vec<u8>>) {
        self.span = Span::Owned { room };
    }

    fn over(span: Span<'m>, input_bytes: usize) -> Box<Self> {
        Box::new(Self {
            session: None,
            iv: [0; 16],
            aad: &[],
            span,
            input_bytes,
            tag: [0; TAG_BYTES_MAX],
            outcome: Outcome::Pending,
            mark: 0,
            ticket: Ticket::default(),
        })
    }

    /// Makes the job ready to be submitted: `iv` counts up to [`crate::Algorithm::iv_bytes`], `input_bytes`
    /// from the start of the span. What must be unique (a nonce under a key) is the caller's to keep unique.
    ///
    /// # Panics
    ///
    /// Where the IV is longer than 16 bytes or the input longer than the span: bugs of the caller.
    pub fn arm(&mut self, session: impl Into<SessionRef<'m>>, iv: &[u8], input_bytes: usize) {
        assert!(input_bytes <= self.span_bytes(), "input of {input_bytes} bytes does not fit the span");
        self.iv = [0; 16];
        self.iv[..iv.len()].copy_from_slice(iv);
        self.session = Some(session.into());
        self.input_bytes = input_bytes;
        self.outcome = Outcome::Pending;
    }

    /// Lets go of the session: a job that is kept for its memory keeps no key alive.
    pub fn disarm(&mut self) {
        self.session = None;
        self.outcome = Outcome::Pending;
    }

    /// Sets the associated data of the next run; empty by default and kept over [`Job::arm`].
    pub fn set_aad(&mut self, aad: &'m [u8]) {
        self.aad = aad;
    }

    /// Sets the tag to be checked (AEAD decryption).
    ///
    /// # Panics
    ///
    /// Where the tag is longer than [`TAG_BYTES_MAX`].
    pub fn set_tag(&mut self, tag: &[u8]) {
        self.tag[..tag.len()].copy_from_slice(tag);
    }

    /// The tag or digest that was made, cut to the algorithm's length.
    ///
    /// # Panics
    ///
    /// Where the job was never armed.
    #[must_use]
    pub fn tag(&self) -> &[u8] {
        &self.tag[..self.session().algorithm().tag_bytes()]
    }

    /// Memory to read input into (in place only; empty otherwise).
    #[must_use]
    pub fn room_mut(&mut self) -> &mut [u8] {
        match &mut self.span {
            Span::InPlace { room } => room,
            Span::Owned { room } => room,
            Span::Apart { .. } => &mut [],
        }
    }

    /// The input as it stands now: after a run in place, what has replaced it.
    #[must_use]
    #[inline]
    pub fn input(&self) -> &[u8] {
        match &self.span {
            Span::InPlace { room } => &room[..self.input_bytes],
            Span::Owned { room } => &room[..self.input_bytes],
            Span::Apart { src, .. } => &src[..self.input_bytes],
        }
    }

    /// The whole output span.
    #[must_use]
    #[inline]
    pub fn output_span(&self) -> &[u8] {
        match &self.span {
            Span::InPlace { room } => room,
            Span::Owned { room } => room,
            Span::Apart { dst, .. } => dst,
        }
    }

    /// The output of a finished job, empty unless it is [`Outcome::Done`].
    #[must_use]
    pub fn output(&self) -> &[u8] {
        match self.outcome {
            Outcome::Done { written } => &self.output_span()[..written],
            Outcome::Pending | Outcome::Failed(_) => &[],
        }
    }

    /// The class that it belongs to.
    ///
    /// # Panics
    ///
    /// Where the job was never armed.
    #[must_use]
    #[inline]
    pub fn class(&self) -> Class {
        self.class_of(self.input_bytes)
    }

    /// The class that it would belong to with so many bytes.
    ///
    /// # Panics
    ///
    /// Where the job was never armed.
    #[must_use]
    #[inline]
    pub fn class_of(&self, bytes: usize) -> Class {
        let session = self.session();
        let is_apart = matches!(self.span, Span::Apart { .. });
        Class::of(session.algorithm(), session.direction(), bytes, is_apart)
    }

    /// Bytes of input.
    #[must_use]
    #[inline]
    pub const fn input_bytes(&self) -> usize {
        self.input_bytes
    }

    /// The IV as armed.
    #[must_use]
    #[inline]
    pub const fn iv(&self) -> &[u8; 16] {
        &self.iv
    }

    /// The associated data.
    #[must_use]
    pub const fn aad(&self) -> &'m [u8] {
        self.aad
    }

    /// The session.
    ///
    /// # Panics
    ///
    /// Where the job was never armed.
    #[must_use]
    #[inline]
    pub fn session(&self) -> &Session {
        self.session.as_ref().expect("a job is armed before it is used")
    }

    /// The session as it was given, to arm another job with it.
    ///
    /// # Panics
    ///
    /// Where the job was never armed.
    #[must_use]
    pub fn session_ref(&self) -> SessionRef<'m> {
        self.session.clone().expect("a job is armed before it is used")
    }

    /// How the job stands.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Ends the job well; for drivers.
    #[inline]
    pub fn done(&mut self, written: usize) {
        self.outcome = Outcome::Done { written };
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

    /// Whether a driver may work on it without writing past its memory: whole blocks where needed, room for
    /// the output, at least a block for XTS.
    #[must_use]
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
        whole && not_empty && session.output_bytes_max(self.input_bytes) <= self.output_span().len()
    }

    /// The job taken apart for a driver.
    #[inline]
    pub fn parts(&mut self) -> Parts<'_> {
        let memory = match &mut self.span {
            Span::InPlace { room } => Memory::InPlace { room, input_bytes: self.input_bytes },
            Span::Owned { room } => Memory::InPlace { room, input_bytes: self.input_bytes },
            Span::Apart { src, dst } => Memory::Apart { src: &src[..self.input_bytes], dst },
        };
        Parts { iv: &self.iv, aad: self.aad, memory, tag: &mut self.tag }
    }

    /// Publishes a result that a module has made elsewhere, tag included.
    ///
    /// # Panics
    ///
    /// Where `output` or `tag` is longer than the job's room: a bug of the driver.
    pub fn publish(&mut self, output: &[u8], tag: &[u8]) {
        self.output_span_mut()[..output.len()].copy_from_slice(output);
        self.tag[..tag.len()].copy_from_slice(tag);
        self.done(output.len());
    }

    /// The tag that is to be checked, whole.
    #[must_use]
    pub const fn tag_given(&self) -> &[u8; TAG_BYTES_MAX] {
        &self.tag
    }

    fn span_bytes(&self) -> usize {
        match &self.span {
            Span::InPlace { room } => room.len(),
            Span::Owned { room } => room.len(),
            Span::Apart { src, .. } => src.len(),
        }
    }

    fn output_span_mut(&mut self) -> &mut [u8] {
        match &mut self.span {
            Span::InPlace { room } => room,
            Span::Owned { room } => room,
            Span::Apart { dst, .. } => dst,
        }
    }

    fn clear_output(&mut self) {
        let cleared = self.session().output_bytes_max(self.input_bytes);
        let span = self.output_span_mut();
        let cleared = cleared.min(span.len());
        span[..cleared].fill(0);
    }
}

impl fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job({} bytes, {:?}, {:?})", self.input_bytes, self.session, self.outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Algorithm;

    fn cbc(padding: Padding, direction: Direction) -> Arc<Session> {
        Arc::new(Session::new(Algorithm::Aes128Cbc, direction, padding, &[1; 16]).unwrap())
    }

    #[test]
    fn padded_encryption_needs_room_for_one_more_block() {
        let mut memory = [0u8; 47];
        let mut job = Job::in_place(&mut memory);
        job.arm(cbc(Padding::Pkcs7, Direction::Encrypt), &[0; 16], 31);
        assert!(job.lengths_fit());
        job.arm(cbc(Padding::Pkcs7, Direction::Encrypt), &[0; 16], 32);
        assert!(!job.lengths_fit());
        job.arm(cbc(Padding::None, Direction::Encrypt), &[0; 16], 31);
        assert!(!job.lengths_fit());
    }

    #[test]
    fn a_job_that_is_not_authentic_leaves_no_plaintext() {
        let (src, mut dst) = ([9u8; 32], [7u8; 40]);
        let mut job = Job::apart(&src, &mut dst);
        job.arm(cbc(Padding::None, Direction::Decrypt), &[0; 16], 32);
        job.fail(JobError::NotAuthentic);
        assert_eq!(job.output(), b"");
        drop(job);
        assert_eq!(dst[..32], [0; 32]);
        assert_eq!(dst[32..], [7; 8]);
    }
}
