//! Programs side by side: each lane does what is its own, then takes of what is left; the one who waits hears of each as it ends.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::process::Command;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Something to run.
pub(super) struct Job {
    pub(super) title: String,
    pub(super) command: Command,
}

/// What came of it.
pub(super) struct Ended {
    pub(super) title: String,
    pub(super) time: Duration,
    /// Its output, and apart from it its errors, among which are those of whatever it started.
    pub(super) lines: Vec<String>,
    pub(super) errors: Vec<String>,
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
    let (lines, errors, succeeded) =
        outcome(command).unwrap_or_else(|error| (Vec::new(), vec![format!("{title}: {error}")], false));
    Ended { title, time: begun.elapsed(), lines, errors, succeeded }
}

/// Both outputs, and whether it succeeded. They go to files: a process that a test left behind may hold them open as long as it lives.
fn outcome(mut command: Command) -> io::Result<(Vec<String>, Vec<String>, bool)> {
    let (mut output, mut errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let status = command.stdout(output.try_clone()?).stderr(errors.try_clone()?).status()?;
    Ok((lines_of(&mut output)?, lines_of(&mut errors)?, status.success()))
}

/// Also of what is no text.
fn lines_of(file: &mut File) -> io::Result<Vec<String>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
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
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("c is done");
        let waits = format!("until [ -e '{0}' ]; do sleep 0.02; done", file.display());
        let own = vec![job("a", &waits), job("b", "true")];
        let ends = format!("touch '{0}'; exit 3", file.display());
        let rest = ["c", "d", "e"].map(|title| job(title, &ends)).into();
        let mut ends = Vec::new();
        run([own, Vec::new()], rest, |ended| ends.push((ended.title, ended.succeeded)));
        let place = |title: &str| ends.iter().position(|end| end.0 == title).unwrap();
        assert!(place("a") < place("b"), "{ends:?}");
        ends.sort();
        let right = [("a", true), ("b", true), ("c", false), ("d", false), ("e", false)];
        assert_eq!(ends, right.map(|(title, succeeded)| (title.to_owned(), succeeded)));
    }

    #[test]
    fn what_a_job_says_is_its_own_though_it_is_no_text_and_a_child_lives_on() {
        // What lives on holds both outputs open.
        let script = |n| {
            format!("sleep 3 & for i in 1 2; do echo {n}; echo e{n} >&2; sleep 0.05; done; printf '\\377\\n'")
        };
        let jobs = ["1", "2"].map(|n| job(n, &script(n)));
        let (mut heard, began) = (Vec::new(), Instant::now());
        run([Vec::new(), Vec::new()], jobs.into(), |ended| {
            heard.push((ended.title, ended.lines, ended.errors));
        });
        assert!(began.elapsed() < Duration::from_secs(3), "no child was waited for");
        heard.sort();
        let lines = |words: [String; 2]| words.to_vec();
        for (n, (title, mut said, errors)) in ["1", "2"].into_iter().zip(heard) {
            assert_eq!((title.as_str(), said.pop().as_deref()), (n, Some("\u{fffd}")));
            assert_eq!(
                (said, errors),
                (lines([n.into(), n.into()]), lines([format!("e{n}"), format!("e{n}")]))
            );
        }
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
