//! TLS by the command `openssl`, one end with Evener's provider and the other without: 20 MB byte for byte, and what
//! happens to records that are damaged on the way.
//!
//! Path: `s_server` (`ends.rs`) sends a file -> perhaps a proxy that damages one record (`proxy.rs`) -> `s_client`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod ends;
mod proxy;

use ends::{Place, Suite, receive};
use evener_conformance_openssl::checker::has_valgrind;
use evener_conformance_openssl::{Setup, bounded, print_line, skipped};
use proxy::Damage;

/// MAC-then-encrypt in three versions (SHA-1 and SHA-256 stitched, SHA-384 by hand), Encrypt-then-MAC, AEADs.
const SUITES: &[Suite] = &[
    Suite::new("ECDHE-ECDSA-AES128-SHA", "-tls1_2", true),
    Suite::new("ECDHE-ECDSA-AES128-SHA", "-tls1_2", false),
    Suite::new("ECDHE-ECDSA-AES128-SHA256", "-tls1_2", true),
    Suite::new("ECDHE-ECDSA-AES128-SHA256", "-tls1_2", false),
    Suite::new("ECDHE-ECDSA-AES256-SHA384", "-tls1_2", true),
    Suite::new("ECDHE-ECDSA-AES256-SHA384", "-tls1_2", false),
    Suite::new("ECDHE-ECDSA-AES128-GCM-SHA256", "-tls1_2", true),
    Suite::new("ECDHE-ECDSA-AES256-GCM-SHA384", "-tls1_2", true),
    Suite::new("ECDHE-ECDSA-AES128-CCM", "-tls1_2", true),
    Suite::new("ECDHE-ECDSA-AES256-SHA", "-tls1_1", true),
    Suite::new("ECDHE-ECDSA-AES256-SHA", "-tls1_1", false),
    Suite::new("ECDHE-ECDSA-AES128-SHA", "-tls1", true),
    Suite::new("ECDHE-ECDSA-AES128-SHA", "-tls1", false),
    Suite::new("TLS_AES_128_GCM_SHA256", "-tls1_3", true),
    Suite::new("TLS_AES_256_GCM_SHA384", "-tls1_3", true),
    Suite::new("TLS_CHACHA20_POLY1305_SHA256", "-tls1_3", true),
];

const FILE_BYTES: usize = 20_000_000;

/// Every suite: which end has Evener, the server or the client, must not be visible at the other.
fn passes_files(evener: &Setup) {
    let plain = Setup::plain();
    let place = Place::new(FILE_BYTES);
    for suite in SUITES {
        for (server, client) in [(evener, &plain), (&plain, evener)] {
            let received = receive(&place, suite, server, client, None);
            let same = received.data == place.data;
            assert!(
                same,
                "{suite}, server with {}: {} bytes\n{received}",
                server.name(),
                received.data.len()
            );
        }
    }
    print_line(&format!("{} suites, {FILE_BYTES} bytes each way", SUITES.len()));
}

#[test]
fn files_arrive_byte_for_byte() {
    let evener = Setup::evener("");
    let listed = bounded(10, evener.command("openssl").args(["list", "-providers"]));
    assert!(String::from_utf8_lossy(&listed.stdout).contains("evener"), "{listed:?}");
    passes_files(&evener);
}

/// Records that must be routed at the end with the module, if it is the server and if it is the client. CBC encryption is,
/// and CBC decryption where the MAC was checked before; where it is inside the record, that stays with OpenSSL's
/// constant-time code, and SHA-1 and SHA-256 are then stitched ciphers that the provider only forwards.
fn routed_records(suite: &Suite) -> [bool; 2] {
    let is_stitched = !suite.encrypts_then_macs && !suite.name.ends_with("SHA384");
    [!is_stitched, suite.encrypts_then_macs]
}

/// More are none of the file's: a session ticket is encrypted by AES-256-CBC too.
const STRAY_MAX: u64 = 20;

