//! All checks in one run.
//!
//! Steps: formatting, lints, tidy, dependencies -> models -> tests -> other programs ([`STEPS`]) -> one closing
//! line `N passed, N failed`, which sums up what the test runners reported and counts every other failure as one. What failed is said
//! once more before it.
//! What is not installed is named as skipped, never as passed.

use std::io;
use std::process::{Command, ExitCode};
use std::{env, fs};

use evener_testbed::{Profile, Toolchain, write_program};

use crate::tidy;
use crate::tree::{Tree, cargo, root};

mod arm;
mod crates;
pub(crate) mod deny;
mod fresh_arm;
mod fresh_debian;
mod fuzz;
mod later_openssl;
mod packages;
mod python;
mod sanitizers;
mod suites;
mod tally;
mod valgrind;

use tally::Tally;

/// How much to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// What fits into a commit.
    Commit,
    /// What is long besides: tests marked as ignored, fuzzing, Miri, mutants, other systems, later versions of OpenSSL.
    Full,
}

/// A step by the name that `./x test-full` takes, with how much is asked for where it is run.
struct Step {
    name: &'static str,
    least: Depth,
    run: fn(&mut Tally, Depth),
}

/// All of them, in their order: what fails soonest comes first.
const STEPS: [Step; 19] = [
    Step { name: "rules", least: Depth::Commit, run: rules },
    Step {
        name: "models",
        least: Depth::Commit,
        run: |tally, _| {
            tally.run_tests("models of the ring and arbiter", models(&["evener-ring", "evener-arbiter"], ""));
        },
    },
    Step { name: "mutants", least: Depth::Full, run: |tally, _| mutants(tally) },
    Step { name: "miri", least: Depth::Full, run: |tally, _| miri(tally) },
    Step { name: "systems", least: Depth::Full, run: |tally, _| other_systems(tally) },
    Step { name: "oldest", least: Depth::Full, run: |tally, _| oldest_compiler(tally) },
    Step { name: "fuzz", least: Depth::Full, run: |tally, _| fuzz::run(tally) },
    Step { name: "tests", least: Depth::Commit, run: suites::run },
    Step { name: "kernels", least: Depth::Commit, run: kernels },
    Step { name: "tink", least: Depth::Commit, run: |tally, _| tink(tally) },
    Step { name: "python", least: Depth::Commit, run: python::run },
    Step { name: "later", least: Depth::Full, run: |tally, _| later_openssl::run(tally) },
    Step { name: "arm", least: Depth::Full, run: |tally, _| arm::run(tally) },
    Step { name: "valgrind", least: Depth::Full, run: |tally, _| valgrind::run(tally) },
    Step { name: "sanitizers", least: Depth::Full, run: |tally, _| sanitizers::run(tally) },
    Step { name: "small", least: Depth::Full, run: |tally, _| small(tally) },
    Step { name: "packages", least: Depth::Full, run: |tally, _| packages::run(tally) },
    Step { name: "debian", least: Depth::Full, run: |tally, _| fresh_debian::run(tally) },
    Step { name: "boards", least: Depth::Full, run: |tally, _| fresh_arm::run(tally) },
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
    if tally.close() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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
    crates::check(tally);
    deny::check(tally, depth);
}

/// Release of clippy whose findings count. Others have lints that no author has seen, and lack some that are named:
/// what they find is shown where there is time, and only what `Cargo.toml` denies is a failure.
const CLIPPY: &str = "clippy 0.1.95 ";

