//! The provider and its conformance tests on OpenSSL 3.5 and the newest 4.x.
//!
//! Steps: `x` fetched sources into `target/foreign/later` -> each is built where it lies, once -> the tests are linked
//! to that libcrypto and run by its commands. Where the library has the soname of the installed one, the
//! distribution's programs use it too; where not, their tests would only repeat what `./x test` says and are left out.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, thread};

use super::Tally;
use super::suites::{LONG_TEST_SECONDS_MAX, runner};
use crate::tree::{cargo, root};

/// Builds each version that was fetched and runs the tests on it.
pub(super) fn run(tally: &mut Tally) {
    let versions = fetched();
    if versions.is_empty() {
        return tally
            .print("skipped: the provider on later OpenSSL (`./x test-full` found no sources to fetch)");
    }
    for sources in versions {
        let name = sources.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match library(&sources) {
            Err(reason) => tally.fail(&format!("building {name}: {reason}")),
            Ok(library) => tests(tally, &name, &sources, &library),
        }
    }
}

fn fetched() -> Vec<PathBuf> {
    let folders = fs::read_dir(root().join("target/foreign/later")).into_iter().flatten().flatten();
    let mut sources: Vec<PathBuf> =
        folders.map(|folder| folder.path()).filter(|path| path.join("test/evp_test.c").exists()).collect();
    sources.sort();
    sources
}

/// What the tests need of a build: libraries, the command, the old algorithms, the test program.
const GOALS: [&str; 5] =
    ["libcrypto.so", "libssl.so", "apps/openssl", "providers/legacy.so", "test/evp_test"];

/// The shared libcrypto, built unless that was done before.
fn library(sources: &Path) -> Result<PathBuf, String> {
    if !GOALS.iter().all(|goal| sources.join(goal).exists()) {
        quietly(sources, "./Configure", &["no-docs".to_owned()])?;
        quietly(sources, "make", &["-s".to_owned(), "build_generated".to_owned()])?;
        let jobs = format!("-j{}", thread::available_parallelism().map_or(1, usize::from));
        let goals = GOALS.map(str::to_owned);
        quietly(sources, "make", &[&["-s".to_owned(), jobs][..], &goals].concat())?;
    }
    // `libcrypto.so` is a link to the name by which programs find it.
    fs::canonicalize(sources.join("libcrypto.so")).map_err(|error| error.to_string())
}

fn quietly(folder: &Path, program: &str, words: &[String]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.current_dir(folder).args(words).stdout(Stdio::null()).stderr(Stdio::piped());
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let end: Vec<&str> = text.lines().rev().take(3).collect();
    Err(format!("{program}: {} {}", output.status, end.join(" / ")))
}

fn tests(tally: &mut Tally, name: &str, sources: &Path, library: &Path) {
    let mut command = cargo();
    let target = root().join("target/later").join(name);
    command.args(["test", "--no-fail-fast", "--target-dir"]).arg(target);
    command.args(["-p", "evener-ossl-sys", "-p", "evener-provider", "-p", "evener-conformance-openssl"]);
    command.args(["--", "--show-output"]).envs(runner(LONG_TEST_SECONDS_MAX));
    for (variable, value) in surroundings(sources, library) {
        command.env(variable, value);
    }
    // Their Python, nginx and curl look for libcrypto.so.3, and Python 3.11 knows no errors of later versions.
    let skipped: &[&str] =
        if is_for_programs(library) { &["python_passes"] } else { &["python_passes", "nginx_serves"] };
    for test in skipped {
        command.args(["--skip", test]);
    }
    tally.run_tests(&format!("the provider on {name}"), command);
}

/// Whether programs of the distribution, which were linked to OpenSSL 3, take this library for theirs.
fn is_for_programs(library: &Path) -> bool {
    library.file_name().is_some_and(|name| name == "libcrypto.so.3")
}

/// What has compiler, loader, tests and the programs that they start use the build in `sources`.
fn surroundings(sources: &Path, library: &Path) -> Vec<(&'static str, OsString)> {
    let commands = env::var_os("PATH").unwrap_or_default();
    let commands = [sources.join("apps")].into_iter().chain(env::split_paths(&commands));
    let flags = format!("-Lnative={}", sources.display());
    vec![
        ("EVENER_OPENSSL_BUILD", sources.into()),
        ("EVENER_LIBCRYPTO", library.into()),
        ("OPENSSL_INCLUDES", sources.join("include").into()),
        ("OPENSSL_MODULES", sources.join("providers").into()),
        ("LD_LIBRARY_PATH", sources.into()),
        ("PATH", env::join_paths(commands).unwrap_or_default()),
        ("RUSTFLAGS", flags.into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_a_test_starts_finds_the_same_build() {
        let sources = Path::new("/f/openssl-3.5.7");
        let all = surroundings(sources, &sources.join("libcrypto.so.3"));
        let of = |name: &str| all.iter().find(|row| row.0 == name).expect("it is set").1.to_string_lossy();
        assert!(of("PATH").starts_with("/f/openssl-3.5.7/apps:"), "{all:?}");
        assert_eq!(of("RUSTFLAGS"), "-Lnative=/f/openssl-3.5.7");
        assert!(all.iter().all(|(_, value)| value.to_string_lossy().contains("/f/openssl-3.5.7")), "{all:?}");
    }

    #[test]
    fn only_a_library_of_the_same_name_is_taken_by_installed_programs() {
        assert!(is_for_programs(Path::new("/f/libcrypto.so.3")));
        assert!(!is_for_programs(Path::new("/f/libcrypto.so.4")));
    }

    #[test]
    fn a_build_that_fails_says_its_last_lines() {
        let text = quietly(Path::new("/"), "sh", &["-c".into(), "echo why >&2; exit 3".into()]);
        assert!(text.as_ref().is_err_and(|text| text.contains("why") && text.contains('3')), "{text:?}");
        assert!(quietly(Path::new("/"), "/nonexistent", &[]).is_err());
    }
}
