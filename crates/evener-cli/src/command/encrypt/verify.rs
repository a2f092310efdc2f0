//! `evener verify`: encrypted files are opened whole, and nothing is written.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ArgGroup;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use evener::core::Direction;
use evener::core::plan::Policy;
use evener_files::run_report::{Report, RunFacts};
use evener_files::{Keep, Naming, Options, Progress, Request, Source, Summary, Target, Task, process};

use super::common_options::CommonOptions;
use super::filter_options::FilterOptions;
use super::keys::KeyOptions;
use super::places::suffix;
use super::{abandon, progress, summary};
use crate::machine;
use crate::machine::options::ModuleOptions;
use crate::terminal::{Exit, examples_help, output, signals, units};

/// Checks encrypted files: opens them whole and writes nothing.
///
/// Every file below the named ones has to be authentic under the key. With --against it has to hold what its source holds, too, and
/// each source has to have its file; symbolic links have to point where their sources do, and are left out without it. The openssl format is not authenticated and can be verified against its source only.
#[derive(clap::Args)]
#[command(
    group = ArgGroup::new("way").required(true).multiple(true),
    after_help = examples_help! {
        "evener verify --key KEY.json /mnt/sealed"
        "evener verify -i ID.txt --against photos /mnt/sealed"
    },
    override_usage = "evener verify KEYS [OPTIONS] FILE..."
)]
pub(crate) struct Verify {
    #[command(flatten)]
    keys: KeyOptions,

    /// Encrypted files, and directories; `-` is standard input.
    #[arg(value_name = "FILE", required = true, help_heading = "Files")]
    inputs: Vec<PathBuf>,

    /// What they were made from: a file or a directory.
    #[arg(long, value_name = "SOURCE", help_heading = "Files")]
    against: Option<PathBuf>,

    /// What names of encrypted files end in.
    ///
    /// Those of their sources do not.
    #[arg(long, value_name = "SUFFIX", value_parser = OsStringValueParser::new().try_map(suffix), requires = "against", help_heading = "Files")]
    suffix: Option<OsString>,

    #[command(flatten)]
    filter: FilterOptions,

    /// Leaves symbolic links out; unless given, each is compared with its source.
    #[arg(hide_short_help = true, long, help_heading = "Files")]
    skip_links: bool,

    #[command(flatten)]
    common: CommonOptions,
}

pub(crate) fn verify(arguments: &Verify) -> anyhow::Result<Exit> {
    let source = |input: &PathBuf| match input {
        input if input == Path::new("-") => Source::Stdin,
        input => Source::Path(input.clone()),
    };
    let sources: Vec<_> = arguments.inputs.iter().map(source).collect();
    let cancel = signals::end_soon_after_signals(abandon)?;
    arguments.keys.check_stdin(None, &sources)?;
    let compared: Vec<_> = arguments.against.iter().cloned().map(Source::Path).collect();
    let read = [&sources[..], &compared].concat();
    let (key_files, filter) = (arguments.keys.files(None), arguments.filter.filter()?);
    arguments.common.check_report(&read, &key_files, Vec::new(), (&filter, &Naming::Kept))?;
    let (opener, left_out) = arguments.keys.opener(&sources, arguments.common.memory)?;
    let operations: Vec<_> =
        opener.algorithms().into_iter().map(|algorithm| (algorithm, Direction::Decrypt)).collect();
    let mut machine = machine::only_for(&operations, &ModuleOptions::default(), false)?;
    machine.load_or_measure_costs(&operations, false);
    let request = Request {
        task: Task::Decrypt(opener),
        sources,
        target: Target::Nowhere(arguments.against.clone()),
        options: Options { learned: machine.learned.clone(), left_out, filter, ..arguments.options() },
    };
    let counts = Progress::default();
    let is_key_dear = matches!(&request.task, Task::Decrypt(opener) if opener.is_slow());
    let verified = progress::shown_while(&counts, !arguments.common.quiet, is_key_dear, || {
        process(&request, &machine, &counts, &cancel)
    })?;
    arguments.tell(&verified)
}

impl Verify {
    fn options(&self) -> Options {
        Options {
            workers: self.common.workers(),
            memory_bytes: self.common.memory_bytes(),
            naming: self.suffix.clone().map_or(Naming::Kept, Naming::Taken),
            keep: Keep { links: !self.skip_links, ..Keep::default() },
            ..Options::default()
        }
    }

    fn tell(&self, verified: &Summary) -> anyhow::Result<Exit> {
        let about = RunFacts {
            direction: "verify",
            format: self.keys.format()?.name(),
            output: None,
            policy: Policy::Adaptive.name(),
            emulated_cpu: None,
        };
        let report = Report::new(verified, about);
        summary::failures(&report);
        if !self.common.quiet {
            let (files, size) =
                (units::counted(report.counts.files, "file"), units::bytes(report.counts.bytes_in));
            let failed = report.failed.len();
            let mut rest = if failed > 0 { format!("; {failed} failed, named above") } else { String::new() };
            if let skipped @ 1.. = report.skipped.len() {
                rest += &format!("; {skipped} left out, named in --json");
            }
            output::line(format_args!("verified {files}, {size}{rest}"));
        }
        Ok(self.common.write_after(super::exit(verified), &report))
    }
}
