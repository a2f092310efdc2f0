//! The page: what was asked and reached, then all cells.

use std::fmt::Write as _;
use std::path::Path;

use super::{Cell, Mode, Report};

impl Report {
    pub(super) fn page(&self, name: &Path) -> String {
        let stem = name.file_name().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let mut page = format!(
            "# {}\n\nWhat it means: [processes](processes.md). Columns and modes: [measuring](../design/measuring.md#many-processes-at-one-module). Every round: [{stem}.json]({stem}.json).\n\n",
            self.title
        );
        writeln!(
            page,
            "![throughput]({stem}.svg)\n\n![switches]({stem}-switches.svg)\n\n```\n$ {}\n```\n",
            self.commands.join("\n$ ")
        )
        .ok();
        self.circumstances.iter().chain(&self.conditions).for_each(|line| _ = writeln!(page, "- {line}"));
        let asked = self.asked();
        if !asked.is_empty() {
            page.push_str("\n| asked | of | reached | |\n|---|---|---|---|\n");
            for Asked { what, bound, reached, holds } in asked {
                writeln!(page, "| {what} | {bound} | {reached} | {} |", if holds { "yes" } else { "**no**" })
                    .ok();
            }
        }
        self.rates(&mut page);
        self.all(&mut page);
        page
    }

    /// Rates of all modes beside each other.
    fn rates(&self, page: &mut String) {
        let modes = self.modes();
        page.push_str("\nMB/s, medians; in brackets the simulator's, and live over it.\n\n| ");
        page.push_str(if self.cells.iter().any(|cell| !cell.case.work.is_empty()) {
            "work | processes |"
        } else {
            "processes |"
        });
        modes.iter().for_each(|mode| _ = write!(page, " {} |", mode.name()));
        page.push_str("\n|---|");
        (0..modes.len() + usize::from(self.cells.iter().any(|cell| !cell.case.work.is_empty())))
            .for_each(|_| page.push_str("---|"));
        page.push('\n');
        let mut rows: Vec<(&str, usize)> =
            self.cells.iter().map(|cell| (cell.case.work.as_str(), cell.case.processes)).collect();
        rows.dedup();
        for (work, processes) in rows {
            if !work.is_empty() {
                write!(page, "| {work} ").ok();
            }
            write!(page, "| {processes} |").ok();
            for mode in &modes {
                let is_it = |cell: &&Cell| {
                    cell.case.mode == *mode && cell.case.processes == processes && cell.case.work == work
                };
                write!(page, " {} |", self.cells.iter().find(is_it).map(rate).unwrap_or_default()).ok();
            }
            page.push('\n');
        }
    }

