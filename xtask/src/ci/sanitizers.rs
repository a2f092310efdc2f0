//! Tests of the ring, of what threads share in the runtime and of the provider, watched by LLVM's thread sanitizer: no data
//! race.
//!
//! The way: is there a nightly toolchain with the sources of std -> std and a crate are built with the sanitizer, in a folder of their
//! own -> the crate's tests, which a race fails. Std is built along, because its own synchronisation would else go
//! unseen: the last drop of an `Arc` would look like a race.

use std::path::Path;
use std::process::Command;

use super::Tally;
use crate::tree::root;

/// Crates, and those of their tests in which threads meet; all where none is named.
const WATCHED: [(&str, &[&str]); 3] = [
    ("evener-ring", &[]),
    ("evener", &["callers", "combine", "exactly_once", "split"]),
    ("evener-provider", &["combine", "engine", "gcm", "jobs", "split", "statistics"]),
];

/// The target on which the project is measured; the sanitizer exists for few.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Runs them where the toolchain can.
pub(super) fn run(tally: &mut Tally) {
    if !has_sources() {
        return tally
            .say("skipped: the thread sanitizer (needs rustup with a nightly toolchain and its rust-src, on x86-64)");
    }
    for (package, names) in WATCHED {
        tally.run_tests(&format!("{package} under the thread sanitizer"), tests(package, names));
    }
}

/// Whether std can be built here.
fn has_sources() -> bool {
    let output = Command::new("rustc").args(["+nightly", "--print", "sysroot"]).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else { return false };
    let sysroot = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let sources = Path::new(&sysroot).join("lib/rustlib/src/rust/library/Cargo.lock");
    cfg!(all(target_arch = "x86_64", target_os = "linux")) && sources.exists()
}

fn tests(package: &str, names: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root()).env("RUSTFLAGS", "-Zsanitizer=thread");
    // It ends children of threaded programs that start threads, unless told not to. What such a child does goes unwatched.
    command.env("TSAN_OPTIONS", "die_after_fork=0");
    command.args(["+nightly", "test", "-Zbuild-std", "--target", TARGET, "--no-fail-fast", "-p", package]);
    command.arg("--target-dir").arg(root().join("target/sanitizer/thread"));
    match names {
        [] => command.args(["--lib", "--tests"]),
        names => command.args(names.iter().flat_map(|name| ["--test", name])),
    };
    command
}
