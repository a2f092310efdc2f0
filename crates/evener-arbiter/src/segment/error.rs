//! Errors: why there is no arbiter, so that a process goes on alone.

use std::io;

use evener_fd::SystemError;

/// Why there is no arbiter for this process. Its text is one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoArbiter {
    /// No directory of this user's alone can be had for the anchor.
    #[error("no directory that is this user's alone for the arbiter: {0}")]
    Directory(io::Error),
    /// What lies in the anchor's place is another user's, open to others, linked, or no file.
    #[error("the arbiter's file in {0:?} is not a plain file that is this user's alone")]
    NotOurs(String),
    /// Processes of another release of Evener share a segment that this one does not know.
    #[error(
        "the arbiter is in use by another release of Evener (layout {version}, here {})",
        crate::layout::VERSION
    )]
    OtherLayout {
        /// Of that segment.
        version: u32,
    },
    /// Another process is about to make the segment and does not go on.
    #[error("another process has been making the arbiter's segment for too long")]
    Stalled,
    /// As many processes share the segment as it has space for.
    #[error("the arbiter has no place for one more process")]
    Full,
    /// The system's error.
    #[error(transparent)]
    System(#[from] SystemError),
}

impl NoArbiter {
    /// To be mapped over an error of the system's.
    pub(crate) fn of<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::System(SystemError::of(what)(error))
    }
}
