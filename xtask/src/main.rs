//! Evener's own checks, its figures and its packages: `cargo xtask tidy`, `rooms`,
//! `reference`, `docs`, `ci`, `deny`, `figures`, `instructions`, `install`, `deb`, `small`, `libevener`, `guest`, `testbed`.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "talks to a terminal")]

use std::env;
use std::process::ExitCode;

mod ci;
mod crate_graph;
mod measure;
mod package;
mod programs;
mod rust;
mod site;
mod text_file;
mod tidy;
mod tree;

use measure::{figures, guest, instructions, testbed};

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy::run(),
        ["tidy", name] => tidy::inside(name),
        ["rooms"] => tidy::write_rooms(),
        ["reference"] => site::write_reference(),
        ["docs"] => site::build(),
        ["ci", "--full", ref steps @ ..] => ci::run(ci::Depth::Full, steps),
        ["ci", ref steps @ ..] => ci::run(ci::Depth::Commit, steps),
        ["deny"] => ci::deny::record(),
        ["figures", ref names @ ..] => figures::run(names),
        ["instructions"] => instructions::run_instructions(),
        ["install"] => package::install(),
        ["uninstall"] => package::uninstall(),
        ["deb", ref words @ ..] => package::deb(words),
        #[cfg(feature = "tarball")]
        ["tarball"] => package::tarball(),
        ["small"] => package::small(),
        ["small", "early"] => package::small_early(),
        ["libevener", ref words @ ..] => package::libevener(words),
        ["guest", ref words @ ..] => guest::run(words),
        ["testbed", ref words @ ..] => testbed::run(words),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: cargo xtask tidy         the house rules that no compiler checks");
    eprintln!("       cargo xtask tidy CRATE   circles, crowds and rooms of one crate");
    eprintln!(
        "       cargo xtask rooms        the tables of crates and rooms in docs/ARCHITECTURE.md, made anew"
    );
    eprintln!("       cargo xtask reference    docs/reference/command-line.md, made anew from the command");
    eprintln!("       cargo xtask docs         the site of docs/ by mdBook, in target/site/");
    eprintln!(
        "       cargo xtask ci           formatting, lints, tidy, dependencies, models, tests, or only the steps named"
    );
    eprintln!("       cargo xtask ci --full    the same with all that takes long, or only the steps named");
    eprintln!(
        "       cargo xtask deny         has cargo-deny judge all dependencies and records it in deny.sums"
    );
    eprintln!("       cargo xtask figures      measures docs/results again, or only those named");
    eprintln!("       cargo xtask instructions what short messages of OpenSSL programs take, counted");
    eprintln!(
        "       cargo xtask install      puts command, provider, manual pages below $DESTDIR$PREFIX (/usr/local)"
    );
    eprintln!(
        "       cargo xtask deb          a Debian package of the same, in target/deb/; --arch arm64|armhf for boards"
    );
    eprintln!(
        "       cargo run -p xtask --features tarball -- tarball  the command alone, for any Linux, in target/tarball/"
    );
    eprintln!("       cargo xtask small        command and provider for boards, held to their sizes");
    eprintln!("       cargo xtask small early  what of the provider lies together in its file, found anew");
    eprintln!("       cargo xtask libevener    the library for programs in C, in target/release/");
    eprintln!(
        "       cargo xtask guest        OpenSSL programs with the provider and a module, in the guest"
    );
    eprintln!("       cargo xtask testbed      a guest with a crypto module: up, run, shell, papers, down");
    ExitCode::from(2)
}
