//! Valgrind around programs under test, and what it finds.
//!
//! Path: a [`Setup`] that is [checked](Setup::checked) puts a script called `openssl` before the command of that name ->
//! each process leaves what valgrind finds in a file of its own -> [`Setup::findings`].

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use evener_testbed::write_program;

use crate::Setup;

/// Whether valgrind is installed.
#[must_use]
pub fn has_valgrind() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// What valgrind says, one text per finding, without addresses and numbers of processes.
#[must_use]
pub fn findings(report: &str) -> BTreeSet<String> {
    let lines = report.lines().filter_map(|line| Some(line.strip_prefix("==")?.split_once("==")?.1.trim()));
    let lines: Vec<&str> = lines.map(|line| line.split_once(": ").map_or(line, |(_, frame)| frame)).collect();
    lines
        .split(|line| line.is_empty())
        .filter(|lines| !lines.is_empty())
        .map(|lines| lines.join("\n"))
        .collect()
}

impl Setup {
    /// The same, where the command `openssl` runs under valgrind in programs that this is applied to.
    ///
    /// # Panics
    ///
    /// Where there is no such command.
    #[must_use]
    pub fn checked(self) -> Self {
        let folder = self.checked_commands();
        fs::create_dir(&folder).expect("the folder is ours");
        let command = command().expect("openssl is in the path");
        let found = folder.join("found");
        // Unloading a module makes each of its places in a finding a number.
        let text = format!(
            "#!/bin/sh\nexec valgrind --quiet --keep-debuginfo=yes --log-file='{}.%p' '{}' \"$@\"\n",
            found.display(),
            command.display()
        );
        let script = folder.join("openssl");
        write_program(&script, text.as_bytes()).expect("the folder is ours");
        self
    }

    /// What valgrind found in all programs with this configuration.
    ///
    /// # Panics
    ///
    /// Where none ran.
    #[must_use]
    pub fn findings(&self) -> BTreeSet<String> {
        let files = fs::read_dir(self.checked_commands()).expect("the folder is ours").flatten();
        let reports = files.map(|file| file.path()).filter(|path| path.extension().is_some());
        let report: Vec<_> =
            reports.map(|path| fs::read_to_string(path).expect("the file is ours")).collect();
        assert!(!report.is_empty(), "valgrind ran nothing");
        report.iter().flat_map(|report| findings(report)).collect()
    }
}

fn command() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join("openssl")).find(|path| path.is_file())
}
