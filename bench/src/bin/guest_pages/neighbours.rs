//! What policies leave to others (paper 002, 3.1 and 3.3, which measured none of it).

use std::fmt::Write as _;

use serde_json::Value;

use crate::kept::{Kept, bytes, list, median, number, under};

const POLICIES: [&str; 5] = ["cpu_only", "module_only", "round_robin", "shared_queue", "adaptive"];

/// The section; empty where nothing of it was run.
pub(crate) fn section(all: &[Kept]) -> anyhow::Result<String> {
    let mut reports: Vec<&Value> =
        all.iter().filter(|kept| kept.name.starts_with("hog-")).map(|kept| &kept.report).collect();
    reports.sort_by_key(|report| report["hog_percent"].as_u64());
    if reports.is_empty() {
        return Ok(String::new());
    }
    let mut text = String::from(
        "\n## Other programs (paper 002, claim of 3.1 and 3.3)\n\nA program that wants part of the core, and one that is woken by \
         alarms, beside each policy ([bench](../bench.md), neighbours). The paper claims that others are affected less than without its \
         design, and measured nothing of it. Asked: adaptive leaves others no less than `shared_queue`.\n",
    );
    let wanted = |report: &Value| format!("wants {} %", report["hog_percent"]);
    let hogs: Vec<&Value> = reports.iter().copied().filter(|report| report["hog_percent"] != 0).collect();
    let speed = |beside: &Value| median(beside, "hog_speed").map(|value| value * 100.0);
    text += &table("Work of the hog, in per cent of what it does alone", &hogs, wanted, speed);
    let share = |beside: &Value| median(beside, "hog_share").map(|value| value * 100.0);
    text += &table("Core time of the hog, in per cent of the core", &hogs, wanted, share);
    let late = |name: &'static str| move |beside: &Value| median(beside, name);
    let title = "How late the probe wakes, in microseconds: median";
    text += &table(title, &reports, wanted, late("late_microseconds"));
    let title = "How late the probe wakes, in microseconds: 99 of 100 no later";
    text += &table(title, &reports, wanted, late("late_p99_microseconds"));
    Ok(text + &verdict(&reports))
}

fn table(
    title: &str,
    reports: &[&Value],
    wanted: impl Fn(&Value) -> String,
    value: impl Fn(&Value) -> Option<f64>,
) -> String {
    let mut text = format!("\n### {title}\n\n| hog | bytes | nobody |");
    POLICIES.iter().for_each(|policy| write!(text, " {policy} |").unwrap_or_default());
    text += "\n|---|---|---|---|---|---|---|---|\n";
    for report in reports {
        for cell in list(report, "cells") {
            let nobody = number(value(&cell["nobody"]), 0);
            write!(text, "| {} | {} | {nobody} |", wanted(report), number(bytes(cell), 0)).ok();
            for policy in POLICIES {
                let got = under(cell, policy).and_then(|one| value(&one["beside"]));
                write!(text, " {} |", number(got, 0)).ok();
            }
            text.push('\n');
        }
    }
    text
}

/// In how many cells others do no worse: bounds of the medians that overlap count as equal.
fn verdict(reports: &[&Value]) -> String {
    let mut text = String::from(
        "\n### In short\n\nCells in which others do better, or as well within the bounds of the medians:\n\n",
    );
    for [ours, theirs] in [["adaptive", "shared_queue"], ["shared_queue", "cpu_only"]] {
        for (what, name, more_is_better) in
            [("work of the hog", "hog_speed", true), ("probe, 99 of 100", "late_p99_microseconds", false)]
        {
            let (mut good, mut bad) = (0, Vec::new());
            for (percent, cell) in cells(reports) {
                let bounds = |policy| {
                    let spread = &under(cell, policy)?["beside"][name];
                    Some((spread["low"].as_f64()?, spread["high"].as_f64()?))
                };
                let Some((ours, theirs)) = bounds(ours).zip(bounds(theirs)) else { continue };
                if if more_is_better { ours.1 >= theirs.0 } else { ours.0 <= theirs.1 } {
                    good += 1;
                } else {
                    bad.push(format!("{} B beside {percent} %", number(bytes(cell), 0)));
                }
            }
            let all = good + bad.len();
            let where_bad =
                if bad.is_empty() { String::new() } else { format!("; worse: {}", bad.join(", ")) };
            writeln!(text, "- {what}, beside {ours} rather than {theirs}: {good} of {all}{where_bad}").ok();
        }
    }
    text
}

/// All cells, each with what the hog wants in per cent.
fn cells<'r>(reports: &[&'r Value]) -> impl Iterator<Item = (u64, &'r Value)> {
    let of = |report: &&'r Value| {
        let percent = report["hog_percent"].as_u64().unwrap_or(0);
        list(report, "cells").map(move |cell| (percent, cell)).collect::<Vec<_>>()
    };
    reports.iter().flat_map(of).collect::<Vec<_>>().into_iter()
}
