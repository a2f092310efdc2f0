//! Holds what is to be done: a job is one request to work on a span of memory with a session.
//!
//! What it is in the literature: a request that carries its own completion, as Windows' I/O request packets and DPDK's crypto operations
//! do: it is its own place in every queue, and is used again instead of made again.
//!
//! | state | what its memory holds | goes on by |
//! |---|---|---|
//! | idle: no session | what its owner likes | [`Job::arm`]: pending |
//! | pending | input | a driver's [`Job::done`] or [`Job::fail`]; a job that a module failed by [`Job::retry`]: pending again |
//! | done | output | `arm`, or [`Job::disarm`]: idle |
//! | failed | what was submitted; nothing where it was not authentic or ill padded | the same |
//!
//! A job owns the right to its span (`span.rs`) for as long as it lives and travels as a box of eight bytes through every queue.

pub mod algorithm;
pub mod class;
pub mod method;
mod outcome;
pub mod padding;
pub mod session;
mod session_ref;
mod span;

use std::{fmt, mem};

use zeroize::Zeroizing;

use crate::job::algorithm::{Direction, Family};
use crate::job::class::Class;
use crate::job::session::{Padding, Session};
use crate::job::span::Span;

pub use self::outcome::{JobError, Outcome};
pub use self::session_ref::SessionRef;
pub use self::span::{Memory, Parts};

/// Longest tag or digest in bytes (SHA-256).
pub const TAG_BYTES_MAX: usize = 32;

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
    pub home: u32,
    /// Turn within it.
    pub turn: u32,
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
        assert!(input_bytes <= self.span.input_room(), "input of {input_bytes} bytes does not fit the span");
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
        self.span.room_mut()
    }

    /// The input as it stands now: after a run in place, what has replaced it.
    #[must_use]
    #[inline]
    pub fn input(&self) -> &[u8] {
        self.span.input(self.input_bytes)
    }

    /// The whole output span.
    #[must_use]
    #[inline]
    pub fn output_span(&self) -> &[u8] {
        self.span.output()
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
        let memory = self.span.memory(self.input_bytes);
        Parts { iv: &self.iv, aad: self.aad, memory, tag: &mut self.tag }
    }

    /// Publishes a result that a module has made elsewhere, tag included.
    ///
    /// # Panics
    ///
    /// Where `output` or `tag` is longer than the job's room: a bug of the driver.
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

    fn clear_output(&mut self) {
        let cleared = self.session().output_bytes_max(self.input_bytes);
        let span = self.span.output_mut();
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
mod tests;
