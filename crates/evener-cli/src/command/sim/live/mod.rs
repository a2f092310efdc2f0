//! `evener sim live`: what the simulator makes of learned costs, beside what this machine makes of the work.
//!
//! What it is in the literature: trace-driven validation of a model; no number is taken from the runs that are predicted.
//!
//! Size -> costs that were measured (`measurement.rs`; of a module behind the kernel: `module_path.rs`) -> live runs of each policy, in turn ->
//! the same policies on the simulator (`evener_sim::live`) -> a line for each (`report.rs`) as text and CSV (`table.rs`). With `--again` the
//! costs and live runs are those of a report (`again.rs`).

mod again;
mod measurement;
mod module_costs;
mod module_path;
mod report;
mod scheduler;
mod table;

use std::path::PathBuf;

use anyhow::Context as _;
use evener::core::plan::Policy;
use evener::core::{Algorithm, Direction};
use evener_bench::medians::Spread;
use evener_machine::Machine;
use evener_sim::live::{Compared, Machine as Simulated, Measured, Prediction};

use self::measurement::{MEASURE_RUNS, Stage};
use self::report::{MachineFacts, PolicyResult, Results, SCHEMA, Size, SplitResult, TimeResult};
use self::table::{csv, table};
use crate::machine;
use crate::machine::options::ModuleOptions;
use crate::terminal::units::{USUAL_SIZES, parse_bytes};
use crate::terminal::{Exit, ResultsFile, output};

/// Runs policies on this machine and on the simulator, by costs that were learned here, and compares the two.
///
/// For each size the adaptive policy runs to learn c, d and h, and each path runs alone for a quarter of the jobs, to
/// see what a job takes beside them. Then the policies run in turn, and all of that again, five times or more. The simulator predicts
/// time and split of each from those costs, the cores and the workers, and nothing else: no number is taken from the runs that are
/// predicted.
/// Polling is reported only.
#[derive(clap::Args)]
pub(crate) struct Live {
    /// What to run, such as AES-128-CBC or AES-256-GCM.
    #[arg(long, default_value = "AES-128-CBC")]
    algorithm: Algorithm,

    /// Plaintext bytes of the jobs; each size is run by itself.
    #[arg(long, value_delimiter = ',', default_value = USUAL_SIZES, value_parser = parse_bytes)]
    sizes: Vec<u64>,

    /// Jobs of a run.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(16..=1_000_000))]
    count: u32,

    /// Live runs of each policy at each size; their medians count.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    runs: u32,

    /// Policies: cpu_only, module_only, round_robin, polling, shared_queue, adaptive. All of them by default.
    #[arg(long, value_delimiter = ',', value_name = "POLICY")]
    policies: Vec<Policy>,

    /// CPU workers; unless given, as many as this process may use cores.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,

    /// Runs nothing: predicts once more what a report of this command tells (its JSON), by the costs that stand there.
    #[arg(long, value_name = "FILE")]
    again: Option<PathBuf>,

    /// Writes the results as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Writes the same as a CSV file.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    #[command(flatten)]
    module_options: ModuleOptions,
}

pub(crate) fn run(arguments: &Live) -> anyhow::Result<Exit> {
    let [json, csv_file] = [&arguments.json, &arguments.csv].map(|path| ResultsFile::open(path.as_ref()));
    let (json, csv_file) = (json?, csv_file?);
    let results = match &arguments.again {
        Some(path) => again::predicted(path)?,
        None => measure(arguments)?,
    };
    let kept = json.map_or(Ok(()), |file| file.write(&evener_bench::to_json(&results)));
    let kept = kept.and(csv_file.map_or(Ok(()), |file| file.write(&csv(&results))));
    output::answer_beside(kept, table(&results).as_bytes())
}

fn measure(arguments: &Live) -> anyhow::Result<Results> {
    anyhow::ensure!(
        !arguments.module_options.modules.is_empty(),
        "a module is needed, such as --module emulated:am3358"
    );
    let mut machine = machine::whole(&arguments.module_options)?;
    machine.load_or_measure_costs(&[(arguments.algorithm, Direction::Encrypt)], false);
    let workers = arguments.workers.map_or_else(|| evener::core_budget().workers(), usize::from);
    let sizes: Vec<Size> = arguments
        .sizes
        .iter()
        .map(|&bytes| size(arguments, &machine, workers, bytes))
        .collect::<Result<_, _>>()?;
    Ok(Results {
        schema: SCHEMA.to_owned(),
        algorithm: arguments.algorithm.to_string(),
        emulated: machine.emulated(),
        machine: MachineFacts::here(&machine, workers)?,
        runs: arguments.runs,
        sizes,
    })
}

/// Measures and predicts one size.
fn size(arguments: &Live, machine: &Machine, workers: usize, bytes: u64) -> anyhow::Result<Size> {
    output::line(format_args!("measuring {} of {bytes} B", arguments.algorithm));
    let policies = if arguments.policies.is_empty() { &Policy::ALL[..] } else { &arguments.policies };
    let mut stage = Stage {
        machine,
        algorithm: arguments.algorithm,
        workers,
        bytes: usize::try_from(bytes)?,
        jobs: usize::try_from(arguments.count)?,
        learned: machine.costs_to_begin_with(),
        measured: Vec::new(),
    };
    stage.check()?;
    let mut live = vec![(Vec::new(), Vec::new()); policies.len()];
    let runs = arguments.runs as usize;
    for run in 0..runs {
        (0..MEASURE_RUNS.div_ceil(runs)).try_for_each(|_| stage.measure())?;
        // Another goes first in each run, so that no one always follows the same.
        for place in 0..policies.len() {
            let place = (place + run) % policies.len();
            let ran = stage.run(policies[place])?;
            live[place].0.push(ran.makespan.as_secs_f64() * 1e3);
            live[place].1.push(ran.module_jobs as f64);
        }
    }
    let (measured, sources) = stage.costs();
    let simulated = MachineFacts::here(machine, workers)?.simulated(stage.modules());
    let line = |(&policy, live): (&Policy, &(Vec<f64>, Vec<f64>))| {
        line(&simulated, &measured, policy, stage.jobs, live)
    };
    let lines = policies.iter().zip(&live).map(line).collect::<anyhow::Result<_>>()?;
    Ok(Size::new(&measured, &simulated, sources, stage.jobs, lines))
}

fn line(
    simulated: &Simulated,
    measured: &Measured,
    policy: Policy,
    jobs: usize,
    (times, module_jobs): &(Vec<f64>, Vec<f64>),
) -> anyhow::Result<PolicyResult> {
    let live_runs = times.iter().copied().zip(module_jobs.iter().copied()).collect();
    let [live_ms, live_jobs] =
        [times, module_jobs].map(|values| Spread::of(values).context("there is at least one run"));
    let (live_ms, live_jobs) = (live_ms?, live_jobs?);
    let predicted =
        simulated.predict(measured, policy, jobs).with_context(|| format!("{policy}, simulated"))?;
    let live = Prediction { makespan_ms: live_ms.median, module_jobs: live_jobs.median };
    let compared = Compared { jobs, live, predicted };
    Ok(PolicyResult {
        policy: policy.name().to_owned(),
        time: TimeResult::new(live_ms, &compared),
        live_runs,
        split: SplitResult::new(&compared),
    })
}
