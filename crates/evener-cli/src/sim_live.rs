//! `evener sim live`: what the simulator makes of learned costs, beside what this machine makes of the work.
//!
//! Size -> costs that were measured (`live_costs.rs`) -> live runs of each policy, in turn -> the same policies on the
//! simulator (`evener_sim::live`) -> a line for each.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use evener::Machinery as _;
use evener::core::plan::Policy;
use evener::core::{Algorithm, Direction};
use evener_bench::statistics::Spread;
use evener_sim::live::{Compared, Machine as Simulated, Measured, Prediction};
use serde::Serialize;

use crate::kernel;
use crate::live_costs::{MEASURE_RUNS, Source, Stage};
use crate::machinery::{Emulation, Machine};
use crate::say::{self, Exit, Shown};

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
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "8,16,64,256,1024,4096,8192,16384",
        value_parser = crate::quantity::parse_bytes
    )]
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

    /// Writes the results as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Writes the same as a CSV file.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    #[command(flatten)]
    emulation: Emulation,
}

/// Everything that came of it.
#[derive(Serialize)]
struct Results {
    schema: &'static str,
    algorithm: String,
    emulated: Vec<String>,
    cores: usize,
    workers: u32,
    runs: u32,
    sizes: Vec<Size>,
}

#[derive(Serialize)]
struct Size {
    bytes: u64,
    jobs: usize,
    c_ns: u64,
    hand_over_ns: u64,
    /// What a job takes more that a core claims by itself.
    single_ns: u64,
    modules: Vec<OnModule>,
    policies: Vec<Line>,
}

#[derive(Serialize)]
struct OnModule {
    d_ns: u64,
    /// What of it is on no thread's clock.
    unseen_ns: u64,
    /// What of it threads of the driver's own take.
    driver_ns: u64,
    /// What the first request of a run takes beside that: of the worker, of the driver, and asleep.
    opening_ns: [u64; 3],
    h_ns: u64,
    hand_over_ns: u64,
    source: Source,
}

#[derive(Serialize)]
struct Line {
    policy: &'static str,
    live_ms: Spread,
    predicted_ms: f64,
    error_percent: f64,
    /// Milliseconds and modules' jobs of each run.
    live_runs: Vec<(f64, f64)>,
    live_module_jobs: f64,
    predicted_module_jobs: f64,
    /// In per cent of all jobs.
    split_error_points: f64,
    /// In per cent of the modules' jobs; none where they did none live and some in the simulation.
    split_error_percent: Option<f64>,
}

pub(crate) fn run(arguments: &Live) -> anyhow::Result<Exit> {
    anyhow::ensure!(
        !arguments.emulation.modules.is_empty(),
        "a module is needed, such as --module emulated:am3358"
    );
    let mut machine = Machine::new(&arguments.emulation)?;
    machine.know(&[(arguments.algorithm, Direction::Encrypt)], false);
    let workers = arguments.workers.map_or_else(|| evener::core_budget().workers(), usize::from);
    let sizes: Vec<Size> = arguments
        .sizes
        .iter()
        .map(|&bytes| size(arguments, &machine, workers, bytes))
        .collect::<Result<_, _>>()?;
    let results = Results {
        schema: "evener-sim-live/1",
        algorithm: arguments.algorithm.to_string(),
        emulated: machine.emulated(),
        cores: evener::core_budget().workers(),
        workers: u32::try_from(workers)?,
        runs: arguments.runs,
        sizes,
    };
    if let Some(path) = &arguments.json {
        let json = serde_json::to_string_pretty(&results)? + "\n";
        fs::write(path, json).with_context(|| format!("cannot write {}", Shown(path)))?;
    }
    if let Some(path) = &arguments.csv {
        fs::write(path, csv(&results)).with_context(|| format!("cannot write {}", Shown(path)))?;
    }
    say::answer(table(&results).as_bytes())
}

/// Measures and predicts one size.
fn size(arguments: &Live, machine: &Machine, workers: usize, bytes: u64) -> anyhow::Result<Size> {
    say::line(format_args!("measuring {} of {bytes} B", arguments.algorithm));
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
    let cores = evener::core_budget().workers();
    let simulated = Simulated {
        cores,
        scheduler: kernel::scheduler(cores),
        workers: u32::try_from(workers)?,
        width: machine.kit().width(),
        modules: stage.modules(),
    };
    let line = |(&policy, (times, jobs)): (&Policy, &(Vec<f64>, Vec<f64>))| {
        line(&simulated, &measured, policy, stage.jobs, [times, jobs])
    };
    let lines = policies.iter().zip(&live).map(line).collect::<anyhow::Result<_>>()?;
    Ok(Size::new(&measured, sources, stage.jobs, lines))
}

