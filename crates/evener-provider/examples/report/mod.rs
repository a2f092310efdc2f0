//! What every example that measures says: where and how it ran, and medians with the bounds that hold with 95 %.

use std::env;
use std::fs;
use std::process::Command;
use std::thread;

/// The harness's own medians and bounds: sides take turns here too, and ratios are taken within a turn.
#[allow(dead_code, unreachable_pub, reason = "the harness uses more of it")]
#[path = "../../../../bench/src/medians.rs"]
mod medians;

use medians::Spread;

/// Prints the command and the machine, to be kept with the figures.
pub(crate) fn heading(command: &str) {
    let version = Command::new("openssl").arg("version").output().map(|output| output.stdout);
    let version = String::from_utf8(version.unwrap_or_default()).unwrap_or_default();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("`{}`", [command, &arguments()].join(" ").trim());
    println!(
        "{} cores of {}, Linux {}, {}, load {} at the start.",
        thread::available_parallelism().map_or(1, usize::from),
        model.map_or("unknown", |(_, name)| name),
        kernel.trim(),
        version.trim(),
        load.split(' ').next().unwrap_or_default(),
    );
    println!("Median of the ratios of pairs in turn [bounds of the median, 95 %].\n");
}

fn arguments() -> String {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.is_empty() { String::new() } else { format!("-- {}", arguments.join(" ")) }
}

/// The argument at `place`, or what is usual.
pub(crate) fn argument(place: usize, usual: &str) -> String {
    env::args().nth(place + 1).unwrap_or_else(|| usual.to_owned())
}

/// `1.02 [0.98 1.05]`.
pub(crate) fn median(ratios: &[f64], digits: usize) -> String {
    Spread::of(ratios).map_or_else(
        || "none".to_owned(),
        |spread| format!("{:.digits$} [{:.digits$} {:.digits$}]", spread.median, spread.low, spread.high),
    )
}
