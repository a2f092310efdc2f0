//! All checks in one run.
//!
//! Steps: formatting, lints, tidy, dependencies -> models of the ring -> fuzzing -> tests -> other programs ([`STEPS`]) -> one closing
//! line `N passed, N failed`, which sums up what the test runners reported and counts every other failure as one.
//! What is not installed is named as skipped, never as passed.

use std::io::{self, BufRead as _, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use evener_testbed::write_program;

use crate::tidy;
use crate::tree::{Tree, cargo, root};

mod fuzz;
mod later;
mod sanitizers;
mod suites;
mod valgrind;

/// How much to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// What fits into a commit.
    Commit,
    /// What is long besides: tests marked as ignored, Miri, mutants, other systems, later versions of OpenSSL.
    Full,
}

/// A step by the name that `./x test-full` takes, with how much is asked for where it is run.
struct Step {
    name: &'static str,
    least: Depth,
    run: fn(&mut Tally, Depth),
}

/// All of them, in their order: what fails soonest comes first.
const STEPS: [Step; 11] = [
    Step { name: "rules", least: Depth::Commit, run: rules },
    Step {
        name: "models",
        least: Depth::Commit,
        run: |tally, _| tally.run_tests("models of the ring", models("")),
    },
    Step { name: "mutants", least: Depth::Full, run: |tally, _| mutants(tally) },
    Step { name: "miri", least: Depth::Full, run: |tally, _| miri(tally) },
    Step { name: "systems", least: Depth::Full, run: |tally, _| other_systems(tally) },
    Step { name: "fuzz", least: Depth::Commit, run: |tally, _| fuzz::run(tally) },
    Step { name: "tests", least: Depth::Commit, run: suites::run },
    Step { name: "tink", least: Depth::Commit, run: |tally, _| tink(tally) },
    Step { name: "later", least: Depth::Full, run: |tally, _| later::run(tally) },
    Step { name: "valgrind", least: Depth::Full, run: |tally, _| valgrind::run(tally) },
    Step { name: "sanitizers", least: Depth::Full, run: |tally, _| sanitizers::run(tally) },
];

/// Runs all steps of this depth, or those named, also what comes after a failure; fails if anything did.
pub(crate) fn run(depth: Depth, names: &[&str]) -> ExitCode {
    let steps = match chosen(depth, names) {
        Ok(steps) => steps,
        Err(reason) => {
            eprintln!("xtask: {reason}");
            return ExitCode::from(2);
        }
    };
    let mut tally = Tally::new(io::stdout());
    steps.iter().for_each(|step| (step.run)(&mut tally, depth));
    tally.say(&format!("{} passed, {} failed", tally.passed, tally.failed));
    if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The steps of these names, in their own order; all of `depth` where none is named.
fn chosen(depth: Depth, names: &[&str]) -> Result<Vec<&'static Step>, String> {
    let is_step = |name: &&&str| STEPS.iter().any(|step| step.name == **name);
    if let Some(unknown) = names.iter().find(|name| !is_step(name)) {
        let all: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        return Err(format!("there is no step \"{unknown}\"; there are {}", all.join(", ")));
    }
    let is_wanted = |step: &&Step| match names {
        [] => depth == Depth::Full || step.least == Depth::Commit,
        names => names.contains(&step.name),
    };
    Ok(STEPS.iter().filter(is_wanted).collect())
}

/// What is read and not run.
fn rules(tally: &mut Tally, depth: Depth) {
    tally.check("cargo fmt", &["fmt", "--version"], &["fmt", "--all", "--check"]);
    lints(tally, depth);
    tidy(tally);
    dependencies(tally);
}

/// Release of clippy whose findings count. Others have lints that no author has seen, and lack some that are named:
/// what they find is shown where there is time, and only what `Cargo.toml` denies is a failure.
const CLIPPY: &str = "clippy 0.1.95 ";

fn lints(tally: &mut Tally, depth: Depth) {
    let version =
        cargo().args(["clippy", "--version"]).output().map(|output| output.stdout).unwrap_or_default();
    let counts = version.starts_with(CLIPPY.as_bytes());
    if !counts && depth == Depth::Commit {
        return tally
            .say("skipped: cargo clippy (findings count with 1.95; `./x test-full` shows those of another)");
    }
    let words: &[&str] = if counts { &["--", "-D", "warnings"] } else { &[] };
    let step =
        if counts { "cargo clippy" } else { "cargo clippy, of another release: findings are only shown" };
    tally.check(
        step,
        &["clippy", "--version"],
        &[&["clippy", "--workspace", "--all-targets"], words].concat(),
    );
}

