//! What a program does can be read while it runs, and a forked child has a file of its own.
//!
//! The provider is linked into this program, so that an engine of the test's can be handed in.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic, and says what it skips")]

use std::process::id;
use std::sync::{Barrier, Mutex};
use std::{env, fs, thread};

use evener::counts_file::{Directories, Totals, of_process};
use evener_core::counts::{Count, Kind, Row, SIZE_CLASS_BYTES};
use evener_core::{Algorithm, Direction};
use evener_provider::{BlockError, BlockRequest, Engine, OSSL_provider_init, add_engine};

mod support;

use evener_core::InlineDriver as _;
use evener_testing::cases::{Case, check_all, jobs, spaces};
use evener_testing::programs::in_child;
use support::ffi::digest::DigestCtx;
use support::ffi::{CipherCtx, DEFAULT, Digest, LibCtx, Provider};
use support::{bytes, in_program};

/// Does the work in the plain way, from 4 KiB on.
struct Willing;

impl Engine for Willing {
    fn takes(&self, _: Algorithm, _: Direction, len_bytes: usize) -> bool {
        len_bytes >= 4_096
    }

    fn run(&self, block_request: &mut BlockRequest<'_>) -> Result<(), BlockError> {
        let iv = block_request.iv;
        block_request.fallback.run(&iv, &mut block_request.memory)
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
    let found = of_process(&Directories::only(stats().into()), u32::MAX, id());
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

/// In a program whose configuration has Evener for all, as the command's and a host's may be.
#[test]
fn what_the_driver_of_a_core_does_goes_past_the_provider() {
    in_counting_program("what_the_driver_of_a_core_does_goes_past_the_provider", "on", || {
        let _both = providers();
        DEFAULT.set_properties("?provider=evener");
        encrypt(&[64]);
        let mut driver = evener_testing::drivers::libcrypto();
        for algorithm in
            [Algorithm::Aes128Cbc, Algorithm::Aes256Gcm, Algorithm::Sha256, Algorithm::HmacSha256]
        {
            let case = Case::encrypt(algorithm, 3, 64);
            let cases = std::slice::from_ref(&case);
            let mut spaces = spaces(cases);
            let mut burst = jobs(cases, &mut spaces);
            driver.run(&mut burst);
            check_all(cases, &burst);
        }
        assert_eq!(counted(64).requests(), 1, "the one by the provider");
        for kind in ["AES-256-GCM", "SHA-256", "HMAC-SHA-256"] {
            assert_eq!(counted_as(kind, Direction::Encrypt, 64).requests(), 0, "{kind}");
        }
    });
}

fn digest(name: &str, provider: &str) -> Digest {
    DEFAULT.digest(name, &format!("provider={provider}")).unwrap()
}

/// What this process has counted of messages of this size that were hashed: their number and their bytes.
fn hashed(kind: &str, len: usize) -> (u64, u64) {
    let counted = counted_as(kind, Direction::Encrypt, len);
    (counted.of(Count::Direct), counted.of(Count::Bytes))
}

/// The same of messages of any size.
fn hashed_in_all(kind: &str) -> (u64, u64) {
    let one_of_each = SIZE_CLASS_BYTES.into_iter().chain([usize::MAX]);
    one_of_each.map(|len| hashed(kind, len)).fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1))
}

#[test]
fn hashes_are_counted_by_message_and_size() {
    in_counting_program("hashes_are_counted_by_message_and_size", "on", || {
        let _both = providers();
        for (name, kind) in [("SHA1", "SHA-1"), ("SHA2-256", "SHA-256"), ("SHA2-512/224", "SHA-512/224")] {
            let [evener, judge] = ["evener", "default"].map(|provider| digest(name, provider));
            for message in [&b"abcde"[..], &[7; 1000], b""] {
                let [evener, judge] = [&evener, &judge].map(DigestCtx::new);
                message.chunks(300).for_each(|part| {
                    evener.update(part);
                    judge.update(part);
                });
                assert_eq!(evener.last(), judge.last(), "{name}");
            }
            assert_eq!((hashed(kind, 5), hashed(kind, 1000)), ((2, 5), (1, 1000)), "{name}");
        }
    });
}

#[test]
fn the_state_of_a_hash_can_be_kept_and_gone_on_with_where_openssl_has_that() {
    in_counting_program(
        "the_state_of_a_hash_can_be_kept_and_gone_on_with_where_openssl_has_that",
        "on",
        || {
            let _both = providers();
            for name in ["SHA1", "SHA2-256", "SHA2-512"] {
                let [evener, judge] = ["evener", "default"].map(|provider| digest(name, provider));
                let contexts = [&evener, &judge].map(|digest| {
                    let context = DigestCtx::new(digest);
                    context.update(b"the first half");
                    context
                });
                let [ours, theirs] = contexts.each_ref().map(DigestCtx::serialized);
                assert_eq!(ours, theirs, "{name}");
                let Some(Some(state)) = ours else {
                    return println!("skipped: this OpenSSL keeps no states of hashes");
                };
                let gone_on = DigestCtx::new(&evener);
                assert!(gone_on.deserialize(&state), "{name}");
                let all = contexts.into_iter().chain([gone_on]).map(|context| {
                    context.update(b" and the other");
                    context.last()
                });
                let all: Vec<Vec<u8>> = all.collect();
                assert!(all.iter().all(|hash| *hash == all[0]), "{name}");
            }
        },
    );
}

