//! Options of every run over files: how much it says, where its report goes, threads and memory.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use evener_fd::atomic_file;
use evener_files::run_report::Report;
use evener_files::{Filter, Naming, Source};

use super::keys::STDIN_FILE;
use super::report_place::{self, Used};
use crate::terminal::{Exit, PathDisplay, output, units};

/// Memory for data in work unless told otherwise; with code and stacks a run stays under 256 MiB.
const MEMORY_BYTES: u64 = 192 << 20;

#[derive(clap::Args)]
pub(super) struct CommonOptions {
    /// Says nothing but failures.
    #[arg(short, long, help_heading = "Report")]
    pub(super) quiet: bool,

    /// Writes what was done as JSON.
    ///
    /// By whom and how (docs/reference/schemas/report.schema.json); `-` is standard output.
    #[arg(long, value_name = "REPORT", help_heading = "Report")]
    pub(super) json: Option<PathBuf>,

    /// Threads that work on the CPU.
    ///
    /// Unless given, as many as affinity and cgroup allow.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Scheduling")]
    workers: Option<u16>,

    /// Most memory for data in work, such as 64M or 1G.
    ///
    /// Unless given, 192M.
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes, help_heading = "Scheduling")]
    pub(super) memory: Option<u64>,
}

impl CommonOptions {
    pub(super) fn workers(&self) -> usize {
        self.workers.map_or_else(|| evener::core_budget().workers(), usize::from)
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory.unwrap_or(MEMORY_BYTES)
    }

    /// Whether a report may go where it is wanted; see [`report_place::check`].
    pub(super) fn check_report(
        &self,
        sources: &[Source],
        key_files: &[PathBuf],
        made: Vec<Used>,
        (filter, naming): (&Filter, &Naming),
    ) -> anyhow::Result<()> {
        let Some(report) = self.json.as_deref().filter(|report| *report != Path::new("-")) else {
            return Ok(());
        };
        let read = sources.iter().map(|source| match source {
            Source::Path(path) if path.is_dir() => Used::ReadAll(path.clone()),
            Source::Path(path) => Used::Read(path.clone()),
            Source::Stdin => Used::Read(STDIN_FILE.into()),
        });
        let keys = key_files.iter().cloned().map(Used::Read);
        let used: Vec<Used> = read.chain(keys).chain(made).collect();
        report_place::check(report, &used, filter, naming)
    }

    /// Writes a report where one is wanted, of a run that ended so. Where it cannot be written, that is said, and all that was done is no success any more.
    pub(super) fn write_after(&self, exit: Exit, report: &Report) -> Exit {
        match self.write(report) {
            Ok(()) => exit,
            Err(error) => {
                output::failure(&error);
                if exit == Exit::Done { Exit::SomeFailed } else { exit }
            }
        }
    }

    fn write(&self, report: &Report) -> anyhow::Result<()> {
        let Some(file) = self.json.as_deref() else { return Ok(()) };
        let json = serde_json::to_string_pretty(report)? + "\n";
        if file == Path::new("-") {
            return output::answer(json.as_bytes()).map(drop);
        }
        atomic_file::write_named(file, json.as_bytes())
            .with_context(|| format!("cannot write the report {}", PathDisplay(file)))
    }
}
