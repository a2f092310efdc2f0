//! The provider's own tests, watched by valgrind: nothing is read before it was written or outside its memory.
//!
//! And short messages take no more instructions than they may.
//!
//! Steps: is it here -> the tests of `evener-provider`, the programs that they start included -> what it finds is printed
//! where they expect silence, and fails them. Valgrind 3.19 knows no vector registers of 512 bits, so that lanes are
//! skipped under it.

use std::process::Command;

use super::Tally;
use crate::tree::cargo;

/// Prints nothing where nothing is wrong. Leaks are left to `conformance/openssl/tests/valgrind.rs`: these tests do not unload
/// their providers. Fair scheduling, because threads that wait for each other by spinning take turns on its one core.
const RUNNER: &str = "target.'cfg(all())'.runner = ['valgrind', '--quiet', '--error-exitcode=9', \
    '--trace-children=yes', '--leak-check=no', '--fair-sched=yes']";

/// Runs them where valgrind is installed.
pub(super) fn run(tally: &mut Tally) {
    if !Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return tally.print("skipped: the provider's tests under valgrind (Debian: valgrind)");
    }
    let mut command = cargo();
    command.args(["test", "--no-fail-fast", "-p", "evener-provider", "--tests", "--config", RUNNER]);
    tally.run_tests("the provider's tests under valgrind", command);
    tally.check("instructions of short messages", &["xtask", "tidy", "xtask"], &["xtask", "instructions"]);
}
