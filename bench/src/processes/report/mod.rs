//! What was measured, for people and for programs: a table, JSON with every round, a page, two pictures.

mod page;
mod pictures;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use evener_sim::crowd::Outcome;
use serde::{Deserialize, Serialize};

use super::{Experiment, Figures, Mode, Place};
use crate::error::BenchError;
use crate::medians::Spread;

/// All that a command measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// In a line.
    pub title: String,
    /// What was said to the program, each time that it was called.
    pub commands: Vec<String>,
    /// Date, machine, versions, a line each.
    pub circumstances: Vec<String>,
    /// What all processes did, a line each.
    pub conditions: Vec<String>,
    /// Cells by their processes, and of these by mode.
    pub cells: Vec<Cell>,
}

/// A number of processes in one mode, at one kind of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// What is done with what, where a report has several: empty otherwise.
    pub work: String,
    /// Bytes of a request.
    pub bytes: usize,
    /// How many processes.
    pub processes: usize,
    /// How they share the module.
    pub mode: Mode,
}

/// What was measured of one case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// Who did what; no other cell of a report has the same.
    #[serde(flatten)]
    pub case: Case,
    /// Requests of each process.
    pub requests: usize,
    /// Every round.
    pub rounds: Vec<Figures>,
    /// What the simulator says, where it knows the module.
    pub predicted: Option<Predicted>,
}

/// What the simulator says of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    /// 10^6 bytes a second.
    pub mb_per_s: f64,
    /// Of a request, in microseconds.
    pub p50_us: f64,
    /// The same.
    pub p99_us: f64,
    /// Jain's index when half of all requests were back.
    pub fairness: f64,
}

impl Predicted {
    /// Of what a simulation found.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    pub fn of(outcome: Outcome, bytes: usize) -> Option<Self> {
        let megabytes = (outcome.times.len() * bytes) as f64 / 1e6;
        let times = crate::medians::Quantiles::of(outcome.times)?;
        Some(Self {
            mb_per_s: megabytes / outcome.makespan.as_secs_f64(),
            p50_us: times.median.0 as f64 / 1e3,
            p99_us: times.p99.0 as f64 / 1e3,
            fairness: outcome.fairness,
        })
    }
}

impl Cell {
    /// The median of a figure over the rounds.
    #[must_use]
    pub fn median(&self, of: fn(&Figures) -> f64) -> f64 {
        self.spread(of).map_or(f64::NAN, |spread| spread.median)
    }

    /// The spread of a figure over the rounds.
    #[must_use]
    pub fn spread(&self, of: fn(&Figures) -> f64) -> Option<Spread> {
        let values: Vec<f64> = self.rounds.iter().map(of).filter(|value| value.is_finite()).collect();
        Spread::of(&values)
    }

    /// What was measured over what was predicted.
    #[must_use]
    pub fn of_predicted(&self) -> Option<f64> {
        self.predicted.map(|predicted| self.median(|figures| figures.mb_per_s) / predicted.mb_per_s)
    }

    /// A line of the table.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = format!("{:>6} {:>8}", self.case.processes, self.case.mode.name());
        let median = |of| self.median(of);
        write!(line, " {:>9.2}", median(|figures| figures.mb_per_s)).ok();
        match (self.predicted, self.of_predicted()) {
            (Some(predicted), Some(ratio)) => write!(line, " {:>9.2} {ratio:>6.3}", predicted.mb_per_s).ok(),
            _ => write!(line, " {:>9} {:>6}", "-", "-").ok(),
        };
        write!(line, " {:>10.0} {:>10.0}", median(|f| f.p50_us), median(|f| f.p99_us)).ok();
        write!(line, " {:>8.1} {:>8.1}", median(|f| f.voluntary_per_mb), median(|f| f.involuntary_per_mb))
            .ok();
        write!(line, " {:>8.3} {:>6.4}", median(|f| f.core_ms_per_mb), median(|f| f.fairness)).ok();
        let busy = median(|figures| figures.busy.unwrap_or(f64::NAN));
        if busy.is_finite() {
            write!(line, " {busy:>6.3}").ok()
        } else {
            write!(line, " {:>6}", "-").ok()
        };
        if let Some(out) = self.rounds.iter().filter_map(|figures| figures.out_of_order).max() {
            write!(line, "  {out} out of order").ok();
        }
        line
    }

    /// What stands above the lines.
    #[must_use]
    pub fn heading() -> String {
        format!(
            "{:>6} {:>8} {:>9} {:>9} {:>6} {:>10} {:>10} {:>8} {:>8} {:>8} {:>6} {:>6}",
            "procs",
            "mode",
            "MB/s",
            "predicted",
            "ratio",
            "p50 us",
            "p99 us",
            "vol/MB",
            "invol/MB",
            "ms/MB",
            "Jain",
            "busy"
        )
    }
}

