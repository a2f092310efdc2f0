//! The request for a run: keys, inputs, output and options, and why it may be refused as a whole.

use std::path::PathBuf;

use evener::core::plan::Policy;
use evener::core::{Budget, Estimator, Objective};
use evener_fd::SystemError;

use crate::format::{Opener, Sealer};
use crate::keep::Keep;

/// What is to be done, and with which keys.
pub enum Task {
    /// Plaintext in, encrypted files out.
    Encrypt(Sealer),
    /// Encrypted files in, plaintext out.
    Decrypt(Opener),
}

impl Task {
    /// Room that a segment needs in either form, in bytes.
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
    /// Whether outputs that stand there already are replaced.
    pub force: bool,
    /// Whether outputs of fitting time and length count as finished without a look at their contents: under which key
    /// they are is not checked then.
    pub resume: bool,
    /// What of a tree is kept.
    pub keep: Keep,
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
    #[error("the output {} lies inside the input {}", target.display(), input.display())]
    InsideInput {
        /// The input.
        input: PathBuf,
        /// The output.
        target: PathBuf,
    },
    /// An input without a name of its own, such as `/`, among several.
    #[error("the input {} has no name to be kept", .0.display())]
    NoName(PathBuf),
    /// Two inputs of the same name.
    #[error("two inputs would both go to {}", .0.display())]
    SameOutput(PathBuf),
    /// Segments do not fit the memory.
    #[error("segments of this size need {needed_bytes} bytes of memory (--memory)")]
    Memory {
        /// Bytes that would do.
        needed_bytes: u64,
    },
    /// Standard input or output failed.
    #[error("cannot {0}")]
    Stdio(SystemError),
}
