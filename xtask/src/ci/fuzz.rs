//! libFuzzer for a few seconds on each target of `fuzz/`, with the stable compiler.
//!
//! Steps: flags that count what code was reached -> one build for all targets -> each target on a copy of its seeds,
//! one per core -> passed, or failed with the path of what made it crash. Without AddressSanitizer, which wants a nightly
//! compiler and stays by hand: CONTRIBUTING.md says how. A commit has the same bodies over spoilt seeds, as ordinary tests.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use super::Tally;
use crate::tree::{cargo, root};

/// Seconds for each target: long enough to come past the seeds.
const SECONDS: &str = "-max_total_time=10";

/// What LLVM adds, as with cargo-fuzz: counters in place, their addresses, operands of comparisons.
/// These are stable options of rustc, where `-Z sanitizer` is not.
const COVERAGE: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
];

/// What libFuzzer says where it found the counters; without it, it would search blindly.
const SEES: &str = "inline 8-bit counters";

/// Builds and runs every target.
pub(super) fn run(tally: &mut Tally) {
    let compiler = env::var_os("CXX").unwrap_or_else(|| OsString::from("c++"));
    if !Command::new(&compiler).arg("--version").output().is_ok_and(|output| output.status.success()) {
        return tally.print("skipped: fuzzing (needs a C++ compiler, for libFuzzer)");
    }
    tally.begin("fuzzing");
    let Some(host) = host() else { return tally.fail("fuzzing: rustc does not name its host") };
    let built = root().join("target/fuzz");
    if !build(&host, &built).status().is_ok_and(|status| status.success()) {
        return tally.fail("building the fuzz targets");
    }
    // One on each core: a fuzzer has one thread.
    let at_a_time = thread::available_parallelism().map_or(1, usize::from);
    for names in targets().chunks(at_a_time) {
        let verdicts: Vec<Verdict> = thread::scope(|scope| {
            let fuzzers: Vec<_> =
                names.iter().map(|name| scope.spawn(|| fuzz(&built, &host, name))).collect();
            fuzzers
                .into_iter()
                .map(|fuzzer| fuzzer.join().expect("a fuzzer's thread does not panic"))
                .collect()
        });
        names.iter().zip(verdicts).for_each(|(name, verdict)| report(tally, name, verdict));
    }
}

/// What the runs came to, or why it failed.
type Verdict = Result<String, String>;

fn fuzz(built: &Path, host: &str, name: &str) -> Verdict {
    let program = built.join(host).join("release").join(name);
    let place = built.join("found").join(name);
    let command = command(&program, name, &place).map_err(|error| error.to_string())?;
    judge(command, &place)
}

/// Counts a target as one test.
fn report(tally: &mut Tally, name: &str, verdict: Verdict) {
    match verdict {
        Ok(text) => {
            tally.print(&format!("fuzzing {name}: {text}"));
            tally.passed += 1;
        }
        Err(reason) => tally.fail(&format!("fuzzing {name}: {reason}")),
    }
}

/// Names of the targets: of the files in `fuzz/targets`.
fn targets() -> Vec<String> {
    let files = fs::read_dir(root().join("fuzz/targets")).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        files.filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".rs")?.to_owned())).collect();
    names.sort();
    names
}

fn host() -> Option<String> {
    let output = Command::new("rustc").arg("-vV").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned)
}

/// For a named target, so that the flags reach the code that is fuzzed and not what runs while building.
fn build(host: &str, built: &Path) -> Command {
    let mut command = cargo();
    command.env("RUSTFLAGS", format!("{} --cfg fuzzing -Cdebug-assertions", COVERAGE.join(" ")));
    command.args(["build", "--release", "--target", host, "--manifest-path"]);
    command.arg(root().join("fuzz/Cargo.toml")).arg("--target-dir").arg(built);
    command
}

/// A run that adds to a corpus of its own in `place`, where it also leaves what made it crash.
fn command(program: &Path, name: &str, place: &Path) -> std::io::Result<Command> {
    let corpus = place.join("corpus");
    fs::create_dir_all(&corpus)?;
    let mut command = Command::new(program);
    command.args([SECONDS, "-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1"]);
    command.arg(format!("-artifact_prefix={}/", place.display()));
    command.arg(corpus).arg(root().join("fuzz/seeds").join(name));
    Ok(command)
}

/// Runs a fuzzer.
fn judge(mut command: Command, place: &Path) -> Verdict {
    let before = artefacts(place);
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| format!("it does not start: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let new = artefacts(place).into_iter().filter(|path| !before.contains(path));
        let named: String = new.map(|path| format!("\nmade it crash: {}", path.display())).collect();
        return Err(format!("{}\n{text}{named}", output.status));
    }
    if !text.contains(SEES) {
        return Err("it sees nothing of the code".to_owned());
    }
    let runs = text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    Ok(format!("{} runs without a crash", runs.map_or("some", str::trim)))
}

/// Inputs that made a target crash, hang or grow, of this run or of earlier ones.
fn artefacts(place: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(place).into_iter().flatten().flatten().map(|file| file.path());
    files.filter(|path| path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Judges a script that plays a fuzzer; `$1` is its place.
    fn judged(script: &str) -> Verdict {
        let place = env::temp_dir().join(format!("evener-fuzz-{}-{}", std::process::id(), script.len()));
        fs::create_dir_all(&place).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(&place);
        let verdict = judge(command, &place);
        fs::remove_dir_all(&place).unwrap();
        verdict
    }

    #[test]
    fn a_crash_is_a_failure_and_its_input_is_named() {
        let verdict = judged("echo inline 8-bit counters >&2; echo x >$1/crash-1; exit 77");
        let text = verdict.expect_err("it crashed");
        assert!(text.contains("made it crash: ") && text.ends_with("/crash-1"), "{text}");
    }

    #[test]
    fn a_fuzzer_that_sees_no_coverage_is_a_failure() {
        let verdict = judged("echo 'INFO: seed corpus' >&2");
        assert_eq!(verdict.unwrap_err(), "it sees nothing of the code");
        let verdict = judged(
            "echo 'Loaded 1 modules (9 inline 8-bit counters)' >&2; echo stat::number_of_executed_units: 12 >&2",
        );
        assert_eq!(verdict.unwrap(), "12 runs without a crash");
    }

    #[test]
    fn each_target_counts_as_one_test() {
        let mut tally = Tally::new(std::io::sink());
        report(&mut tally, "whole", Ok("12 runs".to_owned()));
        report(&mut tally, "broken", Err("it does not start".to_owned()));
        assert_eq!((tally.passed, tally.failed), (1, 1));
    }
}
