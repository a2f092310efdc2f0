//! Results as text, JSON (`docs/design/measuring.md` has the schema) and pictures.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use crate::crypt::bound::Bound;
use crate::crypt::experiment::Experiment;
use crate::crypt::workload::Layout;
use crate::error::BenchError;
use crate::plot::{self, Scale, Series};

mod contender;
mod neighbours;
mod packets;

pub use contender::{ContenderResult, RequestTimes, RoundTimes};
pub use neighbours::{BesideResult, HogResult, ProbeResult};
pub use packets::{ModulePackets, Packets};

/// Everything that a `bench crypt` measured.
#[derive(Debug, Serialize)]
pub struct Results {
    /// Name and version of this layout of the report.
    pub schema: &'static str,
    /// Where: board, processor, system.
    pub machine: String,
    /// What contenders did.
    #[serde(flatten)]
    pub work: WorkFacts,
    /// CPU workers.
    pub workers: usize,
    /// Visits of each contender to each cell.
    pub runs: usize,
    /// Part of a core that a hog wanted, in per cent, where rounds ran beside neighbours.
    pub hog_percent: Option<u8>,
    /// Requests that modules behind AF_ALG answered this process in all, whatever for, by their names: what they count themselves.
    pub module_requests: Vec<(String, u64)>,
    /// What requests take of the cores at each module, by themselves.
    pub modules: Vec<ModulePackets>,
    /// One entry per size.
    pub cells: Vec<CellResult>,
}

/// What contenders did.
#[derive(Debug, Serialize)]
pub struct WorkFacts {
    /// `AES-128-CBC`.
    pub algorithm: String,
    /// `encrypt` or `decrypt`.
    pub direction: String,
    /// Where input and output lay.
    pub layout: Layout,
}

/// One cell.
#[derive(Debug, Serialize)]
pub struct CellResult {
    /// Plaintext bytes, or the name of a mix.
    pub cell: String,
    /// What a round has to do.
    #[serde(flatten)]
    pub round: RoundFacts,
    /// In the order of the experiment.
    pub contenders: Vec<ContenderResult>,
    /// What neighbours got while no contender worked.
    pub nobody: Option<BesideResult>,
}

/// What a round of a cell has to do.
#[derive(Debug, Serialize)]
pub struct RoundFacts {
    /// Jobs.
    pub jobs: usize,
    /// Plaintext, in bytes.
    pub plain_bytes: usize,
}

impl Results {
    /// Results of an experiment.
    #[must_use]
    pub fn new(experiment: &Experiment, cells: Vec<CellResult>) -> Self {
        Self {
            schema: "evener-bench-crypt/1",
            machine: String::new(),
            work: WorkFacts {
                algorithm: experiment.work.algorithm.to_string(),
                direction: experiment.work.direction.to_string(),
                layout: experiment.work.layout,
            },
            workers: experiment.workers,
            runs: experiment.visits.runs,
            hog_percent: experiment.beside.map(|spec| spec.hog_percent),
            module_requests: Vec::new(),
            modules: Vec::new(),
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
                self.work.algorithm, self.work.direction, cell.round.jobs, cell.cell
            )
            .ok();
            for result in &cell.contenders {
                writeln!(text, "  {:width$}  {}", result.contender, result.line()).ok();
            }
            if let Some(nobody) = &cell.nobody {
                writeln!(text, "  {:width$}  {}", "nobody", nobody.to_text().trim_start()).ok();
            }
        }
        self.modules.iter().for_each(|module| text.push_str(&module.to_text()));
        text
    }
}

impl Results {
    /// Draws rates over sizes, one line per contender and one for what bounds them, to the SVG file `path`. `machine` says where
    /// it was measured. Cells that are mixes of sizes have no place in the picture.
    ///
    /// # Errors
    ///
    /// [`BenchError::Write`].
    pub fn draw(&self, path: &Path, machine: &str, bound: Option<Bound>) -> Result<(), BenchError> {
        let emulated = self.cells.iter().flat_map(|cell| &cell.contenders).any(|result| result.emulated);
        let workers =
            if self.workers == 1 { "1 worker".to_owned() } else { format!("{} workers", self.workers) };
        let what = format!("{} {}, {workers}", self.work.algorithm, self.work.direction);
        let marked = if emulated { " (EMULATED module: no speed of Evener)" } else { "" };
        let title = format!("{what}{marked}\n{machine}");
        let mut series: Vec<Series> = Vec::new();
        for (cell, size) in self.cells.iter().filter_map(|cell| Some((cell, cell.cell.parse::<u32>().ok()?)))
        {
            for result in &cell.contenders {
                let point = (f64::from(size), result.round.megabytes_per_second.median);
                let name = drawn(&result.contender);
                match series.iter_mut().find(|series| series.name == name) {
                    Some(series) => series.points.push(point),
                    None => series.push(Series {
                        name,
                        points: vec![point],
                        dashed: result.faster_than.is_empty(),
                    }),
                }
            }
        }
        series.extend(bound.map(|bound| Series { name: bound.name, points: bound.points, dashed: true }));
        plot::lines(path, &title, "size of a job", "MB/s", Scale::Logarithmic, &series)
    }
}

/// What the legend calls a contender: a copy bounds the others.
fn drawn(contender: &str) -> String {
    if contender.starts_with("copy") { format!("bound: a {contender}") } else { contender.to_owned() }
}
