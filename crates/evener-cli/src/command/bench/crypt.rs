//! `evener bench crypt`: paper 002's experiment in memory, on this machine.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use evener::core::plan::Policy;
use evener::core::{Algorithm, Direction, Family, Nanos, Objective};
use evener_bench::contender::{Contender, Instructions, Modules};
use evener_bench::crypt::bound::{self, Bound};
use evener_bench::crypt::{Experiment, Sizes, Visits, Work, measure};
use evener_bench::neighbours::NeighbourSpec;
use evener_bench::workload::Layout;
use evener_driver_emulated::Preset;
use evener_machine::modules::ModuleSpec;
use evener_machine::processor::this_processor;

use crate::machine;
use crate::machine::options::{ModuleOptions, objective_parser};
use crate::terminal::units::{USUAL_SIZES, parse_bytes};
use crate::terminal::{Exit, ResultsFile, output};

/// Encrypts jobs in memory: Evener under one or more policies, OpenSSL on one core and on all, bare loops
/// around each of Evener's kernels and the multi-buffer library, and a copy.
///
/// Contenders take turns, run by run; ratios are taken within a run, with distribution-free bounds. The clock
/// runs from a barrier, when all threads exist and the queue is full, to the end of the last job. Each
/// contender's output is compared with libcrypto's. A run with an emulated module says nothing about speed.
///
/// Of each module that is named, requests of each size are measured by themselves behind all rounds, one at a time and fifteen together: core
/// microseconds a packet, from handing over to taking back, and requests that a system call carries. These two tell engines apart.
#[derive(clap::Args)]
pub(crate) struct Crypt {
    /// What to run, such as AES-128-CBC, AES-256-GCM, SHA-256.
    #[arg(long, default_value = "AES-128-CBC")]
    algorithm: Algorithm,

    /// In which direction.
    #[arg(long, value_enum, default_value = "encrypt")]
    direction: CryptDirection,

    /// Plaintext bytes of the jobs; each size is measured by itself.
    #[arg(long, value_delimiter = ',', default_value = USUAL_SIZES, value_parser = parse_bytes)]
    sizes: Vec<u64>,

    /// One mix of sizes instead: log-normal, 64 B to 1 MiB, median 8 KiB, sigma 2; or the usual sizes, each as likely.
    #[arg(hide_short_help = true, long, value_enum, conflicts_with = "sizes")]
    mix: Option<Mix>,

    /// Jobs of a round.
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,

    /// Visits of each contender to each size; from six on the bounds of a ratio hold with 95 per cent.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,

    /// Milliseconds that a contender's rounds of one size take together, all runs; there is one round in each run at least.
    #[arg(hide_short_help = true, long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=600_000))]
    cell_time: u32,

    /// Policies of Evener.
    ///
    /// cpu_only, module_only, round_robin, polling, shared_queue, adaptive.
    #[arg(long, value_delimiter = ',', default_value = "adaptive")]
    policies: Vec<Policy>,

    /// What the adaptive policy is to be best at: all done early, each request back early, or little core time.
    #[arg(hide_short_help = true, long, value_name = "OBJECTIVE", value_parser = objective_parser(), default_value = Objective::Throughput.name())]
    objective: Objective,

    /// Single requests instead of bursts: one caller brings the jobs one at a time and waits for each.
    #[arg(long, conflicts_with = "workers")]
    one_by_one: bool,