fn tidy(tally: &mut Tally) {
    tally.say("== tidy");
    if tidy::run() != ExitCode::SUCCESS {
        tally.fail("tidy");
    }
}

fn dependencies(tally: &mut Tally) {
    let installed = &["deny", "--version"];
    let check = &["deny", "--log-level", "error", "check", "bans", "licenses", "sources"];
    tally.check("cargo deny, without advisories", installed, check);
    let version = cargo().args(installed).output().map(|output| output.stdout).unwrap_or_default();
    match knows_todays_advisories(&String::from_utf8_lossy(&version)) {
        Some(true) => {
            tally.check("cargo deny, advisories", &["deny", "fetch", "db"], &["deny", "check", "advisories"]);
        }
        Some(false) => tally.say("skipped: cargo deny, advisories (below 0.18.6 it cannot read CVSS 4.0)"),
        None => {}
    }
}

/// Whether this cargo-deny reads what the database of advisories holds since CVSS 4.0; `None` where there is none.
fn knows_todays_advisories(version: &str) -> Option<bool> {
    let mut numbers =
        version.trim().strip_prefix("cargo-deny ")?.split('.').map(|number| number.parse::<u32>());
    let mut next = || numbers.next()?.ok();
    Some((next()?, next()?, next()?) >= (0, 18, 6))
}

/// Loom's models of the ring, built with `flags` besides. One that hangs has failed: a model's panic unwinds through `lend`,
/// which waits for threads that loom has stopped.
fn models(flags: &str) -> Command {
    let cargo = cargo();
    let mut command = Command::new("timeout");
    command.current_dir(root()).arg(MODELS_SECONDS_MAX).arg(cargo.get_program());
    command.env("RUSTFLAGS", format!("--cfg loom {flags}"));
    // Linked once and run for seconds: not worth the time.
    command.envs([("CARGO_PROFILE_RELEASE_LTO", "off"), ("CARGO_PROFILE_RELEASE_DEBUG", "false")]);
    command.args(["test", "--release", "-p", "evener-ring", "--test", "loom*"]);
    // A folder of its own: other flags would make cargo build everything anew, twice per run.
    command.arg("--target-dir").arg(root().join("target/loom"));
    command
}

/// Assumed, not measured: far beyond what they take on a busy machine.
const MODELS_SECONDS_MAX: &str = "3600";

/// Breaks one marked line after the other; each must turn a test of its crate red.
fn mutants(tally: &mut Tally) {
    let tree = match Tree::read() {
        Ok(tree) => tree,
        Err(reason) => return tally.fail(&format!("mutants: {reason}")),
    };
    for (package, name) in tree.mutants() {
        let command = match &*package {
            "evener-ring" => Ok(models(&format!("--cfg mutant=\"{name}\""))),
            package => mutated_tests(package, &name),
        };
        match command {
            Ok(command) => tally.expect_red(&name, command),
            Err(error) => tally.fail(&format!("mutant {name}: {error}")),
        }
    }
}

/// A crate's tests with one line broken. Only members are built with the flag, by a wrapper of the compiler that is named after
/// the mutant: so what they depend on is built once for all mutants.
fn mutated_tests(package: &str, name: &str) -> io::Result<Command> {
    let target = root().join("target/mutants");
    let wrapper = target.join("wrappers").join(name);
    fs::create_dir_all(target.join("wrappers"))?;
    write_program(&wrapper, format!("#!/bin/sh\nexec \"$@\" --cfg 'mutant=\"{name}\"'\n").as_bytes())?;
    let mut command = cargo();
    command.env("RUSTC_WORKSPACE_WRAPPER", wrapper).args(["test", "-p", package]);
    command.arg("--target-dir").arg(target);
    command.envs(suites::runner(suites::TEST_SECONDS_MAX));
    Ok(command)
}

fn miri(tally: &mut Tally) {
    let mut probe = Command::new("cargo");
    if !probe.args(["+nightly", "miri", "--version"]).output().is_ok_and(|output| output.status.success()) {
        return tally.say("skipped: miri (needs rustup with a nightly toolchain)");
    }
    let mut command = Command::new("cargo");
    command.current_dir(root()).args(["+nightly", "miri", "test", "-p", "evener-ring"]);
    // proptest asks for the working directory.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation");
    tally.run_tests("miri", command);
}

