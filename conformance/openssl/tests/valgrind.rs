//! Valgrind looks at OpenSSL's own tests with Evener's provider: nothing is read before it was written or outside its
//! memory, and nothing is lost.

use std::collections::BTreeSet;
use std::process::Command;

use evener_conformance_openssl::evp_test::EvpTest;
use evener_conformance_openssl::{Setup, say, skipped};

/// Ciphers that Evener serves.
const FILES: [&str; 3] = ["evpciph_aes_common.txt", "evpciph_aes_stitched.txt", "evpmd_sha.txt"];

/// What is lost is told like any other finding.
const CHECKER: [&str; 4] =
    ["valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=definite,indirect"];

/// What valgrind says, one text per finding, without addresses and numbers of processes.
fn findings(said: &str) -> BTreeSet<String> {
    let lines = said.lines().filter_map(|line| Some(line.strip_prefix("==")?.split_once("==")?.1.trim()));
    let lines: Vec<&str> = lines.map(|line| line.split_once(": ").map_or(line, |(_, frame)| frame)).collect();
    lines
        .split(|line| line.is_empty())
        .filter(|lines| !lines.is_empty())
        .map(|lines| lines.join("\n"))
        .collect()
}

fn findings_with(program: &EvpTest, setup: &Setup) -> BTreeSet<String> {
    let output = program.run_under(&CHECKER, setup, &FILES);
    let said = String::from_utf8_lossy(&output.stderr);
    let found = findings(&said);
    assert!(output.status.success(), "with {}: {:?}\n{found:#?}", setup.name(), output.status);
    found
}

/// Some findings are OpenSSL's: valgrind does not see what its assembly for GCM writes.
#[test]
#[ignore = "takes minutes"]
fn valgrind_finds_nothing_that_it_does_not_find_without_evener() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skipped("valgrind is not installed");
    }
    let Some(program) = EvpTest::build() else {
        return skipped("OpenSSL's sources are not there (`./x prepare` fetches them)");
    };
    let plain = findings_with(&program, &Setup::plain());
    let routed = Setup::routed();
    for setup in [&Setup::evener(""), &Setup::evener("threshold = 1"), &routed] {
        let found = findings_with(&program, setup);
        let ours: Vec<_> = found.difference(&plain).collect();
        assert!(ours.is_empty(), "with {}: {ours:#?}", setup.name());
    }
    say(&format!("{} findings without Evener, {} requests routed", plain.len(), routed.routed_count()));
    assert!(routed.routed_count() > 100, "{}", routed.routed_count());
}
