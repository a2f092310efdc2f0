//! All drivers on a processor without AES instructions, beside Linux's own: what conformance asks of them, and the tests of those that
//! other suites do not run there (the kernel's modules have a guest of their own, tests/kernel), in the test bed's x86-64 guest.

#![allow(clippy::print_stdout, reason = "what is skipped is said")]

mod support;

use std::process::Command;
use std::time::Duration;

use evener_testbed::{Guest, Profile};

use support::{LeftOut, Suite, fault, kernel};

const PACKAGES: [&str; 4] =
    ["evener-conformance", "evener-driver-virtio", "evener-driver-emulated", "evener-host"];

const LEFT_OUT: [LeftOut; 1] = [LeftOut::program(kernel::SOURCE, support::STARTS_GUESTS)];

/// Measured: 50 s, on a host with other work.
const GUEST_LIFE: Duration = Duration::from_secs(900);

#[test]
#[ignore = "a boot more, and minutes under emulation"]
fn all_drivers_do_in_the_x86_guest_what_they_do_here() {
    if let Err(reason) = evener_testbed::check(Profile::X86_64) {
        return println!("skipped: {reason}");
    }
    let suite = Suite::build(Command::new(env!("CARGO")), &PACKAGES, &LEFT_OUT);
    let builder = suite.bring(Guest::builder().limit(GUEST_LIFE).memory_mib(1_536));
    let Some(mut guest) = builder.boot_or_skip() else { return };
    suite.run(&mut guest);
    guest.shut_down().expect("the guest ends");
}

#[test]
fn a_program_that_runs_no_test_or_leaves_out_others_than_named_is_red() {
    let said = |counts: &str| format!("running 3 tests\n\ntest result: ok. {counts}; finished in 0.1s\n");
    let good = said("2 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out");
    assert_eq!(fault(0, &good, 1), None);
    assert_eq!(fault(101, &good, 1).as_deref(), Some("status 101"));
    let says = |left_out, word: &str| fault(0, &good, left_out).is_some_and(|fault| fault.contains(word));
    assert!(says(0, "1 of its tests were left out, 0 are named") && says(2, "2 are named"));
    let none = said("0 passed; 0 failed; 2 ignored; 0 measured; 1 filtered out");
    assert_eq!(fault(0, &none, 1).as_deref(), Some("no test ran"));
    assert_eq!(fault(0, "not found", 0).as_deref(), Some("it gives no result"));
}
