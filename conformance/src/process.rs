//! This program once more: tests have it serve from a process of its own.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// A process that is killed when this goes.
pub struct Process(Child);

impl Process {
    /// Starts this program as its ignored test `name`, with `variables` in its environment. Where nobody takes its [`lines`](Self::lines),
    /// it must not print more than the 64 KiB of a pipe.
    ///
    /// # Panics
    ///
    /// Where the system starts no process.
    #[must_use]
    pub fn start(name: &str, variables: &[(&str, &OsStr)]) -> Self {
        let this = std::env::current_exe().expect("a test has a file");
        let mut command = Command::new(this);
        command.args(["--ignored", "--exact", "--nocapture", name]).envs(variables.iter().copied());
        Self(command.stdout(Stdio::piped()).spawn().expect("it starts"))
    }

    /// What it prints, as it comes.
    ///
    /// # Panics
    ///
    /// Where they were taken before.
    pub fn lines(&mut self) -> impl Iterator<Item = String> + Send + use<> {
        let output = self.0.stdout.take().expect("taken once");
        BufReader::new(output).lines().map_while(Result::ok)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap_or_default();
        self.0.wait().map(drop).unwrap_or_default();
    }
}
