//! ARM's processors, emulated: the tests of what computes, on a processor that QEMU plays alone.
//!
//! Steps, for each profile: compilers for it (`evener_testbed::Toolchain`) -> the tests of the kernels and of [`PACKAGES`], each
//! program by the emulator. A guest with a kernel of its own runs what needs a module, and evp_test
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

/// Of the kernels' tests those of what they compute: the others look at code as it is released, or at time.
const OF_KERNELS: [&str; 3] = ["gcm", "lanes", "modes"];

/// What holds lanes and costs, and what stands between them and libcrypto. Not `evener-files`
/// and `evener-ring`: this emulator has neither `openat2` nor memory that a fork wipes.
const PACKAGES: [&str; 6] = [
    "evener-core",
    "evener-evp",
    "evener-driver-lanes",
    "evener-driver-libcrypto",
    "evener-driver-emulated",
    "evener",
];

/// Not run: they ask what an emulated process cannot tell, with the reason.
const LEFT_OUT: [(&str, &str); 3] = [
    (
        "the_provider_of_an_algorithm_is_named_as_the_library_names_it",
        "the command openssl is the host's, the library another",
    ),
    (
        "a_run_without_workers_starts_no_thread_and_its_callers_work_until_it_is_closed",
        "the threads of the process are the emulator's, too",
    ),
    (
        "d_is_core_time_and_everything_that_the_driver_does_is_in_it",
        "what the driver does takes the emulator far longer than the time that it is given",
    ),
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
                for (test, why) in LEFT_OUT {
                    tally.print(&format!("skipped: {step}, {test}: {why}"));
                }
                tally.run_tests(&format!("kernels on {}, emulated", arm.name), kernels(arm, &toolchain));
                tally.run_tests(&step, tests(arm, &toolchain));
            }
        }
    }
}

fn cargo(arm: &Arm, toolchain: &Toolchain) -> Command {
    let mut command = toolchain.cargo("cargo");
    command.env(arm.runner, toolchain.emulation(arm.emulator));
    command
}

fn kernels(arm: &Arm, toolchain: &Toolchain) -> Command {
    let mut command = cargo(arm, toolchain);
    command.args(["test", "--no-fail-fast", "-p", "evener-kernels", "--lib"]);
    command.args(OF_KERNELS.iter().flat_map(|name| ["--test", name]));
    command
}

fn tests(arm: &Arm, toolchain: &Toolchain) -> Command {
    let mut command = cargo(arm, toolchain);
    command.args(["test", "--no-fail-fast", "--lib", "--tests"]);
    command.args(PACKAGES.iter().flat_map(|name| ["-p", name]));
    command.arg("--").args(LEFT_OUT.iter().flat_map(|(test, _)| ["--skip", test]));
    command
}
