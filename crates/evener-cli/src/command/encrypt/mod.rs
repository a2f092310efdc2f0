//! `evener encrypt` and `evener decrypt`: real files, both directions alike.
//!
//! Path: options -> keys -> drivers -> [`process`] with a progress line -> failures, summary, report.

mod common_options;
mod keys;
mod part;
mod preservation;
mod progress;
mod report;
mod summary;
mod tree;
pub(crate) mod verify;

use std::ffi::OsString;
use std::io::{IsTerminal as _, stdout};
use std::num::NonZero;
use std::path::Path;

use anyhow::{anyhow, bail};
use clap::ArgGroup;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use evener::Cancel;
use evener::core::plan::Policy;
use evener::core::{Budget, Direction, Estimator, Objective};
use evener_files::{
    Existing, FileError, Filter, Options, Part, Progress, Request, RequestError, Source, Summary, Target,
    Task, Trust, abandon_drafts, process,
};

use crate::atomic_file;
use crate::machine::Machine;
use crate::machine::options::{ModuleOptions, objective_parser, policy_parser};
use crate::machine::state;
use crate::terminal::{Exit, examples_help, output, prompt, signals};
use common_options::CommonOptions;
use keys::{Format, KeyOptions, RecipientOptions};
use preservation::KeepOptions;
use report::{Report, RunFacts};

/// Encrypts files and directories.
///
/// One file goes to OUT, or into OUT where that is a directory or ends in a slash; one directory is mirrored
/// by OUT; several inputs go into OUT under their own names. Names, modes, modification times, symbolic and hard links,
/// extended attributes, access lists and, as root, owners are kept; devices, sockets and pipes are failures. An output appears under its name only when it is
/// complete. The same command again after an interruption does what is left: an output counts as finished where the record of
/// the earlier run says so (a file beside OUT, .OUT.evener-record, which tells others nothing), or where it opens under this
/// run's key and holds the input, whole. Anything else that stands there is an error; --update makes again what has changed.
///
/// Who sees the output of a directory sees its names, lengths (to the byte), modes, times, owners, attributes, and where links point; only contents
/// are encrypted. --tar hides all of that in one file, whose length alone is seen.
#[derive(clap::Args)]
#[command(
    group = ArgGroup::new("way").required(true).multiple(true),
    after_help = examples_help! {
        "evener encrypt --key KEY.json -o /mnt/sealed photos"
        "evener encrypt -r age1... -R team.txt -o report.pdf.age report.pdf"
        "tar c photos | evener encrypt -r age1... > photos.tar.age"
    },
    override_usage = "evener encrypt KEYS [OPTIONS] [-o OUT] [INPUT...]"
)]
pub(crate) struct Encrypt {
    #[command(flatten)]
    recipients: RecipientOptions,
    #[command(flatten)]
    keys: KeyOptions,

    /// Writes text: age's armor, or base64 in the openssl format.
    #[arg(short, long, help_heading = "Format")]
    armor: bool,

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
    after_help = examples_help! {
        "evener decrypt --key KEY.json -o photos /mnt/sealed"
        "evener decrypt -i ~/.ssh/id_ed25519 -o report.pdf report.pdf.age"
        "evener decrypt -i ID.txt photos.tar.age | tar x"
    },
    override_usage = "evener decrypt KEYS [OPTIONS] [-o OUT] [INPUT...]"
)]
pub(crate) struct Decrypt {
    #[command(flatten)]
    keys: KeyOptions,

    /// Takes a part of one file, and opens no more of it than that needs: 0-499 (the first 500 bytes, as in HTTP), 1M+64K (64 KiB from
    /// 1 MiB on), 500- (all but the first 500) or -500 (the last 500).
    #[arg(long, value_name = "RANGE", value_parser = part::parse, allow_hyphen_values = true, conflicts_with = "tar", help_heading = "Files")]
    range: Option<Part>,

    #[command(flatten)]
    run: RunOptions,
}

/// Inputs, output and how to work.
#[derive(clap::Args)]
#[command(next_help_heading = "Files")]
struct RunOptions {
    /// Files and directories; `-` is standard input, which is read where there is none.
    #[arg(value_name = "INPUT", value_parser = OsStringValueParser::new().try_map(name))]
    inputs: Vec<OsString>,

