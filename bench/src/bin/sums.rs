//! `evener sum` in turns with `sha256sum`, alone and by `xargs -P`, over files that are in memory: `sums EVENER DIR`, DIR an empty directory such as
//! `/dev/shm/sums`. docs/results/sums.md has figures.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a measuring program")]

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use clap::Parser;
use evener_bench::medians::Spread;
use evener_bench::programs::stopwatch;

/// Measures checksums of 4000 files of 64 KiB and one of 1 GiB, and of that one alone, in turns.
#[derive(Parser)]
struct Arguments {
    /// The command.
    evener: PathBuf,
    /// An empty directory, or one that this filled.
    dir: PathBuf,
    /// Turns.
    #[arg(long, default_value_t = 9)]
    turns: usize,
    /// Processes of xargs.
    #[arg(long, default_value_t = 2)]
    processes: usize,
}

const FILES: usize = 4_000;
const FILE_BYTES: usize = 64 << 10;
const LARGE_MB: usize = 1 << 10;

fn main() -> anyhow::Result<()> {
    let mut arguments = Arguments::parse();
    // Commands run in another directory.
    arguments.evener = arguments.evener.canonicalize().context("EVENER is not there")?;
    fill(&arguments.dir)?;
    let by_xargs = format!("ls | xargs -n 64 -P {} sha256sum", arguments.processes);
    println!("| what | against | times as fast: median | bounds | evener, s |\n|---|---|---|---|---|");
    for (what, files) in [("all files", "*"), ("the large one", "large")] {
        let own = format!("\"$0\" sum {files}");
        let judge = format!("sha256sum {files}");
        let mut others = vec![judge.as_str()];
        if files == "*" {
            others.push(&by_xargs);
        }
        for other in others {
            compare(&arguments, what, &own, other)?;
        }
    }
    Ok(())
}

/// Runs both in turns, the other first in each second one.
fn compare(arguments: &Arguments, what: &str, own: &str, other: &str) -> anyhow::Result<()> {
    let (mut ratios, mut seconds) = (Vec::new(), Vec::new());
    for turn in 0..arguments.turns.max(1) {
        let (mine, theirs) = if turn % 2 == 0 {
            let mine = timed(arguments, own)?;
            (mine, timed(arguments, other)?)
        } else {
            let theirs = timed(arguments, other)?;
            (timed(arguments, own)?, theirs)
        };
        ensure!(sorted(&mine.1) == sorted(&theirs.1), "{own} and {other} do not say the same");
        ratios.push(theirs.0 / mine.0);
        seconds.push(mine.0);
    }
    let (ratio, seconds) = (Spread::of(&ratios).context("turns")?, Spread::of(&seconds).context("turns")?);
    let Spread { median, low, high, .. } = ratio;
    println!("| {what} | `{other}` | {median:.2} | {low:.2} to {high:.2} | {:.3} |", seconds.median);
    Ok(())
}

/// Seconds, and what was written. The command has EVENER as `$0`.
fn timed(arguments: &Arguments, command: &str) -> anyhow::Result<(f64, Vec<u8>)> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).arg(&arguments.evener).current_dir(&arguments.dir);
    let start = Instant::now();
    let written = stopwatch::run(shell)?;
    Ok((start.elapsed().as_secs_f64(), written))
}

/// Lines of a list; those of several processes come in any order.
fn sorted(written: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = written.split(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

/// Makes the files, each with contents of its own.
fn fill(dir: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(dir)?;
    let mut block: Vec<u8> = (0..=u8::MAX).cycle().take(1 << 20).collect();
    for number in 0..FILES {
        block[..8].copy_from_slice(&number.to_le_bytes());
        fs::write(dir.join(format!("f{number:04}")), &block[..FILE_BYTES])?;
    }
    let mut large = File::create(dir.join("large"))?;
    for number in 0..LARGE_MB {
        block[..8].copy_from_slice(&number.to_le_bytes());
        large.write_all(&block)?;
    }
    Ok(())
}
