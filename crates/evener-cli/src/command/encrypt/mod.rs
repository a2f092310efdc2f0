//! `evener encrypt` and `evener decrypt`: real files, both directions alike.
//!
//! Path: options -> keys -> drivers -> [`process`] with a progress line -> failures, summary, report.

mod keep;
mod keys;
mod progress;
mod report;
mod summary;

use std::ffi::OsString;
use std::io::{IsTerminal as _, stdout};
use std::num::NonZero;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::ArgGroup;
use evener::core::plan::Policy;
use evener::core::{Budget, Direction, Estimator, Objective};
use evener_files::{Options, Progress, Request, RequestError, Source, Summary, Target, Task, process};

use crate::atomic_file;
use crate::machine::Machine;
use crate::machine::options::{ModuleOptions, objective_parser, policy_parser};
use crate::terminal::{Exit, PathDisplay, exit_status_help, output, signals, units};
use keep::KeepOptions;
use keys::{KeyOptions, RecipientOptions};
use report::{Report, RunFacts};

/// Encrypts files and directories.
///
/// One file goes to OUT, or into OUT where that is a directory or ends in a slash; one directory is mirrored
/// by OUT; several inputs go into OUT under their own names. Names, modes, modification times, symbolic and hard links,
/// extended attributes, access lists and, as root, owners are kept; devices, sockets and pipes are failures. An output appears under its name only when it is
/// complete. The same command again after an interruption does what is left: an output counts as finished if time and
/// length fit and this run's key opens its first segment, which must hold the first bytes of the input. That costs
/// what it costs to begin the file, with a passphrase about a second; --resume asks for time and length only. Who can
/// read an output for age1... recipients cannot be seen without an identity; there a decision is asked for.
#[derive(clap::Args)]
#[command(
    group = ArgGroup::new("way").required(true).multiple(true),
    after_help = concat!(
        "Examples:\n",
        "  evener encrypt --key KEY.json -o /mnt/sealed photos\n",
        "  evener encrypt -r age1... -R team.txt -o report.pdf.age report.pdf\n",
        "  tar c photos | evener encrypt -p -o photos.tar.age -\n\n",
        exit_status_help!()
    ),
    override_usage = "evener encrypt KEYS [OPTIONS] -o OUT INPUT..."
)]
pub(crate) struct Encrypt {
    #[command(flatten)]
    recipients: RecipientOptions,
    #[command(flatten)]
    keys: KeyOptions,
    #[command(flatten)]
    run: RunOptions,
}

/// Decrypts files and directories.
///
/// Names and places as with `evener encrypt`. A file that is not authentic leaves no output; standard output
/// gets authenticated segments only. A keyset opens files with any of its enabled keys.
#[derive(clap::Args)]
#[command(
    group = ArgGroup::new("way").required(true).multiple(true),
    after_help = concat!(
        "Examples:\n",
        "  evener decrypt --key KEY.json -o photos /mnt/sealed\n",
        "  evener decrypt -i ~/.ssh/id_ed25519 -o report.pdf report.pdf.age\n",
        "  evener decrypt -p -o - photos.tar.age | tar x\n\n",
        exit_status_help!()
    ),
    override_usage = "evener decrypt KEYS [OPTIONS] -o OUT INPUT..."
)]
pub(crate) struct Decrypt {
    #[command(flatten)]
    keys: KeyOptions,
    #[command(flatten)]
    run: RunOptions,
}

/// Inputs, output and how to work.
#[derive(clap::Args)]
#[command(next_help_heading = "Files")]
struct RunOptions {
    /// Files and directories; `-` is standard input.
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<OsString>,

    /// Where the output goes; `-` is standard output.
    #[arg(short, long, value_name = "OUT")]
    output: OsString,

    /// Does every file again, and replaces whatever is there under its name.
    #[arg(long)]
    force: bool,

    /// Takes every output of fitting time and length for finished, whatever its key: no key is derived to find out.
    #[arg(long, conflicts_with = "force")]
    resume: bool,

    #[command(flatten)]
    keep: KeepOptions,

    /// Says nothing but failures: no progress, no summary.
    #[arg(short, long, help_heading = "Report")]
    quiet: bool,

    /// Writes what was done, by whom and how, as JSON (docs/schemas/report.schema.json); `-` is standard output.
    #[arg(long, value_name = "REPORT", help_heading = "Report")]
    json: Option<PathBuf>,

    /// Threads that work on the CPU; unless given, as many as affinity and cgroup allow.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Work")]
    workers: Option<u16>,

    /// Most memory for data in work, such as 64M or 1G; unless given, 192M.
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes, help_heading = "Work")]
    memory: Option<u64>,

    #[command(flatten)]
    module_options: ModuleOptions,

    /// Who takes which segment where there is a module.
    #[arg(long, value_name = "POLICY", value_parser = policy_parser(), default_value = Policy::Adaptive.name())]
    policy: Policy,

    /// What the adaptive policy is to be best at: all done early, each single request back early, or little core time.
    #[arg(long, value_name = "OBJECTIVE", value_parser = objective_parser(), default_value = Objective::Throughput.name(), help_heading = "Work")]
    objective: Objective,

    /// Most core time, in percent of the cores that this process may use; held over every second.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100), help_heading = "Work")]
    cpu_budget: Option<u8>,
}