#[test]
fn hashes_that_are_made_side_by_side_are_told_apart() {
    in_counting_program("hashes_that_are_made_side_by_side_are_told_apart", "on", || {
        let _both = providers();
        // By a thread that ends, for the allocator decides when the place of a context that is left comes again.
        thread::spawn(hash_side_by_side).join().unwrap();
        assert_eq!((hashed("SHA-256", 300), hashed_in_all("SHA-256")), ((1, 300), (8, 5_440)));
    });
}

fn hash_side_by_side() {
    let evener = digest("SHA2-256", "evener");
    // A context that is never finished, and begun again.
    let left = DigestCtx::new(&evener);
    left.update(&[1; 5_000]);
    let contexts: [DigestCtx; 7] = std::array::from_fn(|_| DigestCtx::new(&evener));
    for part in [[2; 10], [3; 10]] {
        contexts.iter().for_each(|ctx| ctx.update(&part));
    }
    let judge = DigestCtx::new(&digest("SHA2-256", "default"));
    judge.update(&[[2; 10], [3; 10]].concat());
    let expected = judge.last();
    assert!(contexts.iter().all(|ctx| ctx.last() == expected));
    assert_eq!(hashed("SHA-256", 20), (7, 140));
    left.init(&evener);
    left.update(&[1; 300]);
    left.last();
}

#[test]
fn hashes_of_threads_that_have_ended_are_all_counted() {
    in_counting_program("hashes_of_threads_that_have_ended_are_all_counted", "on", || {
        let _both = providers();
        let evener = digest("SHA2-256", "evener");
        // Whose end comes while another makes the file is not counted; so the first one comes alone.
        DigestCtx::new(&evener).last();
        // More than have a place of their own at a time, and again where others were.
        for _ in 0..2 {
            let together = Barrier::new(THREADS);
            let wandering = Mutex::new(Vec::new());
            thread::scope(|scope| {
                let threads = [(); THREADS].map(|()| {
                    scope.spawn(|| {
                        let ctx = DigestCtx::new(&evener);
                        ctx.update(&[2; 40]);
                        wandering.lock().unwrap().push(ctx);
                        together.wait();
                        for _ in 0..300 {
                            let ctx = DigestCtx::new(&evener);
                            ctx.update(&[1; 100]);
                            ctx.last();
                        }
                        // One that another thread began.
                        let ctx = wandering.lock().unwrap().pop().unwrap();
                        ctx.last();
                    })
                });
                // Not by the scope's end, which comes before that of its threads.
                threads.into_iter().for_each(|thread| thread.join().unwrap());
            });
        }
        let threads = 2 * THREADS as u64;
        assert_eq!(hashed_in_all("SHA-256"), (1 + 301 * threads, 30_040 * threads));
    });
}

/// So many that some share a place: more than there are.
const THREADS: usize = 300;

#[test]
fn a_forked_child_counts_no_hash_of_its_parent() {
    in_counting_program("a_forked_child_counts_no_hash_of_its_parent", "on", || {
        let _both = providers();
        let evener = digest("SHA2-256", "evener");
        let hash = || {
            let ctx = DigestCtx::new(&evener);
            ctx.update(&[1; 100]);
            ctx.last();
        };
        (0..1_000).for_each(|_| hash());
        // What is late is the parent's to count.
        let late = 1_000 - hashed("SHA-256", 100).0;
        assert!((1..=125).contains(&late), "{late}");
        let held = in_child(|| {
            hash();
            hashed("SHA-256", 100) == (1, 100)
        });
        assert!(held, "the child has counted one hash");
        (0..late).for_each(|_| hash());
        assert!(hashed("SHA-256", 100).0 > 1_000);
    });
}

#[test]
fn a_helper_that_does_not_come_is_counted_as_taken_back() {
    if thread::available_parallelism().is_ok_and(|cores| cores.get() == 1) {
        return println!("skipped: on one core no helper comes while its caller works, or all do");
    }
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
fn where_nothing_was_counted_no_file_is_made() {
    in_counting_program("where_nothing_was_counted_no_file_is_made", "on", || {
        // A library context ends, and then its thread, which has begun a message and not finished it.
        let context_and_thread = || {
            let context = LibCtx::new();
            context.add_builtin("evener", OSSL_provider_init);
            let _both = (context.load("default").unwrap(), context.load("evener").unwrap());
            drop(std::panic::take_hook());
            drop(DigestCtx::new(&context.digest("SHA2-256", "provider=evener").unwrap()));
        };
        thread::spawn(context_and_thread).join().unwrap();
        assert!(!fs::exists(stats()).unwrap());
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
