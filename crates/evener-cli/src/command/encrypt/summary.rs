//! The end of a run for the eye: failures one a line, then one summary.

use std::fmt::Write as _;

use evener_files::run_report::{Entry, Report, Worker};

use crate::terminal::{
    output,
    units::{bytes, counted, percent, rate},
};

/// Entries that were skipped and are shown one by one; the rest is counted.
const SHOWN_MAX: usize = 20;

/// A line for each file that failed, however many: who has no report has nothing else that names them.
pub(crate) fn failures(report: &Report) {
    // What was not begun when the run ended is counted; the user who stopped it knows why, or a failure above says so.
    let (unbegun, failed): (Vec<_>, Vec<_>) = report.failed.iter().partition(|entry| entry.is_unbegun);
    for Entry { path, reason, .. } in failed {
        output::line(format_args!("{path}: {reason}"));
    }
    if !(unbegun.is_empty() || report.is_stopped()) {
        let files = counted(unbegun.len() as u64, "more file");
        output::line(format_args!(
            "{files} not begun or not finished, for the run was stopped; --json names all"
        ));
    }
}

/// What would be done, a line each.
pub(crate) fn rehearsal(report: &Report) -> String {
    let planned = report.planned.iter().map(|Entry { path, reason, .. }| format!("{reason} {path}\n"));
    planned.chain(report.deleted.iter().map(|path| format!("delete {path}\n"))).collect()
}

/// What was done and left out; in `detail`, or where modules had a part in it, by whom, too.
pub(crate) fn text(report: &Report, detail: bool) -> String {
    let (files, size) = (counted(report.counts.files, "file"), bytes(report.counts.bytes_in));
    let to = report.about.output.as_ref().filter(|_| report.counts.files == 1);
    let to = to.map(|output| format!(" to {output}")).unwrap_or_default();
    let stopped = if report.is_stopped() { "stopped; " } else { "" };
    let mut text =
        format!("{stopped}{}ed {files}{to}, {size} in {:.3} s", report.about.direction, report.seconds);
    if report.counts.bytes_in > 0 {
        write!(text, " ({})", rate(report.counts.bytes_in, report.seconds))
            .expect("a String takes everything");
    }
    let emulated = report.emulated();
    if !emulated.is_empty() {
        let emulated_names = emulated.join(" and ");
        write_line(&mut text, format_args!("emulated: {emulated_names}; this is no speed of Evener"));
    }
    if detail || report.workers.iter().any(|worker| worker.module.is_some()) {
        shares(&mut text, &report.workers);
    }
    for worker in &report.workers {
        modules_faults(&mut text, worker);
    }
    if report.guard_locks > 0 {
        let times = counted(report.guard_locks, "time");
        let reason = "jobs of a class were kept on the CPU, because modules had cost more than they saved";
        write_line(&mut text, format_args!("{times} {reason}"));
    }
    if report.counts.already_done > 0 {
        let there = counted(report.counts.already_done, "output");
        write_line(&mut text, format_args!("{there} finished by an earlier run and left as they are"));
    }
    if !report.deleted.is_empty() {
        let gone = counted(report.deleted.len() as u64, "output");
        write_line(&mut text, format_args!("{gone} deleted, whose source is gone"));
    }
    for Entry { path, reason, .. } in report.skipped.iter().take(SHOWN_MAX) {
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

/// Which worker did which part of the bytes, and how.
fn shares(text: &mut String, workers: &[Worker]) {
    let rows = rows(workers);
    let all = rows.iter().fold([0; 3], |all, row| add(all, row.1));
    let whole = all.iter().sum();
    if whole == 0 {
        return;
    }
    let titles = ["share", "plain", "multi-buffer", "module"].map(str::to_owned);
    write_row(text, "worker", titles);
    let total = (rows.len() > 1).then(|| ("all".to_owned(), all));
    for (name, parts) in rows.into_iter().chain(total) {
        let [plain, multi, module] = parts;
        write_row(text, &name, [parts.iter().sum(), plain, multi, module].map(|part| share(part, whole)));
    }
}

/// Bytes by plain, multi-buffer and module of each worker, or of all workers of the CPU together where they
/// are many. A module that did nothing is there too: the user named it.
fn rows(workers: &[Worker]) -> Vec<(String, [u64; 3])> {
    let (modules, cores): (Vec<&Worker>, Vec<&Worker>) =
        workers.iter().partition(|worker| worker.module.is_some());
    let row = |worker: &&Worker| (worker.name.clone(), worker.bytes());
    let mut rows: Vec<_> = cores.iter().map(row).filter(|row| row.1 != [0; 3]).collect();
    if rows.len() > ROWS_MAX {
        let together = rows.iter().fold([0; 3], |sum, row| add(sum, row.1));
        rows = vec![(format!("{} threads", rows.len()), together)];
    }
    rows.extend(modules.iter().map(row));
    rows
}

/// Workers of the CPU that get a line each; what each of many did is in the JSON.
const ROWS_MAX: usize = 8;

fn add(one: [u64; 3], other: [u64; 3]) -> [u64; 3] {
    std::array::from_fn(|part| one[part] + other[part])
}

fn write_row(text: &mut String, name: &str, [share, plain, multi, module]: [String; 4]) {
    write_line(text, format_args!("{name:<18}{share:>8}{plain:>10}{multi:>14}{module:>10}"));
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

#[cfg(test)]
mod tests {
    use super::*;
    use evener::core::Tally;
    use evener::{ModuleReport, WorkerReport};
    use evener_files::run_report::RunFacts;

    /// The table of a run in which each worker of the CPU did 100 bytes by multi-buffer.
    fn table(threads: usize, module: Option<&str>) -> Vec<String> {
        let tally = Tally { jobs: 1, bytes: 100, ..Tally::default() };
        let core = |number| WorkerReport {
            name: format!("caller {number}"),
            methods: [Tally::default(), tally],
            module: None,
        };
        let module = module.map(|name| WorkerReport {
            name: name.to_owned(),
            methods: Default::default(),
            module: Some(ModuleReport::default()),
        });
        let workers = (0..threads).map(core).chain(module).collect();
        let report = evener::Report { workers, ..evener::Report::default() };
        let about = RunFacts {
            direction: "encrypt",
            format: "tink",
            output: None,
            policy: "cpu_only",
            emulated_cpu: None,
        };
        let report = Report::new(&evener_files::Summary { report, ..Default::default() }, about);
        text(&report, true).lines().skip(2).map(output::one_line).collect()
    }

    #[test]
    fn a_few_workers_have_a_line_each_and_many_have_one_together() {
        assert_eq!(table(1, None), ["caller 0 100.0 % - 100.0 % -"]);
        let two = ["caller 0 50.0 % - 50.0 % -", "caller 1 50.0 % - 50.0 % -", "all 100.0 % - 100.0 % -"];
        assert_eq!(table(2, None), two);
        assert_eq!(table(ROWS_MAX + 1, None), ["9 threads 100.0 % - 100.0 % -"]);
        assert_eq!(table(0, None), [""; 0]);
    }

    #[test]
    fn a_module_that_did_nothing_is_shown() {
        let rows = table(1, Some("mute"));
        assert_eq!(rows, ["caller 0 100.0 % - 100.0 % -", "mute - - - -", "all 100.0 % - 100.0 % -"]);
    }
}
