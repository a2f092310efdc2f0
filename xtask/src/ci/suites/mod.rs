//! The workspace's tests.
//!
//! Steps: cargo builds all test programs and names them ([`programs`]) -> those that count core time, by themselves ([`ALONE`]) ->
//! all others in two lanes ([`lanes`]): one of them begins with those that have a guest in common ([`lend_guest`]), which keep one
//! core busy and ask little of time. Each has a limit of time ([`runner`]).

use std::process::Command;
use std::time::Duration;

use evener_testbed::{Guest, SharedGuest};

use self::lanes::{Ended, Job};
use self::programs::Program;
use super::{Depth, Tally};
use crate::tree::cargo;

mod examples;
mod lanes;
mod programs;

/// Beside a busy core the module of a guest is ready at other moments, and one that is raced wins other jobs.
const ALONE: [&str; 2] = ["core_time", "adaptive"];

/// They have a guest, most of them one after the other the same.
const GUESTS: [&str; 4] = ["guest", "kernel", "virtio", "kernel_guest"];

/// Begun first of the others: one that takes half a minute is not to be left over at the end, while the other lane waits.
const LONG: [&str; 8] =
    ["files", "hazards", "machine", "measuring", "tunnels", "evener_arbiter", "host_program", "evener"];

/// Runs them all.
pub(super) fn run(tally: &mut Tally, depth: Depth) {
    tally.begin("building tests");
    let Some(mut others) = programs::build(depth) else { return tally.fail("building tests") };
    let alone = taken_out(&mut others, &ALONE);
    let guests = taken_out(&mut others, &GUESTS);
    let mut rest = taken_out(&mut others, &LONG);
    rest.append(&mut others);
    let jobs = |programs: Vec<Program>| -> Vec<Job> {
        programs.into_iter().map(|program| program_job(&program, depth)).collect()
    };
    tally.begin("tests by themselves");
    lanes::run([jobs(alone)], Vec::new(), |ended| show(tally, &ended));
    tally.begin("tests, two programs at a time");
    let lent = lend_guest(tally, depth);
    let mut guests = jobs(guests);
    let variable = lent.as_ref().map(SharedGuest::variable);
    guests.iter_mut().for_each(|job| _ = job.command.envs(variable.clone()));
    let mut rest = jobs(rest);
    match examples::packages() {
        Ok(packages) => rest.push(documentation(&packages, depth)),
        Err(reason) => tally.fail(&format!("examples of documentation: {reason}")),
    }
    lanes::run([guests, Vec::new()], rest, |ended| show(tally, &ended));
    // Where it does not listen any more it is ended all the same.
    lent.map(SharedGuest::end).transpose().map(drop).unwrap_or_default();
}

/// Those of these names, in the names' order; the others stay.
fn taken_out(programs: &mut Vec<Program>, names: &[&str]) -> Vec<Program> {
    let place = |program: &Program| names.iter().position(|name| *name == program.name);
    let (mut taken, others): (Vec<_>, Vec<_>) =
        std::mem::take(programs).into_iter().partition(|program| place(program).is_some());
    *programs = others;
    taken.sort_by_key(place);
    taken
}

/// What a program said, and what it came to. One that fails without a failed test counts as one failure.
fn show(tally: &mut Tally, ended: &Ended) {
    tally.print(&format!("-- {} ({:.1} s)", ended.title, ended.time.as_secs_f64()));
    tally.count_tests(&ended.title, |tally| {
        ended.lines.iter().for_each(|line| tally.take_line(line));
        ended.errors.iter().for_each(|line| tally.print(line));
        ended.succeeded
    });
}

fn program_job(program: &Program, depth: Depth) -> Job {
    let mut command = Command::new("timeout");
    command.args(limit_words(limit(depth))).arg(&program.path).current_dir(&program.package);
    command.env("CARGO_MANIFEST_DIR", &program.package);
    test_words(&mut command, depth);
    Job { title: program.title(), command }
}

/// The examples in comments, which are no programs before they are run.
fn documentation(packages: &[String], depth: Depth) -> Job {
    let mut command = cargo();
    command.args(["test", "-q", "--doc", "--no-fail-fast"]);
    command.args(packages.iter().flat_map(|package| ["-p", package]));
    // It has no library, and wants the features that all have in common: without them most crates would be built once more.
    command.args(["-p", "evener-cli", "--"]);
    test_words(&mut command, depth);
    Job { title: "examples of documentation".into(), command }
}

/// What every test program is told.
fn test_words(command: &mut Command, depth: Depth) {
    // A test that skips its work says so on its standard output.
    command.arg("--show-output");
    match depth {
        // A commit is judged by what it changes, not by luck: proptest draws the same cases each time.
        Depth::Commit => command.env("PROPTEST_RNG_SEED", "2011"),
        Depth::Full => command.arg("--include-ignored"),
    };
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

const fn limit(depth: Depth) -> &'static str {
    match depth {
        Depth::Commit => TEST_SECONDS_MAX,
        Depth::Full => LONG_TEST_SECONDS_MAX,
    }
}

/// Has cargo run each test program with a limit of time: one that stands still has failed, and the next one runs.
pub(super) fn runner(seconds: &str) -> Option<(String, String)> {
    let output = Command::new("rustc").arg("-vV").output().ok()?;
    let printed = String::from_utf8(output.stdout).ok()?;
    let host = printed.lines().find_map(|line| line.strip_prefix("host: "))?;
    let variable = format!("CARGO_TARGET_{}_RUNNER", host.to_uppercase().replace(['-', '.'], "_"));
    Some((variable, format!("timeout {}", limit_words(seconds).join(" "))))
}

/// For `timeout`, which ends what a program started, too.
fn limit_words(seconds: &str) -> [&str; 3] {
    ["--verbose", "--kill-after=10", seconds]
}

/// Assumed, not measured: beyond what the longest test program takes on a busy machine: one of a commit, and one with all that is long.
pub(super) const TEST_SECONDS_MAX: &str = "900";
pub(super) const LONG_TEST_SECONDS_MAX: &str = "7200";

#[cfg(test)]
mod tests {
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
    fn programs_are_taken_out_by_their_names_and_no_others() {
        let program = |name: &str| Program { name: name.into(), ..Program::default() };
        let names = |programs: &[Program]| -> Vec<String> {
            programs.iter().map(|program| program.name.clone()).collect()
        };
        let mut all = ["kernel", "guest", "guest_recorded", "tls", "guest"].map(program).into();
        assert_eq!(names(&taken_out(&mut all, &["guest", "kernel"])), ["guest", "guest", "kernel"]);
        assert_eq!(names(&all), ["guest_recorded", "tls"]);
    }

    #[test]
    fn a_program_that_dies_is_a_failure_though_it_named_no_failed_test() {
        let mut tally = Tally::new(std::io::sink());
        let mut judge = |lines: &[&str], succeeded| {
            let lines = lines.iter().map(ToString::to_string).collect();
            let time = Duration::from_secs(1);
            show(&mut tally, &Ended { title: "one".into(), time, lines, errors: Vec::new(), succeeded });
            (tally.passed, tally.failed)
        };
        assert_eq!(judge(&["test result: ok. 3 passed; 0 failed"], true), (3, 0));
        assert_eq!(judge(&["test result: FAILED. 1 passed; 2 failed"], false), (4, 2));
        assert_eq!(judge(&["running 3 tests"], false), (4, 3));
    }
}
