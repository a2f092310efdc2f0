//! Papers 001 and 004 again, live: many forked processes at one module, without an order, with the papers' and with the arbiter's.
//! `cargo run --release -p evener-bench --bin processes -- t2 --out docs/results/processes-t2`.
//!
//! Steps: [`Arguments`] -> a plan of works (`plan.rs`) -> for each work and number of processes all modes take turns, round by round ([`measure`]) -> a line of the table ->
//! JSON, page and pictures under one name. `docs/design/measuring.md` says what each experiment is.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "it prints a table")]

mod plan;

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use evener_bench::processes::report::{Case, Cell, Predicted, Report};
use evener_bench::processes::{Experiment, Gates, Mode, Place, Round, predict};
use evener_bench::programs::stopwatch;
use evener_core::{InlineDriver as _, Nanos};
use evener_driver_libcrypto::Libcrypto;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity};

use plan::Work;

/// Measures many processes at one module.
#[derive(Parser, Clone)]
struct Arguments {
    /// What is measured
    #[arg(value_enum)]
    experiment: Kind,
    /// Numbers of processes
    #[arg(long, value_delimiter = ',')]
    counts: Vec<usize>,
    /// How they share the module
    #[arg(long, value_delimiter = ',', value_parser = Mode::of_name)]
    modes: Vec<Mode>,
    /// Rounds: in each, every mode
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Requests of all processes of a round together; each has at least --least and at most 1024, as in paper 001
    #[arg(long)]
    total: Option<usize>,
    /// Requests of a process at least
    #[arg(long, default_value_t = 8)]
    least: usize,
    /// What an emulated unit takes for a request, in microseconds; `preset`: as the preset says. Of other modules: what the arbiter is told
    #[arg(long)]
    service_us: Option<String>,
    /// How many times as slow as the preset the emulated Cell is
    #[arg(long, default_value_t = 20)]
    pace: u64,
    /// Permits of the arbiter; usually two for each unit of the T2, and one for each of the Cell
    #[arg(long)]
    permits: Option<u32>,
    /// Bytes of a request
    #[arg(long)]
    bytes: Option<usize>,
    /// What a host serves (usually cpu), or the module behind the kernel (usually afalg:virtio_crypto_aes_cbc)
    #[arg(long)]
    module: Option<String>,
    /// The command `evener`, for a host
    #[arg(long, default_value = "target/release/evener")]
    evener: PathBuf,
    /// What the page says of the command, in place of these words
    #[arg(long)]
    command: Option<String>,
    /// A further line of circumstances
    #[arg(long = "circumstance", value_name = "LINE")]
    circumstances: Vec<String>,
    /// Writes NAME.json, NAME.md, NAME.svg and NAME-switches.svg
    #[arg(long, value_name = "NAME")]
    out: Option<PathBuf>,
    /// Takes the cells that NAME.json has already, so that a measurement can be made in parts
    #[arg(long, requires = "out")]
    append: bool,
}

/// The experiments.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Paper 001: the emulated T2's eight units
    T2,
    /// The same at the core of `evener host --module cpu`, or at another module of a host
    Host,
    /// The same at a module behind the kernel, as in the test bed's guest
    Kernel,
    /// Paper 004: the emulated Cell's six units, on one core
    Cell,
    /// One unit and one permit: whether grants keep the order of tickets
    Order,
    /// Nothing: page and pictures of --out are drawn again from its JSON
    Again,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.experiment == Kind::Again {
        let name = arguments.out.as_deref().context("--out says which")?;
        return Report::read(name)?.write(name).context("the report");
    }
    raise_limits();
    let load_before = load();
    let plan = plan::of(&arguments)?;
    let mut report = Report {
        title: plan.title.clone(),
        commands: vec![arguments.command.clone().unwrap_or_else(|| command(&scheduler()))],
        circumstances: circumstances(&arguments.circumstances)?,
        conditions: plan.conditions.clone(),
        cells: Vec::new(),
    };
    println!("{}\n{}", plan.title, plan.conditions.join("\n"));
    for work in &plan.works {
        if !work.name.is_empty() {
            println!("{}", work.name);
        }
        println!("{}", Cell::heading());
        let gates = Gates::new(&work.experiment)?;
        let mut learned = Learned::default();
        for &(processes, requests) in &work.sizes {
            for cell in measure(&arguments, &gates, work, [processes, requests], &mut learned)? {
                println!("{}", cell.line());
                report.cells.push(cell);
            }
        }
    }
    report.circumstances.push(format!("load: {load_before} before, {} after", load()));
    let Some(name) = arguments.out.as_deref() else { return Ok(()) };
    if arguments.append {
        report.append_to(name)?;
    }
    report.write(name).context("the report")
}

