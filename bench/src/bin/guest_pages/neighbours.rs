//! What policies leave to others (paper 002, 3.1 and 3.3, which measured none of it).

use std::fmt::Write as _;
use std::path::Path;

use evener_bench::plot::{self, Panel, Scale, Series};
use serde_json::Value;

use crate::policies::COUNTED;
use crate::stored_report::{StoredReport, bytes, list, median, number, under};

const POLICIES: [&str; 5] = ["cpu_only", "module_only", "round_robin", "shared_queue", "adaptive"];

/// What others get of a core.
struct Quantity {
    /// Its name in reports.
    name: &'static str,
    title: &'static str,
    /// In the unit of the title.
    scale: f64,
    /// Whether there is a hog in it: then a report without one has none.
    is_hogs: bool,
    /// Name, left axis and scale of its picture.
    picture: Option<(&'static str, &'static str, Scale)>,
}

impl Quantity {
    /// Of the hog, in per cent.
    const fn of_hog(name: &'static str, title: &'static str) -> Self {
        Self { name, title, scale: 100.0, is_hogs: true, picture: None }
    }

    /// Of the probe, in microseconds.
    const fn of_probe(name: &'static str, title: &'static str) -> Self {
        Self { name, title, scale: 1.0, is_hogs: false, picture: None }
    }

    const fn pictured(self, name: &'static str, axis: &'static str, scale: Scale) -> Self {
        Self { picture: Some((name, axis, scale)), ..self }
    }
}

const QUANTITIES: [Quantity; 4] = [WORK, SHARE, LATE, LATE_P99];

const WORK: Quantity = Quantity::of_hog("hog_speed", "Work of the hog, per cent of what it does alone")
    .pictured("hog-work", "per cent of alone", Scale::Linear);

const SHARE: Quantity = Quantity::of_hog("hog_share", "Core time of the hog, per cent of the core");

const LATE: Quantity = Quantity::of_probe("late_microseconds", "How late the probe wakes, us: median")
    .pictured("probe-median", "microseconds", Scale::Linear);

const LATE_P99: Quantity = Quantity::of_probe(
    "late_p99_microseconds",
    "How late the probe wakes, us: 99 of 100 no later",
)
.pictured("probe-p99", "microseconds", Scale::Logarithmic);

/// What tells the guest's time. What others get by one clock is no row beside what they get by another.
struct Clock {
    /// What ends the names of its reports and of its pictures.
    ending: &'static str,
    head: &'static str,
    /// Whose figures its pictures show.
    guest: &'static str,
}

const CLOCKS: [Clock; 2] = [OF_HOST, COUNTING];

const OF_HOST: Clock = Clock {
    ending: "",
    head: "
## Other programs (paper 002, claim of 3.1 and 3.3)

A program that wants part of the core (hog), and one that is woken by alarms (probe), beside each policy. The paper claims that others suffer less, and measured nothing of it. Asked: adaptive leaves others no less than \
`shared_queue`.
",
    guest: "Guest of the test bed",
};

const COUNTING: Clock = Clock {
    ending: COUNTED,
    head: "
## Other programs, by counted instructions

The same. What the probe waits for where it wakes later: [guest-latency](guest-latency.md).
",
    guest: "Guest of the test bed by counted instructions",
};

/// A section for each clock of which there is a report, with its pictures in `folder`.
pub(crate) fn section(all: &[StoredReport], folder: &Path) -> anyhow::Result<String> {
    let sections = CLOCKS.iter().map(|clock| clock.section(all, folder));
    Ok(sections.collect::<anyhow::Result<Vec<_>>>()?.concat())
}

impl Clock {
    fn section(&self, all: &[StoredReport], folder: &Path) -> anyhow::Result<String> {
        let mut reports: Vec<&Value> =
            all.iter().filter(|kept| self.is_of(&kept.name)).map(|kept| &kept.report).collect();
        reports.sort_by_key(|report| report["hog_percent"].as_u64());
        if reports.is_empty() {
            return Ok(String::new());
        }
        let mut text = self.head.to_owned() + &verdict(&reports);
        for quantity in &QUANTITIES {
            text += &quantity.told(&reports, self, folder)?;
        }
        Ok(text)
    }

    /// Whether a report of this name was made by it.
    fn is_of(&self, name: &str) -> bool {
        let ending = if name.ends_with(COUNTED) { COUNTED } else { "" };
        name.starts_with("hog-") && ending == self.ending
    }
}

