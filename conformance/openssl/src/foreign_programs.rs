//! What `x` put under `target/foreign`, and how programs of other hands are started.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

/// Where `x` puts what it fetches for the tests.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/foreign")
}

/// The path of something fetched, from `target/foreign`; `None` where `x` has not fetched it.
#[must_use]
pub fn fetched(name: &str) -> Option<PathBuf> {
    // Without links and dots: programs get these paths as arguments and change their folder.
    folder().join(name).canonicalize().ok()
}

/// Another OpenSSL than the installed one, built where its sources lie, to which the tests were linked.
#[must_use]
pub fn openssl_build() -> Option<PathBuf> {
    env::var_os("EVENER_OPENSSL_BUILD").map(PathBuf::from)
}

/// The sources of OpenSSL and their version, as `3.0.22`: those of the other OpenSSL, else the newest that `x` fetched.
#[must_use]
pub fn openssl_sources() -> Option<(PathBuf, String)> {
    if let Some(build) = openssl_build() {
        let version = version_of(&build);
        return Some((build, version));
    }
    let listed = fs::read_dir(fetched("openssl")?).ok()?;
    let paths = listed.filter_map(|entry| Some(entry.ok()?.path()));
    let sources = paths.filter(|path| path.join("test/evp_test.c").exists());
    let newest = sources.max_by_key(|path| {
        version_of(path).split('.').map(|part| part.parse::<u32>().ok()).collect::<Vec<_>>()
    })?;
    let version = version_of(&newest);
    Some((newest, version))
}

/// What stands behind the hyphen of `openssl-3.0.22`.
fn version_of(sources: &Path) -> String {
    let name = sources.file_name().unwrap_or_default().to_string_lossy();
    name.split_once('-').map(|(_, version)| version.to_owned()).unwrap_or_default()
}

/// Runs `program` for at most `seconds` and returns what it said.
///
/// # Panics
///
/// Where it cannot be started, or not within the time.
#[must_use]
pub fn bounded(seconds: u32, program: &Command) -> Output {
    // coreutils' timeout also ends what the program started: it signals the group.
    let mut command = Command::new("timeout");
    command
        // busybox's knows no long names.
        .args(["-k", "5"])
        .arg(seconds.to_string())
        .arg(program.get_program())
        .args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if let Some(folder) = program.get_current_dir() {
        command.current_dir(folder);
    }
    let output = command.output().expect("timeout belongs to coreutils");
    assert_ne!(output.status.code(), Some(124), "longer than {seconds} s: {program:?}");
    output
}

/// Says that a test does not run here, and why.
pub fn skipped(reason: &str) {
    print_line(&format!("skipped: {reason}"));
}

/// Tells the reader of a test's output something that no assertion can.
#[allow(clippy::print_stdout, reason = "cargo shows it with the test that it belongs to")]
pub fn print_line(line: &str) {
    println!("{line}");
}
