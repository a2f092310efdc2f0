//! Why there is no host.

use std::io;
use std::path::PathBuf;

/// Why there is no host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// A socket cannot be bound, because a process listens there, something else has the name, or the system forbids it.
    #[error("{}: {error}", path.display())]
    Socket {
        /// Its path.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// What was opened for the host before it began is nothing that clients can come to.
    #[error("LISTEN_FDS: {0}")]
    Activation(String),
    /// The system refuses something else.
    #[error("{0}")]
    System(#[from] io::Error),
    /// A thread of the module has ended in a panic: a bug in Evener.
    #[error("a thread of the module has ended unexpectedly")]
    Module,
}

impl From<rustix::io::Errno> for HostError {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::System(errno.into())
    }
}