impl Quantity {
    /// Its table, below its picture.
    fn told(&self, reports: &[&Value], clock: &Clock, folder: &Path) -> anyhow::Result<String> {
        let reports: Vec<&Value> =
            reports.iter().copied().filter(|report| !self.is_hogs || percent(report) > 0).collect();
        let mut text = format!("\n### {}\n\n", self.title);
        if let Some((name, axis, scale)) = self.picture.filter(|_| !reports.is_empty()) {
            let name = format!("{name}{}.svg", clock.ending);
            writeln!(text, "![{}](guest/{name})\n", self.name).ok();
            let panels: Vec<Panel> = reports.iter().map(|report| self.panel(report)).collect();
            let title = format!("{}\n{}, medians of the runs", self.title, clock.guest);
            plot::panels(&folder.join(name), &title, "plaintext per job", axis, scale, &panels)?;
        }
        text += "| hog | bytes | nobody |";
        POLICIES.iter().for_each(|policy| write!(text, " {policy} |").unwrap_or_default());
        text += "\n|---|---|---|---|---|---|---|---|\n";
        for report in reports {
            for cell in list(report, "cells") {
                let nobody = number(self.of(&cell["nobody"]), 0);
                write!(text, "| {} | {} | {nobody} |", wanted(report), number(bytes(cell), 0)).ok();
                for policy in POLICIES {
                    let got = under(cell, policy).and_then(|one| self.of(&one["beside"]));
                    write!(text, " {} |", number(got, 0)).ok();
                }
                text.push('\n');
            }
        }
        Ok(text)
    }

    /// Policies over sizes beside one hog; dashed what the others get while Evener does nothing.
    fn panel(&self, report: &Value) -> Panel {
        // What a hog does alone is the measure of its work.
        let nobody =
            |cell: &Value| if self.name == WORK.name { Some(100.0) } else { self.of(&cell["nobody"]) };
        let over = |value: &dyn Fn(&Value) -> Option<f64>| {
            list(report, "cells").filter_map(|cell| Some((bytes(cell)?, value(cell)?))).collect()
        };
        let mut series = vec![Series { name: "nobody".to_owned(), points: over(&nobody), dashed: true }];
        for policy in POLICIES {
            let points = over(&|cell| self.of(&under(cell, policy)?["beside"]));
            series.push(Series { name: policy.to_owned(), points, dashed: false });
        }
        let name = if percent(report) == 0 { "no hog".to_owned() } else { format!("hog {}", wanted(report)) };
        Panel { name, series }
    }

    fn of(&self, beside: &Value) -> Option<f64> {
        median(beside, self.name).map(|value| value * self.scale)
    }
}

fn percent(report: &Value) -> u64 {
    report["hog_percent"].as_u64().unwrap_or(0)
}

fn wanted(report: &Value) -> String {
    format!("wants {} %", report["hog_percent"])
}

/// Of what others get less is better where they are late.
const COMPARED: [(&str, Quantity, bool); 3] =
    [("work of the hog", WORK, true), ("probe, median", LATE, false), ("probe, 99 of 100", LATE_P99, false)];

/// In how many cells others do no worse beside one policy than beside another.
fn verdict(reports: &[&Value]) -> String {
    let all: Vec<&Value> = reports.iter().flat_map(|report| list(report, "cells")).collect();
    let bounds = all.iter().filter_map(|cell| Bounded::of(cell, "adaptive", &LATE));
    let level = bounds.map(|spread| spread.level).fold(1.0, f64::min);
    let runs = reports.iter().filter_map(|report| report["runs"].as_u64()).min().unwrap_or(0);
    let mut text = format!(
        "\n### In short\n\nCells: a size beside a hog. Bounds of medians of {runs} runs hold with {:.0} % each; better, worse: they lie apart{}.\n\n\
         | others | beside | rather than | no worse by the medians | no worse within the bounds | better | worse |\n\
         |---|---|---|---|---|---|---|\n",
        level * 100.0,
        by_chance(runs)
    );
    for [ours, theirs] in [["adaptive", "shared_queue"], ["shared_queue", "cpu_only"]] {
        for (what, quantity, more_is_better) in &COMPARED {
            let tally = Tally::of(reports, [ours, theirs], quantity, *more_is_better);
            writeln!(text, "| {what} | {ours} | {theirs} |{}", tally.told()).ok();
        }
    }
    text
}

