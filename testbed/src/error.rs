//! What can go wrong with the test bed.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why there is no guest, or no answer from it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no QEMU, neither unpacked by `up` nor installed.
    #[error("qemu-system-x86 not installed")]
    NoQemu,
    /// `up` was not run, or did not come to its end.
    #[error("the test bed is not set up: cargo xtask testbed up")]
    NotUp,
    /// There is no compiler for the guest's processor.
    #[error("no compiler for programs of this guest: cargo xtask testbed up --profile PROFILE --toolchain")]
    NoToolchain,
    /// This QEMU lacks something that the guest needs.
    #[error("QEMU {version} has no {what}; QEMU 8 and newer have it")]
    OldQemu {
        /// What it lacks.
        what: &'static str,
        /// Its version.
        version: String,
    },
    /// This kind of machine cannot be what the guest needs.
    #[error("guests of the profile {profile} have no {what}")]
    NotOfProfile {
        /// What they lack.
        what: &'static str,
        /// The profile's name.
        profile: &'static str,
    },
    /// A program of the host that is needed did not do its work.
    #[error("{program}: {reason}")]
    Program {
        /// Its name.
        program: String,
        /// What it printed.
        reason: String,
    },
    /// The archives that apt knows do not have what is needed.
    #[error("{0}")]
    Packages(String),
    /// A shared library that a guest program needs is nowhere on the host.
    #[error("{program} needs {library}, which is in none of {}", .searched.join(", "))]
    NoLibrary {
        /// What needs it.
        program: String,
        /// Its name.
        library: String,
        /// Folders that were searched.
        searched: Vec<String>,
    },
    /// The guest did not answer in time; it was ended.
    #[error("no answer from the guest within {limit:?}; its console ends with:\n{console}")]
    TimeLimit {
        /// What it was given.
        limit: Duration,
        /// The end of its console.
        console: String,
    },
    /// QEMU ended before the guest answered.
    #[error("QEMU ended ({status}): {reason}; the guest's console ends with:\n{console}")]
    Ended {
        /// Its exit status.
        status: String,
        /// What it wrote to its standard error.
        reason: String,
        /// The end of the guest's console.
        console: String,
    },
    /// The guest or QEMU answered what this crate does not understand.
    #[error("unexpected from {peer}: {answer}")]
    Protocol {
        /// Which of the two.
        peer: &'static str,
        /// Its answer.
        answer: String,
    },
    /// QEMU refused a command.
    #[error("QEMU refuses {command}: {reason}")]
    Refused {
        /// The command.
        command: String,
        /// Its answer.
        reason: String,
    },
    /// A file or a socket of the host failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Error {
    /// Whether the test bed is missing, or a part of it, for which reason tests are skipped; everything else is a failure.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::NoQemu | Self::NotUp | Self::NoToolchain | Self::OldQemu { .. })
    }
}

/// `error` with the name of the file that it is about.
pub(crate) fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", PathBuf::from(path).display()))
}
