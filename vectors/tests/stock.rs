//! What is in stock, so that a lost file or a filter that became too narrow is noticed.

use std::collections::{BTreeMap, BTreeSet};

use evener_vectors::{Case, all, by_algorithm};

/// Cases by algorithm and source: how many there are, and how many of them must be refused.
const STOCK: &[(&str, &str, usize, usize)] = &[
    ("AES-128-CBC", "NIST CAVP", 304, 0),
    ("AES-128-CBC", "Wycheproof", 72, 48),
    ("AES-128-CTR", "NIST SP 800-38A", 1, 0),
    ("AES-128-CTR", "RFC 3686", 3, 0),
    ("AES-128-ECB", "NIST CAVP", 304, 0),
    ("AES-128-GCM", "NIST CAVP", 300, 95),
    ("AES-128-GCM", "Wycheproof", 67, 27),
    ("AES-128-XTS", "NIST CAVP", 72, 0),
    ("AES-128-XTS", "Wycheproof", 41, 0),
    ("AES-192-CBC", "NIST CAVP", 370, 0),
    ("AES-192-CBC", "Wycheproof", 72, 48),
    ("AES-192-CTR", "NIST SP 800-38A", 1, 0),
    ("AES-192-CTR", "RFC 3686", 3, 0),
    ("AES-192-ECB", "NIST CAVP", 370, 0),
    ("AES-192-GCM", "NIST CAVP", 300, 106),
    ("AES-192-GCM", "Wycheproof", 64, 27),
    ("AES-256-CBC", "NIST CAVP", 425, 0),
    ("AES-256-CBC", "Wycheproof", 72, 48),
    ("AES-256-CTR", "NIST SP 800-38A", 1, 0),
    ("AES-256-CTR", "RFC 3686", 3, 0),
    ("AES-256-ECB", "NIST CAVP", 425, 0),
    ("AES-256-GCM", "NIST CAVP", 300, 103),
    ("AES-256-GCM", "Wycheproof", 66, 27),
    ("AES-256-XTS", "NIST CAVP", 48, 0),
    ("AES-256-XTS", "Wycheproof", 41, 0),
    ("CHACHA20-POLY1305", "OpenSSL", 5, 1),
    ("CHACHA20-POLY1305", "RFC 8439", 1, 0),
    ("CHACHA20-POLY1305", "Wycheproof", 316, 60),
    ("HMAC-MD5", "RFC 2202", 7, 0),
    ("HMAC-SHA-1", "RFC 2202", 7, 0),
    ("HMAC-SHA-1", "Wycheproof", 87, 54),
    ("HMAC-SHA-256", "RFC 4231", 6, 0),
    ("HMAC-SHA-256", "Wycheproof", 87, 54),
    ("MD5", "RFC 1321", 7, 0),
    ("SHA-1", "NIST CAVP", 73, 0),
    ("SHA-256", "NIST CAVP", 73, 0),
];

#[test]
fn every_source_brings_as_many_cases_as_were_taken_from_it() {
    let mut found: BTreeMap<_, (usize, usize)> = BTreeMap::new();
    for case in all() {
        let count = found.entry((case.algorithm, case.source)).or_default();
        count.0 += 1;
        count.1 += usize::from(!case.valid);
    }
    let found: Vec<_> =
        found.into_iter().map(|((algorithm, source), (n, bad))| (algorithm, source, n, bad)).collect();
    assert_eq!(found, STOCK);
}

#[test]
fn no_two_cases_share_an_id() {
    let ids: Vec<String> = all().map(|case| format!("{} {}", case.source, case.id)).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
}

#[test]
fn every_case_has_the_lengths_of_its_algorithm() {
    for case in all() {
        let (key, iv, tag) = lengths(case.algorithm).expect("every algorithm has a row below");
        assert!(key.is_none_or(|bytes| case.key.len() == bytes), "{} key", case.id);
        assert_eq!(case.iv.len(), iv, "{} iv", case.id);
        assert_eq!(case.tag.len(), tag, "{} tag", case.id);
        assert!(!case.valid || ciphertext_fits(&case), "{} ciphertext", case.id);
    }
}

/// Bytes of key (where fixed), IV and tag.
fn lengths(algorithm: &str) -> Option<(Option<usize>, usize, usize)> {
    let key = |digits: &str| digits.parse::<usize>().expect("AES-<bits>-MODE") / 8;
    Some(match algorithm.split('-').collect::<Vec<_>>()[..] {
        ["AES", bits, "ECB"] => (Some(key(bits)), 0, 0),
        ["AES", bits, "CBC" | "CTR"] => (Some(key(bits)), 16, 0),
        ["AES", bits, "GCM"] => (Some(key(bits)), 12, 16),
        ["AES", bits, "XTS"] => (Some(2 * key(bits)), 16, 0),
        ["CHACHA20", "POLY1305"] => (Some(32), 12, 16),
        ["SHA", "1"] => (Some(0), 0, 20),
        ["SHA", "256"] => (Some(0), 0, 32),
        ["MD5"] => (Some(0), 0, 16),
        ["HMAC", "SHA", "1"] => (None, 0, 20),
        ["HMAC", "SHA", "256"] => (None, 0, 32),
        ["HMAC", "MD5"] => (None, 0, 16),
        _ => return None,
    })
}

fn ciphertext_fits(case: &Case) -> bool {
    let bytes = case.plaintext.len();
    case.ciphertext.len()
        == match case.algorithm {
            "MD5" | "SHA-1" | "SHA-256" | "HMAC-MD5" | "HMAC-SHA-1" | "HMAC-SHA-256" => 0,
            _ if case.padded => bytes / 16 * 16 + 16,
            _ => bytes,
        }
}

#[test]
fn an_algorithm_is_found_by_its_name_and_nothing_else() {
    assert!(by_algorithm("AES-256-GCM").all(|case| case.algorithm == "AES-256-GCM"));
    assert!(by_algorithm("AES-256-GCM").count() > 200);
    assert_eq!(by_algorithm("aes-256-gcm").count(), 0);
}

#[test]
fn the_block_modes_bring_messages_of_several_blocks() {
    for algorithm in
        ["AES-128-ECB", "AES-192-CBC", "AES-256-CBC", "AES-128-CTR", "AES-256-XTS", "AES-192-GCM"]
    {
        assert!(by_algorithm(algorithm).any(|case| case.plaintext.len() >= 48), "{algorithm}");
    }
}
