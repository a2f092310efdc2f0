//! Measures combining against plain calls and prints a table:
//! `cargo run --release -p evener-bench --bin combine -- --sizes 16384,65536 --threads 8,16,64`.
//! What is measured and how stands in `bench/src/combine/mod.rs`.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::time::Duration;

use clap::Parser;
use evener_bench::combine::{Between, Cell, LaneDriver, Outcome, Plan, measure, spin};
use evener_bench::medians::Spread;
use evener_core::Algorithm;
use evener_core::combine::{Waiting, YIELDS};

/// Measures combining against plain calls of libcrypto, in pairs that take turns; prints medians.
#[derive(Parser)]
struct Arguments {
    /// Bytes of a message
    #[arg(long, value_delimiter = ',', default_values_t = [4096, 16384, 65536])]
    sizes: Vec<usize>,
    /// Threads, each with a key and buffers of its own
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 64])]
    threads: Vec<usize>,
    /// Output apart from input, instead of in place
    #[arg(long)]
    apart: bool,
    /// Pairs of a plain and a combined segment
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// Window of a segment, in milliseconds
    #[arg(long, default_value_t = 300)]
    window_ms: u64,
    /// Time before each window that is not counted, in milliseconds
    #[arg(long, default_value_t = 200)]
    settle_ms: u64,
    /// Cores, and bursts at once
    #[arg(long)]
    cores: Option<usize>,
    /// Callers that always wait for each other, instead of what the controller says
    #[arg(long)]
    together: Option<u32>,
    /// Yields after which such a caller runs what is there
    #[arg(long, default_value_t = YIELDS, requires = "together")]
    yields: u32,
    /// What threads combine by
    #[arg(long, value_enum, default_value = "lanes")]
    by: LaneDriver,
    /// Spinning processes beside it
    #[arg(long, default_value_t = 0)]
    neighbours: usize,
    /// Megabytes per second of all threads together, at random moments and timed from when they were due, instead of
    /// without pause
    #[arg(long, value_delimiter = ',')]
    rate_mb: Vec<f64>,
    /// Microseconds of a core that a thread works for itself between two messages
    #[arg(long, default_value_t = 0)]
    work_us: u64,
    /// Microseconds that it then sleeps, on average: instead of going on at once
    #[arg(long, value_delimiter = ',', conflicts_with = "rate_mb")]
    sleep_us: Vec<u64>,
    /// Bits of the keys
    #[arg(long, default_value_t = 128)]
    key_bits: usize,
    /// Only spins: what a neighbour does
    #[arg(long, hide = true)]
    spin: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.spin {
        spin();
        return Ok(());
    }
    let plan = Plan {
        pairs: arguments.pairs.max(1),
        window: Duration::from_millis(arguments.window_ms),
        settle: Duration::from_millis(arguments.settle_ms),
        cores: arguments.cores.unwrap_or_else(|| evener::core_budget().workers()),
        together: arguments.together.map(|together| Waiting { together, yields: arguments.yields }),
        by: arguments.by,
    };
    let algorithm: Algorithm = format!("AES-{}-CBC", arguments.key_bits).parse()?;
    println!(
        "| bytes | threads | plain MB/s | cores busy | in calls | combined | core time | time of a call | p50 us | p99 us | p50 | p99 | p99.9 | epochs on |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for &bytes in &arguments.sizes {
        for &threads in &arguments.threads {
            for (rate, between) in lives(&arguments, bytes) {
                let (in_place, neighbours) = (!arguments.apart, arguments.neighbours);
                let cell = Cell { threads, bytes, in_place, rate, between, neighbours, algorithm };
                print_row(&cell, &measure(&cell, &plan)?);
            }
        }
    }
    Ok(())
}

/// Messages per second, or what threads do between two; once neither, where each thread goes on at once.
#[expect(clippy::cast_precision_loss, reason = "message sizes are small")]
fn lives(arguments: &Arguments, bytes: usize) -> Vec<(Option<f64>, Option<Between>)> {
    let work = Duration::from_micros(arguments.work_us);
    let rates = arguments.rate_mb.iter().map(|megabytes| (Some(megabytes * 1e6 / bytes as f64), None));
    let sleeps = arguments.sleep_us.iter().map(|&us| {
        let sleep = Duration::from_micros(us);
        (None, Some(Between { work, sleep }))
    });
    let all: Vec<_> = rates.chain(sleeps).collect();
    if all.is_empty() { vec![(None, None)] } else { all }
}

#[expect(clippy::cast_precision_loss, reason = "message sizes are small")]
fn print_row(cell: &Cell, outcome: &Outcome) {
    let megabytes = outcome.median(0, |segment| segment.rate) * cell.bytes as f64 / 1e6;
    let rate = outcome.ratio(|segment| segment.rate);
    let core = outcome.ratio(|segment| segment.core_us);
    let call = outcome.ratio(|segment| segment.latency.mean_us());
    let [p50, p99] =
        [500, 990].map(|quantile| outcome.median(1, |segment| segment.latency.quantile_us(quantile)));
    let [half, tail, far] =
        [500, 990, 999].map(|quantile| outcome.ratio(|segment| segment.latency.quantile_us(quantile)));
    let [on, all] = outcome.counts.epochs;
    println!(
        "| {} | {} | {megabytes:.0} | {:.2} | {:.2} | {} | {} | {} | {p50:.1} | {p99:.1} | {:.2} | {} | {:.2} | {on} of {all} |",
        cell.bytes,
        cell.threads,
        outcome.busy_cores(0),
        outcome.in_calls(0),
        bounds(rate),
        bounds(core),
        bounds(call),
        half.median,
        bounds(tail),
        far.median
    );
}

fn bounds(spread: Spread) -> String {
    format!("{:.2} ({:.2} to {:.2})", spread.median, spread.low, spread.high)
}
