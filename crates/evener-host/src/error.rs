//! Why there is no host.

use std::io;
use std::path::PathBuf;

/// Why there is no host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// A socket cannot be bound, because somebody listens there, something else has the name, or the system forbids it.
    #[error("{}: {error}", path.display())]
    Socket {
        /// Its path.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The system refuses something else.
    #[error("{0}")]
    System(#[from] io::Error),
    /// The module's thread has ended in a panic: a bug in Evener.
    #[error("the module's thread has ended unexpectedly")]
    Module,
}

impl From<rustix::io::Errno> for HostError {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::System(errno.into())
    }
}
