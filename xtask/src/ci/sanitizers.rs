//! Tests of the ring, of what threads share in the runtime and of the provider, watched by LLVM's thread sanitizer: no data
//! race. Tests of the provider, watched by the address sanitizer: nothing is touched outside its memory, or after its end.
//!
//! Steps: is there a nightly toolchain, for races with the sources of std -> a crate is built with the sanitizer, in a folder of
//! its own, for races with std -> the crate's tests, which a finding fails. Std is built along for races, because its own
//! synchronisation would else go unseen: the last drop of an `Arc` would look like a race.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use super::Tally;
use super::suites::{TEST_SECONDS_MAX, runner};
use crate::tree::root;

/// Crates, and those of their tests in which threads meet; all where none is named.
const THREADS: [(&str, &[&str]); 3] = [
    ("evener-ring", &[]),
    ("evener", &["callers", "combine", "exactly_once", "split"]),
    ("evener-provider", &["combine", "engine", "gcm", "jobs", "split", "counters"]),
];

/// Crates in which C's memory is touched.
const ADDRESSES: [(&str, &[&str]); 1] = [("evener-provider", &[])];

/// The target on which the project is measured; the sanitizers exist for few.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Runs them where the toolchain can.
pub(super) fn run(tally: &mut Tally) {
    let Some(sysroot) = nightly() else {
        return tally.print("skipped: the sanitizers of threads and addresses (need rustup with a nightly toolchain, on x86-64)");
    };
    if sysroot.join("lib/rustlib/src/rust/library/Cargo.lock").exists() {
        for (package, names) in THREADS {
            tally.run_tests(&format!("{package} under the thread sanitizer"), races(package, names));
        }
    } else {
        tally.print("skipped: the thread sanitizer (needs rust-src of the nightly toolchain)");
    }
    for (package, names) in ADDRESSES {
        match reports() {
            Ok(reports) => watch_addresses(tally, package, names, &reports),
            Err(error) => tally.fail(&format!("the address sanitizer: {error}")),
        }
    }
}

/// Where the nightly toolchain lies, on a machine that has sanitizers.
fn nightly() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["+nightly", "--print", "sysroot"]).output().ok()?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    (output.status.success() && cfg!(all(target_arch = "x86_64", target_os = "linux"))).then_some(sysroot)
}

fn races(package: &str, names: &[&str]) -> Command {
    let mut command = tests(package, names, "thread");
    // It ends children of threaded programs that start threads, unless told not to. What such a child does goes unwatched.
    command.env("TSAN_OPTIONS", "die_after_fork=0").arg("-Zbuild-std");
    command
}

/// Runs a crate's tests, and shows what was found in them.
fn watch_addresses(tally: &mut Tally, package: &str, names: &[&str], reports: &Path) {
    let mut command = tests(package, names, "address");
    // Into files: it warns of the stacks of OpenSSL's jobs, which it does not know, and programs are to print nothing. Leaks are
    // not looked for: what a module keeps that is never unmapped is one.
    let options = format!("detect_leaks=0:log_path={}", reports.join("report").display());
    command.env("ASAN_OPTIONS", options).args(["--", "--show-output"]);
    command.envs(runner(TEST_SECONDS_MAX));
    tally.run_tests(&format!("{package} under the address sanitizer"), command);
    findings(reports).iter().for_each(|line| tally.print(line));
}

/// An empty folder for its reports.
fn reports() -> io::Result<PathBuf> {
    let folder = root().join("target/sanitizer/reports");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// What reports say besides warnings.
fn findings(reports: &Path) -> Vec<String> {
    let files = fs::read_dir(reports).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let found = texts.filter(|text| text.contains("ERROR: AddressSanitizer"));
    found.flat_map(|text| text.lines().take(LINES_MAX).map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Of one report: the memory, the thread that touched it, and its owner.
const LINES_MAX: usize = 60;

fn tests(package: &str, names: &[&str], sanitizer: &str) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root());
    // A module that is loaded finds the sanitizer's functions in the program, where that shows them.
    command.env("RUSTFLAGS", format!("-Zsanitizer={sanitizer} -Clink-arg=-Wl,--export-dynamic"));
    command.args(["+nightly", "test", "--target", TARGET, "--no-fail-fast", "-p", package]);
    command.arg("--target-dir").arg(root().join("target/sanitizer").join(sanitizer));
    match names {
        [] => command.args(["--lib", "--tests"]),
        names => command.args(names.iter().flat_map(|name| ["--test", name])),
    };
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_reports_only_those_with_an_error_are_shown() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(place.path().join(name), text).unwrap();
        write("report.1", "==1==WARNING: ASan is ignoring requested __asan_handle_no_return\n");
        assert!(findings(place.path()).is_empty());
        write("report.2", "==2==ERROR: AddressSanitizer: heap-use-after-free\nREAD of size 8\n");
        assert_eq!(
            findings(place.path()),
            ["==2==ERROR: AddressSanitizer: heap-use-after-free", "READ of size 8"]
        );
    }
}
