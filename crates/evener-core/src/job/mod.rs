//! Holds what is to be done: a job is one request to work on a span of memory with a session.
//!
//! What it is in the literature: a request that carries its own completion, as Windows' I/O request packets and DPDK's crypto operations
//! do: it is its own place in every queue, and is used again instead of made again.
//!
//! | state | what its memory holds | goes on by |
//! |---|---|---|
//! | idle: no session | what its owner likes | [`Job::arm`]: pending |
//! | pending | input | a driver's [`Job::done`] or [`Job::fail`] |
//! | done | output | `arm`, or [`Job::disarm`]: idle |
//! | failed | what was submitted; nothing where it was not authentic or ill padded | the same; or [`Job::retry`]: pending, to be redone from the same bytes |
//!
//! A job owns the right to its span (`span.rs`) for as long as it lives and travels as a box of eight bytes through every queue.

pub mod algorithm;
pub mod class;
mod completion;
pub mod method;
mod outcome;
pub mod padding;
pub mod session;
mod session_ref;
mod span;
mod ticket;

use std::fmt;

use zeroize::Zeroizing;

use crate::job::class::Class;
use crate::job::session::Session;
use crate::job::span::Span;

pub use self::outcome::{JobError, Outcome};
pub use self::session_ref::SessionRef;
pub use self::span::{Loan, Memory, Parts, SharedSpan};
pub use self::ticket::Ticket;

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

impl<'m> Job<'m> {
    /// An idle job over memory that is input and output at once.
    #[must_use]
    pub fn in_place(space: &'m mut [u8]) -> Box<Self> {
        Self::over(Span::InPlace { space }, 0)
    }

    /// An idle job that reads `src` and writes `dst`. For hashes `dst` may be empty.
    #[must_use]
    pub fn apart(src: &'m [u8], dst: &'m mut [u8]) -> Box<Self> {
        let input_bytes = src.len();
        Self::over(Span::Apart { src, dst }, input_bytes)
    }

    /// An idle job over memory of its own, input and output at once.
    #[must_use]
    pub fn owning(space: Zeroizing<Vec<u8>>) -> Box<Self> {
        Self::over(Span::Owned { space }, 0)
    }

    /// An idle job over memory that another process may change at any time; for drivers that [take such](crate::InlineDriver::takes_shared).
    #[must_use]
    pub fn shared(span: SharedSpan<'m>) -> Box<Self> {
        Self::over(Span::Shared(span), 0)
    }

    /// Makes this a job over other memory of that kind; what it had is let go of.
    pub fn share(&mut self, span: SharedSpan<'m>) {
        self.span = Span::Shared(span);
        self.input_bytes = 0;
    }

    /// Makes this a job over other memory, with nothing left of its last request but the session; what it had is let go of. So a box serves
    /// one request after the other.
    #[inline(always)]
    pub fn lend(&mut self, memory: Loan<'m>) {
        self.span = memory.into();
        (self.input_bytes, self.aad, self.outcome) = (0, &[], Outcome::Pending);
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
    #[inline(always)]
    pub fn arm(&mut self, session: impl Into<SessionRef<'m>>, iv: &[u8], input_bytes: usize) {
        assert!(input_bytes <= self.span.input_space(), "input of {input_bytes} bytes does not fit the span");
        self.iv = [0; 16];
        self.iv[..iv.len()].copy_from_slice(iv);
        self.session = Some(session.into());
        self.input_bytes = input_bytes;
        self.outcome = Outcome::Pending;
    }

    /// Lets go of the session: a job that is kept for its memory keeps no key alive.
    #[inline]
    pub fn disarm(&mut self) {
        self.session = None;
        self.outcome = Outcome::Pending;
    }

    /// Sets the associated data of the next run; empty by default and kept over [`Job::arm`].
    #[inline]
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
    #[inline]
    pub fn tag(&self) -> &[u8] {
        &self.tag[..self.session().algorithm().tag_bytes()]
    }

    /// Memory to read input into (in place only; empty otherwise).
    #[must_use]
    pub fn space_mut(&mut self) -> &mut [u8] {
        self.span.space_mut()
    }

    /// The input as it stands now: after a run in place, what has replaced it. Nothing where it is shared.
    #[must_use]
    #[inline]
    pub fn input(&self) -> &[u8] {
        self.span.input(self.input_bytes)
    }

    /// The whole output span; nothing where it is shared.
    #[must_use]
    #[inline]
    pub fn output_span(&self) -> &[u8] {
        self.span.output()
    }

    /// The output of a finished job, empty unless it is [`Outcome::Done`], and where it is shared.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        match self.outcome {
            _ if self.shared_span().is_some() => &[],
            Outcome::Done { written } => &self.output_span()[..written],
            Outcome::Pending | Outcome::Failed(_) => &[],
        }
    }

    /// Space for output, in bytes.
    #[must_use]
    #[inline]
    pub fn output_space(&self) -> usize {
        self.span.output_space()
    }

    /// The memory of a job whose memory another process may change, cut to its input; none of any other.
    #[must_use]
    #[inline]
    pub fn shared_span(&self) -> Option<SharedSpan<'m>> {
        let SharedSpan { src, dst } = self.span.shared()?;
        Some(SharedSpan { src: &src[..self.input_bytes], dst })
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

    /// Whether another job has the session of this one, told by its address, and its length and layout, and so its class.
    ///
    /// # Panics
    ///
    /// Where one of them was never armed.
    #[must_use]
    #[inline]
    pub fn is_like(&self, other: &Self) -> bool {
        std::ptr::eq(self.session(), other.session())
            && self.input_bytes == other.input_bytes
            && self.span.is_like(&other.span)
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
        Class::of(session.algorithm(), session.direction(), bytes, self.span.is_apart())
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
}

impl fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job({} bytes, {:?}, {:?})", self.input_bytes, self.session, self.outcome)
    }
}

#[cfg(test)]
mod tests;
