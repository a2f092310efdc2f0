//! `evener bench tls`: uploads and downloads over TLS, measured by browsers and curl, or by the page in a user's browser.

use std::fs::File;
use std::io::{BufRead as _, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use evener_bench::BenchError;
use evener_bench::tls::{
    Client, Direction, Identity, Page, Plan, Plant, ProviderFile, Report, ServerPlan, Suite, Transfers,
    installed_nginx, measure, paper_sizes, serve, serve_end,
};
use evener_machine::processor::this_processor;

use super::provider_file::{beside_or_installed, named};
use crate::terminal::{Exit, PathDisplay, ResultsFile, output, signals, units::parse_bytes};

/// Uploads and downloads files over TLS, with Evener's provider at either end and without, measured by the client itself.
///
/// Servers are processes of this command on the loopback, one with the provider and one without. QtWebKit (python3-pyqt5.qtwebkit), whose
/// TLS is the system's OpenSSL, chromium, whose is its own, and curl take turns with them, each upload over a new connection; who is not
/// installed is left out and named. With --serve the page waits for a browser of yours.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  evener bench tls --clients qtwebkit,curl --suites tls1.2-cbc
  evener bench tls --serve
  evener bench tls --serve --listen 192.168.0.7 --port 8443    # for a phone in the same network

Exit status:
  0    measured
  2    a client, a server or the certificate failed; one sentence says which
  130  stopped by a signal; nothing is left behind")]
pub(crate) struct Tls {
    /// Serves the page and prints its address, until it is stopped.
    #[arg(long)]
    serve: bool,

    /// The provider's file; unless given, evener.so beside this command or in the system's OpenSSL. `none` compares nothing.
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,

    /// A line for the provider's section of openssl.cnf, as `modules=afalg:NAME`; may be repeated.
    #[arg(hide_short_help = true, long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,

    /// Who measures: qtwebkit, chromium, curl.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "qtwebkit,chromium,curl")]
    clients: Vec<Client>,

    /// tls1.2-cbc, as in the paper's day, with Encrypt-then-MAC where the client knows it; tls1.2-gcm; tls1.3.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "tls1.2-cbc,tls1.2-gcm,tls1.3")]
    suites: Vec<Suite>,

    /// Bytes of the files; unless given, the nine of paper 003.
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = parse_bytes)]
    sizes: Vec<u64>,

    /// up, down, and form: an upload as the paper's browser did it, which curl leaves out.
    #[arg(hide_short_help = true, long, value_name = "NAMES", value_delimiter = ',', default_value = "up,down", value_parser = direction)]
    directions: Vec<Direction>,

    /// Rounds, in which all take turns; from six on bounds hold with 95 per cent.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Who serves: evener, which tells what it saw of each request; nginx, or the path of one.
    #[arg(long, value_name = "NAME", default_value = "evener")]
    server: PathBuf,

    /// The address of the servers.
    #[arg(hide_short_help = true, long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    listen: IpAddr,

    /// The first of their ports; 0 takes any that are free.
    #[arg(hide_short_help = true, long, value_name = "PORT", default_value_t = 0)]
    port: u16,

    /// A certificate of yours, PEM; unless given, one is made for this run.
    #[arg(hide_short_help = true, long, value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,

    /// Its private key, PEM.
    #[arg(hide_short_help = true, long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,

    /// Where uploads lie while they come in; a folder is made in it and removed at the end.
    #[arg(hide_short_help = true, long = "dir", value_name = "DIR")]
    folder: Option<PathBuf>,

    /// Delays the servers on purpose, to see the phases: tls=MS, request=MS or response=MS.
    #[arg(hide_short_help = true, long, value_name = "PHASE=MS", value_parser = Plant::parse)]
    plant: Option<Plant>,

    /// Gives up on a client after so many seconds.
    #[arg(hide_short_help = true, long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,

    /// Writes the results as JSON (docs/reference/schemas/bench-tls.schema.json); with --serve, what each page posts, a line each
    /// (docs/reference/schemas/tls-page.schema.json).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Measures nothing and reports on what --serve --json wrote.
    #[arg(long, value_name = "FILE", conflicts_with = "serve")]
    pages: Option<PathBuf>,

    /// Is one of the servers; what the others are started with.
    #[arg(long, hide = true, exclusive = true)]
    end: bool,
}

fn direction(word: &str) -> Result<Direction, String> {
    let found = Direction::ALL.into_iter().find(|direction| direction.name() == word);
    found.ok_or_else(|| format!("{word} is none of {}", Direction::ALL.map(Direction::name).join(", ")))
}

