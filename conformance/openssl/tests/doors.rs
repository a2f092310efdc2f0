//! The doors by which programs come to ciphers and digests: what goes through each is counted, and goes to a module where one is configured.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::path::Path;

use evener::core::counts::{Count, Row};
use evener::counts_file::{DIRECTORY_VARIABLE, Directories, of_user};
use evener_conformance_openssl::program::Program;
use evener_conformance_openssl::{Setup, bounded};
use evener_testing::hosts::{AT_ONCE, HostProcess, requests, serve};

const SECONDS_MAX: u32 = 60;

/// Of a message: a record of TLS, and long enough for a module.
const BYTES: u64 = 16_384;
const MESSAGES: u64 = 5;

/// A door, the kind of what goes through it, and whether it goes to a module. OpenSSL's programs behind them:
///
/// - updates: `openssl enc`, libssl's records of CBC and of TLS 1.3, databases;
/// - one-shot calls: OpenSSH, GCM records of TLS 1.2, and block by block OpenSSL's own CMAC.
const DOORS: [(&str, &str, Goes); 24] = [
    ("update", "AES-128-CBC", Goes::ToModule),
    ("update-decrypting", "AES-128-CBC", Goes::ToModule),
    ("one-shot-ecb", "AES-128-ECB", Goes::ToModule),
    ("one-shot-cbc", "AES-128-CBC", Goes::ToModule),
    ("one-shot-cbc-decrypting", "AES-128-CBC", Goes::ToModule),
    ("one-shot-ctr", "AES-128-CTR", Goes::ToModule),
    ("one-shot-xts", "AES-128-XTS", Goes::ToModule),
    ("tls-1.0", "AES-128-CBC", Goes::ToModule),
    ("tls-1.1", "AES-128-CBC", Goes::ToModule),
    ("tls-1.2", "AES-128-CBC", Goes::ToModule),
    // Encryption only: the inner cipher opens what has its MAC inside.
    ("tls-1.2-mac-inside", "AES-256-CBC", Goes::ToModule),
    ("aead", "AES-128-GCM", Goes::Split),
    ("one-shot-aead", "AES-128-GCM", Goes::Split),
    ("tls-1.3", "AES-128-GCM", Goes::Split),
    ("tls-1.2-aead", "AES-128-GCM", Goes::Nowhere),
    // Sixteen bytes at a time.
    ("cmac", "AES-128-CBC", Goes::Nowhere),
    ("digest", "SHA-256", Goes::Nowhere),
    ("digest-update", "SHA-256", Goes::Nowhere),
    ("digest-quick", "SHA-256", Goes::Nowhere),
    ("digest-old", "SHA-256", Goes::Nowhere),
    ("digest-copy", "SHA-256", Goes::Nowhere),
    ("hmac", "SHA-256", Goes::Nowhere),
    ("hmac-quick", "SHA-256", Goes::Nowhere),
    ("hmac-update", "SHA-256", Goes::Nowhere),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goes {
    ToModule,
    /// To several threads.
    Split,
    Nowhere,
}

#[test]
#[ignore = "the process of a host, which the tests start"]
fn host_process() {
    serve();
}

/// What programs of this user counted in `directory` of a kind.
fn counted(directory: &Path, kind: &str, what: Count) -> u64 {
    let uid = rustix::process::geteuid().as_raw();
    let records = of_user(&Directories::only(directory.into()), uid);
    let rows = || Row::all().filter(|row| row.kind().name() == kind);
    let of = |record: evener::counts_file::Record| rows().map(|row| record.count(row, what)).sum::<u64>();
    records.into_iter().map(|(_, record)| of(record.unwrap())).sum()
}

/// Counts of the kind that a door is for, after messages through it.
fn through(program: &Program, setup: &Setup, door: &str, kind: &str) -> [u64; 3] {
    let place = tempfile::tempdir().unwrap();
    // Made by the program, for its user alone.
    let directory = place.path().join("counts");
    let mut command = setup.command(&program.path().to_string_lossy());
    command.args([door, &BYTES.to_string(), &MESSAGES.to_string()]).env(DIRECTORY_VARIABLE, &directory);
    let output = bounded(SECONDS_MAX, &command);
    assert!(output.status.success(), "{door}: {}", String::from_utf8_lossy(&output.stderr));
    [Count::Bytes, Count::Routed, Count::Split].map(|what| counted(&directory, kind, what))
}

#[test]
fn what_goes_through_each_door_is_counted() {
    let program = Program::build("doors");
    // No module, and nothing that the policy would have go another way.
    let setup = Setup::evener("threads = auto\ncombine = auto\nthreshold = 4096").without_legacy();
    for (door, kind, _) in DOORS {
        let [bytes, routed, _] = through(&program, &setup, door, kind);
        assert!(bytes >= MESSAGES * BYTES, "{door}: {bytes} bytes of {kind}");
        assert_eq!(routed, 0, "{door}");
    }
}

#[test]
fn what_goes_through_each_door_goes_to_a_module_where_that_does_it() {
    let program = Program::build("doors");
    let host = HostProcess::start("host_process", AT_ONCE);
    let keys =
        format!("guard = off\nthreshold = 1024\nthreads = 2\nsplit = 8192\nmodules = {}", host.module());
    let setup = Setup::evener(&keys).without_legacy();
    for (door, kind, goes) in DOORS {
        let before = requests(&host.control());
        let [bytes, routed, split] = through(&program, &setup, door, kind);
        let answered = requests(&host.control()) - before;
        assert!(bytes >= MESSAGES * BYTES, "{door}: {bytes} bytes of {kind}");
        match goes {
            // What may be split is, before a module is asked.
            Goes::ToModule => {
                assert!(
                    routed + split >= MESSAGES,
                    "{door}: {routed} routed, {split} split, {answered} answered"
                );
            }
            Goes::Split => assert!(split >= MESSAGES, "{door}: {split}"),
            Goes::Nowhere => assert_eq!((routed, split), (0, 0), "{door}"),
        }
        assert!(answered >= routed, "{door}: {answered} answered");
    }
}
