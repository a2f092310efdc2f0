//! What a run over a tree costs beside another program, in turns: `trees second-run EVENER DIR` against `rsync -a` with nothing to do, and
//! `trees small-files EVENER BEFORE DIR` and `trees large-file EVENER BEFORE DIR` against an earlier build of the command.
//! docs/results/trees.md has figures.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a measuring program")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::Parser;
use evener_bench::medians::Spread;
use nix::sys::resource::{UsageWho, getrusage};

/// Measures runs over trees in turns with another program.
#[derive(Parser)]
enum Arguments {
    /// A second run over 100,000 finished files against rsync.
    SecondRun {
        /// The command.
        evener: PathBuf,
        /// An empty directory of the file system in question.
        dir: PathBuf,
        /// Turns.
        #[arg(long, default_value_t = 11)]
        turns: usize,
    },
    /// 4000 files of 16 KiB, there and back, against an earlier build.
    SmallFiles {
        /// The command.
        evener: PathBuf,
        /// The command as it was.
        before: PathBuf,
        /// An empty directory of the file system in question.
        dir: PathBuf,
        /// Turns.
        #[arg(long, default_value_t = 15)]
        turns: usize,
    },
    /// A file of 1 GiB, there and back, against an earlier build.
    LargeFile {
        /// The command.
        evener: PathBuf,
        /// The command as it was.
        before: PathBuf,
        /// An empty directory of the file system in question.
        dir: PathBuf,
        /// Turns.
        #[arg(long, default_value_t = 7)]
        turns: usize,
    },
}

/// Files of one length in one directory.
#[derive(Clone, Copy)]
struct Files {
    count: usize,
    bytes: usize,
    name: &'static str,
}

const SMALL: Files = Files { count: 4_000, bytes: 16 << 10, name: "4000 files of 16 KiB" };
const LARGE: Files = Files { count: 1, bytes: 1 << 30, name: "one file of 1 GiB" };

/// Seconds by the clock, and of cores.
type Cost = [f64; 2];

fn main() -> anyhow::Result<()> {
    match Arguments::parse() {
        Arguments::SecondRun { evener, dir, turns } => second_run(&evener, &dir, turns),
        Arguments::SmallFiles { evener, before, dir, turns } => {
            there_and_back(&[&evener, &before], &dir, turns, SMALL)
        }
        Arguments::LargeFile { evener, before, dir, turns } => {
            there_and_back(&[&evener, &before], &dir, turns, LARGE)
        }
    }
}

fn second_run(evener: &Path, dir: &Path, turns: usize) -> anyhow::Result<()> {
    grow(&dir.join("in"), 100, 1_000, 100)?;
    cost(dir, evener, &["keygen", "k.json"])?;
    let ours = || cost(dir, evener, &["encrypt", "-q", "--key", "k.json", "-o", "out", "in"]);
    let theirs = || cost(dir, Path::new("rsync"), &["-a", "in/", "rs"]);
    for _ in 0..2 {
        ours()?;
        theirs()?;
    }
    show("second run, rsync's time over Evener's", turns, ours, theirs)
}

fn there_and_back(commands: &[&Path; 2], dir: &Path, turns: usize, files: Files) -> anyhow::Result<()> {
    grow(&dir.join("in"), 1, files.count, files.bytes)?;
    cost(dir, commands[0], &["keygen", "k.json"])?;
    for (direction, from, to) in [("encrypt", "in", "out"), ("decrypt", "out", "back")] {
        let made = |command: &Path| {
            fs::remove_dir_all(dir.join(to)).ok();
            fs::remove_file(dir.join(format!(".{to}.evener-record"))).ok();
            cost(dir, command, &[direction, "-q", "--key", "k.json", "-o", to, from])
        };
        let what = format!("{}, {direction}, time before over now", files.name);
        show(&what, turns, || made(commands[0]), || made(commands[1]))?;
    }
    Ok(())
}

/// Runs both by turns, and says how the times of the second stand to those of the first.
fn show(
    what: &str,
    turns: usize,
    one: impl Fn() -> anyhow::Result<Cost>,
    other: impl Fn() -> anyhow::Result<Cost>,
) -> anyhow::Result<()> {
    let (mut ratios, mut own) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for turn in 0..turns {
        let (ours, theirs) = if turn % 2 == 0 {
            let ours = one()?;
            (ours, other()?)
        } else {
            let theirs = other()?;
            (one()?, theirs)
        };
        for at in 0..2 {
            ratios[at].push(theirs[at] / ours[at]);
            own[at].push(ours[at]);
        }
    }
    for (at, name) in ["wall", "core time"].into_iter().enumerate() {
        let spread = |values: &[f64]| Spread::of(values).context("no turns");
        let (ratio, own) = (spread(&ratios[at])?, spread(&own[at])?);
        println!(
            "{what}: {name} {:.3} [{:.3} {:.3}], {turns} turns; Evener took {:.3} s",
            ratio.median, ratio.low, ratio.high, own.median
        );
    }
    Ok(())
}

/// Directories of files with bytes that do not compress.
fn grow(root: &Path, dirs: usize, files: usize, bytes: usize) -> anyhow::Result<()> {
    ensure!(!root.exists(), "{} is there already", root.display());
    let mut number = 0_u64;
    for dir in 0..dirs {
        let dir = root.join(dir.to_string());
        fs::create_dir_all(&dir)?;
        for file in 0..files {
            number += 1;
            let text = number.to_le_bytes().into_iter().cycle().take(bytes).collect::<Vec<_>>();
            fs::write(dir.join(file.to_string()), text)?;
        }
    }
    Ok(())
}

fn cost(dir: &Path, program: &Path, arguments: &[&str]) -> anyhow::Result<Cost> {
    let program = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
    let (begun, before) = (Instant::now(), core_time()?);
    let status = Command::new(&program).args(arguments).current_dir(dir).status()?;
    let (wall, core) = (begun.elapsed(), core_time()?.saturating_sub(before));
    if !status.success() {
        bail!("{} {arguments:?}: {status}", program.display());
    }
    Ok([wall.as_secs_f64(), core.as_secs_f64()])
}

/// Core time of all that was started here and has ended.
fn core_time() -> anyhow::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let of = |time: nix::sys::time::TimeVal| -> anyhow::Result<Duration> {
        Ok(Duration::new(time.tv_sec().try_into()?, u32::try_from(time.tv_usec())? * 1_000))
    };
    Ok(of(usage.user_time())? + of(usage.system_time())?)
}
