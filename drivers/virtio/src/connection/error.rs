//! What ends a connection, or keeps it from coming about.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use evener_fd::SystemError;
use evener_ring::virtqueue::Malformed;
use evener_wire::WireError;
use rustix::io::Errno;

/// What ended a connection, or kept it from coming about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The system refused.
    #[error(transparent)]
    System(#[from] SystemError),
    /// The host or device took longer for an answer than it may.
    #[error("it does not answer")]
    Silent,
    /// The host closed the connection.
    #[error("the host is gone")]
    Gone,
    /// The host has as many clients as it takes.
    #[error("the host serves {clients} clients already, and takes no more (--clients of `evener host`)")]
    Full {
        /// How many these are.
        clients: u32,
    },
    /// The host has as many clients of this user as it takes.
    #[error(
        "the host serves {clients} clients of this user already, and takes no more of one user (--user-clients of `evener host`)"
    )]
    FullForUser {
        /// How many these are.
        clients: u32,
    },
    /// Another user's host listens, and keys would go to that user.
    #[error(
        "it runs as user {uid}, who is neither root nor this program's user (,uid={uid} behind the socket's name trusts it)"
    )]
    Stranger {
        /// As whom it listens.
        uid: u32,
    },
    /// Others could put a socket of theirs in the host's place.
    #[error(
        "its directory {} (of user {uid}, mode {mode:04o}) may be written by others than root, this program's user and who is trusted: make it one that only its owner writes",
        directory.display()
    )]
    OpenDirectory {
        /// Where the socket lies.
        directory: PathBuf,
        /// Whose it is.
        uid: u32,
        /// Its mode.
        mode: u32,
    },
    /// The program closed a descriptor of the connection, whose number may be another file's by now.
    #[error("the program closed its descriptors")]
    Closed,
    /// The host answered what cannot be understood.
    #[error("the host's answer is none: {0}")]
    Wire(#[from] WireError),
    /// The host answered another message than the one that was sent.
    #[error("the host answered another message than the one that was sent")]
    Unasked,
    /// The host or device does not offer what is needed.
    #[error("it lacks {0}")]
    Lacks(&'static str),
    /// The device cannot be had.
    #[error("{0}")]
    Function(String),
    /// The host or device wrote nonsense into the queue.
    #[error("it wrote what cannot be into the queue: {0:?}")]
    Malformed(Malformed),
}

impl ConnectionError {
    /// What the system's answer to `what` means for the connection.
    pub(crate) fn system(what: &'static str, error: io::Error) -> Self {
        if error.raw_os_error() == Some(Errno::BADF.raw_os_error()) {
            return Self::Closed;
        }
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Silent,
            ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => Self::Gone,
            _ => Self::System(SystemError::of(what)(error)),
        }
    }
}

impl From<Malformed> for ConnectionError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}
