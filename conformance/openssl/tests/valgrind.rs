//! Valgrind looks at OpenSSL's own tests with Evener's provider: nothing is read before it was written or outside its
//! memory, and nothing is lost.

use std::collections::BTreeSet;

use evener_conformance_openssl::checker::{findings, has_valgrind};
use evener_conformance_openssl::evp_test::EvpTest;
use evener_conformance_openssl::{Setup, print_line, skipped};

/// Ciphers that Evener serves.
const FILES: [&str; 3] = ["evpciph_aes_common.txt", "evpciph_aes_stitched.txt", "evpmd_sha.txt"];

/// Lost memory is reported like any other finding.
const CHECKER: [&str; 4] =
    ["valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=definite,indirect"];

fn findings_with(program: &EvpTest, setup: &Setup) -> BTreeSet<String> {
    let output = program.run_under(&CHECKER, setup, &FILES);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let found = findings(&stderr);
    assert!(output.status.success(), "with {}: {:?}\n{found:#?}", setup.name(), output.status);
    found
}

/// Some findings are OpenSSL's: valgrind does not see what its assembly for GCM writes.
#[test]
#[ignore = "takes minutes"]
fn valgrind_finds_nothing_that_it_does_not_find_without_evener() {
    if !has_valgrind() {
        return skipped("valgrind is not installed");
    }
    let Some(program) = EvpTest::build() else {
        return skipped("OpenSSL's sources are not there (`./x prepare` fetches them)");
    };
    let plain = findings_with(&program, &Setup::plain());
    let routed = Setup::routed();
    for setup in [&Setup::evener(""), &Setup::evener("threshold = 1"), &routed] {
        let found = findings_with(&program, setup);
        let of_evener: Vec<_> = found.difference(&plain).collect();
        assert!(of_evener.is_empty(), "with {}: {of_evener:#?}", setup.name());
    }
    print_line(&format!(
        "{} findings without Evener, {} requests routed",
        plain.len(),
        routed.routed_count()
    ));
    assert!(routed.routed_count() > 100, "{}", routed.routed_count());
}
