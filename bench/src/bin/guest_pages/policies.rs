//! Policies over sizes: how many times as fast as the CPU alone, on the papers' board and in the guest.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use evener_bench::plot::{self, Scale, Series};
use evener_sim::papers::table::{
    SEED000_TABLE2, SEED002_TABLE_A1, SEED002_TABLE_A2, SEED002_TABLE2, SEED002_TABLE3, Table,
};
use serde_json::Value;

use crate::stored_report::{StoredReport, bytes, find, list, median, number, under};

/// A table of a paper and what repeats it.
struct Experiment {
    name: &'static str,
    title: &'static str,
    /// What was printed, and the column of sizes; none where the paper has a drawing only.
    printed: Option<(Table, &'static str)>,
}

impl Experiment {
    const fn of(name: &'static str, title: &'static str) -> Self {
        Self { name, title, printed: None }
    }

    const fn printed(self, table: Table, sizes: &'static str) -> Self {
        Self { printed: Some((table, sizes)), ..self }
    }
}

const EXPERIMENTS: [Experiment; 13] = [
    Experiment::of("aes-128-encrypt", "AES-128-CBC encryption (paper 002, table 2)")
        .printed(SEED002_TABLE2, "file_size_bytes"),
    Experiment::of("aes-192-encrypt", "AES-192-CBC encryption (paper 002, table A.1)")
        .printed(SEED002_TABLE_A1, "file_size_bytes"),
    Experiment::of("aes-256-encrypt", "AES-256-CBC encryption (paper 002, table A.2)")
        .printed(SEED002_TABLE_A2, "file_size_bytes"),
    Experiment::of("paper-000", "AES-256-CBC encryption, sizes of paper 000")
        .printed(SEED000_TABLE2, "file_size_bytes_nominal"),
    Experiment::of("aes-128-decrypt", "AES-128-CBC decryption"),
    Experiment::of("aes-192-decrypt", "AES-192-CBC decryption"),
    Experiment::of("aes-256-decrypt", "AES-256-CBC decryption"),
    Experiment::of("aes-128-even", "AES-128-CBC, core alone, 31 pairs"),
    Experiment::of("aes-256-even", "AES-256-CBC, core alone, 31 pairs"),
    Experiment::of("aes-128-near", "AES-128-CBC, 16 KiB, 15 pairs"),
    Experiment::of("aes-256-near", "AES-256-CBC, 16 KiB, 15 pairs"),
    Experiment::of("aes-128-mix", "AES-128-CBC, a uniform mix"),
    Experiment::of("aes-256-mix", "AES-256-CBC, a uniform mix"),
];

/// Our policies and the columns of the papers that mean the same.
const COLUMNS: [(&str, &[&str]); 6] = [
    ("cpu_only", &["cpu_only_ms"]),
    ("module_only", &["module_only_ms"]),
    ("round_robin", &["round_robin_ms"]),
    ("polling", &["polling_ms"]),
    ("shared_queue", &["proposed_ms", "module_and_cpu_ms"]),
    ("adaptive", &[]),
];

/// What adaptive is to be at least, of the best of the others.
const ASKED: f64 = 0.98;

/// What adaptive may take at most, of the lower bound.
const ASKED_OF_BOUND: f64 = 1.08;

/// All experiments that were run, with pictures in `folder`.
pub(crate) fn section(all: &[StoredReport], folder: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    for (ending, head) in [("", HEAD), (COUNTED, HEAD_COUNTED)] {
        let told = EXPERIMENTS.iter().map(|experiment| experiment.section(all, folder, ending));
        let told = told.collect::<anyhow::Result<Vec<_>>>()?.concat();
        if !told.is_empty() {
            text += &[head, &summary(all, ending), &told, &split(all, ending)?].concat();
        }
    }
    Ok(text)
}

/// What ends the names of reports from a guest whose clock counts instructions.
pub(crate) const COUNTED: &str = "-counted";

const HEAD: &str = "
## Policies over sizes

Times as fast as `cpu_only` of the same runs: paper's board / guest. Adaptive over the best of the others, and over the shared queue: median of the runs' ratios and its bounds. To the bound: time over the synchronous lower bound
of both paths, `c t / (c - d + t)` where `d < c`, else `c` ([c, t, d](../design/adaptive.md#turns-one-core-and-one-module-behind-the-kernel)). Core busy: by policy in the order of the columns. Paper 002 prints no numbers of
decryption. Mixes are of its eight sizes; asked there is 1.3 times the shared queue.
";

const HEAD_COUNTED: &str = "
## Policies over sizes, by counted instructions

The guest's clock counts instructions, 2 ns each, and so hardly strays; the module has real time.
";

impl Experiment {
    /// What is told of the report whose name ends so; nothing where it was not made.
    fn section(&self, all: &[StoredReport], folder: &Path, ending: &str) -> anyhow::Result<String> {
        let Some(kept) = find(all, &format!("{}{ending}", self.name)) else { return Ok(String::new()) };
        if has_sizes(&kept.report) {
            self.draw(&kept.report, &folder.join(&kept.name).with_extension("svg"))?;
        }
        self.told(kept)
    }

    fn told(&self, StoredReport { name, report, .. }: &StoredReport) -> anyhow::Result<String> {
        let mut text = format!("\n### {}\n\n", self.title);
        if has_sizes(report) {
            writeln!(text, "![{name}](guest/{name}.svg)\n").ok();
        }
        let columns: Vec<_> = COLUMNS
            .iter()
            .filter(|(policy, _)| list(report, "cells").any(|cell| under(cell, policy).is_some()))
            .collect();
        write!(text, "| bytes | jobs | cpu_only, ms |").ok();
        for (policy, _) in &columns[1..] {
            write!(text, " {policy} |").ok();
        }
        text += " adaptive / best | / shared_queue | to the bound |";
        let has_busy = list(report, "cells").any(|cell| busy(cell, "cpu_only").is_some());
        text += if has_busy { " core busy, % |\n|---|---|---|---|" } else { "\n|---|---|---|" };
        text += &"---|".repeat(columns.len() + 2);
        text.push('\n');
        for (row, cell) in list(report, "cells").enumerate() {
            let alone = under(cell, "cpu_only").and_then(|one| median(one, "milliseconds"));
            write!(text, "| {} | {} | {} |", name_of(cell), cell["jobs"], number(alone, 2)).ok();
            for (policy, printed) in &columns[1..] {
                let paper = self.printed_ratio(printed, row)?;
                let paper = paper.map_or_else(String::new, |ratio| format!("{ratio:.2} / "));
                write!(text, " {paper}{} |", number(ratio(cell, policy), 2)).ok();
            }
            let of_shared = spread(cell, "shared_queue");
            let bound = number(to_bound(cell), 2);
            write!(text, " {} | {} | {bound} |", told(of_best(cell)), told(of_shared)).ok();
            if has_busy {
                let each = columns.iter().map(|(policy, _)| number(busy(cell, policy), 0));
                write!(text, " {} |", each.collect::<Vec<_>>().join(" ")).ok();
            }
            text.push('\n');
        }
        Ok(text)
    }

    /// How many times as fast as CPU only the paper has it, in the row of the same size; its tables and our cells are in the
    /// same order.
    fn printed_ratio(&self, names: &[&str], row: usize) -> anyhow::Result<Option<f64>> {
        let Some((table, _)) = self.printed else { return Ok(None) };
        let Some(times) = names.iter().find_map(|name| table.numbers(name).ok()) else { return Ok(None) };
        Ok(Some(table.numbers("cpu_only_ms")?[row] / times[row]))
    }

    fn draw(&self, report: &Value, path: &Path) -> anyhow::Result<()> {
        let mut series = Vec::new();
        for (policy, printed) in &COLUMNS[1..] {
            let points = list(report, "cells").filter_map(|cell| Some((bytes(cell)?, ratio(cell, policy)?)));
            series.push(Series { name: format!("guest, {policy}"), points: points.collect(), dashed: false });
            let Some((table, sizes)) = self.printed else { continue };
            let sizes = table.numbers(sizes)?;
            let row = |(row, size): (usize, f64)| Some((size, self.printed_ratio(printed, row).ok()??));
            let points: Vec<_> = sizes.into_iter().enumerate().filter_map(row).collect();
            series.push(Series { name: format!("paper, {policy}"), points, dashed: true });
        }
        series.retain(|line| !line.points.is_empty());
        let title = format!("{}\nGuest of the test bed beside the paper's board", self.title);
        let (x, y) = ("plaintext per job", "times as fast as the CPU alone");
        plot::lines(path, &title, x, y, Scale::Logarithmic, &series).context("a picture")
    }
}

/// Whether there is anything to draw over sizes; a mix has none.
fn has_sizes(report: &Value) -> bool {
    list(report, "cells").any(|cell| bytes(cell).is_some())
}

/// How many times as fast as `cpu_only` of the same cell.
fn ratio(cell: &Value, policy: &str) -> Option<f64> {
    let time = |policy| median(under(cell, policy)?, "milliseconds");
    Some(time("cpu_only")? / time(policy)?)
}

/// For how much of the time the guest's core was not idle, in per cent.
fn busy(cell: &Value, policy: &str) -> Option<f64> {
    Some(100.0 * median(&under(cell, policy)?["beside"], "busy_cores")?)
}

/// What a cell is called: its size, or that of a mix.
fn name_of(cell: &Value) -> &str {
    cell["cell"].as_str().unwrap_or("-")
}

/// A median with its bounds.
#[derive(Clone, Copy)]
struct Bounded {
    median: f64,
    low: f64,
    high: f64,
}

/// The rate of adaptive over that of another policy, pair by pair.
fn spread(cell: &Value, policy: &str) -> Option<Bounded> {
    let name = format!("evener {policy}");
    let pair = list(under(cell, "adaptive")?, "faster_than").find(|pair| pair[0] == name.as_str())?;
    let value = |name: &str| pair[1][name].as_f64();
    Some(Bounded { median: value("median")?, low: value("low")?, high: value("high")? })
}

/// The same over the best of the others.
fn of_best(cell: &Value) -> Option<Bounded> {
    let others = COLUMNS.iter().map(|(policy, _)| *policy).filter(|policy| *policy != "adaptive");
    let of = |policy| Some((policy, ratio(cell, policy)?));
    let best = others.filter_map(of).max_by(|one, other| one.1.total_cmp(&other.1))?;
    spread(cell, best.0)
}

/// The time of adaptive over the synchronous lower bound: `c t / (c - d + t)` where `d < c`, else `c`, of all jobs of the cell together. `t` is
/// the time of the module alone and `d` what the core was busy for meanwhile; all of it where that was not measured.
fn to_bound(cell: &Value) -> Option<f64> {
    let time = |policy| median(under(cell, policy)?, "milliseconds");
    let [c, t] = [time("cpu_only")?, time("module_only")?];
    let d = t * busy(cell, "module_only").map_or(1.0, |percent| percent.min(100.0) / 100.0);
    let bound = if d < c { c * t / (c - d + t) } else { c };
    Some(time("adaptive")? / bound)
}

fn told(spread: Option<Bounded>) -> String {
    let told = |Bounded { median, low, high }| format!("{median:.2} [{low:.2} {high:.2}]");
    spread.map_or_else(|| "-".to_owned(), told)
}

/// Where adaptive is as asked, where it is short, and where it is so whatever the bounds: a row for each experiment.
fn summary(all: &[StoredReport], ending: &str) -> String {
    let mut text = format!(
        "\n| adaptive in | at least {ASKED} of the best | surely not (bounds below) | at most {ASKED_OF_BOUND} of the bound |\n|---|---|---|---|\n"
    );
    for Experiment { name, title, .. } in &EXPERIMENTS {
        let Some(kept) = find(all, &format!("{name}{ending}")) else { continue };
        writeln!(text, "| {title} |{}", verdict(&kept.report)).ok();
    }
    text
}

fn verdict(report: &Value) -> String {
    let (mut all, mut good, mut short) = (0, 0, Vec::new());
    for cell in list(report, "cells") {
        let Some(best) = of_best(cell) else { continue };
        all += 1;
        good += usize::from(best.median >= ASKED);
        if best.high < ASKED {
            short.push(name_of(cell));
        }
    }
    let short = if short.is_empty() { "nowhere".to_owned() } else { short.join(", ") };
    let bounds: Vec<f64> = list(report, "cells").filter_map(to_bound).collect();
    let near = bounds.iter().filter(|&&times| times <= ASKED_OF_BOUND).count();
    format!(" {good} of {all} | {short} | {near} of {} |", bounds.len())
}

/// How many of the jobs the module took, beside paper 002's table 3.
fn split(all: &[StoredReport], ending: &str) -> anyhow::Result<String> {
    let Some(kept) = find(all, &format!("aes-128-encrypt{ending}")) else { return Ok(String::new()) };
    let mut text = String::from(
        "\n### Jobs on the module (paper 002, table 3)\n\nIn per cent of all jobs: paper / guest.\n\n\
         | bytes | polling | shared_queue | adaptive |\n|---|---|---|---|\n",
    );
    let [polling, shared] =
        ["polling_module_files", "proposed_module_files"].map(|name| SEED002_TABLE3.numbers(name));
    let (polling, shared) = (polling?, shared?);
    for (row, cell) in list(&kept.report, "cells").enumerate() {
        let ours = |policy| number(under(cell, policy).and_then(on_module), 0);
        writeln!(
            text,
            "| {} | {:.0} / {} | {:.0} / {} | {} |",
            name_of(cell),
            polling[row] / 40.0,
            ours("polling"),
            shared[row] / 40.0,
            ours("shared_queue"),
            ours("adaptive")
        )
        .ok();
    }
    Ok(text)
}

/// Per cent of a contender's jobs that the module did.
fn on_module(contender: &Value) -> Option<f64> {
    let (mut module, mut whole) = (0.0, 0.0);
    for share in list(contender, "shares") {
        let jobs = share[1].as_f64()?;
        whole += jobs;
        module += if share[0].as_str()?.starts_with("cpu ") { 0.0 } else { jobs };
    }
    (whole > 0.0).then(|| 100.0 * module / whole)
}