    /// Where the output goes; `-` is standard output, to which one file or standard input goes unless it is said.
    #[arg(short, long, value_name = "OUT", value_parser = OsStringValueParser::new().try_map(name))]
    output: Option<OsString>,

    /// Does every file again, and replaces whatever is there under its name.
    #[arg(long)]
    force: bool,

    /// Makes outputs again whose source has changed, or that are for another key; leaves the others, and touches nothing that Evener did
    /// not make.
    #[arg(long, conflicts_with = "force")]
    update: bool,

    /// Deletes outputs that have lost their source: those that the record shows to be Evener's, as it made them. --dry-run names them
    /// before. Nothing is deleted where any file failed.
    #[arg(long)]
    delete: bool,

    /// Writes nothing, and tells on standard output what would be done.
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Leaves out what GLOB matches below a directory, as in .gitignore: *.tmp, /cache/, a/**/b. May be repeated.
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,

    /// Takes only files that GLOB matches; --exclude stands over it. May be repeated.
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,

    /// Takes a file for unchanged whatever the time of its inode says: for stores that change it.
    #[arg(long)]
    ignore_ctime: bool,

    /// Takes a file for unchanged whatever its inode's number: for stores that give new ones.
    #[arg(long)]
    ignore_inode: bool,

    /// Makes one encrypted tar archive of all inputs, or unpacks one: names, sizes, times and links are then hidden, too. `age -d` and tar
    /// read it.
    #[arg(long, conflicts_with_all = ["update", "delete", "dry_run"])]
    tar: bool,

    #[command(flatten)]
    keep: KeepOptions,

    #[command(flatten)]
    common: CommonOptions,

