//! Results as text, JSON (`docs/bench.md` has the schema) and pictures.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use crate::crypt::experiment::Experiment;
use crate::crypt::workload::Layout;
use crate::error::BenchError;
use crate::medians::Spread;
use crate::plot::{self, Scale, Series};

mod neighbours;

pub use neighbours::BesideResult;

/// Everything that a `bench crypt` measured.
#[derive(Debug, Serialize)]
pub struct Results {
    /// Name and version of this layout of the report.
    pub schema: &'static str,
    /// `AES-128-CBC`.
    pub algorithm: String,
    /// `encrypt` or `decrypt`.
    pub direction: String,
    /// Where input and output lay.
    pub layout: Layout,
    /// CPU workers.
    pub workers: usize,
    /// Visits of each contender to each cell.
    pub runs: usize,
    /// Part of a core that a hog wanted, in per cent, where rounds ran beside neighbours.
    pub hog_percent: Option<u8>,
    /// Requests that modules behind AF_ALG answered this process in all, whatever for, by their names: what they count themselves.
    pub module_requests: Vec<(String, u64)>,
    /// One entry per size.
    pub cells: Vec<CellResult>,
}

/// One cell.
#[derive(Debug, Serialize)]
pub struct CellResult {
    /// Plaintext bytes, or the name of a mix.
    pub cell: String,
    /// Jobs of a round.
    pub jobs: usize,
    /// Plaintext of a round, in bytes.
    pub plain_bytes: usize,
    /// In the order of the experiment.
    pub contenders: Vec<ContenderResult>,
    /// What neighbours got while no contender worked.
    pub nobody: Option<BesideResult>,
}

/// One contender at one cell.
#[derive(Debug, Serialize)]
pub struct ContenderResult {
    /// Who.
    pub contender: String,
    /// Whether an emulated module took part: then no figure here is a speed of Evener.
    pub emulated: bool,
    /// Rounds of all visits together.
    pub rounds: usize,
    /// Rounds of these that began while two workers shared a core: one of them began late.
    pub crowded_rounds: usize,
    /// Time of a round.
    pub milliseconds: Spread,
    /// Plaintext per time, in 10^6 bytes per second.
    pub megabytes_per_second: Spread,
    /// Core time of a round, all threads together, where it was measured.
    pub core_milliseconds: Option<Spread>,
    /// Time of a round by the paper's clock, creation and joining of threads included.
    pub paper_clock_milliseconds: Option<Spread>,
    /// Time of a request, where they came one at a time.
    pub request_microseconds: Option<Spread>,
    /// Time that 99 of 100 of them did not exceed.
    pub request_p99_microseconds: Option<Spread>,
    /// Jobs of all rounds by worker and method.
    pub shares: Vec<(String, u64)>,
    /// How many times faster than each baseline, and the adaptive policy than each other one, from pairs within one run.
    pub faster_than: Vec<(String, Spread)>,
    /// What neighbours got meanwhile, and what the machine was busy for.
    pub beside: Option<BesideResult>,
}

impl Results {
    /// Results of an experiment.
    #[must_use]
    pub fn new(experiment: &Experiment, cells: Vec<CellResult>) -> Self {
        Self {
            schema: "evener-bench-crypt/1",
            algorithm: experiment.algorithm.to_string(),
            direction: experiment.direction.to_string(),
            layout: experiment.layout,
            workers: experiment.workers,
            runs: experiment.runs,
            hog_percent: experiment.beside.map(|spec| spec.hog_percent),
            module_requests: Vec::new(),
            cells,
        }
    }

    /// The results as a table for people.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for cell in &self.cells {
            let width = cell.contenders.iter().map(|result| result.contender.len()).max().unwrap_or(0);
            let unit = if cell.cell.parse::<usize>().is_ok() { " B" } else { "" };
            writeln!(
                text,
                "{} {}, {} jobs of {}{unit}",
                self.algorithm, self.direction, cell.jobs, cell.cell
            )
            .ok();
            for result in &cell.contenders {
                writeln!(text, "  {:width$}  {}", result.contender, line(result)).ok();
            }
            if let Some(nobody) = &cell.nobody {
                writeln!(text, "  {:width$}  {}", "nobody", nobody.to_text().trim_start()).ok();
            }
        }
        text
    }
}

/// Median time and rate, what it used of the cores, ratios with their bounds.
fn line(result: &ContenderResult) -> String {
    let mut line =
        format!("{:9.3} ms {:9.1} MB/s", result.milliseconds.median, result.megabytes_per_second.median);
    if let Some(core) = result.core_milliseconds {
        write!(line, "  core {:8.3} ms", core.median).ok();
    }
    if let Some(paper) = result.paper_clock_milliseconds {
        write!(line, "  paper's clock {:8.3} ms", paper.median).ok();
    }
    for (baseline, ratio) in &result.faster_than {
        write!(line, "  {:.2} [{:.2} {:.2}] x {baseline}", ratio.median, ratio.low, ratio.high).ok();
    }
    if let (Some(median), Some(p99)) = (result.request_microseconds, result.request_p99_microseconds) {
        write!(line, "  request {:.2} us, 99 of 100 {:.2} us", median.median, p99.median).ok();
    }
    if result.crowded_rounds > 0 {
        write!(
            line,
            "  ({} of {} rounds began with two workers on a core)",
            result.crowded_rounds, result.rounds
        )
        .ok();
    }
    if let Some(beside) = &result.beside {
        line += &beside.to_text();
    }
    if result.emulated {
        line.push_str("  (emulated)");
    }
    line
}

impl Results {
    /// Draws rates over sizes, one line per contender, to the SVG file `path`. `machine` says where it was
    /// measured. Cells that are mixes of sizes have no place in the picture.
    ///
    /// # Errors
    ///
    /// [`BenchError::Write`].
    pub fn draw(&self, path: &Path, machine: &str) -> Result<(), BenchError> {
        let emulated = self.cells.iter().flat_map(|cell| &cell.contenders).any(|result| result.emulated);
        let what = format!("{} {}, {} workers", self.algorithm, self.direction, self.workers);
        let marked = if emulated { " (EMULATED module: no speed of Evener)" } else { "" };
        let title = format!("{what}{marked}\n{machine}");
        let mut series: Vec<Series> = Vec::new();
        for (cell, size) in self.cells.iter().filter_map(|cell| Some((cell, cell.cell.parse::<u32>().ok()?)))
        {
            for result in &cell.contenders {
                let point = (f64::from(size), result.megabytes_per_second.median);
                match series.iter_mut().find(|series| series.name == result.contender) {
                    Some(series) => series.points.push(point),
                    None => series.push(Series {
                        name: result.contender.clone(),
                        points: vec![point],
                        dashed: result.faster_than.is_empty(),
                    }),
                }
            }
        }
        plot::lines(path, &title, "plaintext per job", "10^6 bytes per second", Scale::Logarithmic, &series)
    }
}
