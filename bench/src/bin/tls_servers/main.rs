//! Core time per request of web servers that load Evener's provider, beside the same servers without it.
//!
//! `cargo run --release -p evener-bench --bin tls_servers -- [--runs N] [--seconds S | --counted] [--server NAME]...
//! [--set KEY=VALUE]... evener.so`
//!
//! Steps of one figure: two servers of a kind are started on loopback, one on OpenSSL's default provider and one
//! with the module (`server.rs`) -> `wrk` asks the one, then the other, in turn (`load.rs`) -> the core time of all
//! threads of a server, from the kernel's own accounts, divided by the requests -> ratios of neighbours, and their
//! median with bounds. Core time, because on a machine where client and server share the cores the rate of requests
//! tells more about `wrk`.
//!
//! `--counted` counts instead (`request_counts.rs`): instructions and system calls of a request, which repeat where times do not.
//! `--set` writes a line into the module's section of `openssl.cnf`.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "talks to a terminal")]

mod load;
mod request_counts;
mod server;

use std::path::PathBuf;
use std::process::ExitCode;

use evener_bench::medians::Spread;
use evener_bench::programs::openssl_conf::Providers;

use crate::server::{Kind, Server, Site};

/// Objects that are asked for: names and bytes.
const OBJECTS: [(&str, usize); 2] = [("10k", 10_000), ("1m", 1_000_000)];

struct Options {
    module: PathBuf,
    kinds: Vec<Kind>,
    runs: usize,
    seconds: u32,
    is_counted: bool,
    settings: Vec<String>,
}

fn main() -> ExitCode {
    match options().and_then(|options| {
        if options.is_counted { request_counts::measure(&options) } else { measure(&options) }
    }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("tls_servers: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        module: PathBuf::new(),
        kinds: Vec::new(),
        runs: 9,
        seconds: 2,
        is_counted: false,
        settings: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
        match word.as_str() {
            "--runs" => options.runs = number(&value()?)?,
            "--seconds" => options.seconds = number(&value()?)?,
            "--counted" => options.is_counted = true,
            "--set" => options.settings.push(value()?),
            "--server" => options.kinds.push(value()?.parse()?),
            _ => options.module = PathBuf::from(word),
        }
    }
    if options.kinds.is_empty() {
        options.kinds = Kind::ALL.to_vec();
    }
    options.module =
        options.module.canonicalize().map_err(|error| format!("the module evener.so: {error}"))?;
    Ok(options)
}

fn number<N: std::str::FromStr>(word: &str) -> Result<N, String> {
    word.parse().map_err(|_| format!("{word} is not a number"))
}

fn measure(options: &Options) -> Result<(), String> {
    for &kind in &options.kinds {
        let site = Site::new(&OBJECTS, &options.module, &options.settings)?;
        let plain = Server::start(kind, &site, Providers::Default, None)?;
        let ours = Server::start(kind, &site, Providers::Evener, None)?;
        for (name, bytes) in OBJECTS {
            let mut pairs = Vec::with_capacity(options.runs);
            for run in 0..=options.runs {
                // Another goes first in each run.
                let (first, second) = if run % 2 == 0 { (&plain, &ours) } else { (&ours, &plain) };
                let (one, two) = (cost(first, name, options)?, cost(second, name, options)?);
                // The first pair warms up.
                if run > 0 {
                    pairs.push(if run % 2 == 0 { (one, two) } else { (two, one) });
                }
            }
            tell(kind, bytes, &pairs);
        }
    }
    Ok(())
}

/// Core time of a server per request, in microseconds.
fn cost(server: &Server, object: &str, options: &Options) -> Result<f64, String> {
    let before = server.core_ns()?;
    let requests = load::requests(&server.url(object), options.seconds)?;
    let used = server.core_ns()? - before;
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    let cost = used as f64 / requests as f64 / 1e3;
    Ok(cost)
}

fn tell(kind: Kind, bytes: usize, pairs: &[(f64, f64)]) {
    let spread = |value: fn(&(f64, f64)) -> f64| {
        let values: Vec<f64> = pairs.iter().map(value).collect();
        Spread::of(&values).expect("there is at least one run")
    };
    let (default, evener, ratio) =
        (spread(|pair| pair.0), spread(|pair| pair.1), spread(|pair| pair.1 / pair.0));
    println!(
        "{kind:<16} {bytes:>8} B  default {:>8.1} us  evener {:>8.1} us  ratio {:.3} [{:.3} {:.3}]  {} pairs",
        default.median,
        evener.median,
        ratio.median,
        ratio.low,
        ratio.high,
        pairs.len()
    );
}