fn lints(tally: &mut Tally, depth: Depth) {
    let version =
        cargo().args(["clippy", "--version"]).output().map(|output| output.stdout).unwrap_or_default();
    let counts = version.starts_with(CLIPPY.as_bytes());
    if !counts && depth == Depth::Commit {
        return tally.print(
            "skipped: cargo clippy (findings count with 1.95; `./x test-full` shows those of another)",
        );
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

/// Checks what is released, and what measures it, by the compiler of ARM's tool chain, on Debian 12 the oldest that we take: a newer one refuses no
/// feature of its own.
fn oldest_compiler(tally: &mut Tally) {
    let Ok(toolchain) = Toolchain::find(Profile::Armv7) else {
        return tally.print(
            "skipped: the oldest compiler (`cargo xtask testbed up --profile armv7 --toolchain` fetches it)",
        );
    };
    let step = format!("programs and libraries by {}", toolchain.rustc);
    let oldest = format!(" {}.", env!("CARGO_PKG_RUST_VERSION"));
    if !toolchain.rustc.contains(&oldest) {
        return tally.print(&format!("skipped: {step}: not the oldest,{oldest}"));
    }
    tally.begin(&step);
    let mut command = cargo();
    command.args(["check", "-q", "--workspace", "--lib", "--bins", "--examples"]);
    command.env("RUSTC", toolchain.compiler()).env("CARGO_TARGET_DIR", root().join("target/oldest"));
    if !command.status().is_ok_and(|status| status.success()) {
        tally.fail(&step);
    }
}

fn tidy(tally: &mut Tally) {
    tally.begin("tidy");
    if tidy::run() != ExitCode::SUCCESS {
        tally.fail("tidy");
    }
}

/// Kernels as they are released: what compilers make for debugging keeps other things on the stack, and takes other times.
fn kernels(tally: &mut Tally, depth: Depth) {
    let mut command = cargo();
    command.args(["test", "--release", "-p", "evener-kernels", "--test", "disassembly", "--test", "stack"]);
    if depth == Depth::Full {
        command.args(["--test", "constant_time", "--", "--include-ignored"]);
    }
    tally.run_tests("kernels as released", command);
    // By itself: of its tests those that are ignored are parts of the other, some of them planted to fail.
    let mut command = cargo();
    command.args(["test", "--release", "-p", "evener-kernels", "--test", "secrets"]);
    tally.run_tests("kernels as released, with secrets under valgrind", command);
}

/// Loom's models of these packages, built with `flags` besides. One that hangs has failed: a model's panic unwinds through `lend`,
/// which waits for threads that loom has stopped.
fn models(packages: &[&str], flags: &str) -> Command {
    let cargo = cargo();
    let mut command = Command::new("timeout");
    command.current_dir(root()).arg(MODELS_SECONDS_MAX).arg(cargo.get_program());
    command.env("RUSTFLAGS", format!("--cfg loom {flags}"));
    // Linked once and run for seconds: not worth the time.
    command.env("CARGO_PROFILE_RELEASE_LTO", "off");
    command.args(["test", "--release", "--test", "loom*"]);
    command.args(packages.iter().flat_map(|package| ["-p", package]));
    // A folder of its own: other flags would make cargo build everything anew, twice per run.
    command.arg("--target-dir").arg(root().join("target/loom"));
    command
}

/// Assumed, not measured: an hour, because models take minutes on a busy machine.
const MODELS_SECONDS_MAX: &str = "3600";

/// Breaks one marked line after the other; each must turn a test of its crate red.
fn mutants(tally: &mut Tally) {
    let tree = match Tree::read() {
        Ok(tree) => tree,
        Err(reason) => return tally.fail(&format!("mutants: {reason}")),
    };
    for (package, name) in tree.mutants() {
        let command = match &*package {
            "evener-ring" => Ok(models(&["evener-ring"], &format!("--cfg mutant=\"{name}\""))),
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
        return tally.print("skipped: miri (needs rustup with a nightly toolchain)");
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
            tally.print(&format!("skipped: {step} (`rustup target add {target}`)"));
        }
    }
}

/// Sizes, memory and instructions of what is built for boards.
fn small(tally: &mut Tally) {
    if !Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return tally.print("skipped: command and provider for boards (Debian: valgrind)");
    }
    tally.check("command and provider for boards", &["xtask", "tidy", "xtask"], &["xtask", "small"]);
}

/// Whether Rust's standard library for `target` is there.
fn has_library_for(target: &str) -> bool {
    let wanted = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    let folder = wanted.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    folder.is_ok_and(|folder| fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some()))
}

/// Google's Tink and Evener, each reading what the other wrote.
fn tink(tally: &mut Tally) {
    let step = "interoperation with Google's Tink";
    let Some(python) = env::var_os("EVENER_TINK_PYTHON") else {
        return tally.print(&format!("skipped: {step} (EVENER_TINK_PYTHON is not set)"));
    };
    // The tests before this have built the command.
    let command = env::current_exe().expect("xtask runs from a file").with_file_name("evener");
    let mut script = Command::new(python);
    script.current_dir(root()).arg("conformance/interop/tink_interop.py").arg(command);
    tally.run_tests(step, script);
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
    fn a_commit_runs_what_is_quick_a_full_run_all_and_either_what_is_named() {
        let names = |depth, wanted: &[&str]| -> Vec<&str> {
            chosen(depth, wanted).unwrap().iter().map(|step| step.name).collect()
        };
        assert_eq!(names(Depth::Commit, &[]), ["rules", "models", "tests", "kernels", "tink", "python"]);
        assert_eq!(names(Depth::Full, &[]).len(), STEPS.len());
        assert_eq!(names(Depth::Full, &["sanitizers", "miri"]), ["miri", "sanitizers"]);
        let refused = chosen(Depth::Full, &["miri", "mirri"]).err().unwrap();
        assert!(refused.contains("\"mirri\"") && refused.contains("mutants, miri"), "{refused}");
    }
}
