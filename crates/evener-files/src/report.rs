//! What a run reports while it goes on and when it is over.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use evener::Report;

use crate::error::FileError;

/// How far a run is. Written by the workers, read by the program that draws it; exact only at the end.
#[derive(Debug, Default)]
pub struct Progress {
    /// Files finished.
    pub files: AtomicU64,
    /// Bytes of input worked on.
    pub bytes: AtomicU64,
    /// Bytes of input in all; 0 while unknown.
    pub total_bytes: AtomicU64,
    /// Whether a program draws it, so that finding out the total is worth a walk of its own.
    pub is_watched: AtomicBool,
}

impl Progress {
    pub(crate) fn add_bytes(&self, bytes: u64) {
        // Relaxed, here and below: counters for the eye.
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn expect_bytes(&self, bytes: u64) {
        self.total_bytes.store(bytes, Ordering::Relaxed);
    }
}

/// Why something was left out without being a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// A symbolic link inside a tree, left out by an option.
    Symlink,
    /// A symbolic link in an encrypted tree that is verified without its source: nothing shows whether it is the one that was made.
    LinkUnseen,
    /// A device, socket or pipe, left out by an option.
    Special,
    /// Output that a run has begun and not finished: a killed one, or one that is still going on.
    Draft,
}

impl std::fmt::Display for Skip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Symlink => "symbolic link, left out",
            Self::LinkUnseen => "symbolic link, in which nothing is authenticated (--against compares it)",
            Self::Special => "neither file nor directory",
            Self::Draft => "draft of a run that did not finish",
        })
    }
}

/// What a rehearsal says would be done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planned {
    /// Its output is not there yet.
    Make,
    /// Its output is there and would be made again.
    Replace,
    /// An output is there that no record tells of: what it holds decides.
    LookInside,
}

/// What a run did. Everything that was found is in exactly one of `files`, `already_done`, `skipped` and `failed`.
#[derive(Debug, Default)]
pub struct Summary {
    /// Files that were found, and what else was met that is no directory, or no readable one.
    pub found: u64,
    /// Files finished in this run.
    pub files: u64,
    /// Their input, in bytes.
    pub bytes_in: u64,
    /// Their output, in bytes.
    pub bytes_out: u64,
    /// Files whose finished result was there before.
    pub already_done: u64,
    /// What was left out.
    pub skipped: Vec<(PathBuf, Skip)>,
    /// What a rehearsal would do, of files that are not finished.
    pub planned: Vec<(PathBuf, Planned)>,
    /// Outputs that were deleted, for they had lost their source; in a rehearsal those that would be.
    pub deleted: Vec<PathBuf>,
    /// Why nothing was looked for to be deleted, though it was asked for.
    pub not_deleted: Option<&'static str>,
    /// Whether outputs of a tree are in no record, because none could be kept: the same run again has to look into them.
    pub is_unrecorded: bool,
    /// What failed.
    pub failed: Vec<(PathBuf, FileError)>,
    /// Whether the run was cancelled.
    pub cancelled: bool,
    /// Time from start to end.
    pub elapsed: Duration,
    /// What each worker did.
    pub report: Report,
}

impl Summary {
    /// Adds a file that ended, with its bytes of input and output.
    pub(crate) fn record(&mut self, path: PathBuf, bytes: (u64, u64), result: Result<(), FileError>) {
        match result {
            Ok(()) => {
                self.files += 1;
                self.bytes_in += bytes.0;
                self.bytes_out += bytes.1;
            }
            Err(error) => self.failed.push((path, error)),
        }
    }

    /// What was found and is done, failed or left out.
    pub(crate) fn accounted_for(&self) -> u64 {
        self.files + self.already_done + (self.skipped.len() + self.failed.len()) as u64
    }

    /// Adds what another thread did.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.found += other.found;
        self.files += other.files;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.already_done += other.already_done;
        self.skipped.extend(other.skipped);
        self.failed.extend(other.failed);
    }
}