/// Other C libraries, word sizes and systems, each with what is to compile for it; nothing is run there.
const OTHER_SYSTEMS: [(&str, &[&str]); 3] = [
    ("x86_64-unknown-linux-musl", &["evener", "evener-provider"]),
    ("armv7-unknown-linux-gnueabihf", &["evener", "evener-provider"]),
    ("x86_64-unknown-freebsd", &["evener-driver-kernel"]),
];

fn other_systems(tally: &mut Tally) {
    for (target, packages) in OTHER_SYSTEMS {
        let step = format!("cargo check for {target}");
        let mut words = vec!["check", "--target", target];
        packages.iter().for_each(|package| words.extend(["-p", package]));
        if has_library_for(target) {
            tally.check(&step, &["--version"], &words);
        } else {
            tally.say(&format!("skipped: {step} (`rustup target add {target}`)"));
        }
    }
}

/// Whether Rust's standard library for `target` is there.
fn has_library_for(target: &str) -> bool {
    let asked = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    let folder = asked.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    folder.is_ok_and(|folder| fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some()))
}

/// Google's Tink and Evener, each reading what the other wrote.
fn tink(tally: &mut Tally) {
    let step = "interoperation with Google's Tink";
    let Some(python) = env::var_os("EVENER_TINK_PYTHON") else {
        return tally.say(&format!("skipped: {step} (EVENER_TINK_PYTHON is not set)"));
    };
    // The tests before this have built the command.
    let command = env::current_exe().expect("xtask runs from a file").with_file_name("evener");
    let mut script = Command::new(python);
    script.current_dir(root()).arg("conformance/interop/tink_interop.py").arg(command);
    tally.run_tests(step, script);
}

fn succeeds(cargo_words: &[&str]) -> bool {
    cargo().args(cargo_words).output().is_ok_and(|output| output.status.success())
}

/// What passed and failed so far, and where it is told.
struct Tally {
    passed: u64,
    failed: u64,
    told: Box<dyn Write>,
}

impl Tally {
    fn new(told: impl Write + 'static) -> Self {
        Self { passed: 0, failed: 0, told: Box::new(told) }
    }

    fn say(&mut self, line: &str) {
        // A reader that went away is no reason to stop checking.
        writeln!(self.told, "{line}").unwrap_or_default();
    }

    fn fail(&mut self, step: &str) {
        self.say(&format!("failed: {step}"));
        self.failed += 1;
    }

    /// Runs `cargo` with `words` if `probe` shows that it can be run here.
    fn check(&mut self, step: &str, probe: &[&str], words: &[&str]) {
        if !succeeds(probe) {
            return self.say(&format!("skipped: {step} (`cargo {}` fails here)", probe.join(" ")));
        }
        self.say(&format!("== {step}"));
        if !cargo().args(words).status().is_ok_and(|status| status.success()) {
            self.fail(step);
        }
    }

    /// Runs a test runner and adds up its results. One that fails without a failed test counts as one failure.
    fn run_tests(&mut self, step: &str, command: Command) {
        self.count_tests(step, |tally| listen(command, |line| tally.hear(line)));
    }

    /// The same, where `heard` says whether the runner succeeded, once all that it said was heard.
    fn count_tests(&mut self, step: &str, heard: impl FnOnce(&mut Self) -> bool) {
        self.say(&format!("== {step}"));
        let before = self.failed;
        if !heard(self) && self.failed == before {
            self.fail(step);
        }
    }

    /// Runs a test runner that must fail a test, because something was broken on purpose.
    fn expect_red(&mut self, mutant: &str, mut command: Command) {
        self.say(&format!("== mutant {mutant}"));
        let output = command.stderr(Stdio::inherit()).output();
        // One that does not build runs no tests.
        let is_red = output.is_ok_and(|output| {
            String::from_utf8_lossy(&output.stdout).contains("running ") && !output.status.success()
        });
        match is_red {
            true => self.passed += 1,
            false => self.fail(&format!("no test noticed the mutant {mutant}")),
        }
    }

