//! Whether a program is there, and its packages by apt where the user asks for them.
//!
//! Path: [`missing`] -> [`install`] behind a [`Quiet`], where the user asks for it -> [`skip_line`], where something is missing still.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::place::failed;
use super::program::Program;
use super::search_path::search_path;
use crate::error::BenchError;
use crate::programs::stopwatch;

/// Debian asks this before a package's script starts a server.
pub const POLICY: &str = "/usr/sbin/policy-rc.d";

/// What is missing of a program: a file by its whole name, a command, or a shell's condition in brackets.
pub(super) fn missing(program: &dyn Program) -> Option<&'static str> {
    let is_there = |what: &str| match what.strip_prefix('(') {
        Some(condition) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", condition.trim_end_matches(')')]);
            stopwatch::run(shell).is_ok()
        }
        None if what.starts_with('/') => fs::exists(what).unwrap_or(false),
        None => found(what),
    };
    program.needs().iter().copied().find(|what| !is_there(what))
}

fn found(command: &str) -> bool {
    std::env::split_paths(&search_path()).any(|folder| folder.join(command).is_file())
}

/// The one line of a program that is left out, where it is.
pub(super) fn skip_line(program: &dyn Program, is_root: bool) -> Option<String> {
    let needed = match missing(program) {
        Some(_) => program.packages().join(", "),
        None if program.needs_root() && !is_root => "root".to_owned(),
        None => return None,
    };
    Some(format!("skipped: {} needs {needed}", program.name()))
}

/// Installs its packages; none of their servers is started, unless an administrator's `policy` allows it.
pub(super) fn install(program: &dyn Program, policy: &Path) -> Result<(), BenchError> {
    let _quiet = Quiet::begin(policy)?;
    let mut command = Command::new("apt-get");
    command.args(["-q", "-y", "--no-remove", "--no-install-recommends", "install"]);
    command.args(program.packages()).env("DEBIAN_FRONTEND", "noninteractive");
    stopwatch::run(command).map(drop)
}

/// While it lives, packages' scripts start no server; what an administrator said about that stays.
struct Quiet {
    /// The file that we made.
    made: Option<PathBuf>,
}

impl Quiet {
    fn begin(policy: &Path) -> Result<Self, BenchError> {
        if is_left_over(policy) {
            fs::remove_file(policy).map_err(failed(policy))?;
        }
        let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o755).open(policy) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(Self { made: None }),
            Err(error) => return Err(failed(policy)(error)),
        };
        let quiet = Self { made: Some(policy.to_owned()) };
        file.write_all(guard(std::process::id()).as_bytes()).map_err(failed(policy))?;
        Ok(quiet)
    }
}

/// Forbids until this process has ended, however it ends: what a killed one leaves allows all.
fn guard(process: u32) -> String {
    format!("#!/bin/sh\n{GUARDED}{process} 2>/dev/null && exit 101\nexit 0\n")
}

const GUARDED: &str = "kill -0 ";

/// Whether a process that has ended left its guard there, which would be taken for an administrator's word.
fn is_left_over(policy: &Path) -> bool {
    let text = fs::read_to_string(policy).unwrap_or_default();
    let process = text.lines().find_map(|line| line.strip_prefix(GUARDED)?.split(' ').next()?.parse().ok());
    process.is_some_and(|process| text == guard(process) && !Path::new(&format!("/proc/{process}")).exists())
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if let Some(file) = &self.made {
            // One that stays allows all once this process has ended.
            fs::remove_file(file).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::unmodified::ALL;

    fn answer(policy: &Path) -> Option<i32> {
        Command::new("sh").arg(policy).status().unwrap().code()
    }

    #[test]
    fn a_guard_forbids_as_long_as_its_process_lives_and_goes_with_its_value() {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("policy-rc.d");
        let quiet = Quiet::begin(&policy).unwrap();
        assert_eq!(answer(&policy), Some(101));
        assert_eq!(fs::metadata(&policy).unwrap().permissions().mode() & 0o777, 0o755);
        drop(quiet);
        assert!(!policy.exists());
    }

    #[test]
    fn a_guard_of_a_process_that_was_killed_allows_all_and_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("policy-rc.d");
        let mut ended = Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        fs::write(&policy, guard(ended.id())).unwrap();
        assert_eq!(answer(&policy), Some(0));
        let quiet = Quiet::begin(&policy).unwrap();
        assert_eq!(answer(&policy), Some(101));
        drop(quiet);
        assert!(!policy.exists());
    }

    #[test]
    fn what_an_administrator_said_and_another_runs_guard_stay() {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("policy-rc.d");
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        for text in ["#!/bin/sh\nexit 101\n".to_owned(), guard(other.id())] {
            fs::write(&policy, &text).unwrap();
            drop(Quiet::begin(&policy).unwrap());
            assert_eq!(fs::read_to_string(&policy).unwrap(), text);
        }
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_guard_that_cannot_be_written_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("none/policy-rc.d");
        let told = Quiet::begin(&policy).err().unwrap().to_string();
        assert!(told.contains("none/policy-rc.d"), "{told}");
    }

    #[test]
    fn what_needs_root_is_one_line_without_it() {
        let openvpn = *ALL.iter().find(|program| program.name() == "openvpn").unwrap();
        if missing(openvpn).is_some() {
            return println!("skipped: openvpn is not installed");
        }
        assert_eq!(skip_line(openvpn, false).as_deref(), Some("skipped: openvpn needs root"));
        assert_eq!(skip_line(openvpn, true), None);
    }
}
