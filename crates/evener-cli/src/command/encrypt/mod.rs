//! `evener encrypt` and `evener decrypt`: real files, both directions alike.
//!
//! Path: options -> keys -> drivers -> [`process`] with a progress line -> failures, summary, report.

mod common_options;
mod filter_options;
mod keys;
mod part;
mod places;
mod preservation;
mod progress;
mod report_place;
mod summary;
mod tree;
pub(crate) mod verify;

use std::ffi::OsString;
use std::fs;
use std::io::{IsTerminal as _, stdout};
use std::num::NonZero;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::ArgGroup;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use evener::Cancel;
use evener::core::plan::Policy;
use evener::core::{Budget, Direction, Estimator, Objective};
use evener_fd::atomic_file;
use evener_files::run_report::{Outcome, Report, RunFacts};
use evener_files::{
    Existing, FileError, Filter, Naming, Options, Part, Progress, Request, RequestError, Summary, Target,
    Task, Trust, abandon_drafts, process,
};
use evener_machine::Machine;
use evener_machine::state;

use crate::machine;
use crate::machine::options::{ModuleOptions, objective_parser, policy_parser};
use crate::terminal::{Exit, examples_help, output, prompt, signals};
use common_options::CommonOptions;
use filter_options::FilterOptions;
use keys::{Format, KeyOptions, RecipientOptions};
use places::{Named, Places};
use preservation::KeepOptions;

/// Encrypts files and directories.
///
/// Without -o each file gets its output beside it: f.age, f.tink or f.enc, by the format. One file goes to OUT, or into OUT where that is
/// a directory or ends in a slash; one directory is mirrored by OUT; several inputs go into OUT under their own names. Names, modes, modification times, symbolic and hard links,
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
        "evener encrypt -r age1... -R team.txt report.pdf"
        "tar c photos | evener encrypt -r age1... > photos.tar.age"
    },
    override_usage = "evener encrypt KEYS [OPTIONS] [-o OUT] [INPUT...]"
)]
pub(crate) struct Encrypt {
    #[command(flatten)]
    recipients: RecipientOptions,
    #[command(flatten)]
    keys: KeyOptions,

    /// Writes text: age's armor, or base64 for openssl.
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
        "evener decrypt -i ~/.ssh/id_ed25519 report.pdf.age"
        "evener decrypt -i ID.txt -o - photos.tar.age | tar x"
    },
    override_usage = "evener decrypt KEYS [OPTIONS] [-o OUT] [INPUT...]"
)]
pub(crate) struct Decrypt {
    #[command(flatten)]
    keys: KeyOptions,

    /// Takes a part of one file: 0-499, 1M+64K, 500- or -500.
    ///
    /// Opens no more of it than that needs. 0-499: the first 500 bytes, as in HTTP; 1M+64K: 64 KiB from 1 MiB on; 500-: all but the first 500;
    /// -500: the last 500.
    #[arg(long, value_name = "RANGE", value_parser = part::parse, allow_hyphen_values = true, conflicts_with = "tar", help_heading = "Files")]
    range: Option<Part>,

    #[command(flatten)]
    run: RunOptions,
}

/// Inputs, output and how to work.
#[derive(clap::Args)]
#[command(next_help_heading = "Files")]
struct RunOptions {
    /// Files and directories; none, or `-`, is standard input.
    #[arg(value_name = "INPUT", value_parser = OsStringValueParser::new().try_map(name))]
    inputs: Vec<OsString>,

    /// Where the output goes; `-` is standard output.
    ///
    /// Unless given, standard input goes to standard output, and each file beside itself.
    #[arg(short, long, value_name = "OUT", value_parser = OsStringValueParser::new().try_map(name))]
    output: Option<OsString>,

    /// What names of encrypted files end in.
    ///
    /// Added to each file's name, or taken away; directories and links keep theirs. Unless given, .age, .tink or .enc without -o, and nothing
    /// with it.
    #[arg(long, value_name = "SUFFIX", value_parser = OsStringValueParser::new().try_map(places::suffix), conflicts_with = "tar")]
    suffix: Option<OsString>,

    /// Does every file again, and replaces what is there.
    #[arg(long)]
    force: bool,

    /// Makes outputs again whose source or key has changed.
    ///
    /// Leaves the others, and touches nothing that Evener did not make.
    #[arg(long, conflicts_with = "force")]
    update: bool,

    /// Deletes outputs that have lost their source.
    ///
    /// Those that the record shows to be Evener's, as it made them. --dry-run names them before. Nothing is deleted where any file failed.
    #[arg(long)]
    delete: bool,

    /// Writes nothing, and tells what would be done.
    #[arg(short = 'n', long)]
    dry_run: bool,

    #[command(flatten)]
    filter: FilterOptions,

    /// Takes a file for unchanged whatever the time of its inode says: for stores that change it.
    #[arg(hide_short_help = true, long)]
    ignore_ctime: bool,

