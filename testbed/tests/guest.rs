//! One guest, booted once: what a driver's tests rest on. Guests of other kinds are booted by the full run only.
//!
//! Judges: NIST's vector in the probe, the host's openssl, and QEMU, which counts what its module did.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests are tests")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use evener_testbed::{Error, Guest, Module, ModuleCounts, Throttle, USER_SPACE_MODULE};
use serde_json::json;

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
    let builder = Guest::builder().program(PROBE).file("/data/plain", plain.clone());
    let Some(mut guest) = builder.host_loopback().in_common().boot_or_skip() else { return };

    the_driver_binds_by_name_and_the_module_did_it(&mut guest);
    openssl_s_afalg_engine_encrypts_as_libcrypto_does(&mut guest, &plain);
    a_throttled_module_is_slow_until_it_is_let_go(&mut guest);
    status_output_and_files_come_back(&mut guest);
    host_and_guest_share_a_folder(&mut guest);
    the_guest_reaches_the_host_s_loopback_and_nothing_else(&mut guest);
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
    let outcome = guest.run(&encrypt_by_afalg()).unwrap();
    outcome.expect_success();
    assert_eq!(outcome.files["encrypted"], encrypted_here(plain));
    assert_encrypted(guest, before, padded(plain.len()));
}

fn encrypt_by_afalg() -> String {
    format!("openssl enc -engine afalg -aes-128-cbc -K {KEY} -iv {IV} -in /data/plain -out /out/encrypted")
}

/// Bytes that CBC makes of `len` ones.
fn padded(len: usize) -> u64 {
    u64::try_from(len / 16 * 16 + 16).unwrap()
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

fn a_throttled_module_is_slow_until_it_is_let_go(guest: &mut Guest) {
    let mut qmp = guest.qmp().unwrap();
    let throttle = Throttle { bytes_per_s: 50_000, ops_per_s: 0 };
    if let Err(Error::Refused { .. }) = qmp.throttle(throttle) {
        return println!("skipped: this QEMU has no throttle");
    }
    // 100 KB at 50 KB/s, less what a bucket of 100 ms and the last request let pass: it can only take longer than this.
    assert!(guest.run(&encrypt_by_afalg()).unwrap().guest_s > 1.0);
    guest.start(&encrypt_by_afalg()).unwrap();
    qmp.throttle(Throttle::default()).unwrap();
    guest.finish().unwrap().expect_success();
    let rate = json!({ "path": "/objects/cryptodev0", "property": "throttle-bps" });
    assert_eq!(qmp.command("qom-get", rate).unwrap(), 0);
}

fn status_output_and_files_come_back(guest: &mut Guest) {
    let command =
        "echo said; echo complained >&2; mkdir /out/below; printf '\\0\\377' > /out/below/file; exit 7";
    let outcome = guest.run(command).unwrap();
    assert_eq!((outcome.status, &*outcome.stdout, &*outcome.stderr), (7, "said\n", "complained\n"));
    assert_eq!(outcome.files, [("below/file".to_owned(), vec![0, 255])].into());
    // Nothing of one command is left to the next.
    let outcome = guest.run("ls /out").unwrap();
    assert_eq!((outcome.status, &*outcome.stdout, outcome.files.len()), (0, "", 0));
}

fn host_and_guest_share_a_folder(guest: &mut Guest) {
    let folder = guest.shared_folder();
    fs::write(folder.join("asked"), "from the host").unwrap();
    guest.run("cat /share/asked && echo from the guest > /share/answered").unwrap().expect_success();
    assert_eq!(fs::read_to_string(folder.join("answered")).unwrap(), "from the guest\n");
}

fn the_guest_reaches_the_host_s_loopback_and_nothing_else(guest: &mut Guest) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    guest.start(&format!("echo hello | nc 10.0.2.2 {port}; ip route")).unwrap();
    let mut stream = (0..6000).find_map(|_| {
        thread::sleep(Duration::from_millis(10));
        listener.accept().ok().map(|(stream, _)| stream)
    });
    let stream = stream.as_mut().unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut heard = [0; 6];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"hello\n");
    stream.shutdown(Shutdown::Both).unwrap();
    let outcome = guest.finish().unwrap();
    assert_eq!(outcome.expect_success().trim(), "10.0.2.0/24 dev eth0 scope link  src 10.0.2.15");
}

