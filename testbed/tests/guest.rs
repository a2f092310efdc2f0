//! One guest, booted once: what a driver's tests rest on.
//!
//! Judges: NIST's vector in the probe, the host's openssl, and QEMU, which counts what its module did.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests are tests")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use evener_testbed::{Guest, Module, ModuleCounts};

const PROBE: &str = env!("CARGO_BIN_EXE_testbed-probe");
/// The first block of NIST SP 800-38A, F.2.1, is the probe's; these are key and IV of the same section.
const KEY: &str = "2b7e151628aed2a6abf7158809cf4f3c";
const IV: &str = "000102030405060708090a0b0c0d0e0f";

/// What the host's own libcrypto makes of `plain`.
fn encrypted_here(plain: &[u8]) -> Vec<u8> {
    let mut child = Command::new("openssl")
        .args(["enc", "-aes-128-cbc", "-K", KEY, "-iv", IV])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(plain).unwrap();
    child.wait_with_output().unwrap().stdout
}

#[test]
fn a_guest_has_a_module_that_works_and_tells_the_truth_about_commands() {
    let plain: Vec<u8> =
        (0..100_000_u32).map(|index| index.to_be_bytes()[3] ^ index.to_be_bytes()[2]).collect();
    let builder = Guest::builder().program(PROBE).file("/tmp-in/plain", plain.clone());
    let Some(mut guest) = builder.boot_or_skip() else { return };

    the_driver_binds_by_name_and_the_module_did_it(&mut guest);
    openssl_s_afalg_engine_encrypts_as_libcrypto_does(&mut guest, &plain);
    status_output_and_files_come_back(&mut guest);
    // Last, for nothing brings it back.
    without_the_driver_the_probe_finds_nothing_to_bind(&mut guest);
    guest.shut_down().unwrap();
}

fn the_driver_binds_by_name_and_the_module_did_it(guest: &mut Guest) {
    let before = counts(guest);
    let outcome = guest.run("testbed-probe").unwrap();
    outcome.expect_success();
    assert_eq!(outcome.kernel_log.warnings(), [""; 0]);
    assert_encrypted(guest, before, 16);
}

fn openssl_s_afalg_engine_encrypts_as_libcrypto_does(guest: &mut Guest, plain: &[u8]) {
    let before = counts(guest);
    let files = "-in /tmp-in/plain -out /out/encrypted";
    let command = format!("openssl enc -engine afalg -aes-128-cbc -K {KEY} -iv {IV} {files}");
    let outcome = guest.run(&command).unwrap();
    outcome.expect_success();
    assert_eq!(outcome.files["encrypted"], encrypted_here(plain));
    let padded = plain.len() / 16 * 16 + 16;
    assert_encrypted(guest, before, u64::try_from(padded).unwrap());
}

/// What the module did until now; `None` with QEMU 7, which does not count.
fn counts(guest: &Guest) -> Option<ModuleCounts> {
    guest.qmp().unwrap().module_counts().ok()
}

/// Between `before` and now the module itself encrypted just so many bytes, and decrypted none.
fn assert_encrypted(guest: &Guest, before: Option<ModuleCounts>, bytes: u64) {
    let (Some(before), Some(now)) = (before, counts(guest)) else {
        return println!("skipped: this QEMU does not count");
    };
    assert_eq!(now.encrypted_bytes - before.encrypted_bytes, bytes);
    assert!(now.encrypted_count > before.encrypted_count);
    assert_eq!(now.decrypted_count, before.decrypted_count);
}

fn status_output_and_files_come_back(guest: &mut Guest) {
    let outcome = guest
        .run("echo said; echo complained >&2; mkdir /out/below; printf '\\0\\377' > /out/below/file; exit 7")
        .unwrap();
    assert_eq!((outcome.status, &*outcome.stdout, &*outcome.stderr), (7, "said\n", "complained\n"));
    assert_eq!(outcome.files, [("below/file".to_owned(), vec![0, 255])].into());
    // Nothing of one command is left to the next.
    let outcome = guest.run("ls /out").unwrap();
    assert_eq!((outcome.status, &*outcome.stdout, outcome.files.len()), (0, "", 0));
}

fn without_the_driver_the_probe_finds_nothing_to_bind(guest: &mut Guest) {
    let outcome = guest.run("rmmod virtio_crypto && testbed-probe").unwrap();
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(outcome.stdout.contains(r#""error":"ENOENT: No such file or directory""#), "{}", outcome.stdout);
}

#[test]
#[ignore = "a boot more"]
fn a_guest_without_a_module_fails_the_probe() {
    let Some(mut guest) = Guest::builder().module(Module::None).program(PROBE).boot_or_skip() else { return };
    assert_eq!(guest.run("testbed-probe").unwrap().status, 2);
}
