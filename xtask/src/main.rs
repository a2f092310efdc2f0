//! Evener's own checks: `cargo xtask tidy` and `cargo xtask ci`.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "talks to a terminal")]

use std::env;
use std::process::ExitCode;

mod ci;
mod rust;
mod tidy;
mod tree;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy::run(),
        ["ci"] => ci::run(ci::Depth::Commit),
        ["ci", "--full"] => ci::run(ci::Depth::Full),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: cargo xtask tidy         the house rules that no compiler checks");
    eprintln!("       cargo xtask ci           formatting, lints, tidy, dependencies, models, tests");
    eprintln!("       cargo xtask ci --full    the same with all that takes long");
    ExitCode::from(2)
}
