//! OpenSSL's own tests of its algorithms.

use evener_conformance_openssl::evp_test::EvpTest;
use evener_conformance_openssl::{Setup, bounded, say, skipped};

/// Fewer are no run over all data files: 3.0.22 has 69 with 8 295 tests.
const TESTS_MIN: u64 = 8_000;

fn program() -> Option<EvpTest> {
    let program = EvpTest::build();
    match &program {
        None => skipped("OpenSSL's sources are not there (`./x install` fetches them)"),
        Some(program) => {
            let library = bounded(10, Setup::plain().command("openssl").arg("version"));
            let library = String::from_utf8_lossy(&library.stdout).trim().to_owned();
            say(&format!("evp_test of OpenSSL {} on {library}", program.version));
        }
    }
    program
}

#[test]
fn evp_test_passes_under_the_default_provider() {
    let Some(program) = program() else { return };
    let results = program.run(&Setup::plain());
    let mut sum = [0; 3];
    for result in &results {
        sum = [0, 1, 2].map(|place| sum[place] + result.counts()[place]);
    }
    let [tests, errors, skipped] = sum;
    say(&format!("{} files, {tests} tests, {errors} errors, {skipped} skipped", results.len()));
    // The sources may be newer than the library, which then fails tests of what was mended since.
    assert!(errors * 1_000 <= tests, "{results:#?}");
    assert!(tests >= TESTS_MIN, "{tests} tests");
}
