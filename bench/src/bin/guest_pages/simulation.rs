//! The simulator, fed with what was learned in the guest, beside what happened there.

use std::fmt::Write as _;

use serde_json::Value;

use crate::policies::COUNTED;
use crate::stored_report::{StoredReport, find, list, number};

/// What times and splits may be off by, in per cent.
const ASKED: f64 = 10.0;

/// The section; empty where it was not run.
pub(crate) fn section(all: &[StoredReport]) -> String {
    let titles = [("", "by the guest's own clock"), (COUNTED, "by counted instructions")];
    let told = titles.iter().filter_map(|(ending, clock)| {
        let kept = find(all, &format!("simulated{ending}"))?;
        Some(format!("\n### {}{}\n{}", clock[..1].to_uppercase(), &clock[1..], table(&kept.report)))
    });
    let told: String = told.collect();
    if told.is_empty() { told } else { HEAD.to_owned() + &told }
}

const HEAD: &str = "
## The simulator, by the guest's learned costs

`evener sim live` in the guest: time, and jobs on the module in per cent: live / predicted; how far the time is off, in per cent, asked 10.
";

fn table(report: &Value) -> String {
    let mut text = String::from("\n| bytes | policy | ms | off | on module |\n|---|---|---|---|---|\n");
    let (mut good, mut judged) = (0, 0);
    for size in list(report, "sizes") {
        let jobs = size["jobs"].as_f64().unwrap_or(f64::NAN);
        for line in list(size, "policies") {
            let value = |name: &str| line[name].as_f64();
            let part = |name: &str| value(name).map(|count| 100.0 * count / jobs);
            let is_judged = line["policy"] != "polling";
            let is_near = near(line);
            judged += usize::from(is_judged);
            good += usize::from(is_judged && is_near);
            writeln!(
                text,
                "| {} | {} | {} / {} | {}{} | {} / {} |",
                size["bytes"],
                line["policy"].as_str().unwrap_or_default(),
                number(line["live_ms"]["median"].as_f64(), 1),
                number(value("predicted_ms"), 1),
                number(value("error_percent"), 0),
                if is_judged && !is_near { " *" } else { "" },
                number(part("live_module_jobs"), 0),
                number(part("predicted_module_jobs"), 0)
            )
            .ok();
        }
    }
    writeln!(text, "\nWithin 10 % in time and split: {good} of {judged}, polling left out. * not so.").ok();
    text
}

/// A split counts where it is off by so much of the module's jobs and by a hundredth of all, as in `evener sim live`.
fn near(line: &Value) -> bool {
    let off = |name: &str| line[name].as_f64().map(f64::abs);
    let split = off("split_error_percent").is_some_and(|off| off <= ASKED)
        || off("split_error_points").is_some_and(|off| off <= 1.0);
    off("error_percent").is_some_and(|off| off <= ASKED) && split
}
