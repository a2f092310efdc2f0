//! The request for a run: keys, inputs, output and options, and why it may be refused as a whole.

use std::ops::Range;
use std::path::{Path, PathBuf};

use evener::core::plan::Policy;
use evener::core::{Budget, Estimator, Objective};
use evener_fd::SystemError;
use evener_fd::text::PathDisplay;

use crate::error::FileError;
use crate::filter::Filter;
use crate::format::{KeyFacts, Opener, Sealer};
use crate::naming::Naming;
use crate::preservation::Keep;
use crate::record::Trust;

/// What is to be done, and with which keys.
pub enum Task {
    /// Plaintext in, encrypted files out.
    Encrypt(Sealer),
    /// Encrypted files in, plaintext out.
    Decrypt(Opener),
}

impl Task {
    /// What a record goes by.
    pub(crate) fn key_facts(&self) -> KeyFacts {
        match self {
            Self::Encrypt(sealer) => sealer.key_facts(),
            Self::Decrypt(opener) => opener.key_facts(),
        }
    }

    /// Whether the keys at hand open what is or was encrypted.
    pub(crate) fn can_open(&self) -> bool {
        match self {
            Self::Encrypt(sealer) => sealer.opens_its_own(),
            Self::Decrypt(_) => true,
        }
    }

    /// Whether to open what is or was encrypted cannot be done, or takes long for each file.
    pub(crate) fn is_dear_to_open(&self) -> bool {
        match self {
            Self::Encrypt(sealer) => !sealer.opens_its_own() || sealer.is_slow(),
            Self::Decrypt(opener) => opener.is_slow(),
        }
    }

    /// Space that a segment needs in either form, in bytes.
    pub(crate) fn slot_bytes(&self) -> u64 {
        match self {
            Self::Encrypt(sealer) => sealer.slot_bytes(),
            Self::Decrypt(opener) => opener.slot_bytes(),
        }
    }
}

/// Where input comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Standard input.
    Stdin,
    /// A file or a directory.
    Path(PathBuf),
}

/// Where output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Standard output; only authenticated bytes go there.
    Stdout,
    /// A file or a directory.
    Path(PathBuf),
    /// Beside each file, under the name that [`Options::naming`] gives.
    Beside,
    /// Nowhere: what is decrypted is checked, and compared with what lies at a path, if one is given.
    Nowhere(Option<PathBuf>),
}

impl Target {
    /// The file or directory that was named.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Stdout | Self::Beside | Self::Nowhere(_) => None,
        }
    }
}

/// How it is to be done.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads that work on the CPU, 1 or more.
    pub workers: usize,
    /// The policy: which worker takes which job.
    pub policy: Policy,
    /// What the adaptive policy is to be best at.
    pub objective: Objective,
    /// Part of the cores that the run may use, where it is limited.
    pub budget: Option<Budget>,
    /// Costs that earlier runs learned.
    pub learned: Estimator,
    /// Most memory for data in work, in bytes.
    pub memory_bytes: u64,
    /// What becomes of outputs that stand there already.
    pub existing: Existing,
    /// Where Evener keeps what it has to know of this user from run to run: records that have no place beside their output, and the
    /// secret of those that tell of recipients and passphrases. Without it these are done without.
    pub state_dir: Option<PathBuf>,
    /// What shows in a record that a file is the one that it was.
    pub trust: Trust,
    /// What outputs of files are called.
    pub naming: Naming,
    /// Which names below a directory are taken: names of the source.
    pub filter: Filter,
    /// Whether outputs are deleted that the record shows to be Evener's and whose source is not there any more.
    pub delete: bool,
    /// Whether nothing is written: what would be done is told.
    pub is_rehearsal: bool,
    /// The part of the plaintext that is wanted, where it is not all; in decryption of one file only.
    pub part: Option<Part>,
    /// Whether all inputs go into one archive that is encrypted, or come out of one.
    pub archive: bool,
    /// Whether encrypted files are written as text, where the format has a form for that.
    pub armor: bool,
    /// Inputs that are left out: a tree's identity is no file of the tree.
    pub left_out: Vec<PathBuf>,
    /// Files with the keys: no output takes the place of one, whatever may be replaced.
    pub key_files: Vec<PathBuf>,
    /// What of a tree is kept.
    pub keep: Keep,
}

impl Default for Options {
    /// All cores that the process may use, by cost; 192 MiB; everything of a tree, and nothing that stands there already is replaced.
    fn default() -> Self {
        Self {
            workers: evener::core_budget().workers(),
            policy: Policy::Adaptive,
            objective: Objective::default(),
            budget: None,
            learned: Estimator::default(),
            memory_bytes: 192 << 20,
            existing: Existing::default(),
            state_dir: None,
            trust: Trust::default(),
            naming: Naming::default(),
            filter: Filter::default(),
            delete: false,
            is_rehearsal: false,
            part: None,
            archive: false,
            armor: false,
            left_out: Vec::new(),
            key_files: Vec::new(),
            keep: Keep::default(),
        }
    }
}

