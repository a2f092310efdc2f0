//! Instructions that the whole guest needs for what OpenSSL's commands do, its kernel's part and interrupts included.
//!
//! Steps: a clock of which each instruction takes two nanoseconds (`Icount::NEAR_AM3358`) -> what a command, an update or an
//! upload keeps the processor busy for -> thousands of instructions, by every way side by side. A module works in real time beside that
//! clock, so it shows nothing of how long anything takes.

use std::fs;
use std::process::{Command, Stdio};

use super::{
    CALLER, CIPHERS, CONFIGURATIONS, VIRTIO, WITH, WITHOUT, Window, busy, by_way, curl, enc, in_turn, median,
    speed_command, updates,
};

/// As the guest's clock counts them.
const INSTRUCTIONS_PER_MS: f64 = 500_000.0;

/// What sends every update of the provider's ways to the module.
const FORCED: [(&str, &str); 2] = [("EVENER_THRESHOLD", "16"), ("EVENER_GUARD", "off")];

/// Sizes of updates, in bytes.
const UPDATES: [u32; 5] = [64, 1_024, 4_096, 8_192, 16_384];

/// Files that are encrypted and uploaded, in bytes.
const FILES: [usize; 4] = [16, 64 << 10, 1 << 20, 8 << 20];
const UPLOADS: [usize; 4] = [70, 57_654, 2_359_350, 18_948_662];

/// Prints all that is counted.
pub(crate) fn all(rounds: usize, url: &str) -> Result<(), String> {
    // The first alarm in a guest's life rings at once.
    drop(update(0, UPDATES[0], &[]));
    println!("thousands of instructions, medians of {rounds}");
    println!("{:28}{}  over the last", "", CONFIGURATIONS.map(|way| format!("{:>14}", way.name)).concat());
    print_row("openssl list -providers", rounds, &|way| {
        let mut command = by_way(way, "openssl");
        instructions(command.args(["list", "-providers"]).stdout(Stdio::null()))
    })?;
    for bytes in FILES {
        file("/tmp/text", bytes)?;
        print_row(&format!("openssl enc, {bytes} B"), rounds, &|way| {
            instructions(&mut enc(way, &CIPHERS[0]))
        })?;
    }
    for bytes in UPDATES {
        print_row(&format!("an update of {bytes} B"), rounds, &|way| update(way, bytes, &[]))?;
    }
    let longest = UPDATES[UPDATES.len() - 1];
    print_row("the same, forced", rounds, &|way| update(way, longest, &FORCED))?;
    for bytes in UPLOADS {
        file("/tmp/file", bytes)?;
        print_row(&format!("an upload of {bytes} B"), rounds, &|way| instructions(&mut curl(way, url)))?;
    }
    Ok(())
}

fn file(path: &str, bytes: usize) -> Result<(), String> {
    fs::write(path, vec![0x42; bytes]).map_err(|error| error.to_string())
}

/// Prints a row: every way, and the module's over that without it.
fn print_row(
    heading: &str,
    rounds: usize,
    measure: &dyn Fn(usize) -> Result<f64, String>,
) -> Result<(), String> {
    let counted: [f64; CONFIGURATIONS.len()] = in_turn(rounds, measure)?.map(median);
    let ratios =
        [WITH, CALLER, VIRTIO].map(|way| format!("  {:.3}", counted[way] / counted[WITHOUT])).concat();
    println!("{heading:28}{}{ratios}", counted.map(|thousands| format!("{thousands:14.1}")).concat());
    Ok(())
}

/// Thousands of them that one update of `openssl speed` takes: a longer run less a shorter one, so that neither start nor end counts.
fn update(way: usize, bytes: u32, variables: &[(&str, &str)]) -> Result<f64, String> {
    let run = |seconds: u32| -> Result<(f64, f64), String> {
        let mut command = speed_command(way, &CIPHERS[0], bytes, seconds);
        command.envs(variables.iter().copied());
        let window = Window::open()?;
        let output = command.output().map_err(|error| error.to_string())?;
        let (_, busy) = window.close()?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        updates(&stderr).map(|done| (done, busy)).ok_or_else(|| format!("openssl speed said {stderr:?}"))
    };
    let ((short, short_busy), (long, long_busy)) = (run(1)?, run(2)?);
    Ok((long_busy - short_busy) / (long - short) * INSTRUCTIONS_PER_MS * 1e-3)
}

/// Thousands of them that `command` takes, its start and its end included.
fn instructions(command: &mut Command) -> Result<f64, String> {
    Ok(busy(command)?.1 * INSTRUCTIONS_PER_MS * 1e-3)
}