    /// Takes a file for unchanged whatever its inode's number: for stores that give new ones.
    #[arg(hide_short_help = true, long)]
    ignore_inode: bool,

    /// Makes one encrypted tar archive, or unpacks one.
    ///
    /// Of all inputs: names, sizes, times and links are then hidden, too. `age -d` and tar read it. Where one is unpacked, --exclude and
    /// --include go by the names of its members: /photos/cache/.
    #[arg(long, conflicts_with_all = ["update", "delete", "dry_run"])]
    tar: bool,

    #[command(flatten)]
    keep: KeepOptions,

    #[command(flatten)]
    common: CommonOptions,

    /// Says who did how much, and how.
    #[arg(short, long, conflicts_with = "quiet", help_heading = "Report")]
    verbose: bool,

    #[command(flatten)]
    module_options: ModuleOptions,

    /// Who takes which segment where there is a module.
    #[arg(hide_short_help = true, long, value_name = "POLICY", value_parser = policy_parser(), default_value = Policy::Adaptive.name(), help_heading = "Scheduling")]
    policy: Policy,

    /// What the adaptive policy is to be best at: all done early, each single request back early, or little core time.
    #[arg(hide_short_help = true, long, value_name = "OBJECTIVE", value_parser = objective_parser(), default_value = Objective::Throughput.name(), help_heading = "Scheduling")]
    objective: Objective,

    /// Most core time, in percent of the cores that this process may use; held over every second.
    #[arg(hide_short_help = true, long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100), help_heading = "Scheduling")]
    cpu_budget: Option<u8>,
}

pub(crate) fn encrypt(arguments: &Encrypt) -> anyhow::Result<Exit> {
    let (keys, recipients) = (&arguments.keys, &arguments.recipients);
    let places = arguments.run.places(Direction::Encrypt, keys.format()?, false);
    arguments.run.check(!arguments.armor, &places)?;
    let cancel = signals::end_soon_after_signals(abandon)?;
    keys.check_stdin(Some(recipients), &places.sources)?;
    let key_files = keys.files(Some(recipients));
    arguments.run.check_report(&key_files, &places)?;
    if arguments.armor && keys.format()? == Format::Tink {
        bail!("--armor goes with the age and openssl formats: Tink streams have no form as text");
    }
    let task = Task::Encrypt(keys.sealer(
        recipients,
        &places.sources,
        &arguments.run.tree(&places),
        arguments.run.common.memory,
    )?);
    let options = Options { armor: arguments.armor, key_files, ..arguments.run.options() };
    run(task, options, (keys, &arguments.run, places), &cancel)
}

pub(crate) fn decrypt(arguments: &Decrypt) -> anyhow::Result<Exit> {
    let keys = &arguments.keys;
    let places = arguments.run.places(Direction::Decrypt, keys.format()?, arguments.range.is_some());
    arguments.run.check(false, &places)?;
    let cancel = signals::end_soon_after_signals(abandon)?;
    keys.check_stdin(None, &places.sources)?;
    let key_files = keys.files(None);
    arguments.run.check_report(&key_files, &places)?;
    let (opener, left_out) = keys.opener(&places.sources, arguments.run.common.memory)?;
    let options = Options { left_out, key_files, part: arguments.range, ..arguments.run.options() };
    run(Task::Decrypt(opener), options, (keys, &arguments.run, places), &cancel)
}

fn run(
    task: Task,
    mut options: Options,
    (keys, run, places): (&KeyOptions, &RunOptions, Places),
    cancel: &Cancel,
) -> anyhow::Result<Exit> {
    let (direction, algorithms) = match &task {
        Task::Encrypt(sealer) => (Direction::Encrypt, sealer.algorithms()),
        Task::Decrypt(opener) => (Direction::Decrypt, opener.algorithms()),
    };
    let operations: Vec<_> = algorithms.into_iter().map(|algorithm| (algorithm, direction)).collect();
    let mut machine = machine::only_for(&operations, &run.module_options, run.is_little())?;
    if machine.has_choice() {
        machine.load_or_measure_costs(&operations, false);
    }
    options.learned.clone_from(&machine.learned);
    options.filter = run.filter.filter()?;
    let about = RunFacts {
        direction: if direction == Direction::Encrypt { "encrypt" } else { "decrypt" },
        format: keys.format()?.name(),
        output: places.only_output(),
        policy: options.policy.name(),
        emulated_cpu: run.module_options.cpu_cost.as_ref().map(|preset| preset.name().to_owned()),
    };
    let says_what_was_done = run.says_what_was_done(&places.target);
    let is_beside = places.target == Target::Beside;
    let Places { sources, target, naming, .. } = places;
    options.naming = naming;
    let request = Request { task, sources, target, options };
    let is_one = request.sources.len() == 1;
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
    } else if says_what_was_done && (run.verbose || !is_said) {
        output::line(summary::text(&report, run.verbose));
    }
    if let Some(reason) = summary.not_deleted {
        output::warning(format_args!("nothing was deleted: {reason}"));
    }
    if summary.is_unrecorded && !run.common.quiet {
        output::warning(
            "no record of this run could be kept: the same command again may not know what it made (HOME, EVENER_STATE_DIR, space beside the output)",
        );
    }
    let exit = exit(&summary);
    if is_beside
        && is_one
        && exit == Exit::Done
        && !(run.common.quiet || run.dry_run)
        && places::stdout_is_awaited()
    {
        output::warning("nothing went to standard output; -o - sends it there");
    }
    Ok(run.common.write_after(exit, &report))
}

