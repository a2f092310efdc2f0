//! Suites that run in a guest of the test bed: test programs of several packages.
//!
//! Path: cargo builds the test programs of packages -> what cannot run in a guest is left out by name and printed -> all others lie in the
//! guest and run there one after the other -> each must end well and have run a test, and the kernel must have nothing to warn of.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::print_stdout, reason = "what is skipped is said")]

pub(crate) mod kernel;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use evener_testbed::{Builder, Guest, Outcome, TestProgram, build_tests};

/// What is not run in a guest.
pub(crate) struct LeftOut {
    /// The program's source.
    source: &'static str,
    /// Names of its tests; none where the whole program is left out.
    tests: &'static [&'static str],
    why: &'static str,
}

impl LeftOut {
    pub(crate) const fn program(source: &'static str, why: &'static str) -> Self {
        Self { source, tests: &[], why }
    }

    pub(crate) const fn tests(
        source: &'static str,
        tests: &'static [&'static str],
        why: &'static str,
    ) -> Self {
        Self { source, tests, why }
    }
}

pub(crate) const STARTS_GUESTS: &str = "it starts guests itself";
pub(crate) const HAS_NO_TESTS: &str = "it has no tests";
const NO_LANES: &str = "the multi-buffer library is not for this processor";

/// What no guest runs of this package.
static LEFT_OUT: [LeftOut; 10] = [
    LeftOut::program("conformance/src/lib.rs", HAS_NO_TESTS),
    LeftOut::program("conformance/tests/arm.rs", STARTS_GUESTS),
    LeftOut::program("conformance/tests/core_time.rs", STARTS_GUESTS),
    LeftOut::program("conformance/tests/shared_host/main.rs", STARTS_GUESTS),
    LeftOut::program("conformance/tests/vhost_crypto/main.rs", STARTS_GUESTS),
    LeftOut::program("conformance/tests/virtio/main.rs", STARTS_GUESTS),
    LeftOut::program("conformance/tests/x86_64.rs", STARTS_GUESTS),
    LeftOut::program("conformance/tests/widths.rs", NO_LANES),
    LeftOut::tests("conformance/tests/vectors.rs", &["multi_buffer_gives_what_was_published"], NO_LANES),
    LeftOut::tests("conformance/tests/one_path.rs", &["multi_buffer_and_plain_are_one_path"], NO_LANES),
];

/// Test programs for a guest.
pub(crate) struct Suite {
    programs: Vec<TestProgram>,
    left_out: Vec<&'static LeftOut>,
}

impl Suite {
    /// Builds the tests of `packages`, this one among them, by `cargo`, in one call, so that nothing is built twice; says what is left out.
    ///
    /// # Panics
    ///
    /// Where they do not build, or a program is to be left out that is not among them.
    pub(crate) fn build(
        cargo: Command,
        packages: &[&str],
        left_out: impl IntoIterator<Item = &'static LeftOut>,
    ) -> Self {
        let left_out: Vec<&LeftOut> = LEFT_OUT.iter().chain(left_out).collect();
        let packages = packages.iter().flat_map(|&name| ["-p", name]);
        let words: Vec<&str> = ["--lib", "--tests"].into_iter().chain(packages).collect();
        let mut programs = build_tests(cargo, &words).expect("they build");
        for LeftOut { source, tests, why } in &left_out {
            assert!(programs.iter().any(|program| program.source == *source), "there is no {source}");
            match tests {
                [] => println!("skipped: {source}: {why}"),
                tests => tests.iter().for_each(|test| println!("skipped: {source}, {test}: {why}")),
            }
        }
        let is_left_out = |program: &TestProgram| {
            left_out.iter().any(|row| row.tests.is_empty() && row.source == program.source)
        };
        programs.retain(|program| !is_left_out(program));
        Self { programs, left_out }
    }

    /// Puts the programs into a guest.
    pub(crate) fn bring(&self, builder: Builder) -> Builder {
        self.programs.iter().fold(builder, |builder, program| builder.program(&program.path))
    }

    /// Runs them there and gives what each said, by its source.
    ///
    /// # Panics
    ///
    /// After all have run, where one of them failed ([`fault`]) or the kernel warned.
    pub(crate) fn run(&self, guest: &mut Guest) -> BTreeMap<&str, String> {
        let (mut told, mut red, mut warned) = (BTreeMap::new(), Vec::new(), 0);
        for TestProgram { path, source } in &self.programs {
            let tests = self.tests_left_out(source);
            let outcome = guest.run(&command(path, &tests)).expect("the guest answers");
            let Outcome { status, stdout, stderr, guest_s, kernel_log, .. } = outcome;
            println!("{source}: {} {guest_s:.0} s", result(&stdout));
            stdout.lines().filter(|line| line.contains("skipped: ")).for_each(|line| println!("  {line}"));
            if let Some(fault) = fault(status, &stdout, tests.len()) {
                println!("{stdout}\n{stderr}");
                red.push(format!("{source}: {fault}"));
            }
            // The log goes on from program to program.
            let warnings = kernel::warnings(&kernel_log);
            red.extend(warnings.iter().skip(warned).map(|line| format!("{source}: the kernel: {line}")));
            warned = warnings.len();
            told.insert(source.as_str(), stdout);
        }
        assert!(red.is_empty(), "{red:#?}");
        told
    }

    /// Tests of a program that are left out.
    fn tests_left_out(&self, source: &str) -> Vec<&str> {
        let rows = self.left_out.iter().filter(|row| row.source == source);
        rows.flat_map(|row| row.tests).copied().collect()
    }
}

/// Runs a test program without some of its tests.
fn command(program: &Path, left_out: &[&str]) -> String {
    let name = program.file_name().expect("a file has a name").to_string_lossy();
    let skips: String = left_out.iter().map(|test| format!(" --skip {test}")).collect();
    format!("{name} --nocapture{skips}")
}

/// The line with the counts of a test program.
fn result(stdout: &str) -> &str {
    stdout.lines().find(|line| line.starts_with("test result: ")).unwrap_or("no result")
}

/// What is wrong with a test program that said this, where so many of its tests were to be left out.
pub(crate) fn fault(status: i32, stdout: &str, left_out: usize) -> Option<String> {
    let (_, counts) = result(stdout).split_once(". ").unwrap_or_default();
    let count = |word: &str| -> Option<usize> {
        counts.split("; ").find_map(|part| part.strip_suffix(word))?.trim_end().parse().ok()
    };
    match (status, count("passed"), count("filtered out")) {
        (0, Some(1..), Some(filtered)) if filtered == left_out => None,
        (0, Some(1..), Some(filtered)) => {
            Some(format!("{filtered} of its tests were left out, {left_out} are named"))
        }
        (0, Some(0), _) => Some("no test ran".to_owned()),
        (0, ..) => Some("it gives no result".to_owned()),
        (status, ..) => Some(format!("status {status}")),
    }
}
