//! Measures many processes that share one host against the same processes on their own:
//! `cargo run --release -p evener-bench --bin hosted -- --evener target/release/evener`.
//!
//! Each process encrypts messages by AES-128-CBC, some at a time, under a key of its own. *Hosted*: `evener host --module
//! multibuffer` has the last core, or as many as `--cores` says, the processes share the others, or all where none is left. *Plain*: the processes have all cores and libcrypto. The two
//! take turns; what is compared is messages of all processes in one window. Each process compares a result with
//! libcrypto's before it counts anything. With `--provider` they are those of `openssl speed -multi`, with Evener's provider and without it,
//! one message at a time, and they share all cores with the host. With `--crowd` it measures what clients cost that do nothing (`crowd.rs`).
//!
//! Steps: [`compare`] -> in each round both ways (`processes.rs`, or `programs.rs`, beside `host.rs`) -> a table, and [`keep`].
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "it prints a table")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

mod crowd;
mod processes;
mod programs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use clap::Parser;
use evener_bench::medians::Spread;
use evener_bench::programs::host::Host;
use evener_bench::programs::openssl_conf::Providers;
use evener_core::InlineDriver as _;
use evener_driver_libcrypto::Libcrypto;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity};
use serde_json::{Value, json};

use self::processes::Work;

/// Measures processes that share a host against the same processes on their own.
#[derive(Parser, Clone)]
struct Arguments {
    /// The command `evener`
    #[arg(long, required_unless_present = "client")]
    evener: Option<PathBuf>,
    /// Processes
    #[arg(long, default_value_t = 8)]
    processes: usize,
    /// Messages of a process at the same time
    #[arg(long, default_value_t = 4)]
    in_flight: usize,
    /// Bytes of a message
    #[arg(long, default_value_t = 16_384)]
    bytes: usize,
    /// Rounds: in each, both ways
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Window of each measurement, in milliseconds
    #[arg(long, default_value_t = 1_000)]
    window_ms: u64,
    /// Cores of the host
    #[arg(long, default_value_t = 1)]
    cores: usize,
    /// What the host serves
    #[arg(long, default_value = "multibuffer")]
    module: String,
    /// The provider, `evener.so`: compares programs with it and without it
    #[arg(long)]
    provider: Option<PathBuf>,
    /// Messages of a program at the same time, each in an ASYNC_JOB of OpenSSL; 0: one, in none
    #[arg(long, default_value_t = 0, requires = "provider")]
    async_jobs: usize,
    /// Keeps every round here
    #[arg(long)]
    json: Option<PathBuf>,
    /// So many clients at rest: what each costs the host, and whether two that misbehave make others wait
    #[arg(long, value_name = "CLIENTS")]
    crowd: Option<usize>,
    /// Is one of the processes: works through this module, or plainly where it is `plain`
    #[arg(long, hide = true)]
    client: Option<String>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    match (&arguments.client, arguments.crowd) {
        (Some(way), _) => processes::client(&arguments, way),
        (None, Some(clients)) => {
            raise_open_files();
            crowd::compare(&arguments, clients)
        }
        (None, None) => compare(&arguments),
    }
}

fn compare(arguments: &Arguments) -> anyhow::Result<()> {
    let evener = arguments.evener.as_deref().context("--evener is needed")?;
    let each = if arguments.provider.is_some() { 1 } else { arguments.in_flight };
    println!("{} processes, {each} x {} B under way each, AES-128-CBC", arguments.processes, arguments.bytes);
    println!("{:>8} {:>14} {:>14} {:>7} {:>9}", "round", "hosted MB/s", "plain MB/s", "ratio", "fairness");
    raise_open_files();
    let mut rounds = Vec::new();
    for round in 0..arguments.rounds {
        // The second finds the machine warmer.
        let (hosted, plain) = match round % 2 {
            0 => (hosted(arguments, evener)?, plain(arguments)?),
            _ => {
                let plain = plain(arguments)?;
                (hosted(arguments, evener)?, plain)
            }
        };
        let (rate, plain_rate, fairness) = (hosted.rate, plain.rate, hosted.fairness);
        println!("{round:>8} {rate:>14.1} {plain_rate:>14.1} {:>7.3} {fairness:>9.4}", rate / plain_rate);
        rounds.push((hosted, plain));
    }
    let ratios: Vec<f64> = rounds.iter().map(|(hosted, plain)| hosted.rate / plain.rate).collect();
    let ratio = Spread::of(&ratios).context("there was no round")?;
    println!("median ratio {:.3} [{:.3} {:.3}]", ratio.median, ratio.low, ratio.high);
    if arguments.provider.is_none() {
        print_bounds(&rounds)?;
    }
    arguments.json.as_deref().map_or(Ok(()), |file| keep(file, arguments, evener, &rounds, &ratio))
}

