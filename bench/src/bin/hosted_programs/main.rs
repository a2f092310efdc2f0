//! Unmodified programs with and without a host: what their processes and the host's take of the cores.
//! `cargo run --release -p evener-bench --bin hosted_programs -- --evener target/release/evener --provider target/release/libevener_provider.so`.
//!
//! Path: a program of the table (`table.rs`) prepares its data once -> in each round it works by all ways in turn ([`WAYS`]): by OpenSSL's default provider, by Evener's with a host at
//! default settings, and both again with thresholds of glibc's malloc set, because a provider that only loads may move them -> core time of all processes that ended and of the host, wall time, and
//! what the host says that it did -> a table, and [`keep`].
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "it prints a table")]

mod measurement;
mod table;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use evener_bench::medians::Spread;
use serde_json::{Value, json};

use measurement::{Place, Run};
use table::{PROGRAMS, Program};

/// Measures unmodified programs with and without a host.
#[derive(Parser)]
struct Arguments {
    /// The command `evener`
    #[arg(long)]
    evener: PathBuf,
    /// The provider, `evener.so`
    #[arg(long)]
    provider: PathBuf,
    /// Rounds: in each, every way
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Keeps every round here
    #[arg(long)]
    json: Option<PathBuf>,
    /// Programs; all where none is named
    names: Vec<String>,
}

/// How a program has its ciphers, and whether malloc's thresholds are set.
const WAYS: [(&str, bool, bool); 4] = [
    ("plain", false, false),
    ("hosted", true, false),
    ("plain, malloc set", false, true),
    ("hosted, malloc set", true, true),
];

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let is_asked = |program: &&Program| {
        arguments.names.is_empty() || arguments.names.iter().any(|name| name == program.name)
    };
    let programs: Vec<&Program> = PROGRAMS.iter().filter(is_asked).collect();
    if programs.is_empty() {
        let known: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
        anyhow::bail!("no such program; there are {}", known.join(", "));
    }
    let mut all = Vec::new();
    for program in programs {
        if let Some(missing) = measurement::missing(program) {
            println!("skipped: {}: {missing} missing", program.name);
            continue;
        }
        println!("{}: {}", program.name, program.what);
        all.push(measure(&arguments, program).with_context(|| program.name)?);
    }
    if let Some(file) = &arguments.json {
        let kept =
            json!({ "circumstances": measurement::circumstances(&arguments.evener)?, "programs": all });
        fs::write(file, format!("{kept:#}\n")).with_context(|| file.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(arguments: &Arguments, program: &Program) -> anyhow::Result<Value> {
    let place = Place::prepare(&arguments.evener, &arguments.provider, program)?;
    let mut runs: [Vec<Run>; WAYS.len()] = Default::default();
    // The first round warms up and does not count.
    for round in 0..=arguments.rounds {
        for step in 0..WAYS.len() {
            let at = (step + round) % WAYS.len();
            let (_, is_hosted, is_set) = WAYS[at];
            let run = place.run(program, is_hosted, is_set)?;
            if round > 0 {
                runs[at].push(run);
            }
        }
    }
    let rows: Vec<Value> = WAYS
        .iter()
        .zip(&runs)
        .enumerate()
        .map(|(at, (&(name, ..), those))| row(name, those, &runs[at & 2]))
        .collect();
    Ok(json!({ "name": program.name, "what": program.what, "ways": rows }))
}

/// One way beside the plain one of as many thresholds, printed and as JSON.
fn row(name: &str, runs: &[Run], plain: &[Run]) -> Value {
    let ratio = |of: fn(&Run) -> f64| {
        let ratios: Vec<f64> = runs.iter().zip(plain).map(|(run, plain)| of(run) / of(plain)).collect();
        Spread::of(&ratios)
    };
    let median = |of: fn(&Run) -> f64| {
        Spread::of(&runs.iter().map(of).collect::<Vec<_>>()).map_or(f64::NAN, |it| it.median)
    };
    let [core, wall] = [ratio(|run| run.core_s), ratio(|run| run.wall_s)];
    let told = |spread: &Option<Spread>| {
        spread
            .as_ref()
            .map_or_else(String::new, |it| format!("{:.3} [{:.3} {:.3}]", it.median, it.min, it.max))
    };
    let requests = runs.iter().map(|run| run.host.requests).sum::<u64>() / runs.len().max(1) as u64;
    println!(
        "  {name:<19} core {:7.3} s  {}  wall {:7.3} s  {}  host {:6.3} s, {requests} requests",
        median(|run| run.core_s),
        told(&core),
        median(|run| run.wall_s),
        told(&wall),
        median(|run| run.host.host_s),
    );
    json!({ "way": name, "core": core, "wall": wall, "runs": runs })
}