    /// All figures of all cells.
    fn all(&self, page: &mut String) {
        page.push_str("\nAll cells, medians:\n\n");
        page.push_str("| | processes | mode | requests each | MB/s | p50, us | p99, us | voluntary /MB | involuntary /MB | core ms /MB | fairness | busy |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
        for cell in &self.cells {
            let spread = cell.spread(|figures| figures.mb_per_s);
            let between =
                spread.map(|spread| format!("{:.2} [{:.2} {:.2}]", spread.median, spread.low, spread.high));
            write!(
                page,
                "| {} | {} | {} | {} | {} ",
                cell.case.work,
                cell.case.processes,
                cell.case.mode.name(),
                cell.requests,
                between.unwrap_or_default()
            )
            .ok();
            let median = |of| cell.median(of);
            write!(page, "| {:.0} | {:.0} ", median(|f| f.p50_us), median(|f| f.p99_us)).ok();
            write!(
                page,
                "| {:.1} | {:.1} ",
                median(|f| f.voluntary_per_mb),
                median(|f| f.involuntary_per_mb)
            )
            .ok();
            write!(page, "| {:.3} | {:.4} ", median(|f| f.core_ms_per_mb), median(|f| f.fairness)).ok();
            let busy = median(|figures| figures.busy.unwrap_or(f64::NAN));
            writeln!(page, "| {} |", if busy.is_finite() { format!("{busy:.3}") } else { String::new() })
                .ok();
        }
    }

    /// What the arbiter's one queue was asked to reach, as far as the cells tell.
    fn asked(&self) -> Vec<Asked> {
        let mut asked = Vec::new();
        let rate = |cell: &Cell| cell.median(|figures| figures.mb_per_s);
        let switches =
            |cell: &Cell| cell.median(|figures| figures.voluntary_per_mb + figures.involuntary_per_mb);
        let fifo = |processes| self.cell(Mode::Fifo, processes);
        let of_fifo = || self.cells.iter().filter(|cell| cell.case.mode == Mode::Fifo);
        if let Some(thousand) = fifo(1024) {
            let best = of_fifo().map(rate).fold(0.0, f64::max);
            asked.push(Asked::at_least(
                "fifo: throughput at 1024 processes over its best",
                0.95,
                rate(thousand) / best,
            ));
            let busy = thousand.median(|figures| figures.busy.unwrap_or(f64::NAN));
            if busy.is_finite() {
                asked.push(Asked::at_least("fifo: units busy at 1024 processes", 0.95, busy));
            }
        }
        if let (Some(few), Some(many)) = (fifo(64), fifo(1024)) {
            asked.push(Asked::at_most(
                "fifo: switches per MB at 1024 processes over those at 64",
                1.2,
                switches(many) / switches(few),
            ));
        }
        for cell in [8, 64, 512].into_iter().filter_map(fifo) {
            let what = format!("fifo: Jain's index at {} processes", cell.case.processes);
            asked.push(Asked::at_least(&what, 0.98, cell.median(|figures| figures.fairness)));
        }
        for cell in of_fifo() {
            if let Some(count) = cell.rounds.iter().filter_map(|figures| figures.out_of_order).max() {
                let what = format!(
                    "fifo: grants before an earlier ticket, {} processes, the worst round",
                    cell.case.processes
                );
                let holds = count == 0;
                asked.push(Asked { what, bound: "none".to_owned(), reached: count.to_string(), holds });
            }
        }
        for mode in [Mode::Lists64, Mode::Fifo] {
            let cells = self.cells.iter().filter(|cell| cell.case.mode == mode);
            let worst = cells
                .filter_map(|cell| Some((cell.of_predicted()?, cell)))
                .max_by(|one, other| off(one.0).total_cmp(&off(other.0)));
            if let Some((ratio, cell)) = worst {
                let what = format!(
                    "{}: live over simulated, the worst, at {} {} processes",
                    mode.name(),
                    cell.case.work,
                    cell.case.processes
                );
                asked.push(Asked {
                    what,
                    bound: "0.90 to 1.10".to_owned(),
                    reached: format!("{ratio:.3}"),
                    holds: off(ratio) <= 0.1,
                });
            }
        }
        asked
    }
}

/// How far from 1.
fn off(ratio: f64) -> f64 {
    (ratio - 1.0).abs()
}

struct Asked {
    what: String,
    bound: String,
    reached: String,
    holds: bool,
}

impl Asked {
    fn at_least(what: &str, bound: f64, reached: f64) -> Self {
        Self {
            what: what.to_owned(),
            bound: format!("at least {bound}"),
            reached: format!("{reached:.3}"),
            holds: reached >= bound,
        }
    }

    fn at_most(what: &str, bound: f64, reached: f64) -> Self {
        Self {
            what: what.to_owned(),
            bound: format!("at most {bound}"),
            reached: format!("{reached:.3}"),
            holds: reached <= bound,
        }
    }
}

fn rate(cell: &Cell) -> String {
    let live = cell.median(|figures| figures.mb_per_s);
    match (cell.predicted, cell.of_predicted()) {
        (Some(predicted), Some(ratio)) => format!("{live:.2} ({:.2}, {ratio:.3})", predicted.mb_per_s),
        _ => format!("{live:.2}"),
    }
}