/// What a message costs in core time either way, and the ratios that this allows however little is waited.
fn print_bounds(rounds: &[(Work, Work)]) -> anyhow::Result<()> {
    let median = |of: &dyn Fn(&(Work, Work)) -> f64| -> anyhow::Result<f64> {
        let all: Vec<f64> = rounds.iter().map(of).collect();
        Ok(Spread::of(&all).context("there was no round")?.median)
    };
    let client = median(&|(hosted, _)| hosted.message.client_us)?;
    let host = median(&|(hosted, _)| hosted.message.host_us)?;
    let plain = median(&|(_, plain)| plain.message.client_us)?;
    println!(
        "core time of a message: {client:.2} us of its process and {host:.2} of the host, {plain:.2} us plainly"
    );
    let (parted, shared) = (plain / (2.0 * client.max(host)), plain / (client + host));
    println!(
        "so at most {parted:.2} where the host has one of two cores, {shared:.2} where both share all work"
    );
    Ok(())
}

/// What all processes do with a host: of one that has the last core to itself, or shares all with programs.
fn hosted(arguments: &Arguments, evener: &Path) -> anyhow::Result<Work> {
    let cores = cores()?;
    if let Some(provider) = &arguments.provider {
        let host = host_on(&cores, evener, &arguments.module, 1)?;
        return programs::run(arguments, provider, Providers::Evener, &host.socket());
    }
    ensure!(cores.len() > 1, "a host of its own core needs two cores");
    let first =
        cores.len().checked_sub(arguments.cores).context("the host is to have more cores than there are")?;
    let (others, host_cores) = cores.split_at(first);
    let host = host_on(host_cores, evener, &arguments.module, arguments.cores)?;
    let client_cores = if others.is_empty() { &cores } else { others };
    let way = format!("hosted:{}", host.socket().display());
    processes::run(arguments, &way, client_cores, Some(&host))
}

/// The same without one.
fn plain(arguments: &Arguments) -> anyhow::Result<Work> {
    match &arguments.provider {
        Some(provider) => programs::run(arguments, provider, Providers::Default, Path::new("")),
        None => processes::run(arguments, "plain", &cores()?, None),
    }
}

/// Every round, what was asked for, and on which machine.
fn keep(
    file: &Path,
    arguments: &Arguments,
    evener: &Path,
    rounds: &[(Work, Work)],
    ratio: &Spread,
) -> anyhow::Result<()> {
    let round = |(hosted, plain): &(Work, Work)| json!({ "hosted": hosted.rate, "plain": plain.rate, "fairness": hosted.fairness });
    let rounds: Vec<Value> = rounds.iter().map(round).collect();
    let version = Command::new(evener).arg("--version").output()?.stdout;
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let kept = json!({
        "unit": "MB/s",
        "program": arguments.provider.as_ref().map(|_| "openssl speed -multi"),
        "processes": arguments.processes,
        "in_flight": if arguments.provider.is_some() { 1 } else { arguments.in_flight },
        "bytes": arguments.bytes,
        "window_ms": arguments.window_ms,
        "module": arguments.module,
        "cores": arguments.cores,
        "measured_at": since.as_secs(),
        "evener": String::from_utf8_lossy(&version).trim(),
        "libcrypto": Libcrypto::new()?.profile().detail,
        "machine": machine()?,
        "rounds": rounds,
        "ratio": ratio,
    });
    fs::write(file, format!("{kept:#}\n")).with_context(|| file.display().to_string())
}

/// As far as the system allows: two pipes for each process. Where that is too few, the first that cannot be started says so.
fn raise_open_files() {
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).ok();
}

fn machine() -> anyhow::Result<String> {
    let information = fs::read_to_string("/proc/cpuinfo")?;
    let model = information.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model);
    let system = rustix::system::uname();
    Ok(format!("{model}, {} cores, Linux {}", cores()?.len(), system.release().to_string_lossy()))
}

fn cores() -> anyhow::Result<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).collect())
}

/// A host on these cores, with so many threads for its module.
fn host_on(cores: &[usize], evener: &Path, module: &str, threads: usize) -> anyhow::Result<Host> {
    let mut command = Command::new("taskset");
    command.arg("-c").arg(list(cores)).arg(evener).stderr(Stdio::null());
    let threads = threads.to_string();
    // One thread is what other modules than cores have.
    let options = ["--module", module, "--cores", &threads];
    let options = if threads == "1" { &options[..2] } else { &options[..] };
    Ok(Host::start(command, options)?)
}

fn list(cores: &[usize]) -> String {
    cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
