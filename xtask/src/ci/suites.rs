//! The workspace's tests.
//!
//! Steps: all test programs one after the other, as cargo does, but for those that other programs keep busy ([`SIDE_BY_SIDE`])
//! -> those, two at a time, and for guests' tests one guest that they use in turn ([`lend_guest`]). Each has a limit of time
//! ([`runner`]).

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{fs, io, thread};

use evener_testbed::{Guest, SharedGuest, write_program};

use super::{Depth, Tally, said_by};
use crate::tree::{cargo, root};

/// Suites of other hands through OpenSSL, and guests, which keep one core busy and ask little of time: side by side they take
/// as long as the longer one.
const SIDE_BY_SIDE: [(&str, &[&str]); 2] = [
    ("suites of other hands", &["differential", "evp_test", "haproxy", "nginx", "python", "recipes", "tls"]),
    // Not the one that counts core time: beside a busy core its module is ready at other moments.
    ("guests", &["guest", "kernel", "virtio"]),
];

/// Runs them all.
pub(super) fn run(tally: &mut Tally, depth: Depth) {
    let apart: Vec<&str> = SIDE_BY_SIDE.iter().flat_map(|(_, names)| *names).copied().collect();
    match runner_without(&apart, &root().join("target/ci"), depth) {
        Ok(runner) => tally.run_tests("tests", test_command(&[], depth, runner)),
        Err(error) => tally.fail(&format!("tests: {error}")),
    }
    let lent = lend_guest(tally, depth);
    let suite = |(step, names): (&'static str, &'static [&'static str])| {
        let mut command = test_command(names, depth, runner(limit(depth)));
        command.envs(lent.as_ref().map(SharedGuest::variable));
        (step, thread::spawn(|| said_by(command)))
    };
    for (step, runs) in SIDE_BY_SIDE.map(suite) {
        let (lines, succeeded) = runs.join().expect("the reader of the output does not panic");
        tally.count_tests(step, |tally| {
            lines.iter().for_each(|line| tally.take_line(line));
            succeeded
        });
    }
    // Where it does not listen any more it is ended all the same.
    lent.map(SharedGuest::end).transpose().map(drop).unwrap_or_default();
}

/// Boots the guest that test programs have in common; without it each that needs one boots its own, or says that there is none.
fn lend_guest(tally: &mut Tally, depth: Depth) -> Option<SharedGuest> {
    let each_s: u64 = limit(depth).parse().expect("a number of ours");
    let life = Duration::from_secs(LENT_TO * each_s);
    let lent = Guest::builder().host_loopback().memory_mib(LENT_MIB).limit(life).lend();
    lent.inspect_err(|error| tally.print(&format!("no guest in common: {error}"))).ok()
}

/// Test programs that use it, one after the other.
const LENT_TO: u64 = 3;
/// For programs of several packages, as cargo test builds them, and what they write.
const LENT_MIB: u32 = 1_024;

/// `cargo test` for the workspace, or for tests of these names in it.
fn test_command(names: &[&str], depth: Depth, runner: Option<(String, String)>) -> Command {
    let mut command = cargo();
    // What has benches only is linted, and its libraries take as long to build as a dozen tests.
    command.args(["test", "--workspace", "--exclude", "evener-decisions", "--no-fail-fast"]);
    names.iter().for_each(|name| _ = command.args(["--test", name]));
    // --show-output: a test that skips its work says so on its standard output.
    command.args(["--", "--show-output"]);
    match depth {
        // A commit is judged by what it changes, not by luck: proptest draws the same cases each time.
        Depth::Commit => command.env("PROPTEST_RNG_SEED", "2011"),
        Depth::Full => command.arg("--include-ignored"),
    };
    command.envs(runner);
    command
}

/// As [`runner`], for all test programs but those of these names: a script in `place`.
fn runner_without(names: &[&str], place: &Path, depth: Depth) -> io::Result<Option<(String, String)>> {
    let Some((variable, limited)) = runner(limit(depth)) else { return Ok(None) };
    fs::create_dir_all(place)?;
    let script = place.join("runner");
    // Cargo adds a hash to the name.
    let others: Vec<String> = names.iter().map(|name| format!("*/{name}-*")).collect();
    let body = format!("#!/bin/sh\ncase $1 in {}) exit 0 ;; esac\nexec {limited} \"$@\"\n", others.join("|"));
    write_program(&script, body.as_bytes())?;
    Ok(Some((variable, script.display().to_string())))
}

const fn limit(depth: Depth) -> &'static str {
    match depth {
        Depth::Commit => TEST_SECONDS_MAX,
        Depth::Full => LONG_TEST_SECONDS_MAX,
    }
}

/// Has cargo run each test program with a limit of time: one that stands still has failed, and the next one runs. `timeout`
/// ends what a program started, too.
pub(super) fn runner(seconds: &str) -> Option<(String, String)> {
    let output = Command::new("rustc").arg("-vV").output().ok()?;
    let printed = String::from_utf8(output.stdout).ok()?;
    let host = printed.lines().find_map(|line| line.strip_prefix("host: "))?;
    let variable = format!("CARGO_TARGET_{}_RUNNER", host.to_uppercase().replace(['-', '.'], "_"));
    Some((variable, format!("timeout --verbose --kill-after=10 {seconds}")))
}

/// Assumed, not measured: beyond what the longest test program takes on a busy machine: one of a commit, and one with all that is long.
pub(super) const TEST_SECONDS_MAX: &str = "900";
pub(super) const LONG_TEST_SECONDS_MAX: &str = "7200";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::tests::shell;
    use super::*;

    #[test]
    fn a_test_program_that_stands_still_fails_when_its_time_is_over() {
        let (variable, words) = runner("1").expect("rustc says its host");
        assert!(variable.starts_with("CARGO_TARGET_") && variable.ends_with("_RUNNER"), "{variable}");
        let ends_well = |script: &str| shell(&format!("{words} {script}")).status().unwrap().success();
        assert!(ends_well("true") && !ends_well("sleep 600"));
    }

    #[test]
    fn a_program_that_is_run_later_is_left_out_by_its_name_and_no_other() {
        let place = tempfile::tempdir().unwrap();
        let runner = runner_without(&["tls", "kernel"], place.path(), Depth::Commit).unwrap();
        let (_, script) = runner.expect("rustc says its host");
        let ran = |name: &str| {
            let program = place.path().join(name);
            symlink("/bin/echo", &program).unwrap();
            let output = Command::new("sh").arg(&script).arg(program).args(["ran", name]).output().unwrap();
            (output.status.success(), String::from_utf8(output.stdout).unwrap())
        };
        for left_out in ["tls-77875381a69a81be", "kernel-8137906d15beb1f2"] {
            assert_eq!(ran(left_out), (true, String::new()), "{left_out}");
        }
        for other in ["evener_driver_kernel-85862e9a27025feb", "evener-0c", "tls_servers-1"] {
            assert_eq!(ran(other), (true, format!("ran {other}\n")), "{other}");
        }
    }
}
