//! libFuzzer for a few seconds on each target of `fuzz/`, with the stable compiler.
//!
//! The way: flags that count what code was reached -> one build for all targets -> each target on a copy of its seeds
//! -> passed, or failed with the path of what made it crash. Without AddressSanitizer, which wants a nightly
//! compiler and stays by hand: CONTRIBUTING.md says how.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Tally;
use crate::tree::{cargo, root};

/// Seconds for each target: long enough to come past the seeds, short enough for every commit.
const SECONDS: &str = "-max_total_time=10";

/// What LLVM is asked for, as cargo-fuzz asks for it: counters in place, their addresses, operands of comparisons.
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
        return tally.say("skipped: fuzzing (needs a C++ compiler, for libFuzzer)");
    }
    tally.say("== fuzzing");
    let Some(host) = host() else { return tally.fail("fuzzing: rustc does not name its host") };
    let built = root().join("target/fuzz");
    if !build(&host, &built).status().is_ok_and(|status| status.success()) {
        return tally.fail("building the fuzz targets");
    }
    for name in targets() {
        let program = built.join(&host).join("release").join(&name);
        let place = built.join("found").join(&name);
        match command(&program, &name, &place) {
            Ok(command) => judge(tally, &name, command, &place),
            Err(error) => tally.fail(&format!("fuzzing {name}: {error}")),
        }
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

/// Runs a fuzzer and counts it as one test.
fn judge(tally: &mut Tally, name: &str, mut command: Command, place: &Path) {
    let before = artefacts(place);
    let Ok(output) = command.stdin(Stdio::null()).output() else {
        return tally.fail(&format!("fuzzing {name}: it does not start"));
    };
    let told = String::from_utf8_lossy(&output.stderr);
    let new: Vec<PathBuf> = artefacts(place).into_iter().filter(|path| !before.contains(path)).collect();
    if !output.status.success() {
        tally.say(&told);
        for path in new {
            tally.say(&format!("made it crash: {}", path.display()));
        }
        tally.fail(&format!("fuzzing {name}"));
    } else if !told.contains(SEES) {
        tally.fail(&format!("fuzzing {name}: it sees nothing of the code"));
    } else {
        let runs = told.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        tally.say(&format!("fuzzing {name}: {} runs without a crash", runs.map_or("some", str::trim)));
        tally.passed += 1;
    }
}

/// Inputs that made a target crash, hang or grow, of this run or of earlier ones.
fn artefacts(place: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(place).into_iter().flatten().flatten().map(|file| file.path());
    files.filter(|path| path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Told(Arc<Mutex<Vec<u8>>>);

    impl Write for Told {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Judges a script that plays a fuzzer; `$1` is its place. Returns passed, failed and what was told.
    fn judged(script: &str) -> (u64, u64, String) {
        let place = env::temp_dir().join(format!("evener-fuzz-{}-{}", std::process::id(), script.len()));
        fs::create_dir_all(&place).unwrap();
        let told = Told::default();
        let mut tally = Tally::new(told.clone());
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(&place);
        judge(&mut tally, "target", command, &place);
        fs::remove_dir_all(&place).unwrap();
        let text = String::from_utf8(told.0.lock().unwrap().clone()).unwrap();
        (tally.passed, tally.failed, text)
    }

    #[test]
    fn a_crash_is_a_failure_and_its_input_is_named() {
        let (passed, failed, told) = judged("echo inline 8-bit counters >&2; echo x >$1/crash-1; exit 77");
        assert_eq!((passed, failed), (0, 1));
        assert!(told.contains("made it crash: ") && told.contains("/crash-1\n"), "{told}");
    }

    #[test]
    fn a_fuzzer_that_sees_no_coverage_is_a_failure() {
        assert_eq!(judged("echo 'INFO: seed corpus' >&2").1, 1);
        let (passed, failed, told) = judged(
            "echo 'Loaded 1 modules (9 inline 8-bit counters)' >&2; echo stat::number_of_executed_units: 12 >&2",
        );
        assert_eq!((passed, failed), (1, 0));
        assert!(told.contains("12 runs"), "{told}");
    }
}
