//! The exit status of a run, and its part of the help.

use std::process::ExitCode;

/// How a run ended, as its exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything was done.
    Done = 0,
    /// Some files failed; each was named.
    SomeFailed = 1,
    /// Nothing was done: wrong usage, or a key or path that cannot be used.
    NothingDone = 2,
    /// Stopped by a signal, by which the process ends; where none is known, 128 + SIGINT, as shells say it.
    Stopped = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The same text at the end of every help that needs it; a macro, so that it can stand in `concat!`.
macro_rules! exit_status_help {
    () => {
        "\
Exit status:
  0    all was done
  1    some files failed; each is named on standard error
  2    nothing was done: wrong usage, or a key or path that cannot be used
A signal that stops it ends it when all is cleaned up (a shell says 130 after Ctrl-C); the same command again does what was not finished."
    };
}
pub(crate) use exit_status_help;

/// The end of a help with examples, a line each.
macro_rules! examples_help {
    ($($line:literal)*) => {
        concat!("Examples:\n", $("  ", $line, "\n",)* "\n", crate::terminal::exit_status_help!())
    };
}
pub(crate) use examples_help;
