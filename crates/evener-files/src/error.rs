//! What can be wrong with a key, with the bytes of a file, or with one file of a run, as facts.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use evener_core::JobError;
use evener_fd::SystemError;
use evener_fd::text::PathDisplay;

/// A fact about a key or a file that stops the work on it. Texts are one line, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The file does not start like a file of its format.
    #[error("not in the {format} format: {fact}")]
    Header {
        /// The format that was expected.
        format: &'static str,
        /// What is wrong with the start.
        fact: &'static str,
    },
    /// The header is whole, and none of the keys at hand was used for it.
    #[error("no key fits{facts}")]
    NoKeyFits {
        /// Which keys were tried and which would do, after a colon; empty where that is not known.
        facts: String,
    },
    /// An age plugin failed.
    #[error("plugin {name}: {fact}")]
    Plugin {
        /// Its name, as in `age-plugin-NAME`.
        name: String,
        /// What it said or did.
        fact: String,
    },
    /// The file ends too early; `cipher_bytes` is where.
    #[error("truncated: the file ends after {cipher_bytes} bytes, inside a {place}")]
    Truncated {
        /// Length of what is there, in bytes.
        cipher_bytes: u64,
        /// `header` or `segment`.
        place: &'static str,
    },
    /// An empty last segment after others: never written by an honest program in this format.
    #[error("malformed: the last segment is empty")]
    EmptyLastSegment,
    /// A segment's tag or padding does not fit: wrong key or associated data, or bytes that were changed.
    #[error("segment {segment} is not authentic: wrong key or associated data, or damaged")]
    NotAuthentic {
        /// Its index, from 0.
        segment: u64,
    },
    /// The padding at the end of a file without authentication is wrong.
    #[error("bad padding: wrong passphrase, or damaged")]
    BadPadding,
    /// A file of this length cannot be in this format.
    #[error("too long for the format: {bytes} bytes")]
    TooLong {
        /// The length, in bytes.
        bytes: u64,
    },
    /// A keyset that is no Tink keyset of streaming keys.
    #[error("keyset: {0}")]
    Keyset(String),
    /// A recipient that is none.
    #[error("recipient: {0}")]
    Recipient(String),
    /// An identity that is none.
    #[error("identity: {0}")]
    Identity(String),
    /// A passphrase that cannot be one.
    #[error("passphrase: {0}")]
    Passphrase(&'static str),
    /// The key of the passphrase costs more than is accepted; nothing of it was paid.
    #[error(
        "its passphrase asks for {cost} (work factor {required}); up to {accepted} is accepted (--work-factor-max, --memory)"
    )]
    ExcessiveWork {
        /// The work factor of the file.
        required: u8,
        /// What that costs, in words.
        cost: String,
        /// The highest that is accepted.
        accepted: u8,
    },
    /// The key of the passphrase costs more than any program of the format accepts, whatever it is told.
    #[error(
        "its passphrase asks for too much work: a work factor above {most}, the highest that age and Evener take"
    )]
    TooMuchWork {
        /// The highest that is taken.
        most: u8,
    },
    /// Understood, and not done by Evener.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The kernel gave no random bytes, or a library refused a call that should have worked.
    #[error("{0}")]
    Library(String),
}

