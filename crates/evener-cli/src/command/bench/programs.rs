//! `evener bench programs`: programs as they are installed, with the provider and without.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use evener_bench::unmodified::program::Program;
use evener_bench::unmodified::{ALL, POLICY, Plan, Table, measure};
use evener_machine::processor::this_processor;

use super::provider_file::{beside_or_installed, named};
use crate::terminal::{Exit, PathDisplay, ResultsFile, output, signals};

/// Measures programs as they are installed: on OpenSSL alone, with the provider, and with what a user would configure.
///
/// Each program takes turns with itself in five configurations: OpenSSL alone (plain); the same with glibc's malloc keeping
/// what is freed (malloc set), for that alone can seem a gain; the provider loaded and off; as it is installed (default); and
/// by hand. What comes out of a run is compared with what should: files and rows whole; of a loop the last message; of bacula's
/// backups a quarter. Before the rounds, perf says which share of the program's time the cipher has.
/// Root is needed for openvpn (network namespaces), and for --install.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  evener bench programs                      # all that are installed
  evener bench programs --list
  evener bench programs --install php-8m nginx

Exit status:
  0    measured; what is not installed is one line that says so
  2    a program failed, or what came out of it was wrong; one sentence says which
  130  stopped by a signal")]
pub(crate) struct Programs {
    /// Which; all unless given.
    names: Vec<String>,

    /// Prints the programs' names and what each does, and measures nothing.
    #[arg(long)]
    list: bool,

    /// Installs Debian packages that are missing, by apt; none of their servers is started, unless a /usr/sbin/policy-rc.d that is there allows it.
    #[arg(long)]
    install: bool,

    /// What Debian asks before a package's script starts a server.
    #[arg(long, value_name = "FILE", hide = true, default_value = POLICY)]
    policy: PathBuf,

    /// Rounds that count: in each, every configuration once.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// The provider's file; unless given, evener.so beside this command or in the system's OpenSSL.
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,

    /// Keeps the table as JSON (docs/reference/schemas/bench-programs.schema.json): what is measured now takes the place of what was there of the same program.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Writes all that the table holds as a page.
    #[arg(long, value_name = "FILE", requires = "json")]
    page: Option<PathBuf>,

    /// Measures nothing: writes the page of what the table holds already.
    #[arg(long, requires = "page", conflicts_with_all = ["names", "list", "install"])]
    again: bool,
}

pub(crate) fn run(arguments: &Programs) -> anyhow::Result<Exit> {
    let programs = arguments.programs()?;
    if arguments.list {
        let line = |program: &&dyn Program| format!("{}: {}\n", program.name(), program.what());
        return output::answer(programs.iter().map(line).collect::<String>().as_bytes());
    }
    let mut table = arguments.table()?;
    // Whether they can be written shows now, not after the first program.
    [&arguments.json, &arguments.page]
        .iter()
        .try_for_each(|path| ResultsFile::open(path.as_ref()).map(drop))?;
    if arguments.again {
        if table.programs.is_empty() {
            bail!("the table that --json names holds no program");
        }
        arguments.keep_page(&table)?;
        return Ok(Exit::Done);
    }
    let plan = arguments.plan()?;
    let order: Vec<&str> = ALL.iter().map(|program| program.name()).collect();
    let cancel = signals::cancel_on_signals()?;
    let mut has_failed = false;
    for program in programs {
        match measure(&plan, program, &cancel, |what| output::line(what)) {
            Ok(None) => {}
            Ok(Some(measured)) => {
                output::answer(measured.to_text().as_bytes())?;
                table.put(measured, &order);
                arguments.keep(&table)?;
            }
            // A signal ends the program that is measured, too, so what it says then is no fault of its own.
            Err(_) if cancel.is_cancelled() => {}
            Err(error) => {
                output::line(format_args!("{}: {error}", program.name()));
                has_failed = true;
            }
        }
        if cancel.is_cancelled() {
            output::line("stopped");
            return Ok(Exit::Stopped);
        }
    }
    if has_failed {
        bail!("not all programs could be measured");
    }
    Ok(Exit::Done)
}

impl Programs {
    fn programs(&self) -> anyhow::Result<Vec<&'static dyn Program>> {
        let known = |name: &String| {
            let found = ALL.iter().copied().find(|program| program.name() == name.as_str());
            found.with_context(|| format!("{name} is none of the programs: --list tells them"))
        };
        if self.names.is_empty() { Ok(ALL.to_vec()) } else { self.names.iter().map(known).collect() }
    }

    fn plan(&self) -> anyhow::Result<Plan> {
        let program = std::env::current_exe().context("cannot find this command itself")?;
        let module = match &self.module {
            Some(path) => named(path)?,
            None => beside_or_installed(&program, "")?,
        };
        Ok(Plan {
            module,
            rounds: usize::try_from(self.rounds)?,
            installs_missing: self.install,
            policy: self.policy.clone(),
            machine: this_processor().model,
        })
    }

    /// What was measured before.
    fn table(&self) -> anyhow::Result<Table> {
        let Some(path) = self.json.as_deref().filter(|path| path.exists()) else {
            return Ok(Table::default());
        };
        let text = std::fs::read(path).with_context(|| format!("cannot read {}", PathDisplay(path)))?;
        serde_json::from_slice(&text).with_context(|| format!("{} holds no such table", PathDisplay(path)))
    }

    fn keep(&self, table: &Table) -> anyhow::Result<()> {
        self.json.as_deref().map_or(Ok(()), |path| write(path, &evener_bench::to_json(table)))?;
        self.keep_page(table)
    }

    fn keep_page(&self, table: &Table) -> anyhow::Result<()> {
        self.page.as_deref().map_or(Ok(()), |path| write(path, &table.to_page()))
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", PathDisplay(path)))
}
