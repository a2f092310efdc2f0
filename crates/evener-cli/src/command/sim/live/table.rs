//! What came of `evener sim live`, as a table for people and as CSV.

use std::fmt::Write as _;

use super::module_costs::CostOrigin;
use super::report::{MachineFacts, OnModule, PolicyResult, Results, SplitResult, TimeResult};

pub(super) fn table(results: &Results) -> String {
    let Results { algorithm, emulated, machine: MachineFacts { cores, workers, .. }, runs, .. } = results;
    let mut text = format!(
        "{algorithm}, {cores} cores, {workers} CPU workers, medians of {runs} runs; emulated: {}\n\
         Simulated by learned costs, with nothing taken from the runs that are predicted. off: by how much, in per cent\n\
         of the live value. * beyond 10 %; polling is reported only.\n",
        emulated.join(", ")
    );
    for size in &results.sizes {
        write!(
            text,
            "\n{} jobs of {} B: c {:.2} us, hand-over {:.2}, by itself {:.2}",
            size.jobs,
            size.bytes,
            us(size.core.c_ns),
            us(size.core.hand_over_ns),
            us(size.core.single_ns)
        )
        .ok();
        for module in &size.modules {
            let OnModule { d_ns, unseen_ns, driver_ns, opening_ns, h_ns, hand_over_ns, source, .. } = module;
            let source = if *source == CostOrigin::Learned { "learned" } else { "measured alone" };
            write!(
                text,
                "; d {:.1} ({:.1} unseen, {:.1} the driver's), h {:.1}, hand-over {:.1}, first {:.0} us ({source})",
                us(*d_ns),
                us(*unseen_ns),
                us(*driver_ns),
                us(*h_ns),
                us(*hand_over_ns),
                us(opening_ns.iter().sum())
            )
            .ok();
        }
        text += "\n  policy          live ms  predicted     off  modules' jobs live  predicted     off\n";
        for line in &size.policies {
            let off = line.split.error_percent.map_or_else(|| "-".to_owned(), |error| format!("{error:+.1}"));
            let mark = if line.is_judged() && !line.is_near() { " *" } else { "" };
            writeln!(
                text,
                "  {:<13} {:>9.2}  {:>9.2}  {:>+6.1}  {:>18.0}  {:>9.0}  {:>6}{mark}",
                line.policy,
                line.time.live_ms.median,
                line.time.predicted_ms,
                line.time.error_percent,
                line.split.live_module_jobs,
                line.split.predicted_module_jobs,
                off
            )
            .ok();
        }
    }
    text + &summary(results)
}

fn summary(results: &Results) -> String {
    let lines: Vec<&PolicyResult> =
        results.sizes.iter().flat_map(|size| &size.policies).filter(|line| line.is_judged()).collect();
    let near = lines.iter().filter(|line| line.is_near()).count();
    let worst = |of: fn(&PolicyResult) -> f64| lines.iter().map(|line| of(line).abs()).fold(0.0, f64::max);
    format!(
        "\n{near} of {} within 10 %; time off by {:.1} % at most, split by {:.1} % of all jobs at most\n",
        lines.len(),
        worst(|line| line.time.error_percent),
        worst(|line| line.split.error_points)
    )
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

pub(super) fn csv(results: &Results) -> String {
    let mut text = String::from(
        "bytes,jobs,policy,live_ms,predicted_ms,error_percent,live_module_jobs,predicted_module_jobs,\
         split_error_points\n",
    );
    for size in &results.sizes {
        for line in &size.policies {
            let PolicyResult { policy, time, split, .. } = line;
            let TimeResult { live_ms, predicted_ms, error_percent } = time;
            let SplitResult { live_module_jobs, predicted_module_jobs, error_points, .. } = split;
            writeln!(
                text,
                "{},{},{policy},{},{predicted_ms},{error_percent},{live_module_jobs},{predicted_module_jobs},\
                 {error_points}",
                size.bytes, size.jobs, live_ms.median
            )
            .ok();
        }
    }
    text
}
