//! Instructions that the whole guest needs for what OpenSSL's commands do, its kernel's part and interrupts included.
//!
//! The way: a clock of which each instruction takes two nanoseconds (`Icount::NEAR_AM3358`) -> what a command, an update or an
//! upload keeps the processor busy for -> thousands of instructions, by every way side by side. A module works in real time beside that
//! clock, so nothing is said of how long anything takes.

use std::fs;
use std::process::{Command, Stdio};

use super::{SPEED_BYTES, WAYS, WITHOUT, busy, by_way, curl, enc, in_turn, speed_of};

/// As the guest's clock counts them.
const INSTRUCTIONS_PER_MS: f64 = 500_000.0;

/// Files that are encrypted and uploaded, in bytes.
const FILES: [usize; 4] = [16, 64 << 10, 1 << 20, 8 << 20];
const UPLOADS: [usize; 4] = [70, 57_654, 2_359_350, 18_948_662];

/// Prints all that is counted.
pub(crate) fn all(rounds: usize, url: &str) -> Result<(), String> {
    println!("thousands of instructions, medians of {rounds}");
    println!("{:26}{}", "", WAYS.map(|(name, ..)| format!("{name:>16}")).concat());
    tell("openssl list -providers", rounds, &|way| {
        let mut command = by_way(way, "openssl");
        instructions(command.args(["list", "-providers"]).stdout(Stdio::null()))
    })?;
    for bytes in FILES {
        file("/tmp/text", bytes)?;
        tell(&format!("openssl enc, {bytes} B"), rounds, &|way| instructions(&mut enc(way)))?;
    }
    for bytes in SPEED_BYTES {
        // `speed_of` tells megabytes a second, which is thousands of bytes a millisecond.
        let update = |rate: f64| f64::from(bytes) / (rate * 1e3) * INSTRUCTIONS_PER_MS * 1e-3;
        tell(&format!("an update of {bytes} B"), rounds, &|way| speed_of(way, bytes).map(update))?;
    }
    for bytes in UPLOADS {
        file("/tmp/file", bytes)?;
        tell(&format!("an upload of {bytes} B"), rounds, &|way| instructions(&mut curl(way, url)))?;
    }
    Ok(())
}

fn file(path: &str, bytes: usize) -> Result<(), String> {
    fs::write(path, vec![0x42; bytes]).map_err(|error| error.to_string())
}

/// Prints a row: every way, and the module's over that without it.
fn tell(what: &str, rounds: usize, measure: &dyn Fn(usize) -> Result<f64, String>) -> Result<(), String> {
    let counted: [f64; WAYS.len()] = in_turn(rounds, measure)?;
    let ratio = counted[super::WITH] / counted[WITHOUT];
    println!("{what:26}{}  {ratio:.3}", counted.map(|thousands| format!("{thousands:16.1}")).concat());
    Ok(())
}

/// Thousands of them that `command` takes, its start and its end included.
fn instructions(command: &mut Command) -> Result<f64, String> {
    Ok(busy(command)?.1 * INSTRUCTIONS_PER_MS * 1e-3)
}