    /// Passes a test runner's line on, and adds up what it reports.
    fn hear(&mut self, line: &str) {
        self.say(line);
        if let Some((passed, failed)) = results(line) {
            self.passed += passed;
            self.failed += failed;
        }
    }
}

/// Runs a command and hands on what it says; returns whether it succeeded.
fn listen(mut command: Command, mut hear: impl FnMut(&str)) -> bool {
    let Ok(mut child) = command.stdout(Stdio::piped()).spawn() else { return false };
    let output = child.stdout.take().expect("it was piped above");
    BufReader::new(output).lines().map_while(Result::ok).for_each(|line| hear(&line));
    child.wait().is_ok_and(|status| status.success())
}

/// What a command said, all of it, and whether it succeeded.
fn said_by(command: Command) -> (Vec<String>, bool) {
    let mut lines = Vec::new();
    let succeeded = listen(command, |line| lines.push(line.to_owned()));
    (lines, succeeded)
}

/// The counts in a test runner's line: `test result: ok. 3 passed; 0 failed; …` or `3 passed, 0 failed`.
fn results(line: &str) -> Option<(u64, u64)> {
    let counts = match line.strip_prefix("test result: ") {
        Some(result) => result.split_once(". ")?.1,
        None => line,
    };
    let mut parts = counts.split([';', ',']).map(str::trim);
    let mut count = |word| parts.next()?.strip_suffix(word)?.trim_end().parse().ok();
    Some((count("passed")?, count("failed")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a test runner.
    pub(super) fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_runner_s_results_are_read_whether_green_or_red() {
        let line =
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s";
        assert_eq!(results(line), Some((12, 0)));
        assert_eq!(results("test result: FAILED. 3 passed; 2 failed; 0 ignored"), Some((3, 2)));
        assert_eq!(results("4 passed, 1 failed"), Some((4, 1)));
        assert_eq!(results("test a ... ok"), None);
        assert_eq!(results("test result: ok"), None);
    }

    #[test]
    fn a_cargo_deny_that_cannot_read_the_advisories_is_known_by_its_version() {
        assert_eq!(knows_todays_advisories("cargo-deny 0.18.3\n"), Some(false));
        assert_eq!(knows_todays_advisories("cargo-deny 0.18.6\n"), Some(true));
        assert_eq!(knows_todays_advisories("cargo-deny 0.19.0\n"), Some(true));
        assert_eq!(knows_todays_advisories(""), None);
    }

    #[test]
    fn results_add_up_and_a_silent_failure_counts_as_one() {
        let mut tally = Tally::new(io::sink());
        tally.run_tests("green", shell("echo 'test result: ok. 3 passed; 0 failed; 0 ignored'"));
        tally.run_tests("red", shell("echo 'test result: FAILED. 1 passed; 2 failed; 0 ignored'; exit 101"));
        assert_eq!((tally.passed, tally.failed), (4, 2));
        tally.run_tests("does not build", shell("exit 101"));
        assert_eq!((tally.passed, tally.failed), (4, 3));
        tally.run_tests("not there", Command::new("/nonexistent"));
        assert_eq!((tally.passed, tally.failed), (4, 4));
    }

    #[test]
    fn a_commit_runs_what_is_quick_a_full_run_all_and_either_what_is_named() {
        let names = |depth, asked: &[&str]| -> Vec<&str> {
            chosen(depth, asked).unwrap().iter().map(|step| step.name).collect()
        };
        assert_eq!(names(Depth::Commit, &[]), ["rules", "models", "fuzz", "tests", "tink"]);
        assert_eq!(names(Depth::Full, &[]).len(), STEPS.len());
        assert_eq!(names(Depth::Full, &["sanitizers", "miri"]), ["miri", "sanitizers"]);
        let refused = chosen(Depth::Full, &["miri", "mirri"]).err().unwrap();
        assert!(refused.contains("\"mirri\"") && refused.contains("mutants, miri"), "{refused}");
    }

    #[test]
    fn a_mutant_that_no_test_notices_is_a_failure() {
        let mut tally = Tally::new(io::sink());
        tally.expect_red("noticed", shell("echo running 1 test; exit 101"));
        assert_eq!((tally.passed, tally.failed), (1, 0));
        tally.expect_red("survivor", shell("echo running 1 test; echo test result: ok. 1 passed"));
        tally.expect_red("does not build", shell("exit 101"));
        assert_eq!((tally.passed, tally.failed), (1, 2));
    }
}
