//! `evener doctor`: which provider serves each algorithm, and if it is not Evener's provider, why.
//!
//! Steps: the configuration that OpenSSL would read ([`checks`]) -> a fresh process that fetches every algorithm
//! ([`probe`]) -> a given program ([`program`]), the usual browsers and clients ([`clients`]), or Python and Node ([`runtimes`]) -> crypto
//! engines ([`engines`]) -> findings, each with its cure.

mod checks;
mod clients;
mod elf;
mod engines;
mod forecast;
mod probe;
mod program;
mod runtimes;

use std::fmt::Write as _;
use std::path::PathBuf;

use evener::counts_file::{DIRECTORY_VARIABLE, Directories};
use serde::Serialize;

use crate::device_paths::{self, DevicePath};
use crate::terminal::{Exit, PathDisplay, output};
use clients::UsualClient;
use forecast::Forecast;
use probe::Probe;
use program::Inspection;
use runtimes::Runtime;

/// Says which OpenSSL programs Evener's provider serves, and what keeps it from others.
///
/// In the environment in which it is started, it fetches each algorithm in a fresh process, by the system's OpenSSL or by the
/// one that a program loads, asks Python and Node where they are installed, and explains what is in the way, also of crypto engines that
/// the machine has. Nothing of a program that is named is executed. What it asked for while it ran with the provider, or usual requests, is measured by both codes.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  evener doctor
  OPENSSL_CONF=/etc/evener/nginx.service.cnf evener doctor --program /usr/sbin/nginx
  evener doctor --program    # whose TLS the installed browsers and clients have

Exit status:
  0    Evener's provider serves all algorithms that it has
  1    something is in the way; each thing is named with its cure (what only may be in the way is no reason)
  2    it could not be found out")]
pub(crate) struct Doctor {
    /// This program instead of the system's OpenSSL, Python and Node; without a path, the usual browsers and clients.
    #[arg(long, value_name = "PATH", num_args = 0..=1)]
    program: Option<Option<PathBuf>>,

    /// Prints JSON (docs/reference/schemas/doctor.schema.json).
    #[arg(long)]
    json: bool,

    /// Fetches in this process and prints what came of it; what the fresh process is started with.
    #[arg(long, hide = true, exclusive = true)]
    probe: bool,

    /// Measures what requests of this program take, in this process; what another fresh process is started with.
    #[arg(long, hide = true, exclusive = true, value_name = "PATH")]
    forecast: Option<PathBuf>,

    /// Looks for ways to crypto engines in the files of a system below this folder, and asks this machine's kernel nothing.
    #[arg(long, hide = true, value_name = "DIR")]
    system_root: Option<PathBuf>,
}

/// One thing that is in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    /// A word for it that stays the same.
    trap: &'static str,
    /// Whether it is in the way for certain; what only may be is no reason to end with 1.
    certain: bool,
    fact: String,
    cure: String,
}

impl Finding {
    fn new(trap: &'static str, fact: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { trap, certain: true, fact: fact.into(), cure: cure.into() }
    }
}

#[derive(Serialize)]
struct Answer {
    version: &'static str,
    /// The configuration that OpenSSL reads here.
    configuration: String,
    program: Option<Inspection>,
    /// The usual browsers and clients that are installed, where they were asked for.
    clients: Vec<UsualClient>,
    openssl: Option<Probe>,
    runtimes: Vec<Runtime>,
    findings: Vec<Finding>,
    /// Ways to crypto engines, and what shuts each.
    device_paths: Vec<DevicePath>,
    /// What a named program's requests take here, where it may load the provider.
    forecast: Option<Forecast>,
}

impl Answer {
    fn is_well(&self) -> bool {
        self.findings.iter().all(|finding| !finding.certain)
    }
}

pub(crate) fn run(arguments: &Doctor) -> anyhow::Result<Exit> {
    if arguments.probe {
        return probe::answer();
    }
    if let Some(program) = &arguments.forecast {
        return forecast::answer(program);
    }
    let answer = examine(arguments)?;
    let text = if arguments.json { serde_json::to_string_pretty(&answer)? + "\n" } else { text(&answer) };
    output::answer(text.as_bytes())?;
    Ok(if answer.is_well() { Exit::Done } else { Exit::SomeFailed })
}

fn examine(arguments: &Doctor) -> anyhow::Result<Answer> {
    let asked = arguments.program.as_ref();
    let program = asked.and_then(Option::as_deref).map(program::inspect).transpose()?;
    let clients = if asked.is_some_and(Option::is_none) { clients::installed() } else { Vec::new() };
    let mut findings = program.as_ref().map(program::findings).unwrap_or_default();
    let sees_us = program.as_ref().is_none_or(Inspection::may_see_us);
    let device_paths = device_paths::survey(arguments.system_root.as_deref());
    let (configuration, mut in_configuration) = checks::of_configuration(&device_paths);
    let mut openssl = None;
    if sees_us {
        let probed = probe::query(program.as_ref().and_then(Inspection::libcrypto_directory));
        checks::after_probe(&mut in_configuration, &probed);
        findings.append(&mut in_configuration);
        openssl = probed.ok();
    }
    let runtimes = if asked.is_none() { runtimes::installed() } else { Vec::new() };
    if findings.iter().all(|finding| !finding.certain) {
        findings.extend(runtimes.iter().filter_map(Runtime::finding));
    }
    if sees_us
        && !Directories::from_environment(DIRECTORY_VARIABLE).is_usable(rustix::process::geteuid().as_raw())
    {
        let fact = "no private directory for statistics can be used, so counts are lost";
        findings.push(Finding::new(
            "statistics",
            fact,
            "see docs/reference/counters.md; EVENER_STATISTICS_DIR names one",
        ));
    }
    findings.extend(engines::findings(&device_paths));
    let directory = program.as_ref().and_then(Inspection::libcrypto_directory);
    let named = asked.and_then(Option::as_deref).filter(|_| sees_us);
    let forecast = named.and_then(|path| forecast::query(path, directory));
    let configuration = PathDisplay(&configuration).to_string();
    Ok(Answer {
        version: env!("CARGO_PKG_VERSION"),
        configuration,
        program,
        clients,
        openssl,
        runtimes,
        findings,
        device_paths,
        forecast,
    })
}

fn text(answer: &Answer) -> String {
    let mut text = String::new();
    if let Some(program) = &answer.program {
        write_line(&mut text, &format!("{}: {}", program.path, program.crypto));
        if let Some(tls) = &program.tls_library {
            write_line(&mut text, &format!("  TLS by {tls}"));
        }
    }
    for client in &answer.clients {
        write_line(&mut text, &client.line());
    }
    write_line(&mut text, &format!("configuration {}", answer.configuration));
    if let Some(openssl) = &answer.openssl {
        write_line(&mut text, &format!("OpenSSL {}, asked in a fresh process", openssl.version));
        for (server, names) in openssl.by_server() {
            write_line(&mut text, &format!("  {server} serves {}", names.join(", ")));
        }
    }
    for runtime in &answer.runtimes {
        write_line(&mut text, &runtime.line());
    }
    if let Some(forecast) = &answer.forecast {
        write_line(&mut text, forecast.text().trim_end());
    }
    for finding in &answer.findings {
        let perhaps = if finding.certain { "" } else { " (perhaps)" };
        write_line(
            &mut text,
            &format!("\n{}{perhaps}: {}\n  cure: {}", finding.trap, finding.fact, finding.cure),
        );
    }
    if answer.is_well() {
        write_line(&mut text, "Evener's provider serves all algorithms that it has");
    }
    text
}

fn write_line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a String takes everything");
}
