//! `evener bench files`: this command against others, on real files.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use evener_bench::BenchError;
use evener_bench::files::{Plan, Rival, Work, measure, usual_folders};
use evener_machine::processor::this_processor;

use crate::terminal::{Exit, ResultsFile, output, signals, units::parse_bytes};

/// Encrypts and decrypts real files: one large file and a tree of small ones, in memory and on disk.
///
/// Evener (Tink and age format) takes turns with cp, openssl enc and age, each started as a process; a program
/// that takes one file at a time is started by xargs on all cores. Where the folder is on a disk, everyone's
/// time ends when the output is on it. Ratios are taken within a run, with distribution-free bounds. All of it
/// happens in a new folder that is removed at the end.
#[derive(clap::Args)]
pub(crate) struct Files {
    /// Where; may be repeated. Unless given: /dev/shm, and the current directory where it is on a disk.
    #[arg(long = "dir", value_name = "DIR")]
    folders: Vec<PathBuf>,

    /// Size of the large file; 0 leaves it out.
    #[arg(long = "size", value_name = "SIZE", default_value = "1G", value_parser = parse_bytes)]
    large_bytes: u64,

    /// Files of the tree; 0 leaves it out.
    #[arg(long = "files", value_name = "N", default_value_t = 4_000)]
    file_count: u64,

    /// Size of each of them.
    #[arg(long = "file-size", value_name = "SIZE", default_value = "16K", value_parser = parse_bytes)]
    file_bytes: u64,

    /// A file or tree of yours instead, which is only read. There may be no links, devices and empty files in a tree.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["large_bytes", "file_count", "file_bytes"])]
    source: Option<PathBuf>,

    /// Turns of each program; from six on the bounds of a ratio hold with 95 per cent.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,

    /// Programs to compare with: cp, openssl, age; one that is not installed is left out.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "cp,openssl,age", value_parser = rival_parser())]
    rivals: Vec<Rival>,

    /// Writes the results as JSON (docs/reference/schemas/bench-files.schema.json).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn rival_parser() -> impl TypedValueParser<Value = Rival> {
    let named = |name: String| Rival::ALL.into_iter().find(|rival| rival.name() == name);
    PossibleValuesParser::new(Rival::ALL.map(Rival::name))
        .map(move |name| named(name).expect("a possible value is a rival"))
}

pub(crate) fn run(arguments: &Files) -> anyhow::Result<Exit> {
    let plan = arguments.plan()?;
    let json = ResultsFile::open(arguments.json.as_ref())?;
    let cancel = signals::cancel_on_signals()?;
    let results = match measure(&plan, &cancel, |what| output::line(format_args!("measuring {what}"))) {
        Err(BenchError::Stopped) => {
            output::line("stopped; nothing is left behind");
            return Ok(Exit::Stopped);
        }
        outcome => outcome?,
    };
    let kept = json.map_or(Ok(()), |file| file.write(&evener_bench::to_json(&results)));
    output::answer_beside(kept, results.to_text().as_bytes())
}

impl Files {
    fn plan(&self) -> anyhow::Result<Plan> {
        let works = match &self.source {
            Some(path) => vec![Work::of(path)?],
            None => vec![
                Work::Large { bytes: self.large_bytes },
                Work::Tree { count: self.file_count, bytes: self.file_bytes },
            ],
        };
        let folders = if self.folders.is_empty() { usual_folders() } else { self.folders.clone() };
        Ok(Plan {
            evener: std::env::current_exe().context("cannot find this command itself")?,
            folders,
            works,
            runs: usize::try_from(self.runs)?,
            rivals: self.rivals.clone(),
            processes: evener::core_budget().workers(),
            machine: this_processor().model,
        })
    }
}
