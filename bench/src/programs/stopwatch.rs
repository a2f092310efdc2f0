//! Wall time and core time of commands, from the start of the first process to the end of the last, or until the user wants no more of it.

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{io, thread};

use evener::Cancel;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::error::BenchError;

/// What commands used.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// From the start of the first to the end of the last.
    pub wall: Duration,
    /// User and system time of the processes and of all that they waited for.
    pub core: Duration,
}

/// Runs `commands` one after the other.
///
/// # Errors
///
/// [`BenchError::Command`] with the last line that a command said before it failed.
pub fn time(commands: Vec<Command>) -> Result<Used, BenchError> {
    let (core_before, started) = (core_of_children(), Instant::now());
    for command in commands {
        run(command)?;
    }
    let wall = started.elapsed();
    Ok(Used { wall, core: core_of_children().saturating_sub(core_before) })
}

/// Runs a command and gives what it wrote to standard output.
///
/// # Errors
///
/// As [`time`].
pub fn run(mut command: Command) -> Result<Vec<u8>, BenchError> {
    let outcome = command.stdin(Stdio::null()).output();
    said(&command, outcome)
}

/// The same, until `cancel` says so: then it is ended, with all processes that it has not parted from.
///
/// # Errors
///
/// As [`time`]; [`BenchError::Stopped`] where it was ended.
pub fn run_until(mut command: Command, cancel: &Cancel) -> Result<Vec<u8>, BenchError> {
    // A group of its own: what a terminal sends to ours it is told by us.
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let child = command.spawn();
    let outcome = child.and_then(|child| {
        let group = Pid::from_child(&child);
        let end = pidfd_open(group, PidfdFlags::empty())?;
        thread::scope(|scope| {
            scope.spawn(|| watch(&end, group, cancel));
            child.wait_with_output()
        })
    });
    if cancel.is_cancelled() { Err(BenchError::Stopped) } else { said(command, outcome) }
}

/// Ends a group of processes once `cancel` says so, unless its first one has ended by itself.
fn watch(end: &OwnedFd, group: Pid, cancel: &Cancel) {
    let mut signal = Signal::TERM;
    loop {
        let wait = if signal == Signal::TERM { LOOK } else { GRACE };
        let mut ended = [PollFd::new(end, PollFlags::IN)];
        match poll(&mut ended, Some(&wait)) {
            Ok(0) | Err(Errno::INTR) if !cancel.is_cancelled() => {}
            Ok(0) | Err(Errno::INTR) => {
                // Where none of them is left, that was it.
                kill_process_group(group, signal).unwrap_or_default();
                signal = Signal::KILL;
            }
            _ => return,
        }
    }
}

/// What a command wrote, or why it failed.
fn said(command: &Command, outcome: io::Result<Output>) -> Result<Vec<u8>, BenchError> {
    let reason = match outcome {
        Ok(output) if output.status.success() => return Ok(output.stdout),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            format!("{}: {}", output.status, said.lines().last().unwrap_or_default().trim())
        }
        Err(error) => error.to_string(),
    };
    Err(BenchError::Command { command: command.get_program().to_string_lossy().into_owned(), reason })
}

/// How often a command that runs is asked about, and how long one has to end by itself. Not measured: 20 looks a second are no work, and a person waits as long.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
const GRACE: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Runs `work`, and gives the core time of the processes for which it waited.
pub fn with_core<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let before = core_of_children();
    let done = work();
    (done, core_of_children().saturating_sub(before))
}

/// Core time of all children that ended and were waited for.
pub(crate) fn core_of_children() -> Duration {
    getrusage(UsageWho::RUSAGE_CHILDREN)
        .map_or(Duration::ZERO, |usage| duration(usage.user_time()) + duration(usage.system_time()))
}

fn duration(time: TimeVal) -> Duration {
    Duration::from_secs(part(time.tv_sec())) + Duration::from_micros(part(time.tv_usec()))
}

/// The kernel's words have 32 bits on some processors.
fn part(word: impl Into<i64>) -> u64 {
    u64::try_from(word.into()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn core_time_counts_what_grandchildren_worked() {
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let used = time(vec![shell(&format!("sh -c '{busy}'; true"))]).unwrap();
        assert!(used.core > Duration::from_millis(5), "{used:?}");
    }

    #[test]
    fn a_command_is_ended_with_what_it_started_once_that_is_wanted() {
        let place = tempfile::tempdir().unwrap();
        let begun = place.path().join("begun");
        let late = place.path().join("late");
        let (begins, ends) = (begun.display(), late.display());
        let script =
            |words: &str| shell(&format!("{words} (sleep 20; echo > {ends}) & echo > {begins}; wait"));
        // One of them does not listen.
        for words in ["", "trap '' TERM;"] {
            let cancel = Cancel::default();
            let outcome = thread::scope(|scope| {
                scope.spawn(|| {
                    while !begun.exists() {
                        thread::sleep(Duration::from_millis(10));
                    }
                    cancel.cancel();
                });
                run_until(script(words), &cancel)
            });
            assert!(matches!(outcome, Err(BenchError::Stopped)), "{outcome:?}");
            // It has our pipe as long as it lives.
            assert!(!late.exists(), "{words}");
            std::fs::remove_file(&begun).unwrap();
        }
        assert_eq!(run_until(shell("echo whole"), &Cancel::default()).unwrap(), b"whole\n");
        assert!(run_until(shell("exit 3"), &Cancel::default()).unwrap_err().to_string().contains('3'));
    }

    #[test]
    fn a_failure_is_told_with_status_and_last_words() {
        let told = time(vec![shell("echo first >&2; echo last words >&2; exit 3")]).unwrap_err().to_string();
        assert!(told.contains("sh") && told.contains('3') && told.contains("last words"), "{told}");
        assert!(time(vec![Command::new("no-such-program")]).is_err());
    }
}
