//! What evener.so adds to a call, in one process: `cargo run --release -p evener-provider --example overhead -- FOLDER`.
//!
//! The way: both providers are loaded, this thread stays on one core -> per algorithm, operation and size the default
//! provider and evener.so take turns, some tens of microseconds each, the first mover changing -> best and lower
//! quartile of each side, the difference in nanoseconds and the ratio. Machines drift: nothing else is compared.

#![allow(unsafe_code, reason = "room: calls libcrypto as programs do, in ffi.rs")]
#![allow(clippy::print_stdout, reason = "a program that reports")]

mod ffi;

use std::process::ExitCode;

use ffi::{Operation, Subject};

const ALGORITHMS: &[&str] = &["AES-128-CBC", "AES-128-CTR", "AES-128-GCM", "SHA256"];
const OPERATIONS: &[Operation] = &[Operation::Update, Operation::Message, Operation::Context];
const SIZES: &[usize] = &[16, 64, 256, 1024, 16384];

/// Rounds of each side. The quartile of 400 is steady to about a percent on an idle machine.
const ROUNDS: usize = 400;
/// How long one side's turn takes at least: long beside the clock's 25 ns, short beside a scheduler's slice.
const TURN_NS: f64 = 30_000.0;

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        println!("usage: overhead FOLDER, where FOLDER holds evener.so");
        return ExitCode::FAILURE;
    };
    ffi::pin();
    match ffi::load(&folder).and_then(|()| report(std::env::args().nth(2))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            println!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn report(only: Option<String>) -> Result<(), String> {
    println!(
        "| algorithm | operation | bytes | default ns: best, quartile | added ns: best, quartile | ratio: best, quartile |"
    );
    println!("|---|---|---|---|---|---|");
    let wanted = |name: &str| only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    for name in ALGORITHMS.iter().filter(|name| wanted(name)) {
        for operation in OPERATIONS {
            for &size in SIZES {
                let [default, evener] = measure(name, *operation, size)?;
                println!(
                    "| {name} | {operation:?} | {size} | {:.1}, {:.1} | {:+.1}, {:+.1} | {:.3}, {:.3} |",
                    default.best,
                    default.quartile,
                    evener.best - default.best,
                    evener.quartile - default.quartile,
                    default.best / evener.best,
                    default.quartile / evener.quartile,
                );
            }
        }
    }
    Ok(())
}

struct Figures {
    best: f64,
    quartile: f64,
}

fn measure(name: &str, operation: Operation, size: usize) -> Result<[Figures; 2], String> {
    let mut sides = [Subject::new(name, "default", size)?, Subject::new(name, "evener", size)?];
    if !sides.iter().all(Subject::is_usable) {
        return Err(format!("{name} takes no key of this program's"));
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
    Ok(times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        Figures { best: times[0], quartile: times[ROUNDS / 4] }
    }))
}

/// A number of repetitions, at least 4.
fn counted(wanted: f64) -> u32 {
    (4..100_000).find(|&count| f64::from(count) >= wanted).unwrap_or(100_000)
}
