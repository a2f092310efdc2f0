//! `evener sum`: lists of checksums as `sha256sum` and its kin write and check them, by all cores.
//!
//! Path: `line.rs` says how a line is written and read -> here a list is made, `check.rs` checks lists.

mod check;
mod line;

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use evener_files::FileError;
use evener_files::sums::{Digested, Hash, Input, Method, Told, digest_all};
use evener_machine::libraries::{means_of_hashes, unknown_drivers};
use evener_startup::was_closed;

use self::line::Style;
use crate::terminal::{Exit, PathDisplay, examples_help, output};

/// Writes or checks checksums of files and trees, as `sha256sum` does.
///
/// Every core hashes. Lists are those of `sha256sum`, byte for byte, and either checks the other's. A directory stands for all regular files below it, in the order in which
/// `LC_ALL=C sort` puts their paths; links in it are not followed.
#[derive(clap::Args)]
#[command(after_help = examples_help! {
    "evener sum photos >photos.sha256"
    "evener sum -c photos.sha256"
    "evener sum --algorithm sha512 --tag *.iso"
})]
pub(crate) struct Sum {
    /// Files, and directories of them; `-`, or none, is standard input.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The hash.
    #[arg(short, long, value_name = "HASH", value_parser = hashes(), default_value = Hash::Sha256.name())]
    algorithm: Hash,

    /// Marks names with `*`, as of files that were read as binary ones.
    #[arg(short, long, overrides_with = "text", conflicts_with = "check", help_heading = "Lists")]
    binary: bool,

    /// Marks names with a space, as by default.
    #[arg(short, long, overrides_with = "binary", conflicts_with_all = ["check", "tag"], help_heading = "Lists")]
    text: bool,

    /// Writes lines as BSD does, with the name of the hash.
    #[arg(long, conflicts_with = "check", help_heading = "Lists")]
    tag: bool,

    /// Ends lines with NUL, not with a newline, and names stand as they are.
    #[arg(short, long, conflicts_with = "check", help_heading = "Lists")]
    zero: bool,

    /// Reads lists from the files and checks what they name.
    #[arg(short, long, help_heading = "Check")]
    check: bool,

    /// Passes over files that are missing; a list of which no file was verified fails.
    #[arg(long, requires = "check", help_heading = "Check")]
    ignore_missing: bool,

    /// Says OK of no file.
    #[arg(long, requires = "check", overrides_with_all = ["status", "warn"], help_heading = "Check")]
    quiet: bool,

    /// Names only what cannot be read: the exit status tells.
    #[arg(long, requires = "check", overrides_with_all = ["quiet", "warn"], help_heading = "Check")]
    status: bool,

    /// Fails for lines that are none of a list.
    #[arg(long, requires = "check", help_heading = "Check")]
    strict: bool,

    /// Names lines that are none of a list.
    #[arg(short, long, requires = "check", overrides_with_all = ["quiet", "status"], help_heading = "Check")]
    warn: bool,

    /// Threads; unless given, as many as affinity and cgroup allow.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Work")]
    workers: Option<u16>,
}

/// Hashes by their names.
fn hashes() -> impl TypedValueParser<Value = Hash> {
    let hash = |name: String| Hash::ALL.into_iter().find(|hash| hash.name() == name);
    PossibleValuesParser::new(Hash::ALL.map(Hash::name)).try_map(move |name| hash(name).ok_or("no hash"))
}

pub(crate) fn run(arguments: &Sum) -> anyhow::Result<Exit> {
    let files = match &*arguments.files {
        [] => &[PathBuf::from("-")][..],
        files => files,
    };
    if files.iter().any(|file| is_stdin(file)) && was_closed(0) {
        bail!("standard input is closed");
    }
    unknown_drivers().iter().for_each(output::warning);
    let method = Method {
        hash: arguments.algorithm,
        means: means_of_hashes(),
        workers: arguments.workers.map_or_else(|| evener::core_budget().workers(), usize::from),
    };
    if arguments.check { check::all(arguments, files, method) } else { write(arguments, files, method) }
}

/// Writes a list.
fn write(arguments: &Sum, files: &[PathBuf], method: Method) -> anyhow::Result<Exit> {
    let style = Style {
        hash: method.hash,
        has_tag: arguments.tag,
        ends_with_zero: arguments.zero,
        is_binary: arguments.binary,
    };
    let input = |file: &PathBuf| if is_stdin(file) { Input::Stdin } else { Input::Tree(file.clone()) };
    let (mut answers, mut exit) = (Answers::default(), Exit::Done);
    digest_all::<anyhow::Error>(files.iter().map(input), method, |told| match told {
        Told::File(Digested { path, digest: Ok(digest) }) => answers.add(&style.line(&path, &digest)),
        Told::File(Digested { path, digest: Err(error) }) => {
            exit = Exit::SomeFailed;
            answers.flush()?;
            failed(&path, &error);
            Ok(())
        }
        Told::Flush => answers.flush(),
    })?;
    answers.end()?;
    Ok(exit)
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// The line for a file that cannot be read.
fn failed(path: &Path, error: &FileError) {
    output::line(format_args!("{}: {}", PathDisplay(path), output::one_line(&error.to_string())));
}

/// Lines on their way to standard output: many go at once, and the last of them when [`Told::Flush`] comes.
#[derive(Default)]
struct Answers {
    lines: Vec<u8>,
}

impl Answers {
    /// Bytes that are written at once.
    const FULL: usize = 64 << 10;

    fn add(&mut self, line: &[u8]) -> anyhow::Result<()> {
        self.lines.extend_from_slice(line);
        if self.lines.len() >= Self::FULL { self.flush() } else { Ok(()) }
    }

    /// Writes what is left, and hears whether all of it is there.
    fn end(mut self) -> anyhow::Result<()> {
        self.flush()?;
        output::end_answer().map(drop)
    }

    /// Writes what is left.
    fn flush(&mut self) -> anyhow::Result<()> {
        if !self.lines.is_empty() {
            output::part_of_answer(&self.lines)?;
            self.lines.clear();
        }
        Ok(())
    }
}
