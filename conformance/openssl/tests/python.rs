//! CPython's own tests of `ssl`, `hashlib` and `hmac`, by the distribution's Python on the distribution's OpenSSL.

use std::process::Command;

use evener_conformance_openssl::{Setup, bounded, print_line, skipped};

const PYTHON: &str = "/usr/bin/python3";
const SUITES: [&str; 3] = ["test_ssl", "test_hashlib", "test_hmac"];
/// Of all three: the testsuite of 3.11 has 289.
const TESTS_MIN: u64 = 250;
/// The suites speak TLS 1.3 with GCM for the most part, and there it is tickets and keys that go to a module.
const ROUTED_MIN: u64 = 100;
const SECONDS_MAX: u32 = 300;

/// What Python says of each suite: `Ran 185 tests`, `OK (skipped=15)`.
fn verdicts(setup: &Setup) -> Vec<String> {
    let mut command = setup.command(PYTHON);
    // Without the resource `network`: the tests stay on this machine.
    command.args(["-m", "test", "-v", "-u", "none"]).args(SUITES);
    let output = bounded(SECONDS_MAX, &command);
    let printed =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    // What a run took in seconds is no verdict.
    let ran = |line: &str| line.split_once(" in ").map_or(line, |(ran, _)| ran).to_owned();
    let verdicts: Vec<_> = printed
        .lines()
        .filter(|line| line.starts_with("Ran ") || line.starts_with("OK") || line.starts_with("FAILED ("))
        .map(ran)
        .collect();
    assert!(output.status.success(), "with {}: {verdicts:?}\n{printed}", setup.name());
    verdicts
}

/// Whether a Python with this configuration has Evener's module mapped once it uses OpenSSL.
fn has_module(setup: &Setup) -> bool {
    let program =
        "import ssl, hashlib; hashlib.sha256(b''); print('evener.so' in open('/proc/self/maps').read())";
    let output = bounded(30, setup.command(PYTHON).args(["-c", program]));
    String::from_utf8_lossy(&output.stdout).trim() == "True"
}

#[test]
fn python_passes_its_own_tests_with_evener_as_without() {
    let there = Command::new(PYTHON).args(["-c", "import test.test_ssl"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        return skipped("Python's own tests are not there (Debian: libpython3.*-testsuite)");
    }
    let (plain, evener, routed) = (Setup::plain(), Setup::evener(""), Setup::routed());
    assert_eq!((has_module(&plain), has_module(&evener)), (false, true));
    let [judge, judged, armed] = std::thread::scope(|scope| {
        [&plain, &evener, &routed]
            .map(|setup| scope.spawn(|| verdicts(setup)))
            .map(|run| run.join().expect("the suites pass"))
    });
    let counts = judge.iter().filter_map(|line| line.split(' ').nth(1)?.parse::<u64>().ok());
    let tests: u64 = counts.sum();
    print_line(&format!("{tests} tests: {}", judge.join(", ")));
    assert!(tests >= TESTS_MIN, "{judge:?}");
    assert_eq!((&judged, &armed), (&judge, &judge));
    let count = routed.routed_count();
    print_line(&format!("{count} requests routed to an emulated module"));
    assert!(count >= ROUTED_MIN, "{count} requests routed");
}
