//! `evener plan`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ArgGroup;
use evener_shards::{Ask, Direction, Planning, Wanted};

use super::{again_or_never_help, hand_over, text};
use crate::terminal::{Exit, units};

/// Cuts a tree of objects into shards, for many machines.
///
/// `evener run-shard` does one of them. SOURCE and DEST are places in a store: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX, file:///DIR or a directory; credentials
/// and endpoints come from the environment. The plan is a small file without keys: both places and, for each shard, after which name it begins. An object that weighs more than a
/// shard becomes several, each a range of it, where the stores allow it; encryption in ranges takes a Tink key, and else the first range is the whole.
#[derive(clap::Args)]
#[command(
    group = ArgGroup::new("wanted").required(true),
    after_help = again_or_never_help! {
        "evener plan s3://bucket/plain s3://bucket/sealed --shards 64 -o plan.json"
        "evener plan s3://bucket/sealed /data --decrypt --shard-bytes 50G -o plan.json"
    },
    override_usage = "evener plan --shards N -o PLAN [OPTIONS] SOURCE DEST"
)]
pub(crate) struct Plan {
    /// Where the objects are.
    #[arg(value_name = "SOURCE")]
    source: OsString,

    /// Where the results go, under the same names.
    #[arg(value_name = "DEST")]
    destination: OsString,

    /// Cuts N shards of about the same weight.
    #[arg(long, value_name = "N", group = "wanted", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    shards: Option<u32>,

    /// Cuts shards of about SIZE, such as 50G; an object counts 64 KiB more than its bytes.
    #[arg(long, value_name = "SIZE", group = "wanted", value_parser = units::parse_bytes)]
    shard_bytes: Option<u64>,

    /// Leaves each object whole, however large.
    #[arg(long)]
    no_ranges: bool,

    /// Plans decryption; unless given, encryption.
    #[arg(long)]
    decrypt: bool,

    /// What names get when they are encrypted, and lose when they are decrypted, such as .age.
    #[arg(long, value_name = "SUFFIX")]
    suffix: Option<OsString>,

    /// Where the plan goes; `-` is standard output.
    ///
    /// A plan of the same places that stands there is replaced, and finished outputs of its shards are known again, for recipients too.
    #[arg(short, long, value_name = "PLAN")]
    output: PathBuf,

    /// Replaces another file too, but no key.
    ///
    /// Finished outputs of a plan of other places, or of one that cannot be read, are not known again for recipients.
    #[arg(long)]
    force: bool,

    /// Says nothing but failures.
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(arguments: &Plan) -> anyhow::Result<Exit> {
    let wanted = match (arguments.shards, arguments.shard_bytes) {
        (Some(count), _) => Wanted::Shards(count),
        (None, bytes) => Wanted::Bytes(bytes.unwrap_or(u64::MAX)),
    };
    let suffix = arguments.suffix.clone().unwrap_or_default();
    hand_over(&Ask::Plan(Planning {
        direction: if arguments.decrypt { Direction::Decrypt } else { Direction::Encrypt },
        source: text("SOURCE", &arguments.source)?.to_owned(),
        destination: text("DEST", &arguments.destination)?.to_owned(),
        suffix: text("SUFFIX", &suffix)?.to_owned(),
        wanted,
        no_ranges: arguments.no_ranges,
        output: arguments.output.clone(),
        force: arguments.force,
        quiet: arguments.quiet,
    }))
}
