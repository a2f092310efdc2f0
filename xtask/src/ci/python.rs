//! The Python package: a wheel built once in the profile of the tests, whose crates they have built already, unpacked by itself, and its tests by pytest.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use super::{Depth, Tally};
use crate::tree::root;

const STEP: &str = "the Python package";
/// Calls of the test that memory stays flat, of a full run.
const CALLS: &str = "1000000";

pub(super) fn run(tally: &mut Tally, depth: Depth) {
    let Some(python) = env::var_os("EVENER_TINK_PYTHON") else {
        return tally.print(&format!("skipped: {STEP} (EVENER_TINK_PYTHON is not set)"));
    };
    let imports = "import cryptography, maturin, numpy, pyrage, pytest";
    let has_all = Command::new(&python).args(["-c", imports]).output();
    if !has_all.is_ok_and(|output| output.status.success()) {
        return tally.print(&format!("skipped: {STEP} (needs what python/requirements-test.txt names)"));
    }
    let folder = root().join("target/python");
    tally.begin("building the Python package");
    if let Err(step) = unpacked(&python, &folder) {
        return tally.fail(&format!("{STEP}: {step}"));
    }
    let mut tests = Command::new(&python);
    // From the folder of the tests: the package's own sources, which lack the native half, are not to be found.
    tests.current_dir(root().join("python/tests")).env("PYTHONPATH", folder.join("packages"));
    tests.args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]).env("PYTHONDONTWRITEBYTECODE", "1");
    if depth == Depth::Full {
        tests.env("EVENER_TEST_CALLS", CALLS);
    }
    tally.run_tests(STEP, tests);
}

/// Builds the wheel and unpacks it below `folder`, with nothing beside it.
fn unpacked(python: &OsString, folder: &Path) -> Result<(), &'static str> {
    let wheels = folder.join("wheels");
    for old in [&wheels, &folder.join("packages")] {
        std::fs::remove_dir_all(old).ok();
    }
    let succeeds = |command: &mut Command| command.status().is_ok_and(|status| status.success());
    let mut build = Command::new(python);
    build.current_dir(root().join("python")).args([
        "-m",
        "maturin",
        "build",
        "-q",
        "--profile",
        "dev",
        "--out",
    ]);
    if !succeeds(build.arg(&wheels)) {
        return Err("the wheel does not build");
    }
    let wheel = std::fs::read_dir(&wheels)
        .ok()
        .and_then(|mut files| files.next()?.ok())
        .ok_or("there is no wheel")?;
    let mut install = Command::new(python);
    install.args(["-m", "pip", "-q", "install", "--no-deps", "--no-index", "--target"]);
    if succeeds(install.arg(folder.join("packages")).arg(wheel.path())) {
        Ok(())
    } else {
        Err("the wheel does not install")
    }
}
