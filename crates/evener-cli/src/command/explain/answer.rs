//! The answer of `evener explain`: a table and one sentence for the eye, or the same facts as JSON.

use std::fmt::Write as _;

use evener::core::{Method, Nanos, Objective};
use evener_machine::cpu_load::CpuLoad;
use evener_machine::microbench::{JobKind, NotMeasured};
use serde_json::{Value, json};

use crate::terminal::units::{bytes, counted};

/// One way that a job can go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candidate {
    pub(crate) name: String,
    /// Its number, where it is a module.
    pub(crate) module: Option<usize>,
    pub(crate) cost: JobCost,
    /// Time until it begins.
    pub(crate) wait: Nanos,
    /// wait + service + lambda * core time.
    pub(crate) total_ns: Option<f64>,
    pub(crate) samples: u32,
    pub(crate) is_measured_now: bool,
    /// Of a module behind the kernel: what of `d` threads' clocks do not show.
    pub(crate) overhead: Overhead,
    pub(crate) untried: Option<NotMeasured>,
    pub(crate) is_chosen: bool,
}

/// What `d` has beyond what threads' clocks show.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Overhead {
    /// Nothing is missing there: a core, or an emulated module.
    #[default]
    Whole,
    /// So much of a request, by a calibration.
    Measured(Nanos),
    /// Something is missing, and how much could not be measured.
    Unknown,
}

/// What a job costs, as far as that is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct JobCost {
    /// Core time on the CPU.
    pub(crate) c: Option<Nanos>,
    /// Core time on the module's path.
    pub(crate) d: Option<Nanos>,
    /// Time in which only the module works.
    pub(crate) h: Option<Nanos>,
}

/// Under which circumstances a way is chosen.
pub(crate) struct Circumstances {
    pub(crate) objective: Objective,
    pub(crate) load: CpuLoad,
    pub(crate) lambda: f64,
}

/// Everything that was found out.
pub(crate) struct Answer {
    pub(crate) kind: JobKind,
    pub(crate) circumstances: Circumstances,
    pub(crate) ways: Vec<Candidate>,
    /// What a core takes.
    pub(crate) run_method: Method,
    pub(crate) emulated: Vec<String>,
    /// Why what was measured could not be kept.
    pub(crate) not_kept: Option<String>,
}

