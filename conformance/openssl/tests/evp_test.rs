//! OpenSSL's own tests of its algorithms.

use evener_conformance_openssl::evp_test::{EvpTest, Stanzas};
use evener_conformance_openssl::{Setup, bounded, print_line, skipped};

/// Fewer are no run over all data files: 3.0.22 has 69 with 8 295 tests.
const TESTS_MIN: u64 = 8_000;
/// Of the requests in the data files, those of ECB, CBC, CTR and XTS that are a block long: 840 in 3.0.22.
const ROUTED_MIN: u64 = 500;

fn program() -> Option<EvpTest> {
    let program = EvpTest::build();
    match &program {
        None => skipped("OpenSSL's sources are not there (`./x prepare` fetches them)"),
        Some(program) => {
            let library = bounded(10, Setup::plain().command("openssl").arg("version"));
            let library = String::from_utf8_lossy(&library.stdout).trim().to_owned();
            print_line(&format!("evp_test of OpenSSL {} on {library}", program.version));
        }
    }
    program
}

/// Tests, errors and skipped ones of all files.
fn sum(results: &[Stanzas]) -> [u64; 3] {
    let all = results.iter().map(Stanzas::counts);
    all.fold([0; 3], |sum, counts| [0, 1, 2].map(|place| sum[place] + counts[place]))
}

#[test]
fn evp_test_says_the_same_with_evener_as_without() {
    let Some(program) = program() else { return };
    let plain = program.run(&Setup::plain());
    let [tests, errors, skipped] = sum(&plain);
    print_line(&format!("{} files, {tests} tests, {errors} errors, {skipped} skipped", plain.len()));
    // The sources may be newer than the library, which then fails tests of what was mended since.
    assert!(errors * 1_000 <= tests, "{plain:#?}");
    assert!(tests >= TESTS_MIN, "{tests} tests");
    assert_eq!(program.run(&Setup::evener("")), plain);
    for kernels in ["kernels = 128", "kernels = 256", "kernels = on"] {
        assert_eq!(program.run(&Setup::evener(kernels)), plain, "{kernels}");
    }
    let routed = Setup::routed();
    assert_eq!(program.run(&routed), plain);
    let count = routed.routed_count();
    print_line(&format!("{count} requests routed to an emulated module"));
    assert!(count >= ROUTED_MIN, "{count} requests routed");
}
