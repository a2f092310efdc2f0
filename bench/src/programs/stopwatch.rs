//! Wall time and core time of commands, from the start of the first process to the end of the last.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

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
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Duration::from_secs(part(time.tv_sec())) + Duration::from_micros(part(time.tv_usec()))
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
    fn a_failure_is_told_with_status_and_last_words() {
        let told = time(vec![shell("echo first >&2; echo last words >&2; exit 3")]).unwrap_err().to_string();
        assert!(told.contains("sh") && told.contains('3') && told.contains("last words"), "{told}");
        assert!(time(vec![Command::new("no-such-program")]).is_err());
    }
}