impl Report {
    /// The cell of so many processes in a mode, of the first kind of work.
    #[must_use]
    pub fn cell(&self, mode: Mode, processes: usize) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.case.mode == mode && cell.case.processes == processes)
    }

    /// The modes that it has, in order.
    #[must_use]
    pub fn modes(&self) -> Vec<Mode> {
        let has = |mode: &Mode| self.cells.iter().any(|cell| cell.case.mode == *mode);
        Mode::ALL.into_iter().filter(has).collect()
    }

    /// The report that stands in NAME.json.
    ///
    /// # Errors
    ///
    /// [`BenchError::File`] where there is none.
    pub fn read(name: &Path) -> Result<Self, BenchError> {
        let path = name.with_extension("json");
        let refused = |error: String| BenchError::File { path: path.display().to_string(), error };
        let text = fs::read(&path).map_err(|error| refused(error.to_string()))?;
        serde_json::from_slice(&text).map_err(|error| refused(error.to_string()))
    }

    /// Takes the cells of an earlier report that this one does not have, and its commands: a measurement in parts.
    ///
    /// # Errors
    ///
    /// [`BenchError::File`] where there is none, or it says something else of the module.
    pub fn append_to(&mut self, name: &Path) -> Result<(), BenchError> {
        let path = name.with_extension("json");
        let refused = |error: String| BenchError::File { path: path.display().to_string(), error };
        let before = Self::read(name)?;
        if before.conditions.iter().any(|line| !self.conditions.contains(line))
            && self.conditions.iter().any(|line| !before.conditions.contains(line))
        {
            return Err(refused("it is of another measurement".to_owned()));
        }
        let is_replaced = |cell: &Cell| self.cells.iter().any(|ours| ours.case == cell.case);
        let others = before.cells.into_iter().filter(|cell| !is_replaced(cell));
        let mut cells: Vec<Cell> = others.collect();
        cells.append(&mut self.cells);
        // Works in the order in which they came.
        let mut works: Vec<String> = cells.iter().map(|cell| cell.case.work.clone()).collect();
        let mut seen = std::collections::BTreeSet::new();
        works.retain(|work| seen.insert(work.clone()));
        cells.sort_by_key(|cell| {
            (works.iter().position(|work| *work == cell.case.work), cell.case.processes, cell.case.mode)
        });
        self.cells = cells;
        self.commands.splice(0..0, before.commands);
        for line in before.circumstances {
            if !self.circumstances.contains(&line) {
                self.circumstances.push(line);
            }
        }
        let new: Vec<String> =
            before.conditions.into_iter().filter(|line| !self.conditions.contains(line)).collect();
        self.conditions.extend(new);
        Ok(())
    }

    /// Writes JSON, page and pictures beside each other, under one name and an ending each.
    ///
    /// # Errors
    ///
    /// [`BenchError::Write`].
    pub fn write(&self, name: &Path) -> Result<(), BenchError> {
        let refused =
            |path: &Path, error: String| BenchError::Write { path: path.display().to_string(), error };
        let write = |ending: &str, text: String| {
            let path = name.with_extension(ending);
            fs::write(&path, text).map_err(|error| refused(&path, error.to_string()))
        };
        let json = serde_json::to_string(self).map_err(|error| refused(name, error.to_string()))?;
        write(
            "json",
            json.replace("},{\"work\"", "},\n{\"work\"").replace("{\"wall_s\"", "\n  {\"wall_s\"") + "\n",
        )?;
        write("md", self.page(name))?;
        self.pictures(name)
    }
}

/// What is told of the emulated module, or of the one that is named, in lines.
#[must_use]
pub fn conditions(experiment: &Experiment, module: &str) -> Vec<String> {
    let Experiment { place, algorithm, bytes, units, core, service, permits, .. } = experiment;
    let mut lines = vec![format!("{algorithm}, {bytes} B a request, one request of a process at a time")];
    let told = format!("the arbiter is told {service} a request and has {permits} permits");
    lines.push(match place {
        Place::Host(_) if module == "cpu" => format!("a host's core; {told}"),
        Place::Host(_) => format!("a host of {module}; {told}"),
        Place::Kernel(name) => format!("{name}, in which each process sleeps by itself; {told}"),
        Place::Emulated => format!(
            "EMULATED: {units} units; a request takes {core} of a core and {service} of a unit; {permits} permits of the arbiter"
        ),
    });
    if let Some(core) = experiment.bound_to {
        lines.push(format!("all processes on core {core}"));
    }
    lines
}
