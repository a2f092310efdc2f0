//! The end of a run for the eye: failures one a line, then one summary.

use std::fmt::Write as _;

use crate::quantity::{bytes, counted, percent, rate};
use crate::report::{Entry, Report, Worker};
use crate::say;

/// Entries of a list that are shown one by one; the rest is counted.
const SHOWN_MAX: usize = 20;

/// A line for each file that failed.
pub(crate) fn failures(report: &Report) {
    for Entry { path, reason } in report.failed.iter().take(SHOWN_MAX) {
        say::line(format_args!("{path}: {reason}"));
    }
    if let Some(more @ 1..) = report.failed.len().checked_sub(SHOWN_MAX) {
        say::line(format_args!("and {} more failed; --json names all", counted(more as u64, "file")));
    }
}

/// What was done, by whom, and what was left out.
pub(crate) fn text(report: &Report) -> String {
    let (files, size) = (counted(report.files, "file"), bytes(report.bytes_in));
    let stopped = if report.is_stopped() { "stopped; " } else { "" };
    let mut text = format!("{stopped}{}ed {files}, {size} in {:.3} s", report.direction, report.seconds);
    if report.bytes_in > 0 {
        write!(text, " ({})", rate(report.bytes_in, report.seconds)).expect("a String takes everything");
    }
    let emulated = report.emulated();
    if !emulated.is_empty() {
        let what = emulated.join(" and ");
        write_line(&mut text, format_args!("emulated: {what}; this is no speed of Evener"));
    }
    shares(&mut text, &report.workers);
    for worker in &report.workers {
        modules_faults(&mut text, worker);
    }
    if report.already_done > 0 {
        let there = counted(report.already_done, "output");
        write_line(&mut text, format_args!("{there} finished by an earlier run and left as they are"));
    }
    for Entry { path, reason } in report.skipped.iter().take(SHOWN_MAX) {
        write_line(&mut text, format_args!("skipped {path}: {reason}"));
    }
    if let Some(more @ 1..) = report.skipped.len().checked_sub(SHOWN_MAX) {
        write_line(&mut text, format_args!("and skipped {more} more; --json names all"));
    }
    if !report.failed.is_empty() {
        write_line(
            &mut text,
            format_args!("{} failed, named above", counted(report.failed.len() as u64, "file")),
        );
    }
    text
}

/// Who did which part of the bytes, and how.
fn shares(text: &mut String, workers: &[Worker]) {
    let whole: u64 = workers.iter().flat_map(Worker::bytes).sum();
    if whole == 0 {
        return;
    }
    write_line(
        text,
        format_args!("{:<18}{:>8}{:>10}{:>14}{:>10}", "worker", "share", "plain", "multi-buffer", "module"),
    );
    // A module that did nothing is shown too: somebody asked for it.
    let busy = |worker: &&Worker| worker.module.is_some() || worker.bytes().iter().any(|&bytes| bytes > 0);
    for worker in workers.iter().filter(busy) {
        let parts = worker.bytes();
        let [all, plain, multi, module] =
            [parts.iter().sum(), parts[0], parts[1], parts[2]].map(|part| share(part, whole));
        write_line(text, format_args!("{:<18}{all:>8}{plain:>10}{multi:>14}{module:>10}", worker.name));
    }
}

fn share(part: u64, whole: u64) -> String {
    if part == 0 { "-".to_owned() } else { format!("{:.1} %", percent(part, whole)) }
}

fn modules_faults(text: &mut String, worker: &Worker) {
    let Some(module) = &worker.module else { return };
    let redone = worker.plain.redone + worker.multi_buffer.redone;
    if redone > 0 {
        let jobs = counted(redone, "job");
        write_line(text, format_args!("{jobs} that {} failed were done again on the CPU", worker.name));
    }
    if let Some(reason) = &module.quarantine {
        write_line(text, format_args!("{} {reason}: it got no more jobs", worker.name));
    }
}

fn write_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    write!(text, "\n  {line}").expect("a String takes everything");
}
