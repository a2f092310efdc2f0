//! Debian packages for each kind of machine, each built twice.
//!
//! Path of an architecture: `cargo xtask deb` here -> a clone of the commit elsewhere, and the same there -> the files are equal, byte for byte,
//! where nothing is changed here that is not committed -> lintian has nothing to say.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Tally;
use crate::tree::{cargo, root};

const ARCHITECTURES: [&str; 3] = ["amd64", "arm64", "armhf"];

pub(super) fn run(tally: &mut Tally) {
    for architecture in ARCHITECTURES {
        tally.begin(&format!("package for {architecture}, twice"));
        match made_twice(architecture) {
            Ok(package) => {
                tally.passed += 1;
                look(tally, &package);
            }
            Err(Reason::NotHere(reason)) => {
                tally.print(&format!("skipped: package for {architecture} ({reason})"));
            }
            Err(Reason::Fault(reason)) => tally.fail(&format!("package for {architecture}: {reason}")),
        }
    }
}

enum Reason {
    /// This machine cannot.
    NotHere(String),
    Fault(String),
}

/// The package, which is the same when it is built elsewhere.
fn made_twice(architecture: &str) -> Result<PathBuf, Reason> {
    let package = made(&root(), architecture).map_err(|reason| match reason.contains("no tool chain") {
        true => Reason::NotHere(reason),
        false => Reason::Fault(reason),
    })?;
    let elsewhere = cloned().map_err(Reason::Fault)?;
    let again = made(&elsewhere, architecture).map_err(Reason::Fault)?;
    let bytes =
        |path: &Path| fs::read(path).map_err(|error| Reason::Fault(format!("{}: {error}", path.display())));
    if bytes(&package)? == bytes(&again)? {
        return Ok(package);
    }
    Err(Reason::Fault(format!(
        "{} and {} differ (diffoscope says where)",
        package.display(),
        again.display()
    )))
}

/// Builds the package of a checkout.
pub(super) fn made(checkout: &Path, architecture: &str) -> Result<PathBuf, String> {
    let mut command = cargo();
    command.current_dir(checkout).args(["xtask", "deb", "--arch", architecture]);
    // Which would be of this checkout.
    command.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_TARGET_DIR");
    let output = command.output().map_err(|error| format!("cargo: {error}"))?;
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let last = |text: &str| text.lines().next_back().unwrap_or_default().to_owned();
    if output.status.success() { Ok(PathBuf::from(last(&said))) } else { Err(last(&complained)) }
}

/// A clone of what is committed, elsewhere, with the tool chains of this checkout.
fn cloned() -> Result<PathBuf, String> {
    let folder = root().join("target/again/evener");
    if !folder.exists() {
        let mut clone = Command::new("git");
        clone.args(["clone", "-q"]).arg(root()).arg(&folder);
        done(&mut clone)?;
        let (ours, theirs) = (root().join("target/testbed"), folder.join("target/testbed"));
        fs::create_dir_all(folder.join("target")).map_err(|error| error.to_string())?;
        std::os::unix::fs::symlink(ours, theirs).map_err(|error| error.to_string())?;
    }
    let commit = Command::new("git").arg("-C").arg(root()).args(["rev-parse", "HEAD"]).output();
    let commit = commit.map_err(|error| format!("git: {error}"))?.stdout;
    let commit = String::from_utf8_lossy(&commit).trim().to_owned();
    let git = |words: &[&str]| done(Command::new("git").arg("-C").arg(&folder).args(words));
    git(&["fetch", "-q"])?;
    git(&["checkout", "-q", &commit])?;
    Ok(folder)
}

fn done(command: &mut Command) -> Result<(), String> {
    let status =
        command.status().map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{}: {status}", command.get_program().to_string_lossy()))
    }
}

/// What lintian finds, each line a failure.
fn look(tally: &mut Tally, package: &Path) {
    let looked = Command::new("lintian").args(["--fail-on", "error,warning"]).arg(package).output();
    let Ok(output) = looked else {
        return tally.print("skipped: a look at the package by lintian (Debian: lintian)");
    };
    String::from_utf8_lossy(&output.stdout).lines().for_each(|line| tally.print(line));
    if output.status.success() {
        tally.passed += 1;
    } else {
        tally.fail(&format!("lintian: {}", package.display()));
    }
}