/// Memory for data in work unless told otherwise; with code and stacks a run stays under 256 MiB.
const MEMORY_BYTES: u64 = 192 << 20;

pub(crate) fn encrypt(arguments: &Encrypt) -> anyhow::Result<Exit> {
    arguments.run.check(Direction::Encrypt)?;
    let task = Task::Encrypt(arguments.keys.sealer(&arguments.recipients, arguments.run.memory)?);
    run(task, Direction::Encrypt, &arguments.keys, &arguments.run)
}

pub(crate) fn decrypt(arguments: &Decrypt) -> anyhow::Result<Exit> {
    arguments.run.check(Direction::Decrypt)?;
    let task = Task::Decrypt(arguments.keys.opener(arguments.run.memory)?);
    run(task, Direction::Decrypt, &arguments.keys, &arguments.run)
}

fn run(task: Task, direction: Direction, keys: &KeyOptions, run: &RunOptions) -> anyhow::Result<Exit> {
    let mut machine = Machine::new(&run.module_options)?;
    machine.load_or_measure_costs(&keys.rows(direction)?, false);
    let mut options = run.options();
    options.learned.clone_from(&machine.learned);
    let about = RunFacts {
        direction: if direction == Direction::Encrypt { "encrypt" } else { "decrypt" },
        format: keys.format()?.name(),
        policy: options.policy.name(),
        emulated_cpu: run.module_options.cpu_cost.as_ref().map(|preset| preset.name().to_owned()),
    };
    let request = Request { task, sources: run.sources(), target: run.target(), options };
    let summary = carry_out(request, &machine, run)?;
    if run.weighs() {
        // A cache that cannot be written costs the next run its knowledge, and this one nothing.
        machine.save_costs(&summary.report.learned).ok();
    }
    let report = Report::new(&summary, about);
    summary::failures(&report);
    if !run.quiet {
        output::line(summary::text(&report));
    }
    let exit = report::exit(&summary);
    match run.write(&report) {
        Err(error) if exit == Exit::Done => {
            output::failure(&error);
            Ok(Exit::SomeFailed)
        }
        Err(error) => {
            output::failure(&error);
            Ok(exit)
        }
        Ok(()) => Ok(exit),
    }
}

/// A budget that the parser has found in range.
fn budget(percent: u8) -> Budget {
    let cores = NonZero::new(evener::core_budget().workers()).expect("there is always a core");
    Budget::new(percent.into(), cores).expect("the parser takes 1 to 100")
}

/// Does it. Where the memory was not chosen by the user, segments that need more get it.
fn carry_out(mut request: Request, machine: &Machine, run: &RunOptions) -> anyhow::Result<Summary> {
    let cancel = signals::cancel_on_signals()?;
    let progress = Progress::default();
    progress::shown_while(&progress, !run.quiet, || {
        let first = process(&request, machine, &progress, &cancel);
        if let (Err(RequestError::Memory { needed_bytes }), None) = (&first, run.memory) {
            request.options.memory_bytes = *needed_bytes;
            return process(&request, machine, &progress, &cancel);
        }
        first
    })
    .map_err(Into::into)
}

impl RunOptions {
    /// What no library would find wrong.
    fn check(&self, direction: Direction) -> anyhow::Result<()> {
        let to_stdout = self.target() == Target::Stdout;
        if to_stdout && direction == Direction::Encrypt && stdout().is_terminal() {
            bail!(
                "encrypted bytes would go to a terminal; redirect standard output, or choose a file with -o"
            );
        }
        if to_stdout && self.json.as_deref() == Some(Path::new("-")) {
            bail!("data and report cannot both go to standard output");
        }
        match (self.policy, &self.module_options.modules[..]) {
            (Policy::CpuOnly | Policy::Adaptive, _) | (_, [_, ..]) => Ok(()),
            (policy, []) => bail!("--policy {policy} needs a module: --module"),
        }
    }

    /// Whether the adaptive policy has modules to weigh against the CPU.
    fn weighs(&self) -> bool {
        self.policy == Policy::Adaptive && !self.module_options.modules.is_empty()
    }

    fn sources(&self) -> Vec<Source> {
        let source = |input: &OsString| if input == "-" { Source::Stdin } else { Source::Path(input.into()) };
        self.inputs.iter().map(source).collect()
    }

    fn target(&self) -> Target {
        if self.output == "-" { Target::Stdout } else { Target::Path((&self.output).into()) }
    }

    fn options(&self) -> Options {
        Options {
            workers: self.workers.map_or_else(|| evener::core_budget().workers(), usize::from),
            policy: self.policy,
            objective: self.objective,
            budget: self.cpu_budget.map(budget),
            learned: Estimator::default(),
            memory_bytes: self.memory.unwrap_or(MEMORY_BYTES),
            force: self.force,
            resume: self.resume,
            keep: self.keep.keep(),
        }
    }

    fn write(&self, report: &Report) -> anyhow::Result<()> {
        let Some(file) = &self.json else { return Ok(()) };
        let json = serde_json::to_string_pretty(report)? + "\n";
        if file == Path::new("-") {
            return output::answer(json.as_bytes()).map(drop);
        }
        atomic_file::write_named(file, json.as_bytes())
            .with_context(|| format!("cannot write the report {}", PathDisplay(file)))
    }
}
