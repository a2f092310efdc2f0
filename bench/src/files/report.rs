//! Results as text and JSON (`docs/reference/schemas/bench-files.schema.json` describes it).

use std::fmt::Write as _;

use evener_core::Direction;
use serde::Serialize;

use super::contender::Contender;
pub use super::program::Program;
use super::{Contest, Plan, Rival};
use crate::medians::Spread;
use crate::programs::stopwatch::Used;

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub struct Results {
    /// Name and version of this layout.
    pub schema: &'static str,
    /// Where.
    pub machine: String,
    /// Who took part, or could not.
    pub programs: Vec<Program>,
    /// Turns of each contender.
    pub runs: usize,
    /// Processes side by side where a program takes one file at a time.
    pub processes: usize,
    /// One per folder, work and direction.
    pub cells: Vec<CellResult>,
}

/// One work in one folder in one direction.
#[derive(Debug, Serialize)]
pub struct CellResult {
    /// As it was given.
    pub folder: String,
    /// `tmpfs`, `ext4`.
    pub file_system: &'static str,
    /// Whether everyone's time ends when the output is on the disk.
    pub synced: bool,
    /// `large file`, `tree` or `own files`.
    pub work: &'static str,
    /// `encrypt` or `decrypt`.
    pub direction: String,
    /// Files of the source.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Rivals first.
    pub contenders: Vec<ContenderResult>,
}

impl CellResult {
    /// `used` has one row per contender, one entry per run.
    pub(super) fn new(contest: &Contest<'_>, direction: Direction, used: &[Vec<Used>]) -> Self {
        let rows: Vec<_> = contest.contenders.iter().copied().zip(used).collect();
        let shape = contest.shape;
        Self {
            folder: contest.folder.display().to_string(),
            file_system: contest.work_dir.file_system(),
            synced: contest.work_dir.is_on_disk(),
            work: contest.work.name(),
            direction: direction.to_string(),
            files: shape.files,
            bytes: shape.bytes,
            contenders: rows
                .iter()
                .filter_map(|&row| ContenderResult::new(row, &rows, shape.bytes))
                .collect(),
        }
    }
}

/// One contender in one cell.
#[derive(Debug, Serialize)]
pub struct ContenderResult {
    /// Who.
    pub contender: &'static str,
    /// Wall time, process start and end included.
    pub seconds: Spread,
    /// Time of all cores together, user and system.
    pub core_seconds: Spread,
    /// Bytes of the source per wall time, in 10^6 bytes per second.
    pub megabytes_per_second: Spread,
    /// For Evener: its time divided by each rival's, from pairs within one run.
    pub time_against: Vec<Ratio>,
}

/// A ratio to a rival.
#[derive(Debug, Serialize)]
pub struct Ratio {
    /// Whom it is compared with.
    pub rival: &'static str,
    /// Below 1: Evener takes less time.
    pub ratio: Spread,
}

type Row<'u> = (Contender, &'u Vec<Used>);

impl ContenderResult {
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 53 bits")]
    fn new((contender, used): Row<'_>, all: &[Row<'_>], bytes: u64) -> Option<Self> {
        let seconds = Spread::of(&walls(used))?;
        let core: Vec<f64> = used.iter().map(|used| used.core.as_secs_f64()).collect();
        let rivals = all.iter().filter(|row| contender.is_evener() && !row.0.is_evener());
        let ratio = |&(rival, theirs): &Row<'_>| {
            Some(Ratio { rival: rival.name(), ratio: Spread::of(&ratios(used, theirs))? })
        };
        Some(Self {
            contender: contender.name(),
            seconds,
            core_seconds: Spread::of(&core)?,
            megabytes_per_second: seconds.inverse(bytes as f64 / 1e6),
            time_against: rivals.filter_map(ratio).collect(),
        })
    }
}

fn walls(used: &[Used]) -> Vec<f64> {
    used.iter().map(|used| used.wall.as_secs_f64()).collect()
}

fn ratios(ours: &[Used], theirs: &[Used]) -> Vec<f64> {
    walls(ours).iter().zip(walls(theirs)).map(|(ours, theirs)| ours / theirs).collect()
}

impl Results {
    pub(super) fn new(plan: &Plan, programs: Vec<Program>, cells: Vec<CellResult>) -> Self {
        let (machine, runs, processes) = (plan.machine.clone(), plan.runs, plan.processes);
        Self { schema: "evener-bench-files/1", machine, programs, runs, processes, cells }
    }

    /// The results as a table for people.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for cell in &self.cells {
            text.push_str(&cell.heading());
            cell.contenders.iter().for_each(|result| text.push_str(&result.lines()));
        }
        for program in &self.programs {
            writeln!(text, "{}: {}", program.name, program.version.as_deref().unwrap_or("not installed"))
                .ok();
        }
        if let Some(level) = self.level() {
            writeln!(text, "{}; {} runs; bounds in brackets hold with {level:.1} %", self.machine, self.runs)
                .ok();
        }
        text
    }

    fn level(&self) -> Option<f64> {
        Some(self.cells.first()?.contenders.first()?.seconds.level * 100.0)
    }
}

impl CellResult {
    fn heading(&self) -> String {
        let Self { work, direction, file_system, folder, files, bytes, .. } = self;
        let synced = if self.synced { ", synced" } else { "" };
        format!("{work}, {direction}: {files} files, {bytes} bytes on {file_system} ({folder}){synced}\n")
    }
}

impl ContenderResult {
    /// A line with times and rate, and one for each rival.
    fn lines(&self) -> String {
        let Self { contender, seconds, core_seconds, megabytes_per_second, time_against } = self;
        let mut text = format!(
            "  {contender:12} {} s {:9.1} MB/s  core {:7.3} s\n",
            bounded(*seconds, 3),
            megabytes_per_second.median,
            core_seconds.median
        );
        for Ratio { rival, ratio } in time_against {
            let said = if *rival == Rival::Copy.name() {
                format!("{} x the time of {rival}", bounded(*ratio, 2))
            } else {
                format!("{} x as fast as {rival}", bounded(ratio.inverse(1.0), 2))
            };
            writeln!(text, "  {:12} {said}", "").ok();
        }
        text
    }
}

fn bounded(spread: Spread, decimals: usize) -> String {
    let Spread { median, low, high, .. } = spread;
    format!("{median:.decimals$} [{low:.decimals$} {high:.decimals$}]")
}
