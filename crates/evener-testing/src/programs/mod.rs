//! Programs that are started, and what came of them: of the command, of other programs, and of this program once more.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

mod child;
mod process;
mod schema;
mod terminal;

pub use child::{code_of_child, in_child, is_right_in_child};
pub use process::Process;
pub use schema::misfits;
pub use terminal::{at_a_terminal, new_terminal};

/// A command on its way.
#[derive(Debug)]
pub struct Run {
    /// What is started.
    pub command: Command,
    input: Vec<u8>,
}

impl Run {
    /// `program` with nothing to read.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self { command: Command::new(program), input: Vec::new() }
    }

    /// With one more argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// With more arguments.
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    /// With a variable of its environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// With this to read.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = bytes.into();
        self
    }

    /// Runs it to its end.
    pub fn run(mut self) -> Ran {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        let (mut stdin, input) = (child.stdin.take().unwrap(), self.input);
        let feeder = thread::spawn(move || {
            // A program that does not read its input closes the pipe.
            stdin.write_all(&input).ok();
        });
        let ran = Ran::of(&self.command, child);
        feeder.join().unwrap();
        ran
    }
}

/// What came of a command.
#[derive(Debug)]
pub struct Ran {
    output: Output,
    shown: String,
}

impl Ran {
    /// What came of `child`, which was started by `command`.
    pub(super) fn of(command: &Command, child: Child) -> Self {
        Self { output: child.wait_with_output().unwrap(), shown: format!("{command:?}") }
    }

    /// Its exit status; none where a signal ended it.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    /// The signal that ended it, if one did.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        self.output.status.signal()
    }

    /// What it wrote.
    #[must_use]
    pub fn stdout(&self) -> &[u8] {
        &self.output.stdout
    }

    /// What it wrote, as text.
    #[must_use]
    pub fn stdout_text(&self) -> &str {
        std::str::from_utf8(&self.output.stdout).unwrap()
    }

    /// What it complained of.
    #[must_use]
    pub fn stderr(&self) -> &str {
        std::str::from_utf8(&self.output.stderr).unwrap()
    }

    /// Ended with this exit status.
    #[track_caller]
    pub fn ended_with(self, code: i32) -> Self {
        assert_eq!(self.code(), Some(code), "{}\n{}", self.shown, self.stderr());
        self
    }

    /// Ended well.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        self.ended_with(0)
    }

    /// Said one line, and in it `words`.
    #[track_caller]
    pub fn saying(self, words: &str) -> Self {
        let lines: Vec<&str> = self.stderr().lines().collect();
        assert_eq!(lines.len(), 1, "{}\n{}", self.shown, self.stderr());
        assert!(lines[0].starts_with("evener: ") && lines[0].contains(words), "{words:?} in {:?}", lines[0]);
        self
    }
}

/// Whether a program can be started.
#[must_use]
pub fn there_is(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Says that a test could not be made, so that it is not taken for passed.
pub fn skipped(reason: &str) {
    println!("skipped: {reason}");
}
