//! pgBackRest with encrypted backups, on OpenSSL's default provider and with Evener's: wall time and core time.
//!
//! `cargo run --release -p evener-bench --bin pgbackrest -- [--counted] evener.so [RUNS [SCALE]]`
//!
//! Steps: a PostgreSQL cluster is generated with `pgbench` (`bench/src/programs/cluster.rs`) -> full backups with
//! `repo-cipher-type=aes-256-cbc` and `process-max=8` are made and restored in turn without and with the module ->
//! what one has made the other restores, and the restored cluster is compared with the original -> medians with
//! bounds of the ratios. `--counted` counts instructions and system calls of all processes instead, which repeat where times do
//! not. Everything lies in one folder in memory, `/dev/shm`, so that no disk is measured.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "talks to a terminal")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use evener_bench::BenchError;
use evener_bench::medians::Spread;
use evener_bench::programs::cluster::Cluster;
use evener_bench::programs::counters::{self, Counter, Tally, Tool};
use evener_bench::programs::openssl_conf::Providers;
use evener_bench::programs::stopwatch::Used;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    let is_counted = words.next_if_eq("--counted").is_some();
    let module = words.next().map(PathBuf::from).and_then(|module| module.canonicalize().ok());
    let mut number = |otherwise| words.next().map_or(Ok(otherwise), |word| word.parse::<u32>());
    let (Some(module), Ok(runs), Ok(scale)) = (module, number(9), number(20)) else {
        eprintln!("usage: pgbackrest [--counted] evener.so [RUNS [SCALE]]");
        return ExitCode::from(2);
    };
    match measure(&module, runs.max(1), scale, is_counted) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("pgbackrest: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn measure(module: &Path, runs: u32, scale: u32, is_counted: bool) -> Result<(), BenchError> {
    let cluster = Cluster::generate(module, scale)?;
    let truth = cluster.fingerprint()?;
    if is_counted {
        count("backup", runs, |providers, counter| cluster.backup(providers, Some(counter)))?;
        count("restore", runs, |providers, counter| cluster.restore(providers, Some(counter)))?;
    } else {
        tell("backup", &in_turn(runs, |providers| cluster.backup(providers, None))?);
        tell("restore", &in_turn(runs, |providers| cluster.restore(providers, None))?);
    }
    for (maker, reader) in Providers::BOTH.into_iter().zip(Providers::BOTH.into_iter().rev()) {
        cluster.backup(maker, None)?;
        cluster.restore(reader, None)?;
        if cluster.restored_fingerprint()? != truth {
            let contender = format!("{} after a backup by {}", reader.name(), maker.name());
            return Err(BenchError::WrongFile { contender, direction: "restore".to_owned() });
        }
    }
    println!("restored clusters equal the original, each made by the other");
    Ok(())
}

/// Counts what both do, and tells it.
fn count(
    what: &str,
    runs: u32,
    work: impl Fn(Providers, &Counter) -> Result<Used, BenchError>,
) -> Result<(), BenchError> {
    for tool in Tool::BOTH {
        let pairs = counters::in_turn(runs as usize, |providers| {
            let counter = Counter::new(tool)?;
            work(providers, &counter)?;
            Ok(Tally::sum(counter.read()?.values()))
        })?;
        println!("{what:<8} {}", counters::line(tool, &pairs));
    }
    Ok(())
}

/// What both took, run by run. Another goes first in each run; the first run warms up and does not count.
fn in_turn(
    runs: u32,
    work: impl Fn(Providers) -> Result<Used, BenchError>,
) -> Result<Vec<[Used; 2]>, BenchError> {
    let mut pairs = Vec::new();
    for run in 0..=runs {
        let is_swapped = run % 2 == 1;
        let mut pair = Providers::BOTH;
        if is_swapped {
            pair.reverse();
        }
        let mut used = [work(pair[0])?, work(pair[1])?];
        if is_swapped {
            used.reverse();
        }
        if run > 0 {
            pairs.push(used);
        }
    }
    Ok(pairs)
}

fn tell(what: &str, pairs: &[[Used; 2]]) {
    for clock in ["wall", "core"] {
        let seconds = |used: &Used| if clock == "wall" { used.wall } else { used.core }.as_secs_f64();
        let spread = |value: &dyn Fn(&[Used; 2]) -> f64| {
            Spread::of(&pairs.iter().map(value).collect::<Vec<_>>()).expect("there is at least one run")
        };
        let [default, evener] = [0, 1].map(|which| spread(&|pair| seconds(&pair[which])).median);
        let ratio = spread(&|pair| seconds(&pair[1]) / seconds(&pair[0]));
        println!(
            "{what:<8} {clock}  default {default:7.3} s  evener {evener:7.3} s  ratio {:.3} [{:.3} {:.3}]  {} pairs",
            ratio.median,
            ratio.low,
            ratio.high,
            pairs.len()
        );
    }
}
