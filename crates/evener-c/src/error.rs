//! Why a call or a job failed: a number for programs, a sentence for people.

use std::fmt;

use evener::core::{JobError, Outcome};

/// The number, as `enum evener_error` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Error {
    /// An argument or a job that cannot be; of a job, nothing was written.
    Invalid = -1,
    /// No algorithm has that name.
    Algorithm = -2,
    /// The key does not fit the algorithm, or the direction or padding does not.
    Key = -3,
    /// A module cannot be had, or failed and no core may do its work.
    Module = -4,
    /// The system has no thread, descriptor or memory.
    System = -5,
    /// There are as many queues as a runtime has.
    Full = -6,
    /// Given up before it was begun.
    Canceled = -7,
    /// Not authentic; the output was cleared.
    BadMessage = -8,
    /// The padding is wrong; the output was cleared.
    BadPadding = -9,
    /// No driver does this.
    Unsupported = -10,
    /// A cryptographic library refused a call.
    Library = -11,
    /// Made before a fork and used in the child.
    Fork = -12,
    /// A bug of the library.
    Panic = -13,
    /// The runtime was closed.
    Closed = -14,
}

/// All went well.
pub(crate) const OK: i32 = 0;
/// The job is under way.
pub(crate) const PENDING: i32 = 1;

impl Error {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Invalid,
        Self::Algorithm,
        Self::Key,
        Self::Module,
        Self::System,
        Self::Full,
        Self::Canceled,
        Self::BadMessage,
        Self::BadPadding,
        Self::Unsupported,
        Self::Library,
        Self::Fork,
        Self::Panic,
        Self::Closed,
    ];

    /// What it means, with a NUL behind it.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Invalid => "an argument or a job that cannot be\0",
            Self::Algorithm => "no algorithm has that name\0",
            Self::Key => "key, direction or padding does not fit the algorithm\0",
            Self::Module => "a module cannot be had or failed\0",
            Self::System => "the system has no thread, descriptor or memory\0",
            Self::Full => "there are as many queues as a runtime has\0",
            Self::Canceled => "cancelled before it was begun\0",
            Self::BadMessage => "not authentic\0",
            Self::BadPadding => "bad padding\0",
            Self::Unsupported => "no driver does this\0",
            Self::Library => "a cryptographic library refused a call\0",
            Self::Fork => "made before a fork and used in the child\0",
            Self::Panic => "a bug of the library\0",
            Self::Closed => "the runtime was closed\0",
        }
    }

    /// That of a job.
    #[must_use]
    pub const fn of(error: JobError) -> Self {
        match error {
            JobError::NotAuthentic => Self::BadMessage,
            JobError::BadPadding => Self::BadPadding,
            JobError::BadLength => Self::Invalid,
            JobError::Unsupported => Self::Unsupported,
            JobError::Cancelled => Self::Canceled,
            JobError::Library => Self::Library,
            JobError::Module { .. }
            | JobError::ModuleLost
            | JobError::ModuleFull
            | JobError::KeyRefused { .. }
            | JobError::NeedsModule => Self::Module,
            _ => Self::Library,
        }
    }

    /// A status, and the bytes that were written.
    #[must_use]
    pub const fn status(outcome: Outcome) -> (i32, usize) {
        match outcome {
            Outcome::Done { written } => (OK, written),
            Outcome::Failed(error) => (Self::of(error) as i32, 0),
            Outcome::Pending => (PENDING, 0),
        }
    }
}

/// A call that failed: the number, and what was wrong in this case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The number.
    pub error: Error,
    /// The sentence.
    pub text: String,
}

impl Failure {
    /// One of them.
    pub fn new(error: Error, text: impl fmt::Display) -> Self {
        Self { error, text: text.to_string() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(error, error.meaning().trim_end_matches('\0'))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}
