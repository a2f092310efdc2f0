//! ARM's processors, emulated: the tests of what computes, and random calls through OpenSSL, on a processor that QEMU plays alone.
//!
//! Steps, for each profile: compilers for it (`evener_testbed::Toolchain`) -> the tests of [`PACKAGES`], each program by the emulator ->
//! `differential`, the same calls with Evener and without. A guest with a kernel of its own runs what needs a module, and evp_test
//! (`conformance/tests/arm.rs`, `conformance/openssl/tests/arm.rs`). What they compute is judged, and nothing of how fast.

use std::process::Command;

use evener_testbed::{Error, Profile, Toolchain};

use super::Tally;

/// A processor and who plays it.
struct Arm {
    name: &'static str,
    profile: Profile,
    emulator: &'static str,
    /// How cargo names who runs its programs.
    runner: &'static str,
}

const ARMS: [Arm; 2] = [
    Arm {
        name: "aarch64",
        profile: Profile::Aarch64,
        emulator: "qemu-aarch64",
        runner: "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER",
    },
    Arm {
        name: "armv7",
        profile: Profile::Armv7,
        emulator: "qemu-arm",
        runner: "CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_RUNNER",
    },
];

/// What holds kernels, lanes, formats and costs, and what stands between them and libcrypto.
const PACKAGES: [&str; 9] = [
    "evener-core",
    "evener-kernels",
    "evener-ring",
    "evener-evp",
    "evener-driver-lanes",
    "evener-driver-libcrypto",
    "evener-driver-emulated",
    "evener-files",
    "evener",
];

/// Runs them all; what is not installed is named.
pub(super) fn run(tally: &mut Tally) {
    for arm in &ARMS {
        let step = format!("tests on {}, emulated", arm.name);
        if !Command::new(arm.emulator).arg("--version").output().is_ok_and(|output| output.status.success()) {
            tally.print(&format!("skipped: {step} (needs the package qemu-user)"));
            continue;
        }
        match Toolchain::fetch(arm.profile) {
            Err(error @ (Error::Packages(_) | Error::Program { .. })) => {
                tally.print(&format!("skipped: {step} ({error})"));
            }
            Err(error) => tally.fail(&format!("{step}: {error}")),
            Ok(toolchain) => {
                tally.run_tests(&step, tests(arm, &toolchain));
                tally.run_tests(
                    &format!("random calls on {}, emulated", arm.name),
                    random_calls(arm, &toolchain),
                );
            }
        }
    }
}

fn cargo(arm: &Arm, toolchain: &Toolchain) -> Command {
    let mut command = toolchain.cargo("cargo");
    command.env(arm.runner, toolchain.emulation(arm.emulator));
    command
}

fn tests(arm: &Arm, toolchain: &Toolchain) -> Command {
    let mut command = cargo(arm, toolchain);
    command.args(["test", "--no-fail-fast", "--lib", "--tests"]);
    command.args(PACKAGES.iter().flat_map(|name| ["-p", name]));
    command
}

/// The same calls with Evener and without, on two threads and in forks of the emulated process.
fn random_calls(arm: &Arm, toolchain: &Toolchain) -> Command {
    let mut command = cargo(arm, toolchain);
    command.args(["test", "-p", "evener-conformance-openssl", "--test", "differential"]);
    // libcrypto looks for its own modules where the guest has them.
    command.env("OPENSSL_MODULES", toolchain.libraries().join("ossl-modules"));
    command
}
