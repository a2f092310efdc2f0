//! Policies over sizes: how many times as fast as the CPU alone, on the papers' board and in the guest.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use evener_bench::draw::{self, Scale, Series};
use evener_sim::papers::table::{
    SEED000_TABLE2, SEED002_TABLE_A1, SEED002_TABLE_A2, SEED002_TABLE2, SEED002_TABLE3, Table,
};
use serde_json::Value;

use crate::kept::{Kept, bytes, find, list, median, number, under};

/// A table of a paper and what repeats it.
struct Experiment {
    name: &'static str,
    title: &'static str,
    /// What was printed, and the column of sizes; none where the paper has a drawing only.
    printed: Option<(Table, &'static str)>,
    note: &'static str,
}

const NO_NUMBERS: &str = "Paper 002 draws decryption with AES-128 (figure A.3) and prints no numbers of it.";

const EXPERIMENTS: [Experiment; 7] = [
    Experiment {
        name: "aes-128-encrypt",
        title: "AES-128-CBC encryption (paper 002, table 2)",
        printed: Some((SEED002_TABLE2, "file_size_bytes")),
        note: "",
    },
    Experiment {
        name: "aes-192-encrypt",
        title: "AES-192-CBC encryption (paper 002, table A.1)",
        printed: Some((SEED002_TABLE_A1, "file_size_bytes")),
        note: "",
    },
    Experiment {
        name: "aes-256-encrypt",
        title: "AES-256-CBC encryption (paper 002, table A.2)",
        printed: Some((SEED002_TABLE_A2, "file_size_bytes")),
        note: "",
    },
    Experiment {
        name: "paper-000",
        title: "AES-256-CBC encryption at the sizes of paper 000 (table 2)",
        printed: Some((SEED000_TABLE2, "file_size_bytes_nominal")),
        note: "",
    },
    Experiment { name: "aes-128-decrypt", title: "AES-128-CBC decryption", printed: None, note: NO_NUMBERS },
    Experiment { name: "aes-192-decrypt", title: "AES-192-CBC decryption", printed: None, note: NO_NUMBERS },
    Experiment { name: "aes-256-decrypt", title: "AES-256-CBC decryption", printed: None, note: NO_NUMBERS },
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

/// All experiments that were run, with pictures in `folder`.
pub(crate) fn section(all: &[Kept], folder: &Path) -> anyhow::Result<String> {
    let mut text = String::from(
        "\n## Policies over sizes\n\nTimes as fast as `cpu_only` of the same run, of the paper's board and of the guest: paper / guest. \
         Last: adaptive over the best of the other policies; asked is 0.98.\n",
    );
    for experiment in &EXPERIMENTS {
        if let Some(kept) = find(all, experiment.name) {
            text += &experiment.told(&kept.report)?;
            experiment.draw(&kept.report, folder)?;
        }
    }
    Ok(text + &split(all)?)
}

impl Experiment {
    fn told(&self, report: &Value) -> anyhow::Result<String> {
        let Self { name, title, note, .. } = self;
        let mut text = format!("\n### {title}\n\n![{title}](guest/{name}.svg)\n\n");
        if !note.is_empty() {
            writeln!(text, "{note}\n").ok();
        }
        let columns: Vec<_> = COLUMNS
            .iter()
            .filter(|(policy, _)| list(report, "cells").any(|cell| under(cell, policy).is_some()))
            .collect();
        write!(text, "| bytes | jobs | cpu_only, ms |").ok();
        for (policy, _) in &columns[1..] {
            write!(text, " {policy} |").ok();
        }
        text += " adaptive / best |\n|---|---|---|";
        text += &"---|".repeat(columns.len());
        text.push('\n');
        for (row, cell) in list(report, "cells").enumerate() {
            let alone = under(cell, "cpu_only").and_then(|one| median(one, "milliseconds"));
            write!(text, "| {} | {} | {} |", number(bytes(cell), 0), cell["jobs"], number(alone, 2)).ok();
            for (policy, printed) in &columns[1..] {
                let paper = self.printed_ratio(printed, row)?;
                let paper = paper.map_or_else(String::new, |ratio| format!("{ratio:.2} / "));
                write!(text, " {paper}{} |", number(ratio(cell, policy), 2)).ok();
            }
            writeln!(text, " {} |", number(of_best(cell), 2)).ok();
        }
        let worst = list(report, "cells").filter_map(of_best).fold(f64::INFINITY, f64::min);
        let verdict = if worst >= ASKED { "as asked" } else { "short of what is asked" };
        if worst.is_finite() {
            writeln!(
                text,
                "\nAdaptive over the best of the others, at its worst size: {worst:.2}, {verdict}."
            )
            .ok();
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

    fn draw(&self, report: &Value, folder: &Path) -> anyhow::Result<()> {
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
        let path = folder.join(self.name).with_extension("svg");
        let title = format!("{}\nGuest of the test bed beside the paper's board", self.title);
        let (x, y) = ("plaintext per job", "times as fast as the CPU alone");
        draw::lines(&path, &title, x, y, Scale::Logarithmic, &series).context("a picture")
    }
}

/// How many times as fast as `cpu_only` of the same cell.
fn ratio(cell: &Value, policy: &str) -> Option<f64> {
    let time = |policy| median(under(cell, policy)?, "milliseconds");
    Some(time("cpu_only")? / time(policy)?)
}

/// The rate of adaptive over that of the best of the others.
fn of_best(cell: &Value) -> Option<f64> {
    let others = COLUMNS.iter().map(|(policy, _)| *policy).filter(|policy| *policy != "adaptive");
    let best = others.filter_map(|policy| ratio(cell, policy)).fold(0.0, f64::max);
    Some(ratio(cell, "adaptive")? / best)
}

/// How many of the jobs the module took, beside paper 002's table 3.
fn split(all: &[Kept]) -> anyhow::Result<String> {
    let Some(kept) = find(all, "aes-128-encrypt") else { return Ok(String::new()) };
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
            number(bytes(cell), 0),
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
        module += if share[0].as_str()?.contains("afalg:") { jobs } else { 0.0 };
    }
    (whole > 0.0).then(|| 100.0 * module / whole)
}
