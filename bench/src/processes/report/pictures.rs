//! Throughput and switches over the number of processes.

use std::path::{Path, PathBuf};

use super::{Cell, Mode, Report};
use crate::error::BenchError;
use crate::plot::{Scale, Series, lines_over_counts};

impl Report {
    pub(super) fn pictures(&self, name: &Path) -> Result<(), BenchError> {
        let live = self.series("", false, |cell| Some(cell.median(|figures| figures.mb_per_s)));
        let simulated =
            self.series(", simulated", true, |cell| cell.predicted.map(|predicted| predicted.mb_per_s));
        let all: Vec<Series> = live.into_iter().chain(simulated).collect();
        lines_over_counts(
            &name.with_extension("svg"),
            &self.title,
            ["processes", "MB/s"],
            Scale::Logarithmic,
            &all,
        )?;
        let mut path = PathBuf::from(name);
        let stem = name.file_name().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        path.set_file_name(format!("{stem}-switches.svg"));
        let switches =
            |cell: &Cell| Some(cell.median(|figures| figures.voluntary_per_mb + figures.involuntary_per_mb));
        let title = format!("{}: switches", self.title);
        let lines = self.series("", false, switches);
        lines_over_counts(&path, &title, ["processes", "switches per MB"], Scale::Logarithmic, &lines)
    }

    /// A line for each mode, and for each kind of work where there are several.
    fn series(&self, ending: &str, dashed: bool, value: impl Fn(&Cell) -> Option<f64>) -> Vec<Series> {
        let mut works: Vec<&str> = self.cells.iter().map(|cell| cell.case.work.as_str()).collect();
        works.sort_unstable();
        works.dedup();
        // Of many works the largest requests, as the arbiter and paper 004 order them: more lines cannot be told apart.
        let largest = self.cells.iter().map(|cell| cell.case.bytes).max();
        let has_many = works.len() > 1;
        let is_drawn = |cell: &&Cell| {
            let is_ordered = matches!(cell.case.mode, Mode::Fifo | Mode::Flags);
            !has_many || Some(cell.case.bytes) == largest && is_ordered
        };
        let mut all = Vec::new();
        for work in works {
            for mode in self.modes() {
                let is_it = |cell: &&Cell| cell.case.mode == mode && cell.case.work == work;
                let cells = self.cells.iter().filter(is_drawn).filter(is_it);
                #[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
                let points = cells.filter_map(|cell| Some((cell.case.processes as f64, value(cell)?)));
                let name = format!("{} {work}{ending}", mode.name()).trim().replace(" ,", ",");
                let points: Vec<(f64, f64)> = points.collect();
                if !points.is_empty() {
                    all.push(Series { name, points, dashed });
                }
            }
        }
        all
    }
}