macro_rules! put {
    ($text:expr, $($format:tt)*) => {
        writeln!($text, $($format)*).expect("a String takes everything")
    };
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        let JobKind { operation: (algorithm, direction), burst, is_apart, .. } = self.kind;
        let size = bytes(u64::try_from(self.kind.bytes).unwrap_or(u64::MAX));
        let layout = if is_apart { "out of place" } else { "in place" };
        let jobs = if burst == 1 { "one job".to_owned() } else { format!("a burst of {burst} jobs") };
        let cores = counted(u64::try_from(self.circumstances.load.cores).unwrap_or(u64::MAX), "core");
        let width = self.ways.iter().map(|way| way.name.len()).max().unwrap_or_default() + 2;
        let mut text = String::new();
        put!(
            text,
            "{algorithm} {direction}, {jobs} of {size}, {layout}; objective {}",
            self.circumstances.objective
        );
        put!(text, "{cores}, {:.1} threads of others; costs are of one job", self.circumstances.load.others);
        put!(
            text,
            "   {:<24}{:>10}{:>10}{:>10}{:>10}{:>8}{:>11}  samples",
            "way",
            "c",
            "d",
            "h",
            "wait",
            "lambda",
            "total"
        );
        self.ways.iter().for_each(|way| self.write_way(&mut text, width, way));
        put!(text, "total = wait + service + lambda * core time; > marks where it goes");
        self.ways.iter().filter_map(Candidate::about_clocks).for_each(|line| put!(text, "{line}"));
        put!(text, "");
        put!(text, "{}", self.why());
        if !self.emulated.is_empty() {
            put!(text, "emulated: {}; this is no speed of Evener", self.emulated.join(" and "));
        }
        if let Some(reason) = &self.not_kept {
            put!(text, "what was measured is not kept: {reason}");
        }
        text
    }

    fn write_way(&self, text: &mut String, width: usize, way: &Candidate) {
        let mark = if way.is_chosen { ">" } else { " " };
        if let Some(untried) = way.untried {
            put!(text, " {mark} {:<width$}{}", way.name, untried.reason());
            return;
        }
        let shown = |time: Option<Nanos>| time.map_or_else(|| "-".to_owned(), |time| time.to_string());
        let [c, d, h] = [way.cost.c, way.cost.d, way.cost.h].map(shown);
        let wait = if way.module.is_some() { way.wait.to_string() } else { "-".to_owned() };
        let when = if way.is_measured_now { "measured now" } else { "learned" };
        put!(
            text,
            " {mark} {:<width$}{c:>10}{d:>10}{h:>10}{wait:>10}{:>8.2}{:>11}  {} ({when})",
            way.name,
            self.circumstances.lambda,
            shown(way.total()),
            way.samples
        );
    }

    /// One sentence that says why.
    pub(crate) fn why(&self) -> String {
        let cores = self.ways.iter().filter(|way| way.cost.c.is_some()).min_by_key(|way| way.cost.c);
        let modules = || self.ways.iter().filter(|way| way.cost.d.is_some());
        let chosen: Vec<&str> =
            self.ways.iter().filter(|way| way.is_chosen).map(|way| way.name.as_str()).collect();
        let chosen = chosen.join(" and ");
        let (Some(core), Some(module)) = (cores, modules().min_by_key(|way| way.total())) else {
            return self.why_among_methods(&chosen);
        };
        let taken = modules().find(|way| way.is_chosen);
        let (c, d) = (core.cost.c.unwrap_or_default(), module.cost.d.unwrap_or_default());
        let reason = match taken {
            Some(module) => why_module(core, module, self.circumstances.lambda),
            None if d >= c => format!("{} would cost {d} of core time, the CPU {c}", module.name),
            None if self.kind.burst == 1 && module.total() > core.total() => {
                let end = module.service();
                format!("{} would end after {end}, wait included, the CPU after {c}", module.name)
            }
            None if self.kind.burst == 1 => {
                format!("{} would be better by less than it may err", module.name)
            }
            None => {
                let end = module.service();
                format!("the cores are done before {} would have a job ready, which takes {end}", module.name)
            }
        };
        format!("{chosen}: {reason}")
    }

    fn why_among_methods(&self, chosen: &str) -> String {
        let known: Vec<&Candidate> = self.ways.iter().filter(|way| way.cost.c.is_some()).collect();
        match &known[..] {
            [] => "no way could be measured".to_owned(),
            [_] => format!("{chosen}: the only way here"),
            ways => {
                let each = ways.iter().map(|way| format!("{} {}", way.name, way.cost.c.unwrap_or_default()));
                let each = each.collect::<Vec<_>>().join(", ");
                let is_cheapest = ways.iter().min_by_key(|way| way.cost.c).is_some_and(|way| way.is_chosen);
                let but = if is_cheapest { "" } else { ", which is less apart than costs may err" };
                format!("{chosen}: the core time of a job is {each}{but}")
            }
        }
    }

    /// The facts, as docs/reference/schemas/explain.schema.json describes them.
    pub(crate) fn json(&self) -> anyhow::Result<String> {
        let facts = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "algorithm": self.kind.operation.0.name(),
            "direction": self.kind.operation.1.to_string(),
            "layout": if self.kind.is_apart { "out-of-place" } else { "in-place" },
            "size_bytes": self.kind.bytes,
            "burst": self.kind.burst,
            "objective": self.circumstances.objective.name(),
            "class": self.kind.class().to_string(),
            "cores": self.circumstances.load.cores,
            "other_threads": self.circumstances.load.others,
            "lambda": self.circumstances.lambda,
            "ways": self.ways.iter().map(Candidate::json).collect::<Vec<_>>(),
            "why": self.why(),
            "method_of_a_run": self.run_method.name(),
            "emulated": self.emulated,
            "not_kept": self.not_kept,
        });
        Ok(serde_json::to_string_pretty(&facts)? + "\n")
    }
}

