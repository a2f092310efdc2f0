//! What a program does can be read while it runs, and a forked child has a file of its own.
//!
//! The provider is linked into this program, so that an engine of the test's can be handed in.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::id;
use std::{env, fs};

use evener::statistics::{Places, Totals, of_process};
use evener_core::statistics::{Count, Kind, Row};
use evener_core::{Algorithm, Direction};
use evener_provider::{Engine, OSSL_provider_init, Raw, RawError, add_engine};

mod support;

use support::ffi::{CipherCtx, DEFAULT, Provider, in_child};
use support::{bytes, in_program};

/// Does what is asked in the plain way, from 4 KiB on.
struct Willing;

impl Engine for Willing {
    fn takes(&self, _: Algorithm, _: Direction, len_bytes: usize) -> bool {
        len_bytes >= 4_096
    }

    fn run(&self, raw: &mut Raw<'_>) -> Result<(), RawError> {
        let iv = raw.iv;
        raw.plain.run(&iv, &mut raw.memory)
    }
}

fn providers() -> (Provider, Provider) {
    DEFAULT.add_builtin("evener", OSSL_provider_init);
    let both = (DEFAULT.load("default").unwrap(), DEFAULT.load("evener").unwrap());
    drop(std::panic::take_hook());
    both
}

/// Messages of these lengths in a context of their own.
fn encrypt(lengths: &[usize]) {
    let cipher = DEFAULT.cipher("AES-128-CBC", "provider=evener").unwrap();
    let ctx = CipherCtx::new();
    assert!(ctx.init(Some(&cipher), Some(&[1; 16]), Some(&[2; 16]), Some(true)));
    for &len in lengths {
        assert!(ctx.init(None, None, Some(&[3; 16]), None));
        ctx.update(&bytes(1, len)).unwrap();
    }
}

/// The directory of the program's files.
fn stats() -> String {
    env::var("EVENER_STATISTICS_DIR").unwrap()
}

/// What this process has counted for requests of this size; nothing without a file.
fn counted(len: usize) -> Totals {
    counted_as("AES-128-CBC", Direction::Encrypt, len)
}

fn counted_as(kind: &str, direction: Direction, len: usize) -> Totals {
    let row = Row::of(Kind::named(kind), direction, len);
    // Whose directories are looked at where the process has ended: not asked here.
    let found = of_process(&Places::only(stats().into()), u32::MAX, id());
    found.map_or_else(Totals::default, |record| record.unwrap().row(row))
}

/// Runs `body` in a program that counts in a directory of its own.
fn in_counting_program(name: &str, statistics: &str, body: impl FnOnce()) {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("stats").display().to_string();
    let variables = [
        ("EVENER_THRESHOLD", "4096"),
        ("EVENER_GUARD", "off"),
        ("EVENER_THREADS", "33"),
        ("EVENER_SPLIT", "65536"),
        ("EVENER_STATISTICS", statistics),
        ("EVENER_STATISTICS_DIR", &directory),
    ];
    in_program(name, "", &variables, body);
}

#[test]
fn each_message_is_counted_once_under_the_way_it_went() {
    in_counting_program("each_message_is_counted_once_under_the_way_it_went", "on", || {
        let _both = providers();
        add_engine(&Willing);
        encrypt(&[64, 64, 64]);
        assert_eq!((counted(64).of(Count::Direct), counted(64).of(Count::Bytes)), (3, 192));
        encrypt(&[16_384, 16_384]);
        let large = counted(16_384);
        assert_eq!(
            (large.of(Count::Routed), large.of(Count::Direct), large.of(Count::Bytes)),
            (2, 0, 32_768)
        );
        assert_eq!(counted(64).requests(), 3);
    });
}

#[test]
fn hashes_are_counted_by_message_and_size() {
    in_counting_program("hashes_are_counted_by_message_and_size", "on", || {
        let _both = providers();
        for (name, kind) in [("SHA1", "SHA-1"), ("SHA2-256", "SHA-256"), ("SHA2-512/224", "SHA-512/224")] {
            let [ours, judge] =
                ["evener", "default"].map(|who| DEFAULT.digest(name, &format!("provider={who}")).unwrap());
            for message in [&b"abcde"[..], &[7; 1000], b""] {
                assert_eq!(ours.of(&[message]), judge.of(&[message]), "{name}");
            }
            let of = |len| counted_as(kind, Direction::Encrypt, len);
            assert_eq!((of(5).of(Count::Direct), of(5).of(Count::Bytes)), (1, 5), "{name}");
            assert_eq!((of(1000).of(Count::Direct), of(1000).of(Count::Bytes)), (1, 1000), "{name}");
        }
    });
}

#[test]
fn a_helper_that_does_not_come_is_counted_as_taken_back() {
    in_counting_program("a_helper_that_does_not_come_is_counted_as_taken_back", "on", || {
        let _both = providers();
        let cipher = DEFAULT.cipher("AES-128-CTR", "provider=evener").unwrap();
        let ctx = CipherCtx::new();
        assert!(ctx.init(Some(&cipher), Some(&[1; 16]), Some(&[2; 16]), Some(true)));
        // Of 32 helpers for four parts some come too late.
        for _ in 0..20 {
            ctx.update(&bytes(1, 4 * 16_384)).unwrap();
        }
        let counted = counted_as("AES-128-CTR", Direction::Encrypt, 4 * 16_384);
        assert_eq!(counted.of(Count::Split), 20);
        assert!(counted.of(Count::TakenBack) > 0);
    });
}

#[test]
fn a_forked_child_counts_in_a_file_of_its_own() {
    in_counting_program("a_forked_child_counts_in_a_file_of_its_own", "on", || {
        let _both = providers();
        encrypt(&[64]);
        let held = in_child(|| {
            encrypt(&[64, 64]);
            counted(64).of(Count::Direct) == 2
        });
        assert!(held, "the child has counted two messages of its own");
        assert_eq!(counted(64).of(Count::Direct), 1);
        assert_eq!(fs::read_dir(stats()).unwrap().count(), 2);
    });
}

#[test]
fn where_statistics_are_off_no_file_is_made() {
    in_counting_program("where_statistics_are_off_no_file_is_made", "off", || {
        let _both = providers();
        encrypt(&[64, 16_384]);
        assert!(!fs::exists(stats()).unwrap());
    });
}
