//! What a byte costs the guest's core, on whichever clock it is.

use std::fmt::Write as _;

use serde_json::Value;

use crate::stored_report::{StoredReport, find, list, median, number, under};

/// Report, size in words, and what the module's core time may be at most, of that of the CPU alone.
const ASKED: [(&str, &str, f64); 4] = [
    ("busy-16k", "16 KiB", 0.6),
    ("busy-1m", "1 MiB", 0.25),
    ("busy-16k-counted", "16 KiB, by counted instructions", 0.6),
    ("busy-1m-counted", "1 MiB, by counted instructions", 0.25),
];
const POLICIES: [&str; 4] = ["cpu_only", "module_only", "shared_queue", "adaptive"];

/// The section; empty where nothing of it was run.
pub(crate) fn section(all: &[StoredReport]) -> anyhow::Result<String> {
    let rows: Vec<String> =
        ASKED.iter().filter_map(|row| Some(told(row, &find(all, row.0)?.report))).collect();
    if rows.is_empty() {
        return Ok(String::new());
    }
    let mut text = String::from(
        "\n## Core time of the guest per byte\n\nWhat the guest's core was not idle for, by `/proc/stat`. Nanoseconds per byte, and over `cpu_only`.\n\n| messages |",
    );
    for policy in POLICIES {
        write!(text, " {policy} |").ok();
    }
    text += " asked of module_only | |\n|---|---|---|---|---|---|---|\n";
    Ok(text + &rows.concat())
}

fn told((_, size, asked): &(&str, &str, f64), report: &Value) -> String {
    let mut text = format!("| {size} |");
    let Some(cell) = list(report, "cells").next() else { return String::new() };
    let alone = per_byte(cell, "cpu_only");
    let over = |policy| Some(per_byte(cell, policy)? / alone?);
    for policy in POLICIES {
        write!(text, " {} ({}) |", number(per_byte(cell, policy), 1), number(over(policy), 2)).ok();
    }
    let verdict =
        over("module_only").map_or("not measured", |ratio| if ratio <= *asked { "met" } else { "not met" });
    text + &format!(" at most {asked} | {verdict} |\n")
}

/// Nanoseconds for which the machine was busy for each byte.
fn per_byte(cell: &Value, policy: &str) -> Option<f64> {
    let busy_ms = median(&under(cell, policy)?["beside"], "busy_milliseconds")?;
    Some(busy_ms * 1e6 / cell["plain_bytes"].as_f64()?)
}