/// How often bounds lie apart where nothing is: those of five runs and fewer are the least and the greatest, and of
/// all orders of both policies' runs one has all of the first before all of the second.
fn by_chance(runs: u64) -> String {
    if !(1..6).contains(&runs) {
        return String::new();
    }
    let orders = (1..=runs).fold(1, |orders, k| orders * (runs + k) / k);
    format!(", which they do by chance in one cell of {orders} either way")
}

/// A median with its bounds and the probability that they hold.
struct Bounded {
    median: f64,
    low: f64,
    high: f64,
    level: f64,
}

impl Bounded {
    fn of(cell: &Value, policy: &str, quantity: &Quantity) -> Option<Self> {
        let spread = &under(cell, policy)?["beside"][quantity.name];
        let value = |name: &str| spread[name].as_f64();
        let [median, low, high] = [value("median")?, value("low")?, value("high")?];
        Some(Self { median, low, high, level: value("level")? })
    }

    /// The same with less for more.
    fn turned(self) -> Self {
        Self { median: -self.median, low: -self.high, high: -self.low, level: self.level }
    }
}

/// How others do beside one policy rather than another.
#[derive(Default)]
struct Tally {
    cells: usize,
    no_worse_by_medians: usize,
    better: usize,
    worse: Vec<String>,
}

impl Tally {
    fn of(reports: &[&Value], policies: [&str; 2], quantity: &Quantity, more_is_better: bool) -> Self {
        let mut tally = Self::default();
        for report in reports {
            for cell in list(report, "cells") {
                let of = |policy| {
                    let spread = Bounded::of(cell, policy, quantity)?;
                    Some(if more_is_better { spread } else { spread.turned() })
                };
                let [Some(ours), Some(theirs)] = policies.map(of) else { continue };
                tally.cells += 1;
                tally.no_worse_by_medians += usize::from(ours.median >= theirs.median);
                tally.better += usize::from(ours.low > theirs.high);
                if ours.high < theirs.low {
                    tally.worse.push(format!("{} B beside {} %", number(bytes(cell), 0), percent(report)));
                }
            }
        }
        tally
    }

