//! Measuring: paper 002's experiment in memory ([`crypt`]), and real files against other programs.
//!
//! A *cell* is an algorithm, a direction, a layout and a size. A *contender* does a cell's jobs: OpenSSL on
//! one core, OpenSSL on all, a bare multi-buffer loop, Evener under a policy. A *visit* is one contender at
//! one cell for some 20 ms of rounds. Visits of all contenders take turns, run by run, and only ratios within
//! one run are compared, because machines drift.
#![forbid(unsafe_code)]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

pub mod combine;
pub mod contender;
pub mod counted;
pub mod crypt;
pub mod draw;
pub mod files;
pub mod neighbours;
pub mod openssl_conf;
mod pace;
mod race;
pub mod report;
pub mod singles;
pub mod statistics;
pub mod stopwatch;
pub mod workload;

/// What stops a measurement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The cell makes no sense: nothing to do, or the algorithm cannot be used so.
    #[error("{0}")]
    Cell(String),
    /// A contender's result was not what libcrypto gives.
    #[error("{contender} gave a wrong result for job {job} of {cell}")]
    WrongResult {
        /// Who.
        contender: String,
        /// Where.
        cell: String,
        /// Which job.
        job: usize,
    },
    /// A library is missing or refuses.
    #[error("{0}")]
    Library(String),
    /// A program to measure failed, or is missing.
    #[error("{command} failed: {reason}")]
    Command {
        /// What was started.
        command: String,
        /// Its exit status and last words.
        reason: String,
    },
    /// What a program wrote is not what it should be.
    #[error("{contender} wrote something wrong ({direction})")]
    WrongFile {
        /// Who.
        contender: String,
        /// In which direction.
        direction: String,
    },
    /// A file of the experiment could not be made, read or removed.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        error: String,
    },
    /// The user asked to stop.
    #[error("stopped")]
    Stopped,
    /// The picture or report could not be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// The file.
        path: String,
        /// The reason.
        error: String,
    },
}
