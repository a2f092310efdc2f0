//! How a job stands, and why one failed.

use std::fmt;

/// Why a job failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobError {
    /// The tag does not fit the data: wrong key, nonce or associated data, or data that was changed.
    NotAuthentic,
    /// The padding is not PKCS#7: wrong key or damaged data.
    BadPadding,
    /// The length of the input or of the space for output does not fit the session.
    BadLength,
    /// The driver does not do this algorithm or direction.
    Unsupported,
    /// The module reported an error; `code` is its own.
    Module {
        /// The module's own number, usually an errno.
        code: i32,
    },
    /// The module went away or stopped answering while it held the job.
    ModuleLost,
    /// The module has no space for another key, or the job is longer than it takes: neither the module nor the caller is at fault.
    ModuleFull,
    /// The module takes other keys of that length and not this one; `code` is its own number for that.
    KeyRefused {
        /// Usually an errno: `EINVAL`, `EKEYREJECTED`.
        code: i32,
    },
    /// The session is for modules only, and there is none that does the job, or none any more.
    NeedsModule,
    /// The run was cancelled before the job was started.
    Cancelled,
    /// A library below refused a call that should have worked.
    Library,
}

impl JobError {
    /// Whether the job would have gone well elsewhere, so that the CPU redoes it.
    #[must_use]
    pub const fn is_the_modules_fault(self) -> bool {
        matches!(
            self,
            Self::Module { .. }
                | Self::ModuleLost
                | Self::ModuleFull
                | Self::KeyRefused { .. }
                | Self::Unsupported
        )
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAuthentic => f.write_str("authentication failed"),
            Self::BadPadding => f.write_str("bad padding (wrong key or damaged data)"),
            Self::BadLength => f.write_str("the length does not fit the algorithm"),
            Self::Unsupported => f.write_str("no driver does this"),
            Self::Module { code } => write!(f, "the module reported error {code}"),
            Self::ModuleLost => f.write_str("the module stopped answering"),
            Self::ModuleFull => f.write_str("the module has no space for the job's key or length"),
            Self::KeyRefused { code } => write!(f, "the module refused the key (error {code})"),
            Self::NeedsModule => f.write_str("the key is for modules only, and no module does this"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Library => f.write_str("a cryptographic library refused the call"),
        }
    }
}

impl std::error::Error for JobError {}

/// How a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not armed, or armed and not finished.
    Pending,
    /// Finished; `written` bytes stand at the start of the output.
    Done {
        /// Length of the output in bytes, without the tag.
        written: usize,
    },
    /// Failed. After [`JobError::NotAuthentic`] and [`JobError::BadPadding`] the output is cleared; after a
    /// failure that [is the module's fault](JobError::is_the_modules_fault) input and output are as submitted, but for a
    /// job that owns its memory ([`Job::owning`](super::Job::owning)): its input may have gone with the module.
    Failed(JobError),
}
