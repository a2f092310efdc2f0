//! A 32-bit processor: the tests of what runs there are built for it and run in the test bed's ARM guest, whose kernel has
//! a crypto module. OpenSSL's own tests of the provider do the same in conformance/openssl.

#![allow(clippy::print_stdout, reason = "what is skipped is said")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use evener_testbed::{Guest, Profile, Toolchain};

/// Built in one call, so that cargo builds nothing twice.
const PACKAGES: [&str; 7] = [
    "evener-core",
    "evener-ring",
    "evener-driver-libcrypto",
    "evener-driver-kernel",
    "evener",
    "evener-provider",
    "evener-conformance",
];

/// An emulated processor takes up to a minute for what a real one does in a second.
const GUEST_LIFE: Duration = Duration::from_secs(1_800);

#[test]
#[ignore = "builds for another processor, and runs for minutes under emulation"]
fn on_32_bit_arm_all_that_runs_there_does_what_it_does_here() {
    let toolchain = match Toolchain::find(Profile::Armv7) {
        Ok(toolchain) => toolchain,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let words: Vec<&str> =
        ["--lib", "--tests"].into_iter().chain(PACKAGES.iter().flat_map(|&name| ["-p", name])).collect();
    let programs = toolchain.tests(env!("CARGO"), &words).expect("they build");
    let builder = Guest::builder().profile(Profile::Armv7).limit(GUEST_LIFE).memory_mib(1_536);
    let module = fs::read(toolchain.built().join("deps/libevener_provider.so")).expect("cargo built it");
    let builder = builder.file("/payload/libevener_provider.so", module);
    let builder = programs.iter().fold(builder, |builder, program| builder.program(program));
    let Some(mut guest) = builder.boot_or_skip() else { return };
    let red: Vec<String> =
        programs.iter().filter(|program| !is_green(&mut guest, program)).map(name).collect();
    assert!(red.is_empty(), "{red:?}");
    guest.shut_down().expect("the guest ends");
}

fn is_green(guest: &mut Guest, program: &PathBuf) -> bool {
    let name = name(program);
    let outcome = guest.run(&format!("{name} --nocapture --skip in_the_guest")).expect("the guest answers");
    let result = outcome.stdout.lines().find(|line| line.starts_with("test result: ")).unwrap_or("no result");
    println!("{name}: {result} {:.0} s", outcome.guest_s);
    if outcome.status != 0 {
        println!("{}\n{}", outcome.stdout, outcome.stderr);
    }
    outcome.status == 0
}

fn name(path: &PathBuf) -> String {
    Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned()
}
