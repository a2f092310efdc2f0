//! Why a module behind the kernel cannot be used.

use std::io;

use evener_core::known::Wrong;

/// Why a module cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The interface is not there, or may not be used.
    #[error("{0}")]
    Unavailable(String),
    /// The kernel has no such driver, or does not admit it.
    #[error("the kernel has no driver {name:?} that AF_ALG admits ({errno})", errno = io::Error::from_raw_os_error(*errno))]
    NoSuchDriver {
        /// The name that was given.
        name: String,
        /// The kernel's number.
        errno: i32,
    },
    /// The driver is there and does nothing that Evener knows.
    #[error("{name:?} does {does}, which is none of Evener's algorithms")]
    NothingForUs {
        /// The driver.
        name: String,
        /// What it does, in the kernel's words.
        does: String,
    },
    /// The driver is listed and cannot be bound.
    #[error("AF_ALG of this kernel does not admit {name:?}: {reason}")]
    Refused {
        /// The driver.
        name: String,
        /// The kernel's reason.
        reason: String,
    },
    /// A request stayed without an answer.
    #[error("{name} is refused: it does not answer")]
    Silent {
        /// The module.
        name: String,
    },
    /// It computed something else than the known answer.
    #[error("{name} is refused: {wrong}")]
    WrongAnswer {
        /// The module.
        name: String,
        /// What it got wrong.
        wrong: Box<Wrong>,
    },
}

impl OpenError {
    pub(crate) fn refused(name: &str, error: &io::Error) -> Self {
        Self::Refused { name: name.to_owned(), reason: error.to_string() }
    }
}
