//! Whether a program is there, and its packages by apt where the user asks for them.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;

use super::program::Program;
use crate::error::BenchError;
use crate::programs::stopwatch;

/// Debian asks this before a package's script starts a server.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// Where an administrator's programs lie, which are not in each user's `PATH`.
const FOLDERS: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];

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
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FOLDERS.iter().map(Into::into));
    folders.into_iter().any(|folder| folder.join(command).is_file())
}

/// The one line of a program that is left out.
pub(super) fn skip_line(program: &dyn Program) -> String {
    format!("skipped: {} needs {}", program.name(), program.packages().join(", "))
}

/// Installs its packages; none of their servers is started.
pub(super) fn install(program: &dyn Program) -> Result<(), BenchError> {
    let _quiet = Quiet::begin();
    let mut command = Command::new("apt-get");
    command.args(["-q", "-y", "--no-remove", "--no-install-recommends", "install"]);
    command.args(program.packages()).env("DEBIAN_FRONTEND", "noninteractive");
    stopwatch::run(command).map(drop)
}

/// While it lives, packages' scripts start no server; what an administrator said about that stays.
struct Quiet {
    is_ours: bool,
}

impl Quiet {
    fn begin() -> Self {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(POLICY);
        let is_ours = file.is_ok_and(|mut file| file.write_all(b"#!/bin/sh\nexit 101\n").is_ok());
        Self { is_ours }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if self.is_ours {
            fs::remove_file(Path::new(POLICY)).unwrap_or_default();
        }
    }
}
