//! ARM's processors, of 32 bits and of 64: the tests of what runs there are built for them and run in the test bed's guests, whose kernels
//! have a crypto module. OpenSSL's own tests of the provider do the same in conformance/openssl.

#![allow(clippy::print_stdout, reason = "what is skipped is said")]

mod support;

use std::fs;
use std::path::Path;
use std::time::Duration;

use evener_testbed::{Builder, Guest, Profile, Toolchain};

use support::{HAS_NO_TESTS, LeftOut, Suite, kernel};

const PACKAGES: [&str; 10] = [
    "evener-core",
    "evener-ring",
    "evener-driver-libcrypto",
    "evener-driver-kernel",
    "evener-driver-virtio",
    "evener-driver-emulated",
    "evener",
    "evener-provider",
    "evener-host",
    "evener-conformance",
];

/// What neither guest runs.
const LEFT_OUT: [LeftOut; 13] = [
    LeftOut::tests(kernel::SOURCE, &[kernel::IN_THE_GUEST], support::STARTS_GUESTS),
    LeftOut::program("crates/evener-ring/tests/loom.rs", HAS_NO_TESTS),
    LeftOut::program("crates/evener-ring/tests/loom_lend.rs", HAS_NO_TESTS),
    LeftOut::tests(
        "drivers/emulated/tests/module.rs",
        &["d_is_core_time_and_everything_that_the_driver_does_is_in_it", "waiting_does_not_burn_the_core"],
        NEEDS_A_CORE,
    ),
    LeftOut::tests(
        "drivers/kernel/src/lib.rs",
        &["a_module_has_as_many_units_as_requests_that_it_was_seen_to_work_on_side_by_side"],
        NEEDS_A_CORE,
    ),
    LeftOut::program("crates/evener/tests/adaptive.rs", NEEDS_A_CORE),
    LeftOut::program("crates/evener/tests/readmission.rs", NEEDS_A_CORE),
    LeftOut::program("crates/evener/tests/shared_modules.rs", NEEDS_A_CORE),
    LeftOut::tests(
        "crates/evener-provider/tests/guard.rs",
        &[
            "jobs_go_together_beside_a_module_that_takes_none_of_them",
            "lanes_that_are_too_slow_are_locked_out_of_jobs",
        ],
        NEEDS_A_CORE,
    ),
    LeftOut::tests(
        "crates/evener-host/tests/interruptions.rs",
        &["messages_that_come_in_single_bytes_between_signals_are_understood"],
        NEEDS_A_CORE,
    ),
    // One run may be over before the other's threads have begun.
    LeftOut::tests(
        "crates/evener/tests/module_turns.rs",
        &["two_runs_are_at_a_module_in_turns_and_neither_has_to_end_for_the_other"],
        NEEDS_A_CORE,
    ),
    // Beside 64 hostile threads a good client may not get the only core for the two seconds in which it has to say something.
    LeftOut::tests(
        "crates/evener-host/tests/users.rs",
        &["a_good_users_client_has_its_place_and_all_its_requests_beside_64_hostile_ones_of_another"],
        NEEDS_A_CORE,
    ),
    LeftOut::tests("drivers/virtio/tests/module.rs", &["a_host_that_is_awake_is_not_kicked"], NEEDS_A_CORE),
];

/// What the one of 32 bits does not run besides.
const LEFT_OUT_ON_32_BITS: [LeftOut; 3] = [
    LeftOut::program(
        "crates/evener-ring/tests/virtqueue_mapped.rs",
        "its judge is for 64-bit processors only",
    ),
    LeftOut::tests(
        "crates/evener/tests/combine.rs",
        &["many_threads_that_combine_each_get_what_libcrypto_gives"],
        FEW_MEET,
    ),
    LeftOut::tests(
        "crates/evener-provider/tests/combine.rs",
        &[
            "tls_records_of_several_threads_are_combined",
            "updates_that_begin_and_end_within_a_block_are_combined",
        ],
        FEW_MEET,
    ),
];

/// On ARM's processors they run where a processor alone is emulated: `./x test-full arm`.
const NEEDS_A_CORE: &str = "its programmed times are for a core that changes threads in microseconds, not in tenths of a millisecond";

const FEW_MEET: &str =
    "few of its threads meet where one emulated core changes them while each still makes its text";

/// Of the host's tests that spoil seeds: where they look for them.
const SEEDS: [&str; 2] = ["fuzz/seeds/host_chains", "fuzz/seeds/host_control"];

/// An emulated processor takes up to a minute for what a real one does in a second.
const GUEST_LIFE: Duration = Duration::from_secs(3_600);

#[test]
#[ignore = "builds for another processor, and runs for minutes under emulation"]
fn on_32_bit_arm_all_that_runs_there_does_what_it_does_here() {
    does_what_it_does_here(Profile::Armv7, &LEFT_OUT_ON_32_BITS);
}

#[test]
#[ignore = "builds for another processor, and runs for minutes under emulation"]
fn on_aarch64_all_that_runs_there_does_what_it_does_here() {
    does_what_it_does_here(Profile::Aarch64, &[]);
}

fn does_what_it_does_here(profile: Profile, more_left_out: &'static [LeftOut]) {
    let toolchain = match Toolchain::find(profile) {
        Ok(toolchain) => toolchain,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let left_out = LEFT_OUT.iter().chain(more_left_out);
    let suite = Suite::build(toolchain.cargo(env!("CARGO")), &PACKAGES, left_out);
    let builder = Guest::builder().profile(profile).limit(GUEST_LIFE).memory_mib(1_536);
    let module = fs::read(toolchain.built().join("deps/libevener_provider.so")).expect("cargo built it");
    let builder = with_seeds(kernel::with_modules(builder.file("/payload/libevener_provider.so", module)));
    let Some(mut guest) = suite.bring(builder).boot_or_skip() else { return };
    let told = suite.run(&mut guest);
    kernel::expect_modules(&told[kernel::SOURCE]);
    guest.shut_down().expect("the guest ends");
}

/// Puts the seeds of tests where they are here.
fn with_seeds(mut builder: Builder) -> Builder {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a package lies in the checkout");
    for folder in SEEDS {
        for entry in fs::read_dir(root.join(folder)).expect("there are seeds") {
            let path = entry.expect("a folder is read").path();
            builder = builder
                .file(path.to_str().expect("a path is text"), fs::read(&path).expect("a seed is read"));
        }
    }
    builder
}