/// Why a module takes it, beside the cores or instead of them.
fn why_module(core: &Candidate, module: &Candidate, lambda: f64) -> String {
    let (c, d) = (core.cost.c.unwrap_or_default(), module.cost.d.unwrap_or_default());
    let costs = format!("{} costs {d} of core time, the CPU {c}", module.name);
    match (core.is_chosen, d < c) {
        (true, _) => format!("both at the same time; {costs}"),
        (false, true) => costs,
        (false, false) => {
            format!("{costs}, at a price of {lambda:.2}; {} ends after {}", module.name, module.service())
        }
    }
}

impl Candidate {
    fn total(&self) -> Option<Nanos> {
        self.total_ns.map(rounded)
    }

    /// Time from the request to its end.
    fn service(&self) -> Nanos {
        self.wait + self.cost.c.or(self.cost.d).unwrap_or_default() + self.cost.h.unwrap_or_default()
    }

    /// What of `d` threads' clocks do not show.
    fn about_clocks(&self) -> Option<String> {
        match self.overhead {
            Overhead::Whole => None,
            Overhead::Measured(overhead) => Some(match self.clock_factor() {
                Some(factor) => format!(
                    "of d of {} threads' clocks do not show {overhead}: the kernel's own threads and interrupts are not on them; d is x {factor:.1} of what they show",
                    self.name
                ),
                // Measured at different times, and one of them beside others' work.
                None => format!(
                    "d of {} is less than the {overhead} that threads' clocks are known to miss of it; other programs kept the cores too busy to measure one of the two",
                    self.name
                ),
            }),
            Overhead::Unknown => Some(format!(
                "d of {} is what threads' clocks show; other programs kept the cores too busy to measure what these miss",
                self.name
            )),
        }
    }

    /// `d` over what threads' clocks show of it, where that is known.
    fn clock_factor(&self) -> Option<f64> {
        let (Some(d), Overhead::Measured(overhead)) = (self.cost.d, self.overhead) else { return None };
        let shown = d - overhead;
        (shown > Nanos::ZERO).then(|| d.0 as f64 / shown.0 as f64)
    }

    fn json(&self) -> Value {
        let overhead = match self.overhead {
            Overhead::Measured(overhead) => Some(overhead),
            Overhead::Whole | Overhead::Unknown => None,
        };
        let ns = |time: Option<Nanos>| time.map(|time| time.0);
        json!({
            "name": self.name,
            "kind": if self.module.is_some() { "module" } else { "cpu" },
            "c_ns": ns(self.cost.c),
            "d_ns": ns(self.cost.d),
            "h_ns": ns(self.cost.h),
            "wait_ns": self.wait.0,
            "total_ns": ns(self.total()),
            "samples": self.samples,
            "unseen_ns": ns(overhead),
            "clock_factor": self.clock_factor(),
            "measured_now": self.is_measured_now && self.untried.is_none(),
            "chosen": self.is_chosen,
            "missing": self.untried.map(NotMeasured::reason),
        })
    }
}

/// `as` saturates.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cost is not below zero")]
fn rounded(ns: f64) -> Nanos {
    Nanos(ns.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clocks_do_not_show_is_told_as_a_time_and_as_a_factor() {
        let way = |d, overhead| Candidate {
            name: "it".to_owned(),
            cost: JobCost { d: Some(Nanos(d)), ..JobCost::default() },
            overhead,
            ..Candidate::default()
        };
        // 98 of 216 us are seen (docs/design/kernel-modules.md).
        let measured = way(216_000, Overhead::Measured(Nanos(118_000)));
        assert!(measured.about_clocks().unwrap().ends_with("; d is x 2.2 of what they show"));
        assert!((measured.json()["clock_factor"].as_f64().unwrap() - 216.0 / 98.0).abs() < 1e-9);
        for none in
            [way(10, Overhead::Measured(Nanos(10))), way(10, Overhead::Unknown), way(10, Overhead::Whole)]
        {
            assert!(none.json()["clock_factor"].is_null());
            assert!(!none.about_clocks().unwrap_or_default().contains(" x "));
        }
        let less = way(9, Overhead::Measured(Nanos(10))).about_clocks().unwrap();
        assert!(less.contains("too busy to measure"), "{less}");
    }
}