/// Why one file was not done. Nothing stands under its final name then that was not there before.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system refused something.
    #[error("cannot {0}")]
    Io(SystemError),
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
    /// The output is Evener's, and its source is another by now.
    #[error(
        "output exists and is not the finished result: its source has changed since, or is another (--update makes it again)"
    )]
    Outdated,
    /// The output is Evener's, and for another key, other recipients, another passphrase or associated data.
    #[error("output exists and is not the finished result: it is for another key (--update makes it again)")]
    OtherKey,
    /// What stands there may be the finished result, but nothing at hand opens it and no record tells of it.
    #[error(
        "output exists, and whether it is for these recipients cannot be seen (-i opens it; --force replaces it)"
    )]
    UnknownRecipients,
    /// A part begins behind the end.
    #[error("it holds {bytes} bytes, and the part begins behind them")]
    NoSuchPart {
        /// The length of the plaintext, in bytes.
        bytes: u64,
    },
    /// A file of the other side differs.
    #[error("differs from {}", PathDisplay(.0))]
    Differs(PathBuf),
    /// There is no file on the other side.
    #[error("has no counterpart at {}", PathDisplay(.0))]
    NoCounterpart(PathBuf),
    /// An output is to get what changed of its source beside the contents, and has names that Evener did not give it.
    #[error(
        "output is finished, but for mode, owner, time or attributes of its source, which its other names would get, too (--force replaces it)"
    )]
    OtherNames,
    /// The name has no suffix that could be taken away.
    #[error("its name does not end in {}; -o names its output", PathDisplay(Path::new(.0)))]
    NoSuffix(OsString),
    /// The name has the suffix that would be added.
    #[error("its name ends in {} already; -o names its output", PathDisplay(Path::new(.0)))]
    HasSuffix(OsString),
    /// A directory or link keeps its name, which the output of a file beside it takes.
    #[error("the output of {} takes its name", PathDisplay(.0))]
    NameTaken(PathBuf),
    /// The output of another file of the run stands under the final name.
    #[error(
        "the output of another file of this run stands under its name, which the file system takes for the same; it was not replaced"
    )]
    SameName,
    /// A directory stands under the final name.
    #[error(
        "a directory stands under its name in the output, and is not replaced: remove it, or choose another output"
    )]
    Directory,
    /// The output would replace an input of the run, or go into one.
    #[error("its output would go where an input of this run lies; nothing was written there")]
    InputInOutput,
    /// A key of the run lies under the final name: what it opens or has sealed would be lost with it.
    #[error("a file with a key of this run stands under its name in the output, and is not replaced")]
    KeyInOutput,
    /// The directory that the user named for output cannot be had.
    #[error("its output cannot go to {}: {error}", PathDisplay(path))]
    NoPlace {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: Box<Self>,
    },
    /// The final name is that of the source, which would be lost.
    #[error("output and input are the same file")]
    SameFile,
    /// A symbolic link stands inside a tree where the walk saw a file or directory, or on the way to it.
    #[error("a symbolic link took its place; it is not followed")]
    Link,
    /// Something else stands in the output where a directory of the tree belongs, a link maybe.
    #[error(
        "no directory stands in its place in the output; nothing was written there (--update replaces a file that Evener made)"
    )]
    NoDirectory,
    /// The output directory is not the one any more that was entered.
    #[error("another directory took its place in the output; mode and time were not set")]
    OtherDirectory,
    /// Another file stands under the name of an output that is to get a further name.
    #[error("another file took the place of the output that it is a name of; it was not linked")]
    OtherOutput,
    /// An output has another owner or mode than its source, for its directory was changed while it was made.
    #[error(
        "output is there with another owner or mode, for its directory was changed meanwhile (the same command again, or --force, mends it)"
    )]
    OtherOwner,
    /// The process that read the output has gone.
    #[error("cannot write: the reader of the output has gone")]
    BrokenPipe,
    /// A directory is not the one any more that the walk entered.
    #[error("something else took the place of its directory; nothing was read or written there")]
    Moved,
    /// A symbolic link of another user that leads out of the tree.
    #[error(
        "a symbolic link of another user that leads out of the tree is not kept (--foreign-links keeps it, --skip-links leaves links out)"
    )]
    ForeignLink,
    /// A member of an archive that would go elsewhere.
    #[error("its name in the archive leads out of the directory; it was not made")]
    OutOfTree,
    /// A device, socket or pipe in a tree.
    #[error("a device, socket or pipe is not kept (--skip-specials leaves it out)")]
    Special,
    /// A directory of the input is where the output goes.
    #[error("it is where the output goes, by another name; it was left out")]
    OutputInInput,
    /// The file is another name of one that failed.
    #[error("{} is another name of the same file, and was not done", PathDisplay(.0))]
    OtherName(PathBuf),
    /// The run was cancelled or stopped before this file was finished.
    #[error("not finished: the run was stopped")]
    Stopped,
}

impl FileError {
    /// Wraps an error of the system: `cannot {doing}: ...`.
    pub(crate) fn io<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Io(SystemError::of(doing)(error))
    }

    /// Whether there is no such file.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Io(error) if error.answer().kind() == io::ErrorKind::NotFound)
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

    /// Nothing in a file tells whether it is what was encrypted.
    pub(crate) fn unverifiable() -> Self {
        let what = "verification of a format without authentication, but against its source";
        FormatError::Unsupported(what.into()).into()
    }

    /// Whether every other file would meet the same: no space left on the disk.
    pub(crate) fn stops_the_run(&self) -> bool {
        match self {
            Self::Io(error) => {
                matches!(error.answer().kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            Self::NoPlace { error, .. } => error.stops_the_run(),
            _ => false,
        }
    }
}