    fn told(&self) -> String {
        let Self { cells, no_worse_by_medians, better, worse } = self;
        let within = cells - worse.len();
        let places = match worse.len() {
            0 => "nowhere".to_owned(),
            most if most > 10 => most.to_string(),
            _ => worse.join(", "),
        };
        format!(" {no_worse_by_medians} of {cells} | {within} of {cells} | {better} | {places} |")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spread([low, median, high]: [f64; 3]) -> Value {
        json!({ "low": low, "median": median, "high": high, "level": 0.75 })
    }

    /// Three sizes: beside adaptive the hog does more than beside the shared queue, less within the bounds, and less.
    fn report(percent: u64) -> StoredReport {
        let cell = |size: &str, ours: [f64; 3]| {
            let one = |policy: &str, work: [f64; 3]| {
                let late = spread(work.map(|share| share * 1000.0));
                json!({ "contender": format!("evener {policy}"),
                        "beside": { WORK.name: spread(work), LATE.name: late, LATE_P99.name: late } })
            };
            let shared = one("shared_queue", [0.4, 0.5, 0.6]);
            json!({ "cell": size, "contenders": [shared, one("adaptive", ours)],
                    "nobody": { "late_microseconds": spread([1.0, 2.0, 3.0]) } })
        };
        let cells =
            [cell("16", [0.7, 0.8, 0.9]), cell("256", [0.3, 0.45, 0.5]), cell("1024", [0.1, 0.2, 0.3])];
        let report = json!({ "hog_percent": percent, "runs": 3, "cells": cells });
        let text = String::new;
        StoredReport { name: format!("hog-{percent}"), command: text(), circumstances: text(), report }
    }

    /// The same, measured by counted instructions.
    fn counted(percent: u64) -> StoredReport {
        let kept = report(percent);
        StoredReport { name: format!("{}{COUNTED}", kept.name), ..kept }
    }

    fn pictures(text: &str) -> Vec<&str> {
        text.split("(guest/").skip(1).filter_map(|rest| rest.split(')').next()).collect()
    }

    #[test]
    fn bounds_that_overlap_count_as_equal_and_medians_are_told_without_tolerance() {
        let folder = tempfile::tempdir().unwrap();
        let text = section(&[report(25)], folder.path()).unwrap();
        for row in [
            "| work of the hog | adaptive | shared_queue | 1 of 3 | 2 of 3 | 1 | 1024 B beside 25 % |",
            // Who wakes late is worse off: the other way round.
            "| probe, median | adaptive | shared_queue | 2 of 3 | 2 of 3 | 1 | 16 B beside 25 % |",
            "| probe, 99 of 100 | adaptive | shared_queue | 2 of 3 | 2 of 3 | 1 | 16 B beside 25 % |",
            "| work of the hog | shared_queue | cpu_only | 0 of 0 | 0 of 0 | 0 | nowhere |",
            "| wants 25 % | 256 | - | - | - | - | 50 | 45 |",
        ] {
            assert!(text.contains(row), "{row} in\n{text}");
        }
        assert!(text.contains("of 3 runs hold with 75 % each"), "{text}");
    }

    #[test]
    fn chance_is_that_of_counting_all_orders_of_two_policies_runs() {
        for runs in 1..6_u32 {
            let of_both = (0..1_u32 << (2 * runs)).filter(|orders| orders.count_ones() == runs).count();
            assert!(by_chance(runs.into()).contains(&format!("one cell of {of_both} ")), "{runs}");
        }
        assert_eq!(by_chance(6), "");
    }

    #[test]
    fn every_picture_of_the_section_is_there_with_a_panel_for_each_hog() {
        let folder = tempfile::tempdir().unwrap();
        let text = section(&[report(50), report(0), report(25)], folder.path()).unwrap();
        let linked = pictures(&text);
        assert_eq!(linked, ["hog-work.svg", "probe-median.svg", "probe-p99.svg"]);
        for name in linked {
            let svg = std::fs::read_to_string(folder.path().join(name)).unwrap();
            let has = |text: &str| svg.lines().any(|line| line == text);
            assert!(has("hog wants 25 %") && has("hog wants 50 %") && has("adaptive"), "{name}");
            assert_eq!(has("no hog"), name != "hog-work.svg", "{name}");
        }
    }

    #[test]
    fn what_was_counted_has_a_section_and_pictures_of_its_own_behind_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let all = [counted(50), report(50), report(0), report(25)];
        let text = section(&all, folder.path()).unwrap();
        let (by_host, by_count) = text.split_once("\n## Other programs, by counted instructions\n").unwrap();
        let rows =
            |text: &str| [0, 25, 50].map(|hog| text.matches(&format!("| wants {hog} % | 16 |")).count());
        // Work, core time, and twice how late the probe is; where there is no hog, only the latter.
        assert_eq!((rows(by_host), rows(by_count)), ([2, 4, 4], [0, 0, 4]), "{text}");
        assert!(by_host.contains("| probe, median | adaptive | shared_queue | 6 of 9 |"), "{text}");
        assert!(by_count.contains("| probe, median | adaptive | shared_queue | 2 of 3 |"), "{text}");
        assert_eq!(pictures(by_host), ["hog-work.svg", "probe-median.svg", "probe-p99.svg"]);
        let of_count = ["hog-work-counted.svg", "probe-median-counted.svg", "probe-p99-counted.svg"];
        assert_eq!(pictures(by_count), of_count);
        for (name, is_of_25) in [("probe-p99.svg", true), ("probe-p99-counted.svg", false)] {
            let svg = std::fs::read_to_string(folder.path().join(name)).unwrap();
            assert_eq!(svg.contains("hog wants 25 %"), is_of_25, "{name}");
            assert_eq!(svg.contains("by counted instructions"), !is_of_25, "{name}");
        }
    }

    #[test]
    fn of_a_clock_without_a_report_nothing_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let only_counted = section(&[counted(25)], folder.path()).unwrap();
        assert!(only_counted.starts_with("\n## Other programs, by counted instructions\n"), "{only_counted}");
        assert_eq!(only_counted.matches("\n## ").count(), 1, "{only_counted}");
        assert!(!section(&[report(25)], folder.path()).unwrap().contains("counted"));
    }

    #[test]
    fn without_a_report_there_is_no_section() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(section(&[], folder.path()).unwrap(), "");
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}