/// What the first cell tells of one request, for the simulator.
#[derive(Default)]
struct Learned {
    /// What it takes on a core, without the module.
    core: Nanos,
    /// What it takes beside the module's time, where only that is known.
    path: Nanos,
}

impl Learned {
    fn take(&mut self, cell: &Cell, experiment: &Experiment) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "microseconds")]
        let seen = Nanos((cell.median(|figures| figures.p50_us) * 1e3) as u64);
        match cell.case.mode {
            Mode::Cores if self.core == Nanos::ZERO => self.core = seen,
            Mode::Plain if cell.case.processes == 1 => {
                self.path = Nanos(seen.0.saturating_sub(experiment.service.0));
            }
            _ => {}
        }
    }
}

/// All modes at one number of processes, in turns.
fn measure(
    arguments: &Arguments,
    gates: &Gates,
    work: &Work,
    [processes, requests]: [usize; 2],
    learned: &mut Learned,
) -> anyhow::Result<Vec<Cell>> {
    let modes = &work.modes;
    let each = |mode: Mode| if mode == Mode::Cores { requests * work.cores_times } else { requests };
    let mut rounds: Vec<Vec<Round>> = vec![Vec::new(); modes.len()];
    for round in 0..arguments.rounds {
        for step in 0..modes.len() {
            // Who goes first goes last in the next round.
            let at = (step + round) % modes.len();
            let done = gates.round(modes[at], processes, each(modes[at]));
            rounds[at].push(done.with_context(|| format!("{processes} processes, {}", modes[at].name()))?);
        }
    }
    let mut cells = Vec::new();
    for (&mode, rounds) in modes.iter().zip(rounds) {
        let experiment = &work.experiment;
        let ids = rounds.first().map(|round| round.ids.clone()).unwrap_or_default();
        let mut cell = Cell {
            case: Case { work: work.name.clone(), bytes: experiment.bytes, processes, mode },
            requests: each(mode),
            rounds: rounds.into_iter().map(|round| round.figures).collect(),
            predicted: None,
        };
        learned.take(&cell, experiment);
        let core = if experiment.place == Place::Emulated { experiment.core } else { learned.path };
        let known = Experiment { core, ..experiment.clone() };
        let predicted = predict(&known, mode, &ids, cell.requests, cores(), learned.core);
        cell.predicted = predicted.and_then(|outcome| Predicted::of(outcome, experiment.bytes));
        cells.push(cell);
    }
    Ok(cells)
}

/// What was said, without the folders of programs, which are this machine's.
fn command(scheduler: &str) -> String {
    let mut words = Vec::new();
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        match word.as_str() {
            "--evener" => _ = given.next(),
            _ => words.push(word),
        }
    }
    let before = if scheduler.starts_with("SCHED_RR") { "chrt -r 1 " } else { "" };
    format!("{before}target/release/processes {}", words.join(" "))
}

/// How the system shares the cores among processes like this one.
fn scheduler() -> String {
    let told = said("chrt", &["-p", &std::process::id().to_string()]);
    let values: Vec<&str> = told.lines().filter_map(|line| line.rsplit(": ").next()).collect();
    if values.is_empty() { "the system's usual one".to_owned() } else { values.join(", priority ") }
}

fn said(program: &str, words: &[&str]) -> String {
    let mut command = std::process::Command::new(program);
    command.args(words);
    String::from_utf8_lossy(&stopwatch::run(command).unwrap_or_default()).trim().to_owned()
}

fn circumstances(more: &[String]) -> anyhow::Result<Vec<String>> {
    let information = fs::read_to_string("/proc/cpuinfo")?;
    let model = information.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown", |(_, model)| model);
    let system = rustix::system::uname();
    let mut lines = vec![
        format!("date: {}", said("date", &["-u", "+%Y-%m-%d"])),
        format!("processor: {model}, {} cores, in a virtual machine: {}", cores(), is_virtual(&information)),
        format!("system: Linux {}", system.release().to_string_lossy().split('-').next().unwrap_or_default()),
        format!("scheduler: {}", scheduler()),
        format!("library: {}", Libcrypto::new()?.profile().detail),
    ];
    lines.extend_from_slice(more);
    Ok(lines)
}

fn is_virtual(information: &str) -> &'static str {
    let has = information.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor"));
    if has { "yes" } else { "no" }
}

fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}

fn cores() -> usize {
    sched_getaffinity(None)
        .map_or(1, |allowed| (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).count())
}

/// As far as the system allows. Where that is too few, the first process that cannot be started says so.
fn raise_limits() {
    for resource in [Resource::Nofile, Resource::Nproc] {
        let most = getrlimit(resource).maximum;
        setrlimit(resource, Rlimit { current: most, maximum: most }).ok();
    }
}
