//! Programs side by side: each lane does what is its own, then takes of what is left; the one who waits hears of each as it ends.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::process::Command;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::super::tally::said_by;

/// Something to run.
pub(super) struct Job {
    pub(super) title: String,
    pub(super) command: Command,
}

/// What came of it.
pub(super) struct Ended {
    pub(super) title: String,
    pub(super) time: Duration,
    /// Both of its outputs, as they came.
    pub(super) lines: Vec<String>,
    pub(super) succeeded: bool,
}

/// Runs as many lanes as there are lists of jobs that come first there.
pub(super) fn run<const LANES: usize>(
    firsts: [Vec<Job>; LANES],
    rest: Vec<Job>,
    mut ended: impl FnMut(Ended),
) {
    let rest = Mutex::new(VecDeque::from(rest));
    let next = || rest.lock().expect("taking one does not panic").pop_front();
    let (told, ends) = mpsc::channel();
    thread::scope(|scope| {
        for own in firsts {
            let (told, next) = (told.clone(), &next);
            scope.spawn(move || {
                for job in own.into_iter().chain(std::iter::from_fn(next)) {
                    // The reader lives as long as the scope.
                    told.send(done(job)).unwrap_or_default();
                }
            });
        }
        drop(told);
        ends.iter().for_each(&mut ended);
    });
}

fn done(Job { title, command }: Job) -> Ended {
    let begun = Instant::now();
    let (lines, succeeded) = said_by(with_one_output(&command));
    Ended { title, time: begun.elapsed(), lines, succeeded }
}

/// The same command, whose errors come among its output: beside another's a reader could not tell whose they are.
fn with_one_output(command: &Command) -> Command {
    let mut joined = Command::new("sh");
    joined.args(["-c", "exec \"$0\" \"$@\" 2>&1"]).arg(command.get_program()).args(command.get_args());
    let set = |(name, value): (&OsStr, Option<&OsStr>)| Some((name.to_owned(), value?.to_owned()));
    joined.envs(command.get_envs().filter_map(set));
    if let Some(folder) = command.get_current_dir() {
        joined.current_dir(folder);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::shell;
    use super::*;

    fn job(title: &str, script: &str) -> Job {
        Job { title: title.into(), command: shell(script) }
    }

    #[test]
    fn each_job_is_done_once_and_a_lanes_own_come_in_their_order() {
        let own = vec![job("a", "sleep 0.2"), job("b", "true")];
        let rest = ["c", "d", "e"].map(|title| job(title, "exit 3")).into();
        let mut ends = Vec::new();
        run([own, Vec::new()], rest, |ended| ends.push((ended.title, ended.succeeded)));
        let place = |title: &str| ends.iter().position(|end| end.0 == title).unwrap();
        assert!(place("a") < place("b") && place("c") < place("a"), "{ends:?}");
        ends.sort();
        let right = [("a", true), ("b", true), ("c", false), ("d", false), ("e", false)];
        assert_eq!(ends, right.map(|(title, succeeded)| (title.to_owned(), succeeded)));
    }

    #[test]
    fn what_a_job_says_is_kept_together_with_its_errors() {
        let jobs = ["1", "2"]
            .map(|n| job(n, &format!("for i in 1 2 3; do echo {n}; echo e{n} >&2; sleep 0.05; done")));
        let mut heard = Vec::new();
        run([Vec::new(), Vec::new()], jobs.into(), |ended| heard.push((ended.title, ended.lines.join(" "))));
        heard.sort();
        assert_eq!(heard, ["1", "2"].map(|n| (n.to_owned(), [&*format!("{n} e{n}"); 3].join(" "))));
    }

    #[test]
    fn a_variable_and_a_folder_reach_the_command() {
        let mut there = job("there", "echo $WORD; pwd");
        there.command.env("WORD", "one two").current_dir("/");
        let mut lines = Vec::new();
        run([vec![there]], Vec::new(), |ended| lines = ended.lines);
        assert_eq!(lines, ["one two", "/"]);
    }
}
