//! `evener sim live`: what the simulator makes of learned costs, beside what this machine makes of the work.
//!
//! Size -> costs that were measured (`measurement.rs`) -> live runs of each policy, in turn -> the same policies on the
//! simulator (`evener_sim::live`) -> a line for each. With `--again` the costs and live runs are those of a report.

mod measurement;
mod scheduler;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use evener::DriverFactory as _;
use evener::core::plan::Policy;
use evener::core::{Algorithm, Direction, Nanos};
use evener_bench::statistics::Spread;
use evener_sim::lab::{Opening, Runners};
use evener_sim::live::{Compared, Machine as Simulated, Measured, MeasuredOnModule, Module, Prediction};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::machine::options::ModuleOptions;
use crate::terminal::{Exit, PathDisplay, output};
use measurement::{CostOrigin, MEASURE_RUNS, Stage};
use scheduler::SchedulerFacts;

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
        value_parser = crate::terminal::units::parse_bytes
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

const SCHEMA: &str = "evener-sim-live/2";

/// Everything that came of it.
#[derive(Serialize, Deserialize)]
struct Results {
    schema: String,
    algorithm: String,
    emulated: Vec<String>,
    cores: usize,
    kernel: SchedulerFacts,
    workers: u32,
    /// Jobs that a core runs side by side at its best.
    width: u32,
    runs: u32,
    sizes: Vec<Size>,
}

#[derive(Serialize, Deserialize)]
struct Size {
    bytes: u64,
    jobs: usize,
    c_ns: u64,
    hand_over_ns: u64,
    /// What a job takes more that a core claims by itself.
    single_ns: u64,
    modules: Vec<OnModule>,
    policies: Vec<PolicyResult>,
}

#[derive(Serialize, Deserialize)]
struct OnModule {
    units: u32,
    /// Requests that may be outstanding.
    depth: u32,
    /// Threads of its driver, and results for which the path's worker is woken together.
    runners: [u32; 2],
    check_every: u32,
    /// Whether the policy that decides by costs began with these.
    is_known: bool,
    d_ns: u64,
    /// What of it is on no thread's clock.
    unseen_ns: u64,
    /// What of it threads of the driver's own take.
    driver_ns: u64,
    /// What the first request of a run takes beside that: of the worker, of the driver, and asleep.
    opening_ns: [u64; 3],
    h_ns: u64,
    hand_over_ns: u64,
    source: CostOrigin,
}

#[derive(Serialize, Deserialize)]
struct PolicyResult {
    policy: String,
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
    let results = match &arguments.again {
        Some(path) => predict_again(path)?,
        None => measure(arguments)?,
    };
    if let Some(path) = &arguments.json {
        let json = serde_json::to_string_pretty(&results)? + "\n";
        fs::write(path, json).with_context(|| format!("cannot write {}", PathDisplay(path)))?;
    }
    if let Some(path) = &arguments.csv {
        fs::write(path, csv(&results)).with_context(|| format!("cannot write {}", PathDisplay(path)))?;
    }
    output::answer(table(&results).as_bytes())
}

/// The report at `path` with new predictions.
fn predict_again(path: &Path) -> anyhow::Result<Results> {
    let text = fs::read(path).with_context(|| format!("cannot read {}", PathDisplay(path)))?;
    let mut results: Results = serde_json::from_slice(&text)
        .with_context(|| format!("{} is no report of evener sim live", PathDisplay(path)))?;
    let Results { cores, kernel, workers, width, .. } = results;
    for size in &mut results.sizes {
        let modules = size.modules.iter().map(OnModule::module).collect();
        let machine = Simulated { cores, scheduler: kernel.scheduler(cores), workers, width, modules };
        let measured = size.measured();
        for told in &mut size.policies {
            let policy = told.policy.parse().map_err(anyhow::Error::msg)?;
            let live = told.live_runs.iter().copied().unzip();
            *told = line(&machine, &measured, policy, size.jobs, &live)?;
        }
    }
    Ok(results)
}

fn measure(arguments: &Live) -> anyhow::Result<Results> {
    anyhow::ensure!(
        !arguments.module_options.modules.is_empty(),
        "a module is needed, such as --module emulated:am3358"
    );
    let mut machine = Machine::new(&arguments.module_options)?;
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
        cores: evener::core_budget().workers(),
        kernel: SchedulerFacts::here(),
        workers: u32::try_from(workers)?,
        width: machine.core_drivers().width(),
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
    let cores = evener::core_budget().workers();
    let simulated = Simulated {
        cores,
        scheduler: SchedulerFacts::here().scheduler(cores),
        workers: u32::try_from(workers)?,
        width: machine.core_drivers().width(),
        modules: stage.modules(),
    };
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
    fn new(
        measured: &Measured,
        simulated: &Simulated,
        sources: Vec<CostOrigin>,
        jobs: usize,
        policies: Vec<PolicyResult>,
    ) -> Self {
        let module = |((on, module), source): ((&MeasuredOnModule, &Module), CostOrigin)| OnModule {
            units: module.units,
            depth: module.depth,
            runners: [module.runners.count, module.runners.together],
            check_every: module.check_every,
            is_known: on.is_known,
            d_ns: on.d.0,
            unseen_ns: on.overhead.0,
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
            modules: measured.on_modules.iter().zip(&simulated.modules).zip(sources).map(module).collect(),
            policies,
        }
    }

    /// What [`Size::new`] was told of.
    fn measured(&self) -> Measured {
        Measured {
            bytes: self.bytes,
            c: Nanos(self.c_ns),
            hand_over: Nanos(self.hand_over_ns),
            single: Nanos(self.single_ns),
            on_modules: self.modules.iter().map(OnModule::measured).collect(),
        }
    }
}

impl OnModule {
    const fn module(&self) -> Module {
        let Self { units, depth, runners: [count, together], check_every, .. } = *self;
        Module { units, depth, runners: Runners { count, together }, check_every }
    }

    fn measured(&self) -> MeasuredOnModule {
        let [own, driver, wait] = self.opening_ns.map(Nanos);
        MeasuredOnModule {
            d: Nanos(self.d_ns),
            overhead: Nanos(self.unseen_ns),
            driver: Nanos(self.driver_ns),
            h: Nanos(self.h_ns),
            opening: Opening { own, driver, wait },
            hand_over: Nanos(self.hand_over_ns),
            is_known: self.is_known,
        }
    }
}

/// A bar of 10 per cent; a split counts where it is off by so much of the modules' jobs and by a hundredth of all.
const ERROR_MAX: f64 = 10.0;

impl PolicyResult {
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
    let lines: Vec<&PolicyResult> =
        results.sizes.iter().flat_map(|size| &size.policies).filter(|line| line.is_judged()).collect();
    let near = lines.iter().filter(|line| line.is_near()).count();
    let worst = |of: fn(&PolicyResult) -> f64| lines.iter().map(|line| of(line).abs()).fold(0.0, f64::max);
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
            let PolicyResult { policy, live_ms, predicted_ms, error_percent, .. } = line;
            let PolicyResult { live_module_jobs, predicted_module_jobs, split_error_points, .. } = line;
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
