//! What a run tells while it goes on and when it is over.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use evener::Report;
use evener_core::JobError;

use crate::FormatError;

/// How far a run is. Written by the pipeline, read by whoever draws it; exact only at the end.
#[derive(Debug, Default)]
pub struct Progress {
    /// Files finished.
    pub files: AtomicU64,
    /// Bytes of input worked on.
    pub bytes: AtomicU64,
    /// Bytes of input in all; 0 while unknown.
    pub total_bytes: AtomicU64,
    /// Whether somebody looks, so that finding out the total is worth a walk of its own.
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
    /// A symbolic link inside a tree; links are not followed.
    Symlink,
    /// A device, socket or pipe.
    Special,
    /// Output that a run has begun and not finished: a killed one, or one that is still going on.
    Draft,
}

impl std::fmt::Display for Skip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Symlink => "symbolic link, not followed",
            Self::Special => "neither file nor directory",
            Self::Draft => "draft of a run that did not finish",
        })
    }
}

/// Why one file was not done. Nothing stands under its final name then that was not there before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system refused something.
    #[error("cannot {doing}: {error}")]
    Io {
        /// What was tried, as in "cannot ... ".
        doing: &'static str,
        /// The system's answer.
        error: io::Error,
    },
    /// The file or the key does not fit the format.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A segment failed for another reason than its contents.
    #[error("segment {segment}: {error}")]
    Job {
        /// Its index, from 0.
        segment: u64,
        /// The reason.
        error: JobError,
    },
    /// The source was changed while it was read.
    #[error("changed while it was read; nothing was written")]
    Changed,
    /// The source says that it is empty and is not, like files below `/proc`.
    #[error("its length is not known beforehand; standard input takes it")]
    NoLength,
    /// There is a file under the final name that is not the finished result.
    #[error("output exists and is not the finished result (--force replaces it)")]
    Exists,
    /// There is a file of fitting time and length under the final name, and its header does not tell whether it is for
    /// this run's recipients: that of one age recipient looks like another's.
    #[error(
        "output exists, and whether it is for these recipients cannot be seen (--force replaces it, --resume trusts it)"
    )]
    UnknownRecipients,
    /// The final name is that of the source, which would be lost.
    #[error("output and input are the same file")]
    SameFile,
    /// A symbolic link stands inside a tree where the walk saw a file or directory, or on the way to it.
    #[error("a symbolic link took its place; it is not followed")]
    Link,
    /// Something else stands in the output where a directory of the tree belongs, a link maybe.
    #[error("no directory stands in its place in the output; nothing was written there")]
    NoDirectory,
    /// The output directory is not the one any more that was entered.
    #[error("another directory took its place in the output; mode and time were not set")]
    OtherDirectory,
    /// The run was cancelled or stopped before this file was finished.
    #[error("not finished: the run was stopped")]
    Stopped,
}

impl FileError {
    /// Wraps an error of the system: `cannot {doing}: ...`.
    pub(crate) fn io(doing: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        move |errno| Self::Io { doing, error: errno.into() }
    }

    /// What a failed job means for its file.
    pub(crate) const fn of_job(segment: u64, error: JobError) -> Self {
        match error {
            JobError::NotAuthentic => Self::Format(FormatError::NotAuthentic { segment }),
            JobError::BadPadding => Self::Format(FormatError::BadPadding),
            JobError::Cancelled => Self::Stopped,
            error => Self::Job { segment, error },
        }
    }

    /// Whether every other file would meet the same: no room left on the disk.
    pub(crate) fn stops_the_run(&self) -> bool {
        let Self::Io { error, .. } = self else { return false };
        matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// What a run did.
#[derive(Debug, Default)]
pub struct Summary {
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
    /// Adds what another thread did.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.files += other.files;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.already_done += other.already_done;
        self.skipped.extend(other.skipped);
        self.failed.extend(other.failed);
    }
}
