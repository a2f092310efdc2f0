//! `evener sim run`: a scenario under some policies. Scenario -> a run for each chance -> means -> one line per policy.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use evener::core::plan::Policy;
use evener_sim::papers::am3358::Means;
use evener_sim::scenario::{PRESETS, Scenario};
use serde::Serialize;

use crate::input_file;
use crate::terminal::output::plain;
use crate::terminal::{Exit, PathDisplay, output, waiting};

/// Runs a scenario under some policies, in virtual time, and prints one line for each.
///
/// Everything printed is simulated, means over the runs that the scenario asks for. Core time is that of all crypto
/// threads by their clocks; interrupts come on top of it. The lower bound is for jobs that are all there at the start,
/// on modules that are alike; the time that jobs wait is told where they come one by one.
#[derive(clap::Args)]
pub(crate) struct Run {
    /// A scenario file, or the name of a preset: am3358-aes-128, am3358-aes-192, am3358-aes-256, am3358-paper-000,
    /// am3358-stream, cell-cbc, cell-ecb, t2.
    #[arg(value_name = "SCENARIO.toml|PRESET")]
    scenario: String,

    /// A policy to try; may be given several times. All six by default.
    #[arg(long = "policy", value_name = "POLICY")]
    policies: Vec<Policy>,

    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// A scenario and what came of it.
#[derive(Serialize)]
struct Ran {
    scenario: String,
    source: String,
    simulated: bool,
    runs: usize,
    jobs: usize,
    lower_bound_ms: Option<f64>,
    policies: Vec<Line>,
}

/// Means of a policy's runs.
#[derive(Serialize)]
struct Line {
    policy: &'static str,
    makespan_ms: f64,
    over_bound: Option<f64>,
    cpu_jobs: f64,
    module_jobs: f64,
    core_ms: f64,
    interrupt_ms: f64,
    /// Part of all cores' time that other programs had; none where there are none.
    hog_percent: Option<f64>,
    p99_ms: Option<f64>,
}

pub(crate) fn run(arguments: &Run) -> anyhow::Result<Exit> {
    let scenario = read(&arguments.scenario)?;
    let policies = if arguments.policies.is_empty() { &Policy::ALL[..] } else { &arguments.policies };
    let (lines, failures) = waiting::said_while("simulating", |waiting| {
        let line = |&policy: &Policy| {
            waiting.say(format!("simulating {}, {policy}", scenario.name));
            line(&scenario, policy)
        };
        let (lines, failures): (Vec<_>, Vec<_>) = policies.iter().map(line).partition(Result::is_ok);
        (lines.into_iter().flatten().collect::<Vec<Line>>(), failures)
    });
    let ran = Ran {
        scenario: scenario.name.clone(),
        source: scenario.source.clone(),
        simulated: true,
        runs: scenario.chances.len(),
        jobs: scenario.workload.jobs().len(),
        lower_bound_ms: scenario.lower_bound().map(|ns| ns / 1e6),
        policies: lines,
    };
    // A policy that fails takes nothing from those that were simulated.
    let failed: Vec<String> =
        failures.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    let failed = if failed.is_empty() { Ok(()) } else { Err(anyhow::anyhow!(failed.join("; "))) };
    if ran.policies.is_empty() {
        return failed.map(|()| Exit::Done);
    }
    let text = if arguments.json { serde_json::to_string_pretty(&ran)? + "\n" } else { table(&ran) };
    output::answer_beside(failed, text.as_bytes())
}

/// A preset where one has this name, else a file.
fn read(name: &str) -> anyhow::Result<Scenario> {
    if let Some(preset) = Scenario::preset(name) {
        return Ok(preset);
    }
    let presets = || PRESETS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let shown = PathDisplay(Path::new(name));
    let text = input_file::text(Path::new(name)).with_context(|| {
        format!("cannot read {shown}, which is no preset either; those are {}", presets())
    })?;
    Ok(Scenario::parse(&shown.to_string(), &text)?)
}

fn line(scenario: &Scenario, policy: Policy) -> anyhow::Result<Line> {
    let reports = scenario.run(policy).with_context(|| format!("{}, {policy}", scenario.name))?;
    let means = Means::of(&reports);
    let p99: f64 = reports.iter().map(|report| report.latency(990).as_secs_f64() * 1e3).sum();
    let has_hogs = scenario.setup.hogs > 0;
    let cores = f64::from(u32::try_from(scenario.setup.cores)?);
    let p99_ms = p99 / f64::from(u32::try_from(reports.len())?);
    Ok(Line {
        policy: policy.name(),
        makespan_ms: means.makespan_ms,
        over_bound: scenario.lower_bound().filter(|ns| *ns > 0.0).map(|ns| means.makespan_ms / (ns / 1e6)),
        cpu_jobs: means.cpu_jobs,
        module_jobs: means.module_jobs,
        core_ms: means.crypto_ms,
        interrupt_ms: means.interrupt_ms,
        hog_percent: has_hogs.then(|| 100.0 * means.hog_ms / (cores * means.makespan_ms)),
        p99_ms: scenario.is_stream().then_some(p99_ms),
    })
}

fn table(ran: &Ran) -> String {
    // A file may name itself as it likes.
    let [scenario, source] = [&ran.scenario, &ran.source].map(|text| plain(text));
    let mut text = format!("{scenario}: {} jobs, means of {} runs, simulated\n", ran.jobs, ran.runs);
    let bound = ran.lower_bound_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"));
    writeln!(text, "costs: {source}; lower bound: {bound}").expect("a text takes a line");
    text += "policy        makespan ms  x bound  CPU jobs  module jobs  core ms  interrupt ms  others %  p99 ms\n";
    for line in &ran.policies {
        writeln!(
            text,
            "{:<13} {:>11.1} {:>8} {:>9.0} {:>12.0} {:>8.0} {:>13.1} {:>9} {:>7}",
            line.policy,
            line.makespan_ms,
            known(line.over_bound, 3),
            line.cpu_jobs,
            line.module_jobs,
            line.core_ms,
            line.interrupt_ms,
            known(line.hog_percent, 1),
            known(line.p99_ms, 2),
        )
        .expect("a text takes a line");
    }
    text
}

fn known(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use evener::core::Algorithm::{Aes128Cbc, Aes128Ecb};
    use evener_driver_emulated::Preset;

    #[test]
    fn a_preset_and_the_emulated_module_of_its_name_cost_the_same() {
        for (name, module, algorithm) in [
            ("cell-cbc", "emulated:cell", Aes128Cbc),
            ("cell-ecb", "emulated:cell", Aes128Ecb),
            ("t2", "emulated:t2", Aes128Cbc),
        ] {
            let (scenario, module) = (Scenario::preset(name).unwrap(), module.parse::<Preset>().unwrap());
            for bytes in [16, 64, 256, 1024, 5000, 8192] {
                let live = module.cost(algorithm, bytes).unwrap();
                assert_eq!(scenario.cost(bytes as u64), live, "{name}, {bytes} bytes");
            }
            assert_eq!(scenario.setup.modules[0].spec.units as usize, module.units(), "{name}");
        }
    }
}
