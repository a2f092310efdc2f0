//! What evener.so adds to a call, in one process: `cargo run --release -p evener-provider --example overhead`. A folder
//! that holds `evener.so` may be given, a part of an algorithm's name, the name of an operation and a size; without them it is the module that
//! cargo built with this program, and all. It takes a few seconds.
//!
//! Path: both providers are loaded, this thread stays on one core -> per algorithm, operation and size the default
//! provider and evener.so take turns, some tens of microseconds each, the first mover changing -> best and lower
//! quartile of each side, the difference in nanoseconds, and the ratios of turns. Machines drift: nothing else is
//! compared. Operations that are `Cold` come one by one, each behind other things that fill the caches.

#![allow(unsafe_code, reason = "room: calls libcrypto as programs do, in ffi.rs")]
#![allow(clippy::print_stdout, reason = "a program that reports")]

mod ffi;
#[path = "../report/mod.rs"]
mod report;

use std::env;
use std::fs;
use std::process::ExitCode;

use ffi::full_caches::OtherThings;
use ffi::{Operation, Subject};
use report::argument;

const ALGORITHMS: &[&str] = &["AES-128-CBC", "AES-128-CTR", "AES-128-GCM", "SHA256"];
const OPERATIONS: &[Operation] = &[
    Operation::Update,
    Operation::Message,
    Operation::NewKey,
    Operation::Context,
    Operation::Decryption,
    Operation::Record,
    Operation::ContextCold,
    Operation::DecryptionCold,
];
const SIZES: &[usize] = &[16, 64, 256, 1024, 4096, 16384];

/// Rounds of each side. The quartile of 400 is steady to about a percent on an idle machine.
const ROUNDS: usize = 400;
/// Of those that come one by one.
const COLD: usize = 2_000;
/// How long one side's turn takes at least: long beside the clock's 25 ns, short beside a scheduler's slice.
const TURN_NS: f64 = 30_000.0;

fn main() -> ExitCode {
    report::heading("cargo run --release -p evener-provider --example overhead");
    ffi::pin();
    let body = |folder: &str| ffi::load(folder).and_then(|()| table(&argument(1, "")));
    let outcome = match argument(0, "").as_str() {
        "" => with_built_module(body),
        folder => body(folder),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            println!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// Runs `body` with a folder in which the module that lies beside the folder of this program has its name.
fn with_built_module(body: impl FnOnce(&str) -> Result<(), String>) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let built = program.ancestors().nth(2).map(|target| target.join("libevener_provider.so"));
    let module = folder.path().join("evener.so");
    built.map_or(Ok(0), |built| fs::copy(built, module)).map_err(|error| error.to_string())?;
    body(&folder.path().to_string_lossy())
}

/// The rows of those algorithms that have `part` in their names.
fn table(part: &str) -> Result<(), String> {
    println!(
        "| algorithm | operation | bytes | default ns: best, quartile | added ns: best, quartile | ratio: best, quartile | median |"
    );
    println!("|---|---|---|---|---|---|---|");
    for name in ALGORITHMS.iter().filter(|name| name.contains(part)) {
        let (only, size_told) = (argument(2, ""), argument(3, "").parse::<usize>().ok());
        let is_wanted = |operation: &Operation| only.is_empty() || format!("{operation:?}") == only;
        let operations = OPERATIONS.iter().filter(|operation| operation.is_of(name));
        for operation in operations.filter(|operation| is_wanted(operation)) {
            for &size in SIZES.iter().filter(|size| size_told.is_none_or(|told| told == **size)) {
                print_row(name, *operation, size)?;
            }
        }
    }
    Ok(())
}

fn print_row(name: &str, operation: Operation, size: usize) -> Result<(), String> {
    let times = measure(name, operation, size)?;
    let ratios: Vec<f64> = times[0].iter().zip(&times[1]).map(|(plain, evener)| plain / evener).collect();
    let [default, evener] = times.map(Figures::of);
    println!(
        "| {name} | {operation:?} | {size} | {:.1}, {:.1} | {:+.1}, {:+.1} | {:.3}, {:.3} | {} |",
        default.best,
        default.quartile,
        evener.best - default.best,
        evener.quartile - default.quartile,
        default.best / evener.best,
        default.quartile / evener.quartile,
        report::median(&ratios, 3),
    );
    Ok(())
}

struct Figures {
    best: f64,
    quartile: f64,
}

impl Figures {
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        Self { best: times[0], quartile: times[times.len() / 4] }
    }
}

/// Nanoseconds per operation of both sides, round by round.
fn measure(name: &str, operation: Operation, size: usize) -> Result<[Vec<f64>; 2], String> {
    let mut sides = [Subject::new(name, "default", size)?, Subject::new(name, "evener", size)?];
    if !sides.iter().all(Subject::is_usable) {
        return Err(format!("{name} takes no key of this program's"));
    }
    if operation == Operation::Record {
        sides.iter_mut().for_each(Subject::begin_records);
    }
    if operation.is_cold() {
        return Ok(measure_cold(&mut sides, operation, size));
    }
    let guess = sides[0].time(operation, size, 200);
    let count = counted(TURN_NS / guess);
    let mut times = [Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS)];
    for round in 0..ROUNDS {
        for turn in 0..2 {
            let side = (round + turn) % 2;
            times[side].push(sides[side].time(operation, size, count));
        }
    }
    Ok(times)
}

/// The same, one by one; nothing where caches cannot be filled.
fn measure_cold(sides: &mut [Subject; 2], operation: Operation, size: usize) -> [Vec<f64>; 2] {
    let mut times = [Vec::with_capacity(COLD), Vec::with_capacity(COLD)];
    let Some(mut others) = OtherThings::new() else { return [vec![f64::NAN], vec![f64::NAN]] };
    for round in 0..COLD {
        for turn in 0..2 {
            let side = (round + turn) % 2;
            times[side].push(sides[side].time_cold(operation, size, &mut others));
        }
    }
    times
}

/// A number of repetitions, at least 4.
fn counted(wanted: f64) -> u32 {
    (4..100_000).find(|&count| f64::from(count) >= wanted).unwrap_or(100_000)
}
