//! What passed and failed so far.
//!
//! All that failed is said once more before the closing line: a run's output is long, and its last page must show why it is red.

use std::io::{BufRead as _, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::tree::cargo;

/// Lines of failures that are said once more: about two screens, for what a closing page still shows.
const FAILURE_LINES_MAX: usize = 100;

/// Results by count, and the failures by name.
pub(super) struct Tally {
    pub(super) passed: u64,
    pub(super) failed: u64,
    output: Box<dyn Write>,
    failures: Failures,
    /// When each step began.
    steps: Vec<(String, Instant)>,
}

impl Tally {
    pub(super) fn new(output: impl Write + 'static) -> Self {
        Self {
            passed: 0,
            failed: 0,
            output: Box::new(output),
            failures: Failures::default(),
            steps: Vec::new(),
        }
    }

    pub(super) fn print(&mut self, line: &str) {
        // A reader that went away is no reason to stop checking.
        writeln!(self.output, "{line}").unwrap_or_default();
    }

    /// Says that a step begins, and how long after the first.
    pub(super) fn begin(&mut self, step: &str) {
        let now = Instant::now();
        let first = self.steps.first().map_or(now, |(_, begun)| *begun);
        self.print(&format!("== {step} [{}]", minutes(now - first)));
        self.steps.push((step.to_owned(), now));
    }

    /// Says how long each step took, all failures once more, and the closing line; returns whether there were none.
    pub(super) fn close(&mut self) -> bool {
        self.print("== what took how long");
        let ends = self.steps.iter().skip(1).map(|step| step.1).chain([Instant::now()]);
        let times: Vec<String> = self
            .steps
            .iter()
            .zip(ends)
            .map(|((step, begun), end)| format!("{:>6}  {step}", minutes(end - *begun)))
            .collect();
        times.iter().for_each(|line| self.print(line));
        let lines = std::mem::take(&mut self.failures.lines);
        if !lines.is_empty() {
            self.print("== what failed, once more");
            let left_out = lines.len().saturating_sub(FAILURE_LINES_MAX);
            lines.iter().take(FAILURE_LINES_MAX).for_each(|line| self.print(line));
            if left_out > 0 {
                self.print(&format!("... and {left_out} lines more above"));
            }
        }
        self.print(&format!("{} passed, {} failed", self.passed, self.failed));
        self.failed == 0
    }

    pub(super) fn fail(&mut self, step: &str) {
        let line = format!("failed: {step}");
        self.print(&line);
        self.failures.lines.push(line);
        self.failed += 1;
    }

    /// Runs `cargo` with `words` if `probe` shows that it can be run here.
    pub(super) fn check(&mut self, step: &str, probe: &[&str], words: &[&str]) {
        if !succeeds(probe) {
            return self.print(&format!("skipped: {step} (`cargo {}` fails here)", probe.join(" ")));
        }
        self.begin(step);
        if !cargo().args(words).status().is_ok_and(|status| status.success()) {
            self.fail(step);
        }
    }

    /// Runs a test runner and adds up its results. One that fails without a failed test counts as one failure.
    pub(super) fn run_tests(&mut self, step: &str, command: Command) {
        self.begin(step);
        self.count_tests(step, |tally| listen(command, |line| tally.take_line(line)));
    }

    /// The same, where `heard` says whether the runner succeeded, once all that it said was heard.
    pub(super) fn count_tests(&mut self, step: &str, heard: impl FnOnce(&mut Self) -> bool) {
        let before = self.failed;
        if !heard(self) && self.failed == before {
            self.fail(step);
        }
    }

    /// Runs a test runner that must fail a test, because something was broken on purpose.
    pub(super) fn expect_red(&mut self, mutant: &str, mut command: Command) {
        self.begin(&format!("mutant {mutant}"));
        let output = command.stderr(Stdio::inherit()).output();
        // One that does not build runs no tests.
        let is_red = output.is_ok_and(|output| {
            String::from_utf8_lossy(&output.stdout).contains("running ") && !output.status.success()
        });
        match is_red {
            true => self.passed += 1,
            false => self.fail(&format!("no test noticed the mutant {mutant}")),
        }
    }

    /// Passes a test runner's line on, and adds up what it reports.
    pub(super) fn take_line(&mut self, line: &str) {
        self.print(line);
        self.failures.take_line(line);
        if let Some((passed, failed)) = results(line) {
            self.passed += passed;
            self.failed += failed;
        }
    }
}

/// What test runners said of the tests that failed.
#[derive(Default)]
struct Failures {
    lines: Vec<String>,
    /// Whether the lines that come belong to a runner's list of failures.
    is_inside: bool,
}

impl Failures {
    /// Keeps a line between a runner's `failures:` and its result.
    fn take_line(&mut self, line: &str) {
        self.is_inside = match line {
            "failures:" => true,
            line if line.starts_with("test result: ") => false,
            _ => self.is_inside,
        };
        if self.is_inside && !line.is_empty() {
            self.lines.push(line.to_owned());
        }
    }
}

/// As minutes and seconds.
fn minutes(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

fn succeeds(cargo_words: &[&str]) -> bool {
    cargo().args(cargo_words).output().is_ok_and(|output| output.status.success())
}

/// Runs a command and hands on what it says; returns whether it succeeded.
pub(super) fn listen(mut command: Command, mut take_line: impl FnMut(&str)) -> bool {
    let Ok(mut child) = command.stdout(Stdio::piped()).spawn() else { return false };
    let output = child.stdout.take().expect("it was piped above");
    BufReader::new(output).lines().map_while(Result::ok).for_each(|line| take_line(&line));
    child.wait().is_ok_and(|status| status.success())
}

/// The counts in a test runner's line: `test result: ok. 3 passed; 0 failed; …` or `3 passed, 0 failed`.
pub(super) fn results(line: &str) -> Option<(u64, u64)> {
    let counts = match line.strip_prefix("test result: ") {
        Some(result) => result.split_once(". ")?.1,
        None => line,
    };
    let mut parts = counts.split([';', ',']).map(str::trim);
    let mut count = |word| parts.next()?.strip_suffix(word)?.trim_end().parse().ok();
    Some((count("passed")?, count("failed")?))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::super::tests::shell;
    use super::*;

    #[test]
    fn a_runner_s_results_are_read_whether_green_or_red() {
        let line =
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s";
        assert_eq!(results(line), Some((12, 0)));
        assert_eq!(results("test result: FAILED. 3 passed; 2 failed; 0 ignored"), Some((3, 2)));
        assert_eq!(results("4 passed, 1 failed"), Some((4, 1)));
        assert_eq!(results("test a ... ok"), None);
        assert_eq!(results("test result: ok"), None);
    }

    #[test]
    fn results_add_up_and_a_silent_failure_counts_as_one() {
        let mut tally = Tally::new(io::sink());
        tally.run_tests("green", shell("echo 'test result: ok. 3 passed; 0 failed; 0 ignored'"));
        tally.run_tests("red", shell("echo 'test result: FAILED. 1 passed; 2 failed; 0 ignored'; exit 101"));
        assert_eq!((tally.passed, tally.failed), (4, 2));
        tally.run_tests("does not build", shell("exit 101"));
        assert_eq!((tally.passed, tally.failed), (4, 3));
        tally.run_tests("not there", Command::new("/nonexistent"));
        assert_eq!((tally.passed, tally.failed), (4, 4));
    }

    #[test]
    fn what_failed_is_said_once_more_before_the_closing_line() {
        let printed = Captured::default();
        let mut tally = Tally::new(printed.clone());
        let runner = "printf 'test a ... ok\\ntest b ... FAILED\\n\\nsuccesses:\\n\\n---- a stdout ----\\nfine\\n\\nfailures:\\n\\n\
                      ---- b stdout ----\\nleft is not right\\n\\nfailures:\\n    b\\n\\ntest result: FAILED. 1 passed; 1 failed\\n'; exit 101";
        tally.run_tests("suite", shell(runner));
        tally.fail("tidy");
        assert!(!tally.close());
        let text = String::from_utf8(printed.0.lock().unwrap().clone()).unwrap();
        let end = text.split_once("== what failed, once more\n").expect("failures are printed").1;
        let expected = "failures:\n---- b stdout ----\nleft is not right\nfailures:\n    b\nfailed: tidy\n1 passed, 2 failed\n";
        assert_eq!(end, expected);
    }

    #[test]
    fn a_green_run_closes_with_its_steps_times_and_its_counts_alone() {
        let printed = Captured::default();
        let mut tally = Tally::new(printed.clone());
        tally.begin("first");
        tally.begin("second");
        assert!(tally.close());
        let text = String::from_utf8(printed.0.lock().unwrap().clone()).unwrap();
        let right = "== first [0:00]\n== second [0:00]\n== what took how long\n  0:00  first\n  0:00  second\n0 passed, 0 failed\n";
        assert_eq!(text, right);
    }

    #[test]
    fn a_mutant_that_no_test_notices_is_a_failure() {
        let mut tally = Tally::new(io::sink());
        tally.expect_red("noticed", shell("echo running 1 test; exit 101"));
        assert_eq!((tally.passed, tally.failed), (1, 0));
        tally.expect_red("survivor", shell("echo running 1 test; echo test result: ok. 1 passed"));
        tally.expect_red("does not build", shell("exit 101"));
        assert_eq!((tally.passed, tally.failed), (1, 2));
    }

    /// Keeps what was printed.
    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
