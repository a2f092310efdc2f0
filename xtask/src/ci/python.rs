//! The Python package, laid out by itself, and its tests by pytest: for a commit around the library that was built beside the tests, for a
//! full run as the wheel that is released.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

use super::{Depth, Tally};
use crate::tree::root;

const STEP: &str = "the Python package";
/// Calls of the test that memory stays flat, of a full run.
const CALLS: &str = "1000000";
/// Nodes that the test of a cluster of Ray's kills, of a full run.
const KILLS: &str = "10";

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
    if let Err(step) = unpacked(&python, &folder, depth) {
        return tally.fail(&format!("{STEP}: {step}"));
    }
    let mut tests = Command::new(&python);
    // From the folder of the tests: the package's own sources, which lack the native half, are not to be found.
    tests.current_dir(root().join("python/tests")).env("PYTHONPATH", folder.join("packages"));
    tests.args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]).env("PYTHONDONTWRITEBYTECODE", "1");
    // Shards are done by the command, which the tests before this have built.
    let command = env::current_exe().expect("xtask runs from a file");
    let paths = env::var_os("PATH").unwrap_or_default();
    let paths = command.parent().map(Path::to_owned).into_iter().chain(env::split_paths(&paths));
    tests.env("PATH", env::join_paths(paths).expect("they came from a list"));
    if depth == Depth::Full {
        tests.env("EVENER_TEST_CALLS", CALLS).env("EVENER_TEST_KILLS", KILLS);
    }
    tally.run_tests(STEP, tests);
}

/// Lays the package out below `folder`, with nothing beside it: for a commit of the library that was built beside the tests, which costs no
/// build; for a full run of the wheel that users get.
fn unpacked(python: &OsStr, folder: &Path, depth: Depth) -> Result<(), &'static str> {
    let packages = folder.join("packages");
    fs::remove_dir_all(&packages).ok();
    match depth {
        Depth::Commit => {
            laid_out(&packages.join("evener")).map_err(|_| "there is no library beside the tests")
        }
        Depth::Full => installed(python, &folder.join("wheels"), &packages),
    }
}

/// The package as a wheel holds it: its sources, and the library under the name that Python looks for.
fn laid_out(package: &Path) -> io::Result<()> {
    fs::create_dir_all(package)?;
    for file in fs::read_dir(root().join("python/evener"))? {
        let file = file?;
        if file.file_type()?.is_file() {
            fs::copy(file.path(), package.join(file.file_name()))?;
        }
    }
    // The tests before this have built the library.
    let library = env::current_exe()?.with_file_name("libevener_python.so");
    fs::copy(library, package.join("_evener.abi3.so")).map(drop)
}

/// Builds the wheel as it is released and installs it.
fn installed(python: &OsStr, wheels: &Path, packages: &Path) -> Result<(), &'static str> {
    fs::remove_dir_all(wheels).ok();
    let succeeds = |command: &mut Command| command.status().is_ok_and(|status| status.success());
    let mut build = Command::new(python);
    build.current_dir(root().join("python")).args(["-m", "maturin", "build", "-q", "--release", "--out"]);
    if !succeeds(build.arg(wheels)) {
        return Err("the wheel does not build");
    }
    let wheel =
        fs::read_dir(wheels).ok().and_then(|mut files| files.next()?.ok()).ok_or("there is no wheel")?;
    let mut install = Command::new(python);
    install.args(["-m", "pip", "-q", "install", "--no-deps", "--no-index", "--target"]);
    if succeeds(install.arg(packages).arg(wheel.path())) { Ok(()) } else { Err("the wheel does not install") }
}
