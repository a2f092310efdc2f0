//! Where the demo happens: a folder that goes with it, commands that are shown as a user would type them, a line that moves, and an end by a signal.

use std::ffi::OsStr;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use anyhow::{Context as _, bail};
use evener::Cancel;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use super::{Demo, Shown};
use crate::terminal::{PathDisplay, output};

/// A step of the demo.
pub(super) struct Step {
    pub(super) name: &'static str,
    /// How long it takes on two quiet cores.
    pub(super) seconds: u64,
    pub(super) does: fn(&Stage<'_>, &Demo) -> anyhow::Result<Shown>,
}

pub(super) struct Stage<'c> {
    /// This command.
    evener: PathBuf,
    /// Where commands run; goes with the stage.
    work: TempDir,
    /// Where what is kept goes.
    folder: PathBuf,
    cancel: &'c Cancel,
}

impl<'c> Stage<'c> {
    pub(super) fn new(folder: &Path, cancel: &'c Cancel) -> anyhow::Result<Self> {
        let evener = env::current_exe().context("cannot find this command itself")?;
        let made = fs::create_dir_all(folder).and_then(|()| std::path::absolute(folder));
        let folder = made.with_context(|| format!("cannot make {}", PathDisplay(folder)))?;
        let work = tempfile::Builder::new().prefix("work-").tempdir_in(&folder);
        let work = work.with_context(|| format!("cannot make a folder in {}", PathDisplay(&folder)))?;
        Ok(Self { evener, work, folder, cancel })
    }

    /// A file or folder that goes with the demo.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// A file that is kept.
    pub(super) fn kept(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn begin(&self, step: &Step, number: usize, of: usize) -> anyhow::Result<()> {
        say(format!("\n== {number} of {of}: {} (about {} s)", step.name, step.seconds))
    }

    /// An error where a signal has asked for the end.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if self.cancel.is_cancelled() {
            bail!("stopped");
        }
        Ok(())
    }

    /// This command with `words`, told and run; what it said, errors last.
    pub(super) fn evener(&self, words: &str) -> anyhow::Result<String> {
        self.evener_with(words, &[])
    }

    /// The same, with `paths` behind it that are not shown.
    pub(super) fn evener_with(&self, words: &str, paths: &[(&str, &Path)]) -> anyhow::Result<String> {
        say(format!("$ evener {words}"))?;
        let mut command = self.own();
        command.args(words.split_whitespace());
        for (option, path) in paths {
            command.arg(option).arg(path);
        }
        self.run(command)
    }

    /// This command, as [`Self::command`].
    pub(super) fn own(&self) -> Command {
        self.command(&self.evener)
    }

    /// A program in the stage's folder, that touches no settings, counts or costs of the user's.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.work.path());
        for (variable, folder) in OWN_FOLDERS {
            command.env(variable, self.path(folder));
        }
        command
    }

    /// Runs a command to its end, or until a signal asks for it.
    pub(super) fn run(&self, mut command: Command) -> anyhow::Result<String> {
        self.check()?;
        let name = PathBuf::from(command.get_program());
        // A group of its own, so that what it started ends with it.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().with_context(|| format!("cannot start {}", PathDisplay(&name)))?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(child.wait_with_output()));
        let output =
            self.wait(&receiver, group)?.with_context(|| format!("cannot run {}", PathDisplay(&name)))?;
        let [said, complained] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        if !output.status.success() {
            let reason = complained.lines().last().unwrap_or_default().trim();
            bail!("{}: {}: {reason}", PathDisplay(&name), output.status);
        }
        Ok(format!("{said}{complained}"))
    }

    fn wait(
        &self,
        receiver: &mpsc::Receiver<io::Result<Output>>,
        group: Option<Pid>,
    ) -> anyhow::Result<io::Result<Output>> {
        let began = Instant::now();
        let mut beat = Beat::new();
        let mut asked: Option<Instant> = None;
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok(_) if self.cancel.is_cancelled() => bail!("stopped"),
                Ok(output) => {
                    beat.end();
                    return Ok(output);
                }
                Err(RecvTimeoutError::Disconnected) => bail!("a thread has ended that waited for a program"),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.cancel.is_cancelled() {
                // Asked first, so that it removes what it made.
                let signal = match asked {
                    None => Some(Signal::INT),
                    Some(at) => (at.elapsed() > TIME_TO_CLEAN_UP).then_some(Signal::KILL),
                };
                if let (Some(group), Some(signal)) = (group, signal) {
                    kill_process_group(group, signal).ok();
                }
                asked = asked.or_else(|| Some(Instant::now()));
            }
            beat.show(began.elapsed());
        }
    }
}

/// A line that moves: on a terminal every second, elsewhere a new one every five.
struct Beat {
    on_terminal: bool,
    shown: u64,
}

impl Beat {
    fn new() -> Self {
        Self { on_terminal: io::stdout().is_terminal(), shown: 0 }
    }

    fn show(&mut self, time: Duration) {
        let seconds = time.as_secs();
        let every = if self.on_terminal { 1 } else { 5 };
        if seconds < self.shown + every {
            return;
        }
        self.shown = seconds;
        let (start, end) = if self.on_terminal { ("\r", "") } else { ("", "\n") };
        let mut stdout = io::stdout();
        write!(stdout, "{start}  ... {seconds} s{end}").and_then(|()| stdout.flush()).ok();
    }

    /// Leaves the line to what comes next.
    fn end(&self) {
        if self.on_terminal && self.shown > 0 {
            write!(io::stdout(), "\r            \r").ok();
        }
    }
}

/// A line of the demo.
pub(super) fn say(text: impl AsRef<str>) -> anyhow::Result<()> {
    output::answer(format!("{}\n", text.as_ref().trim_end()).as_bytes()).map(drop)
}

/// The same, moved to the right: what a command said.
pub(super) fn say_indented(text: &str) -> anyhow::Result<()> {
    let lines: String = text.lines().map(|line| format!("  {line}\n")).collect();
    if lines.is_empty() { Ok(()) } else { say(lines) }
}

/// Variables of Evener's for folders that are the demo's own, and what these are called.
const OWN_FOLDERS: [(&str, &str); 4] = [
    ("EVENER_ARBITER_DIR", "arbiter"),
    ("EVENER_CACHE_DIR", "cache"),
    ("EVENER_STATE_DIR", "state"),
    ("EVENER_STATISTICS_DIR", "statistics"),
];

/// How often signals are looked for.
const LOOK: Duration = Duration::from_millis(50);
/// Time in which a command that was asked to end removes what it made.
const TIME_TO_CLEAN_UP: Duration = Duration::from_secs(3);