    /// Beside a program that wants so many per cent of a core. At 0 there is none: rounds follow each other in the same way, and
    /// the busy time of the whole machine is printed.
    #[arg(hide_short_help = true,
        long,
        value_name = "PERCENT",
        value_parser = clap::value_parser!(u8).range(0..=100),
        conflicts_with = "one_by_one"
    )]
    hog: Option<u8>,

    /// Beside a program that sleeps and sees how late it is woken.
    #[arg(hide_short_help = true, long, conflicts_with = "one_by_one")]
    probe_latency: bool,

    /// Where input and output lie.
    #[arg(long, value_enum, default_value = "out-of-place")]
    layout: Place,

    /// CPU workers; unless given, as many as this process may use cores.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,

    /// Writes the results as JSON (docs/guide/measuring.md).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Draws rates over sizes, and what bounds them: a copy of the same bytes, or, where the processor is emulated too, what its costs permit.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    #[command(flatten)]
    module_options: ModuleOptions,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum CryptDirection {
    Encrypt,
    Decrypt,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Mix {
    Lognormal,
    Uniform,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Place {
    /// Apart, each job its own.
    #[value(name = "out-of-place")]
    Apart,
    /// Output replaces input.
    #[value(name = "in-place")]
    Same,
    /// Output replaces input, in memory that stays in the caches.
    Cache,
}

pub(crate) fn run(arguments: &Crypt) -> anyhow::Result<Exit> {
    let mut machine = machine::whole(&arguments.module_options)?;
    let direction = match arguments.direction {
        CryptDirection::Encrypt => Direction::Encrypt,
        CryptDirection::Decrypt => Direction::Decrypt,
    };
    machine.load_or_measure_costs(&[(arguments.algorithm, direction)], false);
    let experiment = experiment(arguments, direction, machine.lanes.is_some())?;
    let [json, svg] = [&arguments.json, &arguments.svg].map(|path| ResultsFile::open(path.as_ref()));
    let (json, svg) = (json?, svg?);
    let mut learned = machine.learned.clone();
    let print_cell = |cell: &str| output::line(format_args!("measuring {cell}"));
    let mut results = measure(&experiment, &machine, &mut learned, print_cell)?;
    results.module_requests = machine.module_requests();
    results.machine = whereabouts();
    if arguments.weighs() {
        // A cache that cannot be written costs the next run its knowledge, and this one nothing.
        machine.save_costs(&learned).ok();
    }
    let draw = |path: &Path| {
        let libraries = [Some(&machine.libcrypto), machine.library(), machine.lanes.as_ref()];
        let libraries: Vec<_> = libraries.into_iter().flatten().map(|it| it.detail.clone()).collect();
        let machine = format!("{}, {}", this_processor().model, libraries.join(", "));
        Ok(results.draw(path, &machine, arguments.bound(&experiment))?)
    };
    let kept = json.map_or(Ok(()), |file| file.write(&evener_bench::to_json(&results)));
    let kept = kept.and(svg.map_or(Ok(()), |file| file.write_at(draw)));
    output::answer_beside(kept, results.to_text().as_bytes())
}

/// Board, where a device tree names it, processor and system.
fn whereabouts() -> String {
    let board = std::fs::read_to_string("/proc/device-tree/model").unwrap_or_default();
    let (processor, system) = (this_processor(), rustix::system::uname());
    let release = [system.sysname(), system.release(), system.machine()];
    let parts = [board.trim_end_matches('\0').to_owned(), processor.model];
    let release = release.map(|part| part.to_string_lossy().into_owned()).join(" ");
    parts.into_iter().chain([release]).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

impl Crypt {
    /// Threads that compete for the cores.
    fn beside(&self) -> Option<NeighbourSpec> {
        let is_asked = self.hog.is_some() || self.probe_latency;
        is_asked.then(|| NeighbourSpec { hog_percent: self.hog.unwrap_or(0), probe: self.probe_latency })
    }

    /// What no line of the picture can be above where processor and modules are emulated: what their costs permit.
    fn bound(&self, experiment: &Experiment) -> Option<Bound> {
        let ModuleOptions { modules, cpu_cost } = &self.module_options;
        let cpu = cpu_cost.as_ref()?;
        let cost_on = |preset: &Preset| {
            let preset = preset.clone();
            move |bytes| preset.cost(self.algorithm, bytes)
        };
        let presets = modules.iter().map(|module| match module {
            ModuleSpec::Emulated(preset) => Some((preset.units(), cost_on(preset))),
            _ => None,
        });
        let presets = presets.collect::<Option<Vec<_>>>()?;
        let on_modules: Vec<_> =
            presets.iter().map(|(units, cost)| (*units, cost as &bound::CostOf<'_>)).collect();
        bound::of_costs(experiment, cost_on(cpu), &on_modules)
    }

    /// Whether the adaptive policy has modules to weigh against the CPU.
    fn weighs(&self) -> bool {
        self.policies.contains(&Policy::Adaptive) && !self.module_options.modules.is_empty()
    }
}

fn experiment(arguments: &Crypt, direction: Direction, has_lanes: bool) -> anyhow::Result<Experiment> {
    let workers = match arguments.workers {
        Some(workers) => usize::from(workers),
        None if arguments.one_by_one => 1,
        None => evener::core_budget().workers(),
    };
    let to_size = |&size: &u64| usize::try_from(size).context("a size is larger than memory");
    let sizes = match arguments.mix {
        Some(Mix::Lognormal) => Sizes::LogNormal,
        Some(Mix::Uniform) => Sizes::Uniform,
        None => Sizes::Each(arguments.sizes.iter().map(to_size).collect::<anyhow::Result<_>>()?),
    };
    let layout = match arguments.layout {
        Place::Apart => Layout::OutOfPlace,
        Place::Same => Layout::InPlace,
        Place::Cache => Layout::Cache,
    };
    Ok(Experiment {
        work: Work {
            algorithm: arguments.algorithm,
            direction,
            layout,
            sizes,
            count: usize::try_from(arguments.count)?,
        },
        visits: Visits {
            runs: usize::try_from(arguments.runs)?,
            cell_time: Nanos::from_millis(arguments.cell_time.into()),
        },
        workers,
        contenders: contenders(arguments, direction, workers, has_lanes),
        beside: arguments.beside(),
    })
}

/// Baselines first. What is emulated, and what has neighbours, has no baseline but the same under `cpu_only`.
fn contenders(arguments: &Crypt, direction: Direction, workers: usize, has_lanes: bool) -> Vec<Contender> {
    let emulates = arguments.module_options.emulates();
    let modules = match (emulates, &arguments.module_options.modules[..]) {
        (true, _) => Modules::Emulated,
        (false, []) => Modules::None,
        (false, _) => Modules::Real,
    };
    let mut contenders = Vec::new();
    if !emulates && arguments.beside().is_none() {
        contenders.push(Contender::OpenSsl { workers: 1 });
        if workers > 1 {
            contenders.push(Contender::OpenSsl { workers });
        }
        // Bare loops want bursts.
        if !arguments.one_by_one {
            contenders.extend(bare(arguments.algorithm, direction, workers, has_lanes));
        }
    }
    let as_contender = |&policy: &Policy| Contender::Evener {
        policy,
        // The papers' policies have one aim.
        objective: if policy == Policy::Adaptive { arguments.objective } else { Objective::Throughput },
        workers,
        modules,
        singly: arguments.one_by_one,
    };
    contenders.extend(arguments.policies.iter().map(as_contender));
    contenders
}

/// Bare loops around what Evener encrypts and hashes by, and a copy for what has output.
fn bare(
    algorithm: Algorithm,
    direction: Direction,
    workers: usize,
    has_lanes: bool,
) -> impl Iterator<Item = Contender> {
    let is_cbc = algorithm.family() == Family::Cbc && direction == Direction::Encrypt;
    let copy = algorithm.is_cipher().then_some(Contender::Copy { workers });
    let library = is_cbc.then_some(Contender::BareMultiBuffer { workers });
    let kernels = if has_lanes { Instructions::all(algorithm) } else { Vec::new() };
    let kernels = kernels.into_iter().map(move |by| Contender::Kernel { by, workers });
    copy.into_iter().chain(library).chain(kernels)
}
