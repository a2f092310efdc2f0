//! What `evener plan` and `evener run-shard` are asked for, as the command hands it to the program that knows stores. It names keys and holds
//! none.

use std::num::NonZero;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Direction, Wanted};

/// One of the two commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// `evener plan`.
    Plan(Planning),
    /// `evener run-shard`.
    RunShard(ShardRun),
}

/// A plan that is to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planning {
    /// Which way objects are to go.
    pub direction: Direction,
    /// Where they are: a URI, or a directory.
    pub source: String,
    /// Where results go.
    pub destination: String,
    /// What names get or lose.
    pub suffix: String,
    /// How many shards.
    pub wanted: Wanted,
    /// Whether no object is cut, however large.
    pub no_ranges: bool,
    /// Where the plan goes.
    pub output: PathBuf,
    /// Whether it replaces a file that is no plan of the same places.
    pub force: bool,
    /// Whether nothing is said but failures.
    pub quiet: bool,
}

/// A shard that is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRun {
    /// The plan.
    pub plan: PathBuf,
    /// Which one, from 0.
    pub number: u32,
    /// With which keys.
    pub keys: Keys,
    /// What becomes of outputs that stand there already.
    pub existing: Existing,
    /// Threads that transfer, encrypt and decrypt.
    pub transfers: Option<NonZero<u16>>,
    /// Most memory for data in work, in bytes.
    pub memory_bytes: u64,
    /// Seconds that a request is tried again before its object fails.
    pub timeout_s: u32,
    /// Where a line of JSON for each object goes.
    pub json: Option<PathBuf>,
    /// Whether nothing is said but failures.
    pub quiet: bool,
    /// Whether it ends with the process that started it.
    pub with_parent: bool,
}

/// What becomes of an output that stands there already and is not the finished result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Existing {
    /// It is an error.
    #[default]
    Keep,
    /// It is made again where Evener made it, of an earlier state of its source or for another key; else it is an error.
    Update,
    /// It is replaced.
    Replace,
}

/// Where keys are. One of them at least, and of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// A file with a Tink keyset.
    pub key: Option<PathBuf>,
    /// Files with age identities.
    pub identities: Vec<PathBuf>,
    /// Recipients.
    pub recipients: Vec<String>,
    /// Files with recipients.
    pub recipients_files: Vec<PathBuf>,
    /// A variable of the environment that holds what such a file would.
    pub key_env: Option<String>,
    /// A command that prints what such a file would.
    pub key_command: Option<String>,
    /// What Tink files are bound to.
    pub associated_data: Vec<u8>,
}
