//! Why a measurement stops.

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
