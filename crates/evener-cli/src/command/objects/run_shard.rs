//! `evener run-shard`.

use std::ffi::OsString;
use std::num::NonZero;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::ArgGroup;
use evener_shards::{Ask, Existing, Keys, ShardRun};

use super::{again_or_never_help, hand_over};
use crate::terminal::{Exit, units};

/// Memory for data in work unless told otherwise: a dozen threads.
const MEMORY_BYTES: u64 = 256 << 20;

/// The variable in which Kubernetes gives an indexed job its number.
const INDEX: &str = "JOB_COMPLETION_INDEX";

/// Encrypts or decrypts one shard of a plan.
///
/// The same again does what is left. Each object appears under its name when it is complete, with a mark that says of which state of its source and for which key it was made; one that
/// has its mark counts as done. Keys are read here, from a file, the environment or a command, and are in no plan, argument or report.
#[derive(clap::Args)]
#[command(
    group = ArgGroup::new("keys").required(true).multiple(true),
    after_help = again_or_never_help! {
        "evener run-shard plan.json 17 --key /keys/keyset.json"
        "evener run-shard plan.json 17 -r age1... --json -"
        "evener run-shard plan.json --key-command 'kms decrypt keyset.enc'"
    },
    override_usage = "evener run-shard KEYS [OPTIONS] PLAN [NUMBER]"
)]
pub(crate) struct RunShard {
    /// The plan.
    #[arg(value_name = "PLAN")]
    plan: PathBuf,

    /// Which shard, counted from 0; unless given, what JOB_COMPLETION_INDEX says.
    #[arg(value_name = "NUMBER")]
    number: Option<u32>,

    /// Takes a Tink keyset in KEY.json, in clear.
    #[arg(long, value_name = "KEY.json", group = "keys", help_heading = "Keys (one kind)")]
    key: Option<PathBuf>,

    /// Takes the age identities in FILE, without a passphrase; may be repeated.
    #[arg(short, long = "identity", value_name = "FILE", group = "keys", help_heading = "Keys (one kind)")]
    identities: Vec<PathBuf>,

    /// Encrypts for RECIPIENT, age1... or ssh-...; may be repeated.
    #[arg(
        short,
        long = "recipient",
        value_name = "RECIPIENT",
        group = "keys",
        help_heading = "Keys (one kind)"
    )]
    recipients: Vec<String>,

    /// Encrypts for every recipient in FILE; may be repeated.
    #[arg(
        short = 'R',
        long = "recipients-file",
        value_name = "FILE",
        group = "keys",
        help_heading = "Keys (one kind)"
    )]
    recipients_files: Vec<PathBuf>,

    /// Takes what the variable NAME holds: a keyset, identities or recipients.
    #[arg(long, value_name = "NAME", group = "keys", help_heading = "Keys (one kind)")]
    key_env: Option<String>,

    /// Takes what COMMAND prints, which `sh` runs: a keyset, identities or recipients.
    #[arg(long, value_name = "COMMAND", group = "keys", help_heading = "Keys (one kind)")]
    key_command: Option<String>,

    /// Binds objects to STRING, as `evener encrypt` does (tink).
    #[arg(hide_short_help = true, long, value_name = "STRING", help_heading = "Keys (one kind)")]
    associated_data: Option<OsString>,

    /// Makes outputs of Evener again whose source has changed, or that are for another key.
    #[arg(long, conflicts_with = "force", help_heading = "Outputs")]
    update: bool,

    /// Replaces whatever stands there and is not the finished output.
    #[arg(long, help_heading = "Outputs")]
    force: bool,

    /// Objects, or parts of large ones, that are under way at once; unless given, four for each core, as far as --memory goes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Work")]
    transfers: Option<u16>,

    /// Most memory for data in work, such as 64M or 1G; unless given, 256M.
    #[arg(hide_short_help = true, long, value_name = "SIZE", value_parser = units::parse_bytes, help_heading = "Work")]
    memory: Option<u64>,

    /// Seconds for which a request is tried again before its object fails.
    #[arg(
        hide_short_help = true,
        long,
        value_name = "SECONDS",
        default_value_t = 120,
        help_heading = "Work"
    )]
    timeout: u32,

    /// Ends, by SIGKILL, when the process that started it does: for programs that start shards elsewhere too.
    #[arg(hide_short_help = true, long, help_heading = "Work")]
    with_parent: bool,

    /// Writes a line of JSON for each object and one for the shard; `-` is standard output.
    ///
    /// It takes the place of no key and no plan, and lies outside SOURCE and DEST.
    #[arg(long, value_name = "REPORT", help_heading = "Report")]
    json: Option<PathBuf>,

    /// Says nothing but failures.
    #[arg(short, long, help_heading = "Report")]
    quiet: bool,
}

pub(crate) fn run(arguments: &RunShard) -> anyhow::Result<Exit> {
    let existing = match (arguments.force, arguments.update) {
        (true, _) => Existing::Replace,
        (false, true) => Existing::Update,
        (false, false) => Existing::Keep,
    };
    hand_over(&Ask::RunShard(ShardRun {
        plan: arguments.plan.clone(),
        number: arguments.number.map_or_else(index, Ok)?,
        keys: Keys {
            key: arguments.key.clone(),
            identities: arguments.identities.clone(),
            recipients: arguments.recipients.clone(),
            recipients_files: arguments.recipients_files.clone(),
            key_env: arguments.key_env.clone(),
            key_command: arguments.key_command.clone(),
            associated_data: arguments.associated_data.clone().unwrap_or_default().into_vec(),
        },
        existing,
        transfers: arguments.transfers.and_then(NonZero::new),
        memory_bytes: arguments.memory.unwrap_or(MEMORY_BYTES),
        timeout_s: arguments.timeout,
        json: arguments.json.clone(),
        quiet: arguments.quiet,
        with_parent: arguments.with_parent,
    }))
}

/// The number that Kubernetes gave this pod.
fn index() -> anyhow::Result<u32> {
    let index = std::env::var(INDEX).ok();
    let index = index.with_context(|| format!("no shard is named, neither as NUMBER nor by {INDEX}"))?;
    index.parse().with_context(|| format!("{INDEX} is {index:?}, which is no number"))
}
