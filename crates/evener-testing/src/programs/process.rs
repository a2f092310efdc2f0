//! This program once more: tests have it serve from a process of its own.

use std::env;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// A process that is killed when this goes.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts this program as its ignored test `name`, with `variables` in its environment and nothing to read. Where no thread takes its
    /// [`lines`](Self::lines), it must not print more than the 64 KiB of a pipe.
    #[must_use]
    pub fn start(name: &str, variables: &[(&str, &OsStr)]) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "--nocapture", "--test-threads=1", name]);
        command.envs(variables.iter().copied()).stdin(Stdio::null()).stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// What it prints, as it comes; they can be taken once.
    pub fn lines(&mut self) -> impl Iterator<Item = String> + Send + use<> {
        let output = self.0.stdout.take().unwrap();
        BufReader::new(output).lines().map_while(Result::ok)
    }

    /// Its number among processes.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        self.0.kill().unwrap_or_default();
        self.0.wait().map(drop).unwrap_or_default();
    }
}