/// A part of a plaintext, as its user writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// From a byte on, so many, or all that follow.
    From {
        /// The first byte, from 0.
        start: u64,
        /// How many; all where it is not said.
        bytes: Option<u64>,
    },
    /// So many at the end.
    Last(u64),
}

impl Part {
    /// Its bytes of a text of `bytes`: fewer where the text ends before; `None` where it ends before the part begins.
    pub(crate) fn within(self, text_bytes: u64) -> Option<Range<u64>> {
        match self {
            Self::From { start, .. } if start > text_bytes => None,
            Self::From { start, bytes } => {
                let end = bytes.map_or(text_bytes, |bytes| start.saturating_add(bytes).min(text_bytes));
                Some(start..end)
            }
            Self::Last(bytes) => Some(text_bytes.saturating_sub(bytes)..text_bytes),
        }
    }
}

/// What becomes of an output that stands there already and is not the finished result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It is an error.
    #[default]
    Keep,
    /// It is made again where it is Evener's own, of an earlier state of its source or for another key; else it is an error.
    Update,
    /// It is replaced, whatever it is, and so are finished results.
    Replace,
}

/// A run.
pub struct Request {
    /// What is to be done.
    pub task: Task,
    /// With which inputs, in order.
    pub sources: Vec<Source>,
    /// Where to.
    pub target: Target,
    /// How.
    pub options: Options,
}

/// A request that cannot be carried out at all. Nothing was read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// There is no input.
    #[error("no input")]
    NoInput,
    /// Standard input or output goes with nothing else.
    #[error("standard {0} takes exactly one input, which is no directory")]
    OneInput(&'static str),
    /// The output would be walked as input.
    #[error("the output {} lies inside the input {}", PathDisplay(target), PathDisplay(input))]
    InsideInput {
        /// The input.
        input: PathBuf,
        /// The output.
        target: PathBuf,
    },
    /// An input without a name of its own, such as `/`, among several.
    #[error("the input {} has no name to be kept", PathDisplay(.0))]
    NoName(PathBuf),
    /// A directory without an output.
    #[error("{} is a directory: -o OUT says where its files go", PathDisplay(.0))]
    NoOutput(PathBuf),
    /// The shell has opened the output for what goes to standard output.
    #[error(
        "standard output goes to {path}, where the output is to go by itself: name it, -o {path}, or send it there, -o - > {path}",
        path = PathDisplay(.0)
    )]
    IsStdout(PathBuf),
    /// Two inputs of the same name.
    #[error("two inputs would both go to {}", PathDisplay(.0))]
    SameOutput(PathBuf),
    /// Rehearsals and deletion go from files to files.
    #[error("--dry-run and --delete go with files and directories, not with standard input or output")]
    FilesOnly,
    /// An archive is made of what has names.
    #[error("an archive is made of files and directories, not of standard input")]
    ArchiveOfStdin,
    /// An archive is taken apart into files.
    #[error("an archive is unpacked into a directory: -o DIR")]
    ArchiveToStdout,
    /// Standard input is not compared.
    #[error("--against compares files and directories, not standard input")]
    StdinAgainst,
    /// A part is taken of one file only.
    #[error("a part is taken of one encrypted file, which is no standard input and no directory")]
    PartOfOne,
    /// Segments do not fit the memory.
    #[error("segments of this size need {needed_bytes} bytes of memory (--memory)")]
    Memory {
        /// Bytes that would do.
        needed_bytes: u64,
    },
    /// No thread for a module.
    #[error(transparent)]
    NoThread(evener::NoThread),
    /// The system has less memory than the run needs at least.
    #[error("{needed_bytes} bytes of memory cannot be had (ulimit -v); fewer --workers need less")]
    NoMemory {
        /// Bytes that would do.
        needed_bytes: u64,
    },
    /// A descriptor that was named has no open file.
    #[error("{0} is closed")]
    Closed(String),
    /// There is something under the final name already.
    #[error("{}: output exists (--force replaces it)", PathDisplay(.0))]
    Exists(PathBuf),
    /// Ciphertext would be shown to a person.
    #[error("encrypted bytes would go to a terminal; redirect standard output, or choose a file with -o")]
    Terminal,
    /// The output cannot be made.
    #[error("{}: {error}", PathDisplay(path))]
    Output {
        /// Its name.
        path: PathBuf,
        /// Why.
        error: FileError,
    },
    /// Standard input or output failed.
    #[error("cannot {0}")]
    Stdio(SystemError),
}