/// How a run ended, as the status of its process.
fn exit(summary: &Summary) -> Exit {
    match Outcome::of(summary) {
        Outcome::Stopped => Exit::Stopped,
        Outcome::SomeFailed => Exit::SomeFailed,
        Outcome::Done => Exit::Done,
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

/// What is little: 16 files, 64 KiB together. libcrypto takes a tenth of a millisecond for those; libipsec-mb takes two to be opened and to test itself
/// (docs/results/kernels.md).
const LITTLE_FILES: usize = 16;
const LITTLE_BYTES: u64 = 64 << 10;

/// For a process that ends at once.
pub(super) fn abandon() {
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
    let is_shown = run.says_what_was_done(&request.target);
    let is_key_dear = match &request.task {
        Task::Encrypt(sealer) => sealer.is_slow(),
        Task::Decrypt(opener) => opener.is_slow(),
    };
    progress::shown_while(&progress, is_shown, is_key_dear, || {
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
    /// What no library would find wrong; `is_binary` says that encrypted bytes come out.
    fn check(&self, is_binary: bool, places: &Places) -> anyhow::Result<()> {
        let to_stdout = places.target == Target::Stdout;
        if to_stdout && is_binary && stdout().is_terminal() {
            return Err(RequestError::Terminal.into());
        }
        if to_stdout && self.common.json.as_deref() == Some(Path::new("-")) {
            bail!("data and report cannot both go to standard output");
        }
        if to_stdout && self.suffix.is_some() {
            bail!("--suffix is for names of files, and standard output has none");
        }
        if self.delete && places.target == Target::Beside {
            bail!("--delete goes with -o OUT: it deletes outputs there, and no inputs anywhere");
        }
        match (self.policy, &self.module_options.modules[..]) {
            (Policy::CpuOnly | Policy::Adaptive, _) | (_, [_, ..]) => Ok(()),
            (policy, []) => bail!("--policy {policy} needs a module: --module"),
        }
    }

    /// The report takes the place of nothing that the run reads or makes.
    fn check_report(&self, key_files: &[PathBuf], places: &Places) -> anyhow::Result<()> {
        let filter = self.filter.filter()?;
        let made = places.made(self.tar);
        self.common.check_report(&places.sources, key_files, made, (&filter, &places.naming))
    }

    /// Whether there are a few small files to do and nothing else: to open a library that works side by side would take longer than all of it.
    fn is_little(&self) -> bool {
        let length =
            |input: &OsString| fs::metadata(input).ok().filter(fs::Metadata::is_file).map(|it| it.len());
        let is_few =
            (1..=LITTLE_FILES).contains(&self.inputs.len()) && self.module_options.modules.is_empty();
        is_few
            && self.inputs.iter().map(length).sum::<Option<u64>>().is_some_and(|bytes| bytes <= LITTLE_BYTES)
    }

    /// Whether the adaptive policy has modules to weigh against the CPU.
    fn weighs(&self) -> bool {
        self.policy == Policy::Adaptive && !self.module_options.modules.is_empty()
    }

    /// Where data come from and go to; `is_part` says that a part of a file is wanted.
    fn places(&self, direction: Direction, format: Format, is_part: bool) -> Places {
        let named =
            Named { inputs: &self.inputs, output: self.output.as_deref(), suffix: self.suffix.as_deref() };
        named.places(direction, format.suffix(), is_part || self.tar)
    }

    /// Where a tree would be made and its identity kept; a rehearsal keeps nothing.
    fn tree(&self, places: &Places) -> tree::Output {
        tree::Output {
            target: places.target.clone(),
            naming: places.naming.clone(),
            is_archive: self.tar,
            is_rehearsal: self.dry_run,
        }
    }

    /// Whether a summary is wanted: a filter says nothing unless asked, for its output is the answer. Nothing goes behind output that goes
    /// to standard error.
    fn says_what_was_done(&self, target: &Target) -> bool {
        let is_stderr =
            matches!(&self.output, Some(output) if STDERR_NAMES.iter().any(|name| output == name));
        !is_stderr && (self.verbose || !(self.common.quiet || *target == Target::Stdout))
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
            naming: Naming::default(),
            filter: Filter::default(),
            delete: self.delete,
            is_rehearsal: self.dry_run,
            part: None,
            archive: self.tar,
            armor: false,
            left_out: Vec::new(),
            key_files: Vec::new(),
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
}