fn line(
    simulated: &Simulated,
    measured: &Measured,
    policy: Policy,
    jobs: usize,
    live: [&[f64]; 2],
) -> anyhow::Result<Line> {
    let live_runs = live[0].iter().copied().zip(live[1].iter().copied()).collect();
    let [live_ms, live_jobs] = live.map(|values| Spread::of(values).context("there is at least one run"));
    let (live_ms, live_jobs) = (live_ms?, live_jobs?);
    let predicted =
        simulated.predict(measured, policy, jobs).with_context(|| format!("{policy}, simulated"))?;
    let live = Prediction { makespan_ms: live_ms.median, module_jobs: live_jobs.median };
    let compared = Compared { jobs, live, predicted };
    Ok(Line {
        policy: policy.name(),
        live_ms,
        predicted_ms: predicted.makespan_ms,
        error_percent: compared.makespan_error_percent(),
        live_runs,
        live_module_jobs: live.module_jobs,
        predicted_module_jobs: predicted.module_jobs,
        split_error_points: compared.split_error_points(),
        split_error_percent: Some(compared.split_error_percent()).filter(|error| error.is_finite()),
    })
}

impl Size {
    fn new(measured: &Measured, sources: Vec<Source>, jobs: usize, policies: Vec<Line>) -> Self {
        let module = |(on, source): (&evener_sim::live::MeasuredOnModule, Source)| OnModule {
            d_ns: on.d.0,
            unseen_ns: on.unseen.0,
            driver_ns: on.driver.0,
            opening_ns: [on.opening.own, on.opening.driver, on.opening.wait].map(|time| time.0),
            h_ns: on.h.0,
            hand_over_ns: on.hand_over.0,
            source,
        };
        Self {
            bytes: measured.bytes,
            jobs,
            c_ns: measured.c.0,
            hand_over_ns: measured.hand_over.0,
            single_ns: measured.single.0,
            modules: measured.on_modules.iter().zip(sources).map(module).collect(),
            policies,
        }
    }
}

/// A bar of 10 per cent; a split counts where it is off by so much of the modules' jobs and by a hundredth of all.
const ERROR_MAX: f64 = 10.0;

impl Line {
    fn is_judged(&self) -> bool {
        self.policy != Policy::Polling.name()
    }

    fn is_near(&self) -> bool {
        let split = self.split_error_percent.is_some_and(|error| error.abs() <= ERROR_MAX);
        self.error_percent.abs() <= ERROR_MAX && (split || self.split_error_points.abs() <= 1.0)
    }
}

fn table(results: &Results) -> String {
    let Results { algorithm, emulated, cores, workers, runs, .. } = results;
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
            us(size.c_ns),
            us(size.hand_over_ns),
            us(size.single_ns)
        )
        .ok();
        for module in &size.modules {
            let OnModule { d_ns, unseen_ns, driver_ns, opening_ns, h_ns, hand_over_ns, source } = module;
            let source = if *source == Source::Learned { "learned" } else { "measured alone" };
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
            let off = line.split_error_percent.map_or_else(|| "-".to_owned(), |error| format!("{error:+.1}"));
            let mark = if line.is_judged() && !line.is_near() { " *" } else { "" };
            writeln!(
                text,
                "  {:<13} {:>9.2}  {:>9.2}  {:>+6.1}  {:>18.0}  {:>9.0}  {:>6}{mark}",
                line.policy,
                line.live_ms.median,
                line.predicted_ms,
                line.error_percent,
                line.live_module_jobs,
                line.predicted_module_jobs,
                off
            )
            .ok();
        }
    }
    text + &summary(results)
}

fn summary(results: &Results) -> String {
    let lines: Vec<&Line> =
        results.sizes.iter().flat_map(|size| &size.policies).filter(|line| line.is_judged()).collect();
    let near = lines.iter().filter(|line| line.is_near()).count();
    let worst = |of: fn(&Line) -> f64| lines.iter().map(|line| of(line).abs()).fold(0.0, f64::max);
    format!(
        "\n{near} of {} within 10 %; time off by {:.1} % at most, split by {:.1} % of all jobs at most\n",
        lines.len(),
        worst(|line| line.error_percent),
        worst(|line| line.split_error_points)
    )
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn csv(results: &Results) -> String {
    let mut text = String::from(
        "bytes,jobs,policy,live_ms,predicted_ms,error_percent,live_module_jobs,predicted_module_jobs,\
         split_error_points\n",
    );
    for size in &results.sizes {
        for line in &size.policies {
            let Line { policy, live_ms, predicted_ms, error_percent, .. } = line;
            let Line { live_module_jobs, predicted_module_jobs, split_error_points, .. } = line;
            writeln!(
                text,
                "{},{},{policy},{},{predicted_ms},{error_percent},{live_module_jobs},{predicted_module_jobs},\
                 {split_error_points}",
                size.bytes, size.jobs, live_ms.median
            )
            .ok();
        }
    }
    text
}