pub(crate) fn run(arguments: &Tls) -> anyhow::Result<Exit> {
    if arguments.end {
        serve_end()?;
        return Ok(Exit::Done);
    }
    let plan = arguments.plan()?;
    let cancel = signals::cancel_on_signals()?;
    if arguments.serve {
        return wait_for_pages(&plan, &cancel, arguments);
    }
    let json = ResultsFile::open(arguments.json.as_ref())?;
    if let Some(path) = &arguments.pages {
        return finish(&reported_by(path, &plan)?, json);
    }
    let tell = |what: &str| output::line(format_args!("measuring {what}"));
    let report = match measure(&plan, &cancel, tell) {
        Err(BenchError::Stopped) => {
            output::line("stopped; nothing is left behind");
            return Ok(Exit::Stopped);
        }
        outcome => outcome?.0,
    };
    finish(&report, json)
}

/// Writes and prints a report.
fn finish(report: &Report, json: Option<ResultsFile>) -> anyhow::Result<Exit> {
    let kept = json.map_or(Ok(()), |file| file.write(&evener_bench::to_json(report)));
    output::answer_beside(kept, report.to_text().as_bytes())
}

/// What pages have measured, a line each.
fn reported_by(path: &Path, plan: &Plan) -> anyhow::Result<Report> {
    let file = File::open(path).with_context(|| format!("cannot read {}", PathDisplay(path)))?;
    let mut pages = Vec::new();
    for (place, line) in std::io::BufReader::new(file).lines().enumerate() {
        let line = line.with_context(|| format!("cannot read {}", PathDisplay(path)))?;
        let at = || format!("{}, line {}", PathDisplay(path), place + 1);
        let value = serde_json::from_str(&line).with_context(at)?;
        pages.push(Page::read(value).map_err(anyhow::Error::msg).with_context(at)?);
    }
    if pages.is_empty() {
        bail!(
            "{} holds no results of pages: `evener bench tls --serve --json FILE` writes some",
            PathDisplay(path)
        );
    }
    Ok(Report::new(plan, "of another run", Vec::new(), &pages))
}

/// Serves the page; each result becomes a line, on standard output and in the file.
fn wait_for_pages(plan: &Plan, cancel: &evener::Cancel, arguments: &Tls) -> anyhow::Result<Exit> {
    let mut file = match &arguments.json {
        Some(path) => {
            let opened = File::options().create(true).append(true).open(path);
            Some((path, opened.with_context(|| format!("cannot write {}", PathDisplay(path)))?))
        }
        None => None,
    };
    let keep = |page: Page| {
        output::line(format_args!(
            "a page posted {} measurements ({})",
            page.measurements.len(),
            page.client.agent
        ));
        if let Some((path, file)) = &mut file {
            let line = serde_json::to_string(&page).expect("numbers and names") + "\n";
            file.write_all(line.as_bytes()).map_err(|error| BenchError::Write {
                path: PathDisplay(path).to_string(),
                error: error.to_string(),
            })?;
        }
        Ok(())
    };
    // Who reads it may be a program, and may have seen enough.
    let listens = |url: &str| drop(output::answer(format!("{url}\n").as_bytes()));
    serve(plan, cancel, listens, |what| output::line(what), keep)?;
    Ok(Exit::Done)
}

impl Tls {
    fn plan(&self) -> anyhow::Result<Plan> {
        let program = std::env::current_exe().context("cannot find this command itself")?;
        let identity = self.certificate.clone().zip(self.key.clone());
        Ok(Plan {
            provider: ProviderFile { module: self.module(&program)?, settings: self.settings.clone() },
            program,
            servers: ServerPlan {
                listen: self.listen,
                nginx: self.nginx()?,
                first_port: self.port,
                identity: identity.map(|(certificate, key)| Identity { certificate, key, rsa: None }),
                folder: self.folder.clone(),
                plant: self.plant,
            },
            transfers: Transfers {
                suites: self.suites.clone(),
                sizes: if self.sizes.is_empty() { paper_sizes() } else { self.sizes.clone() },
                directions: self.directions.clone(),
                rounds: usize::try_from(self.rounds)?,
            },
            clients: self.clients.clone(),
            timeout: Duration::from_secs(self.timeout),
            machine: this_processor().model,
        })
    }

    fn nginx(&self) -> anyhow::Result<Option<PathBuf>> {
        match self.server.to_str() {
            Some("evener") => Ok(None),
            Some("nginx") => {
                let missing = "nginx is not installed: leave --server out, and this command serves by itself";
                installed_nginx().map(Some).context(missing)
            }
            _ if self.server.is_file() => Ok(Some(std::path::absolute(&self.server)?)),
            _ => bail!("{} is neither evener nor nginx nor the path of one", PathDisplay(&self.server)),
        }
    }

    /// The provider's file, whole, for servers and browsers have folders of their own.
    fn module(&self, program: &Path) -> anyhow::Result<Option<PathBuf>> {
        match &self.module {
            Some(path) if path.as_os_str() == "none" => Ok(None),
            Some(path) => named(path).map(Some),
            None => beside_or_installed(program, ", or compare nothing by --module none").map(Some),
        }
    }
}
