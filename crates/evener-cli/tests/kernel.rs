//! Modules behind the kernel as users meet them: the command in a guest of the test bed, where there is a crypto module, and a
//! node of `evener cryptodev`, which OpenSSL's own engine for `/dev/crypto` uses as a foreign client.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests; what is skipped is said"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use evener_testbed::Guest;
use serde_json::Value;

const EVENER: &str = env!("CARGO_BIN_EXE_evener");
const SETTING: &str = "export HOME=/tmp EVENER_CACHE_DIR=/tmp/costs";
const LIFE: Duration = Duration::from_secs(500);
/// Times that what threads' clocks miss is measured at most.
const MEASURED_MAX: u32 = 3;
const ENGINE: &str = "/engine/devcrypto.so";

#[test]
fn modules_behind_the_kernel_serve_the_command_and_old_clients() {
    let text: Vec<u8> =
        (0..300_000_u32).map(|place| place.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    let builder =
        Guest::builder().program(EVENER).file("/text/plain", text).kernel_module("cuse").limit(LIFE);
    let engine = engine();
    let builder = match &engine {
        Some(bytes) => builder.file(ENGINE, bytes.clone()),
        None => builder,
    };
    let Some(mut guest) = builder.in_common().boot_or_skip() else { return };
    the_module_is_listed_and_explained(&mut guest);
    the_kernel_has_nothing_to_warn_of(&mut guest);
    the_module_takes_part_in_a_bench(&mut guest);
    the_kernel_has_nothing_to_warn_of(&mut guest);
    a_host_serves_the_module(&mut guest);
    the_kernel_has_nothing_to_warn_of(&mut guest);
    a_node_serves_old_clients(&mut guest, engine.is_some());
    the_kernel_has_nothing_to_warn_of(&mut guest);
    pieces_are_left_with_a_node_where_that_pays(&mut guest);
    the_kernel_has_nothing_to_warn_of(&mut guest);
    a_machine_without_cuse_is_told_so_in_one_sentence(&mut guest);
    the_kernel_has_nothing_to_warn_of(&mut guest);
    guest.shut_down().unwrap();
}

fn the_kernel_has_nothing_to_warn_of(guest: &mut Guest) {
    assert_eq!(guest.run("true").unwrap().kernel_log.warnings(), [""; 0]);
}

fn the_module_is_listed_and_explained(guest: &mut Guest) {
    let outcome = guest.run(&format!("{SETTING}; evener devices")).unwrap();
    let output = outcome.expect_success();
    assert!(output.contains("afalg:virtio_crypto_aes_cbc: cbc(aes)\n"), "{output}");
    assert!(output.contains("devcrypto: none: there is no /dev/crypto"), "{output}");
    // Where others keep the host busy the module is as slow as the core seems, and one measurement finds nothing: up to three, then.
    let factor_shown = (0..MEASURED_MAX).find_map(|_| factor(guest));
    assert!(factor_shown.is_some_and(|factor| factor.is_none_or(|factor| factor > 1.0)), "{factor_shown:?}");
}

/// What threads' clocks miss of a module's core time, as a factor; `None` where the measurement found nothing, and the factor
/// is none where it says that it could not be made.
fn factor(guest: &mut Guest) -> Option<Option<f64>> {
    let module = "--module afalg:virtio_crypto_aes_cbc --algorithm AES-128-CBC --size 16384 --burst 64";
    let outcome =
        guest.run(&format!("{SETTING}; evener devices --forget >&2 && evener explain {module}")).unwrap();
    let output = outcome.expect_success();
    if output.contains("too busy to measure") {
        println!("skipped: the host was too busy to measure what threads' clocks miss");
        return Some(None);
    }
    let factor = output.split_once("; d is x ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    assert!(factor.is_some(), "{output}");
    factor.filter(|&factor| factor > 1.0).map(Some)
}

fn the_module_takes_part_in_a_bench(guest: &mut Guest) {
    let arguments = "--module afalg:virtio_crypto_aes_cbc --sizes 16384 --count 60 --runs 1";
    let policies = "--policies module_only,adaptive --json /out/bench.json";
    let command = format!("{SETTING}; evener bench crypt {arguments} {policies}");
    let before = counted_by_qemu(guest);
    let outcome = guest.run(&command).unwrap();
    outcome.expect_success();
    // Each contender's output was compared with libcrypto's, or there would be no report.
    let report: Value = serde_json::from_slice(&outcome.files["bench.json"]).unwrap();
    let requests = report["module_requests"][0][1].as_u64().unwrap();
    // One round by the module alone, and another that is compared.
    assert!(requests >= 120, "{requests} requests");
    match (before, counted_by_qemu(guest)) {
        (Some(before), Some(after)) => assert_eq!(requests, after - before, "what the run counts, and QEMU"),
        _ => println!("skipped: this QEMU does not count"),
    }
}

/// To a program that compares each result with libcrypto's.
fn a_host_serves_the_module(guest: &mut Guest) {
    let serve = "evener host --socket /tmp/host --module afalg:virtio_crypto_aes_cbc >/out/host.json 2>/tmp/host.log &";
    let begun = "host=$!; until grep -q serving /tmp/host.log; do kill -0 $host || exit 1; sleep 0.1; done";
    let arguments = "--module hosted:/tmp/host --sizes 16384 --count 40 --runs 1 --policies module_only";
    let end = "kill -TERM $host; wait $host";
    let outcome =
        guest.run(&format!("{SETTING}; {serve} {begun}; evener bench crypt {arguments} && {end}")).unwrap();
    outcome.expect_success();
    let report: Value = serde_json::from_slice(&outcome.files["host.json"]).unwrap();
    assert_eq!(report["module"]["name"], "afalg:virtio_crypto_aes_cbc");
    assert_eq!((&report["totals"]["failed"], &report["module"]["gone"]), (&0.into(), &false.into()));
    // Those of the bench, and known answers.
    assert!(report["totals"]["requests"].as_u64().unwrap() > 80, "{report:#}");
}

fn counted_by_qemu(guest: &Guest) -> Option<u64> {
    let counts = guest.qmp().unwrap().module_counts().ok()?;
    Some(counts.encrypted_count + counts.decrypted_count)
}

fn a_node_serves_old_clients(guest: &mut Guest, has_engine: bool) {
    serve(guest, "--policy cpu_only");
    if has_engine {
        the_foreign_engine_gives_what_openssl_gives(guest);
    } else {
        println!("skipped: no source of OpenSSL under target/foreign (./x prepare), so no foreign client");
    }
    // Our own driver on our own node: known answers when it is opened, every result compared.
    let arguments =
        "--module devcrypto:/dev/crypto --sizes 1024,16384 --count 40 --runs 1 --policies module_only";
    guest.run(&format!("{SETTING}; evener bench crypt {arguments}")).unwrap().expect_success();
    let [served, left] = stopped(guest);
    // 80 jobs of the bench; the engine hands over 8 KiB at a time, three ciphers both ways.
    let expected = if has_engine { 80 + 6 * 300_000 / 8_192 } else { 80 };
    assert!(served >= expected + left, "{served} requests");
}

/// Ends the node; requests that it served, and those of them that were left with it.
fn stopped(guest: &mut Guest) -> [u64; 2] {
    let stop = "kill -TERM $(pidof evener); while [ -c /dev/crypto ]; do sleep 0.1; done";
    guest.run(stop).unwrap().expect_success();
    let log = guest.run("sleep 1; cat /tmp/node.log").unwrap();
    let log_text = log.expect_success();
    assert!(log_text.contains("each request takes hundreds of microseconds"), "its user is told: {log_text}");
    let line = log_text.lines().find_map(|line| line.split_once("served "));
    let numbers: Vec<u64> = line.unwrap().1.split(' ').filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().unwrap()
}

/// Behind this node requests side by side are four times as fast; each result is compared with libcrypto's.
fn pieces_are_left_with_a_node_where_that_pays(guest: &mut Guest) {
    serve(guest, "--policy module_only --module emulated:d=0+0,h=20000000+0,units=4,depth=4");
    let outcome = guest.run(&format!("{SETTING}; evener devices --module devcrypto")).unwrap();
    let output = outcome.expect_success();
    assert!(output.contains("OCF with CIOCASYNCCRYPT, evener"), "{output}");
    let arguments = "--module devcrypto --algorithm AES-128-CTR --sizes 131072 --count 20 --runs 1";
    let command = format!("{SETTING}; evener bench crypt {arguments} --policies module_only");
    guest.run(&command).unwrap().expect_success();
    let [served, left] = stopped(guest);
    // Of 80 pieces those of the requests that had the key's queue, one of two that are on their way; and those of two trials.
    assert!(left >= 20 + 2 * 3 * 4 && served > left, "{left} of {served} were left");
}

/// Starts a node.
fn serve(guest: &mut Guest, options: &str) {
    let serve = format!("evener cryptodev --name crypto {options} >/tmp/node.log 2>&1");
    let start = format!("{SETTING}; {serve} & until [ -c /dev/crypto ]; do sleep 0.1; done");
    guest.run(&start).unwrap().expect_success();
}

fn the_foreign_engine_gives_what_openssl_gives(guest: &mut Guest) {
    let key = "-K 2b7e151628aed2a6abf7158809cf4f3c -iv 000102030405060708090a0b0c0d0e0f";
    for cipher in ["aes-128-cbc", "aes-128-ctr", "aes-128-ecb"] {
        let run = |options: &str| format!("openssl enc -{cipher} {key} {options}");
        let by_engine = format!("-engine {ENGINE} -in /text/plain -out /tmp/by-engine");
        let opened = format!("-d -engine {ENGINE} -in /tmp/by-openssl -out /tmp/opened");
        let command = format!(
            "set -e; {}; {}; cmp /tmp/by-openssl /tmp/by-engine; {}; cmp /tmp/opened /text/plain",
            run("-in /text/plain -out /tmp/by-openssl"),
            run(&by_engine),
            run(&opened)
        );
        let outcome = guest.run(&command).unwrap();
        outcome.expect_success();
        // An engine that found no device would have left the cipher to OpenSSL itself.
        assert!(!outcome.stderr.contains("Could not open"), "{}", outcome.stderr);
    }
}

fn a_machine_without_cuse_is_told_so_in_one_sentence(guest: &mut Guest) {
    let outcome = guest.run("evener cryptodev --name no/node").unwrap();
    assert_eq!((outcome.status, outcome.stderr.contains("no/node")), (2, true), "{}", outcome.stderr);
    let outcome = guest.run("rmmod cuse; evener cryptodev").unwrap();
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("/dev/cuse"), "{}", outcome.stderr);
}

/// OpenSSL's engine for `/dev/crypto`, built from the distribution's source, where that is there.
fn engine() -> Option<Vec<u8>> {
    let foreign = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/foreign/openssl");
    let has_engine = |folder: &PathBuf| folder.join("engines/e_devcrypto.c").is_file();
    let source = std::fs::read_dir(foreign).ok()?.filter_map(|it| Some(it.ok()?.path())).find(has_engine)?;
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("devcrypto.so");
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/devcrypto");
    let done = Command::new("cc")
        .args(["-O1", "-w", "-shared", "-fPIC", "-o"])
        .arg(&built)
        .arg("-I")
        .arg(header)
        .arg("-I")
        .arg(source.join("include"))
        .arg(source.join("engines/e_devcrypto.c"))
        .arg("-lcrypto")
        .status()
        .ok()?;
    assert!(done.success(), "the engine is not built from {}", source.display());
    std::fs::read(built).ok()
}