    /// Says besides which worker did how much, and how.
    #[arg(short, long, conflicts_with = "quiet", help_heading = "Report")]
    verbose: bool,

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

pub(crate) fn encrypt(arguments: &Encrypt) -> anyhow::Result<Exit> {
    arguments.run.check(Direction::Encrypt)?;
    let cancel = signals::end_soon_after_signals(abandon)?;
    let (keys, recipients, sources) = (&arguments.keys, &arguments.recipients, arguments.run.sources());
    keys.check_stdin(Some(recipients), &sources)?;
    if arguments.armor && keys.format()? == Format::Tink {
        bail!("--armor goes with the age and openssl formats: Tink streams have no form as text");
    }
    let task = Task::Encrypt(keys.sealer(
        recipients,
        &sources,
        &arguments.run.tree(),
        arguments.run.common.memory,
    )?);
    let options = Options { armor: arguments.armor, ..arguments.run.options() };
    run(task, options, keys, &arguments.run, &cancel)
}

pub(crate) fn decrypt(arguments: &Decrypt) -> anyhow::Result<Exit> {
    arguments.run.check(Direction::Decrypt)?;
    let cancel = signals::end_soon_after_signals(abandon)?;
    let (keys, sources) = (&arguments.keys, arguments.run.sources());
    keys.check_stdin(None, &sources)?;
    let (opener, left_out) = keys.opener(&sources, arguments.run.common.memory)?;
    let options = Options { left_out, part: arguments.range, ..arguments.run.options() };
    run(Task::Decrypt(opener), options, keys, &arguments.run, &cancel)
}

fn run(
    task: Task,
    mut options: Options,
    keys: &KeyOptions,
    run: &RunOptions,
    cancel: &Cancel,
) -> anyhow::Result<Exit> {
    let (direction, algorithms) = match &task {
        Task::Encrypt(sealer) => (Direction::Encrypt, sealer.algorithms()),
        Task::Decrypt(opener) => (Direction::Decrypt, opener.algorithms()),
    };
    let operations: Vec<_> = algorithms.into_iter().map(|algorithm| (algorithm, direction)).collect();
    let mut machine = Machine::only_for(&operations, &run.module_options)?;
    machine.load_or_measure_costs(&operations, false);
    options.learned.clone_from(&machine.learned);
    options.filter = Filter::new(&run.include, &run.exclude).map_err(|error| anyhow!("{error}"))?;
    let about = RunFacts {
        direction: if direction == Direction::Encrypt { "encrypt" } else { "decrypt" },
        format: keys.format()?.name(),
        policy: options.policy.name(),
        emulated_cpu: run.module_options.cpu_cost.as_ref().map(|preset| preset.name().to_owned()),
    };
    let request = Request { task, sources: run.sources(), target: run.target(), options };
    let summary = carry_out(request, &machine, run, cancel)?;
    if summary.failed.iter().any(|(_, error)| matches!(error, FileError::BrokenPipe)) {
        signals::end_by_broken_pipe();
    }
    if run.weighs() {
        // A cache that cannot be written costs the next run its knowledge, and this one nothing.
        machine.save_costs(&summary.report.learned).ok();
    }
    let report = Report::new(&summary, about);
    summary::failures(&report);
    // Of a single file that failed all has been said.
    let is_said = summary.found <= 1 && !summary.failed.is_empty();
    if run.dry_run {
        output::answer(summary::rehearsal(&report).as_bytes())?;
    } else if run.says_what_was_done() && (run.verbose || !is_said) {
        output::line(summary::text(&report, run.verbose));
    }
    if let Some(reason) = summary.not_deleted {
        output::warning(format_args!("nothing was deleted: {reason}"));
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

/// A name, which has letters: what a script meant to name and did not is not the working directory.
fn name(text: OsString) -> Result<OsString, &'static str> {
    if text.is_empty() { Err("the name is empty") } else { Ok(text) }
}

/// What standard error is called as an output.
const STDERR_NAMES: [&str; 3] = ["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"];

/// For a process that ends at once.
fn abandon() {
    prompt::give_back();
    atomic_file::abandon();
    abandon_drafts();
}

/// Does it. Where the memory was not chosen by the user, segments that need more get it.
fn carry_out(
    mut request: Request,
    machine: &Machine,
    run: &RunOptions,
    cancel: &Cancel,
) -> anyhow::Result<Summary> {
    let progress = Progress::default();
    progress::shown_while(&progress, run.says_what_was_done(), || {
        let first = process(&request, machine, &progress, cancel);
        if let (Err(RequestError::Memory { needed_bytes }), None) = (&first, run.common.memory) {
            request.options.memory_bytes = *needed_bytes;
            return process(&request, machine, &progress, cancel);
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
            return Err(RequestError::Terminal.into());
        }
        if to_stdout && self.common.json.as_deref() == Some(Path::new("-")) {
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
        if self.inputs.is_empty() { vec![Source::Stdin] } else { self.inputs.iter().map(source).collect() }
    }

    fn target(&self) -> Target {
        match &self.output {
            Some(output) if output != "-" => Target::Path(output.into()),
            _ => Target::Stdout,
        }
    }

    /// Where a tree would be made and its identity kept; a rehearsal keeps nothing.
    fn tree(&self) -> tree::Output {
        tree::Output { target: self.target(), is_archive: self.tar, is_rehearsal: self.dry_run }
    }

    /// Whether a summary is wanted: a filter says nothing unless asked, for its output is the answer. Nothing goes behind output that goes
    /// to standard error.
    fn says_what_was_done(&self) -> bool {
        let is_stderr =
            matches!(&self.output, Some(output) if STDERR_NAMES.iter().any(|name| output == name));
        !is_stderr && (self.verbose || !(self.common.quiet || self.target() == Target::Stdout))
    }

    fn options(&self) -> Options {
        Options {
            workers: self.common.workers(),
            policy: self.policy,
            objective: self.objective,
            budget: self.cpu_budget.map(budget),
            learned: Estimator::default(),
            memory_bytes: self.common.memory_bytes(),
            existing: self.existing(),
            state_dir: state::directory(),
            trust: Trust { ctime: !self.ignore_ctime, inode: !self.ignore_inode },
            filter: Filter::default(),
            delete: self.delete,
            is_rehearsal: self.dry_run,
            part: None,
            archive: self.tar,
            armor: false,
            left_out: Vec::new(),
            keep: self.keep.keep(),
        }
    }

    const fn existing(&self) -> Existing {
        match (self.force, self.update) {
            (true, _) => Existing::Replace,
            (false, true) => Existing::Update,
            (false, false) => Existing::Keep,
        }
    }

    fn write(&self, report: &Report) -> anyhow::Result<()> {
        self.common.write(report)
    }
}