#[test]
fn routed_records_arrive_byte_for_byte() {
    let (plain, routed) = (Setup::plain(), Setup::routed());
    let place = Place::new(FILE_BYTES);
    for suite in SUITES.iter().filter(|suite| suite.is_cbc()) {
        for (role, [server, client]) in [[&routed, &plain], [&plain, &routed]].into_iter().enumerate() {
            let before = routed.routed_count();
            let received = receive(&place, suite, server, client, None);
            assert!(received.data == place.data, "{suite}, server with {}: {received}", server.name());
            let count = routed.routed_count() - before;
            print_line(&format!("{suite}, server with {}: {count} requests routed", server.name()));
            match routed_records(suite)[role] {
                true => assert!(count >= (FILE_BYTES >> 14) as u64, "{suite}: {count}"),
                false => assert!(count <= STRAY_MAX, "{suite}: {count}"),
            }
        }
    }
}

#[test]
fn the_suites_are_what_their_names_say() {
    let (plain, place) = (Setup::plain(), Place::new(10));
    for suite in SUITES {
        let client_output = ends::handshake(&place, suite, &plain);
        let named = format!("Cipher is {}", suite.name);
        assert!(client_output.contains(&named), "{suite}: {client_output}");
        let has_extension = client_output.contains("TLS server extension \"encrypt-then-mac\"");
        assert_eq!(has_extension, suite.is_cbc() && suite.encrypts_then_macs, "{suite}: {client_output}");
    }
}

/// The alert and what arrived before it are the same with Evener as without.
fn refuses_damage(evener: &Setup, suites: impl Fn(&Suite) -> bool) {
    let plain = Setup::plain();
    // Four full records and one that is not.
    let place = Place::new(4 * (1 << 14) + 1_000);
    for suite in SUITES.iter().filter(|suite| suites(suite)) {
        for damage in Damage::ALL {
            let [judge, judged] =
                [&plain, evener].map(|client| receive(&place, suite, &plain, client, Some(damage)));
            let difference = format!("{suite}, {damage:?}\nwithout: {judge}\nwith: {judged}");
            assert!(
                place.data.starts_with(&judged.data) && judged.data.len() < place.data.len(),
                "{difference}"
            );
            assert!(judge.alerts.iter().any(|alert| alert.contains("write:fatal:")), "{difference}");
            assert_eq!((&judged.alerts, &judged.data), (&judge.alerts, &judge.data), "{difference}");
        }
    }
}

#[test]
fn damaged_records_are_refused_with_the_same_alerts() {
    refuses_damage(&Setup::evener(""), |_| true);
}

#[test]
fn damaged_records_are_refused_with_the_same_alerts_where_records_are_routed() {
    let routed = Setup::routed();
    refuses_damage(&routed, Suite::is_cbc);
    assert!(routed.routed_count() > 100, "{}", routed.routed_count());
}

/// Records that are done elsewhere in both directions, in one, and in none.
const CHECKED: &[Suite] = &[
    Suite::new("ECDHE-ECDSA-AES128-SHA", "-tls1_2", true),
    Suite::new("ECDHE-ECDSA-AES256-SHA384", "-tls1_2", false),
    Suite::new("TLS_AES_128_GCM_SHA256", "-tls1_3", true),
];

/// Ciphers' assembly takes a hundred times as long under it.
const CHECKED_BYTES: usize = 1_000_000;

#[test]
#[ignore = "takes minutes"]
fn valgrind_finds_nothing_in_either_end_that_it_does_not_find_without_evener() {
    if !has_valgrind() {
        return skipped("valgrind is not installed");
    }
    let place = Place::new(CHECKED_BYTES);
    let plain = Setup::plain().checked();
    let owned = Setup::evener("threshold = 1\nthreads = 2\nsplit = 1024\nguard = off").checked();
    let routed = Setup::routed().checked();
    for setup in [&plain, &owned, &routed] {
        for suite in CHECKED {
            let received = receive(&place, suite, setup, setup, None);
            assert!(received.data == place.data, "{suite}, {}: {received}", setup.name());
        }
        let found = setup.findings();
        let of_evener: Vec<_> = found.difference(&plain.findings()).cloned().collect();
        assert!(of_evener.is_empty(), "with {}: {of_evener:#?}", setup.name());
        print_line(&format!("{}: {} findings", setup.name(), found.len()));
    }
    let count = routed.routed_count();
    print_line(&format!("{count} requests routed"));
    assert!(count > 3 * (CHECKED_BYTES >> 14) as u64, "{count}");
}