fn without_the_driver_the_probe_finds_nothing_to_bind(guest: &mut Guest) {
    let outcome = guest.run("rmmod virtio_crypto && testbed-probe").unwrap();
    guest.run("modprobe virtio_crypto && testbed-probe").unwrap().expect_success();
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(outcome.stdout.contains(r#""error":"ENOENT: No such file or directory""#), "{}", outcome.stdout);
}

#[test]
#[ignore = "a boot more"]
fn a_guest_is_lent_to_one_after_the_other_and_goes_back_as_it_came() {
    let lent = match Guest::builder().lend() {
        Ok(lent) => lent,
        Err(error) if error.is_absence() => return println!("skipped: {error}"),
        Err(error) => unreachable!("{error}"),
    };
    let this = std::env::current_exe().unwrap();
    let borrow = |test: &str, owner: &str| {
        let mut command = Command::new(&this);
        command.args(["--ignored", "--exact", "--nocapture", test]).envs([lent.variable()]).env(OWNER, owner);
        assert!(command.status().unwrap().success(), "{test}");
    };
    borrow("a_borrower", "lent");
    borrow("a_borrower", "lent");
    borrow("a_borrower_who_leaves_in_the_middle", "lent");
    borrow("a_borrower", "its own");
}

/// Names the variable that says whose guest a borrower is to find.
const OWNER: &str = "GUEST_TEST_WHOSE";

#[test]
#[ignore = "a part of another one, which lends it a guest"]
fn a_borrower() {
    let Ok(owner) = std::env::var(OWNER) else { return println!("skipped: {OWNER} is not set") };
    let builder = Guest::builder().program(PROBE).file("/data/of-ours", "brought").kernel_module("cuse");
    let Some(mut guest) = builder.in_common().boot_or_skip() else { return };
    assert_eq!(guest.boot_s == 0.0, owner == "lent");
    let left = guest.run("ls /data /tmp /share").unwrap();
    assert!(!left.stdout.contains("left"), "what the last one left: {}", left.stdout);
    let command = "testbed-probe && [ -c /dev/cuse ] && cat /data/of-ours && touch /tmp/left /share/left";
    assert!(guest.run(command).unwrap().expect_success().ends_with("brought"));
    assert!(guest.shared_folder().join("left").exists());
    guest.shut_down().unwrap();
}

#[test]
#[ignore = "a part of another one, which lends it a guest"]
fn a_borrower_who_leaves_in_the_middle() {
    let Ok(owner) = std::env::var(OWNER) else { return println!("skipped: {OWNER} is not set") };
    let Some(mut guest) = Guest::builder().in_common().boot_or_skip() else { return };
    assert_eq!((guest.boot_s == 0.0, &*owner), (true, "lent"));
    guest.start("sleep 1000").unwrap();
}

#[test]
#[ignore = "a boot more"]
fn a_module_for_user_space_is_vfio_s_alone_and_the_kernel_drives_its_own() {
    let Some(mut guest) = Guest::builder().user_space_module().program(PROBE).boot_or_skip() else { return };
    let device = format!("/sys/bus/pci/devices/{USER_SPACE_MODULE}");
    let look = format!(
        "set -e; basename $(readlink {device}/driver); ls {device}/iommu_group/devices
        test -c /dev/vfio/vfio; test -c /dev/vfio/$(basename $(readlink {device}/iommu_group))"
    );
    // Alone in its group: else the group could not be opened while the kernel has the others.
    let found = guest.run(&look).unwrap();
    assert_eq!(found.expect_success(), format!("vfio-pci\n{USER_SPACE_MODULE}\n"));
    assert!(found.kernel_log.0.contains("DMAR-IR: Enabled IRQ remapping"), "{}", found.kernel_log.0);
    the_driver_binds_by_name_and_the_module_did_it(&mut guest);
    let Ok(counts) = guest.qmp().unwrap().user_space_module_counts() else {
        return println!("skipped: this QEMU does not count");
    };
    assert_eq!(counts, ModuleCounts::default(), "no request reached it, not even of the kernel's own tests");
}

#[test]
#[ignore = "a boot more"]
fn a_guest_without_a_module_fails_the_probe() {
    let Some(mut guest) = Guest::builder().module(Module::None).program(PROBE).boot_or_skip() else { return };
    assert_eq!(guest.run("testbed-probe").unwrap().status, 2);
}

#[test]
#[ignore = "a boot more"]
fn a_guest_that_does_not_answer_is_ended_at_its_limit() {
    let Some(mut guest) = Guest::builder().limit(Duration::from_secs(40)).boot_or_skip() else { return };
    assert!(matches!(guest.run("sleep 1000"), Err(Error::TimeLimit { .. })));
}

#[test]
#[ignore = "a boot more"]
fn a_kernel_that_panics_is_an_error_with_its_last_words() {
    let Some(mut guest) = Guest::builder().boot_or_skip() else { return };
    match guest.run("echo c > /proc/sysrq-trigger") {
        Err(Error::Ended { console, .. }) => assert!(console.contains("sysrq triggered crash"), "{console}"),
        other => unreachable!("{other:?}"),
    }
}
