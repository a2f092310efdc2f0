//! Threads whose messages are encrypted together get what the default provider gives, whatever each does with its
//! contexts, and while the process forks.
//!
//! The provider is linked into this program, so that it combines without a trial.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test that says what it skips")]

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use evener_provider::{OSSL_provider_init, combine_always};

mod support;

use evener_testing::programs::in_child;
use support::ffi::{Cipher, CipherCtx, DEFAULT, Provider, clear_errors};
use support::told::has_told;
use support::{Random, both_providers, bytes, in_program, usual};

/// Kernels beneath would be taken once they were measured, and what overlaps comes out otherwise by them (docs/guide/limits.md).
const AUTO: &[(&str, &str)] = &[("EVENER_COMBINE", "auto"), ("EVENER_KERNELS", "off")];

/// Steps of one thread.
const STEPS: usize = 150;

/// The providers; `together` threads wait for each other.
fn providers(together: u32) -> (Provider, Provider) {
    combine_always(together);
    both_providers(OSSL_provider_init)
}

fn combined(evener: &Provider) -> u32 {
    evener.count(c"evener-combined").unwrap()
}

/// Runs `body` in a program whose provider combines four threads; a line where it cannot here.
fn with_combining(name: &str, body: impl FnOnce(&Provider)) {
    in_program(name, "", AUTO, || {
        let (_default, evener) = providers(4);
        let says = evener.says(c"buildinfo").unwrap();
        if says.contains("combine = auto:") {
            return println!("skipped: {says}");
        }
        body(&evener);
    });
}

/// Two contexts that are treated alike: ours, and the default provider's as the judge.
struct Pair {
    ciphers: [Cipher; 2],
    contexts: [CipherCtx; 2],
}

impl Pair {
    fn new(name: &str) -> Self {
        let ciphers = ["evener", "default"]
            .map(|provider| DEFAULT.cipher(name, &format!("provider={provider}")).unwrap());
        Self { ciphers, contexts: [CipherCtx::new(), CipherCtx::new()] }
    }

    fn both<T: PartialEq>(&self, what: &str, step: impl Fn(&CipherCtx, &Cipher) -> T) {
        let [evener, judge] = [0, 1].map(|at| step(&self.contexts[at], &self.ciphers[at]));
        clear_errors();
        assert!(evener == judge, "{what}");
    }
}

/// Lengths of which most are combined.
fn length(random: &mut Random) -> usize {
    match random.below(8) {
        0 => random.below(100),
        1 => 16_384 + random.below(40),
        2 => 16 * random.below(8_000),
        _ => 16_384 * (1 + random.below(4)),
    }
}

fn step(pair: &mut Pair, random: &mut Random) {
    let seed = random.next();
    match random.below(16) {
        0 => {
            let (key, iv) = (bytes(seed, pair.ciphers[0].key_bytes()), bytes(seed + 1, 16));
            let encrypts = random.below(5) > 0;
            pair.both("init", |ctx, cipher| ctx.init(Some(cipher), Some(&key), Some(&iv), Some(encrypts)));
        }
        1 => pair.both("a new IV", |ctx, _| ctx.init(None, None, Some(&bytes(seed, 16)), None)),
        2 => pair.both("the IV again", |ctx, _| ctx.init(None, None, None, None)),
        3 => pair.both("padding", |ctx, _| ctx.set_padding(seed % 2 == 0)),
        4 => pair.both("last", |ctx, _| ctx.last()),
        5 => pair.contexts = [0, 1].map(|at| pair.contexts[at].duplicate()),
        6 => pair.both("IV", |ctx, _| [c"iv", c"updated-iv"].map(|key| ctx.octets(key, 16))),
        7..=11 => {
            let (len, shift) = (length(random), [0, 0, 0, 16, 5, 20_000][random.below(6)]);
            let forwards = random.below(2) == 0;
            pair.both("within", |ctx, _| {
                let mut space = bytes(seed, len + shift + 32);
                let (from, to) = if forwards { (0, shift) } else { (shift, 0) };
                (ctx.update_within(&mut space, from, to, len), space)
            });
        }
        _ => {
            let data = bytes(seed, length(random));
            pair.both("update", |ctx, _| ctx.update(&data));
        }
    }
}

/// What one thread does.
fn program(seed: u64, steps: usize) {
    let names = ["AES-128-CBC", "AES-192-CBC", "AES-256-CBC"];
    let mut random = Random::new(seed);
    let mut pair = Pair::new(names[random.below(3)]);
    let (key, iv) = (bytes(seed, pair.ciphers[0].key_bytes()), bytes(seed + 1, 16));
    pair.both("start", |ctx, cipher| ctx.init(Some(cipher), Some(&key), Some(&iv), Some(true)));
    (0..steps).for_each(|_| step(&mut pair, &mut random));
}

/// So many threads at once; panics where one does.
fn threads(count: u64, steps: usize) {
    thread::scope(|scope| {
        (0..count).for_each(|seed| {
            scope.spawn(move || program(seed * 1_000, steps));
        });
    });
}

#[test]
fn whatever_threads_do_together_comes_out_as_by_default() {
    with_combining("whatever_threads_do_together_comes_out_as_by_default", |evener| {
        threads(12, STEPS);
        // Some 900 of the updates could be; how many meet is the scheduler's affair.
        let combined = combined(evener);
        assert!(combined > 40, "{combined} combined");
    });
}

/// What one thread of a backup or of a database does: updates that begin and end within a block.
fn unaligned(seed: u64) {
    let pair = Pair::new("AES-256-CBC");
    pair.both("start", |ctx, cipher| {
        ctx.init(Some(cipher), Some(&bytes(seed, 32)), Some(&bytes(seed + 1, 16)), Some(true))
    });
    for round in 0..20 {
        for len in [4, 65_536, 16_354, 65_506, 20_001] {
            let data = bytes(seed + round, len);
            pair.both("update", |ctx, _| ctx.update(&data));
        }
        pair.both("IV", |ctx, _| ctx.octets(c"updated-iv", 16));
    }
    pair.both("last", |ctx, _| ctx.last());
}

#[test]
fn updates_that_begin_and_end_within_a_block_are_combined() {
    with_combining("updates_that_begin_and_end_within_a_block_are_combined", |evener| {
        thread::scope(|scope| {
            (0..12).for_each(|seed| {
                scope.spawn(move || unaligned(seed * 1_000));
            });
        });
        // 960 of the updates could be, all but a few of them within a block.
        let combined = combined(evener);
        assert!(combined > 240, "{combined} combined");
    });
}

/// What one thread of a TLS server does under Encrypt-then-MAC: records of all lengths, in place.
fn records(seed: u64) {
    let pair = Pair::new("AES-128-CBC");
    pair.both("start", |ctx, cipher| {
        ctx.init(Some(cipher), Some(&bytes(seed, 16)), Some(&bytes(seed + 1, 16)), Some(true))
    });
    pair.both("records", |ctx, _| ctx.set_numbers([(c"tls-version", 0x0303), (c"tls-mac-size", 0)]));
    for len in [16_400, 16_384, 16_399, 100, 16_400, 16_385].repeat(10) {
        pair.both("record", |ctx, _| {
            let mut space = bytes(seed, len + 16);
            (ctx.update_within(&mut space, 0, 0, len), space)
        });
    }
}

#[test]
fn tls_records_of_several_threads_are_combined() {
    with_combining("tls_records_of_several_threads_are_combined", |evener| {
        thread::scope(|scope| {
            (0..12).for_each(|seed| {
                scope.spawn(move || records(seed * 1_000));
            });
        });
        let combined = combined(evener);
        assert!(combined > 150, "{combined} of 600 combined");
    });
}

/// Ends the threads, also where the test fails.
struct End<'e>(&'e AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn parent_and_children_go_on_when_a_process_forks_while_its_threads_combine() {
    with_combining("parent_and_children_go_on_when_a_process_forks_while_its_threads_combine", |evener| {
        // libcrypto sets itself up once and takes locks meanwhile, which a child that is forked then finds taken for
        // ever, whichever provider it is: every name and step is used before the first fork.
        (0..30).for_each(|seed| program(seed, 40));
        let ends = AtomicBool::new(false);
        thread::scope(|scope| {
            let end = End(&ends);
            for seed in 0..8 {
                let ends = &ends;
                scope.spawn(move || {
                    while !ends.load(Relaxed) {
                        program(seed * 77, 10);
                    }
                });
            }
            for child in 0..20 {
                let held = in_child(|| {
                    // Alone, and then with threads of its own, which combine too.
                    program(child, 10);
                    let before = combined(evener);
                    // On one slow core whole rounds go by in which no two of them meet.
                    (0..10).any(|_| {
                        threads(6, 40);
                        combined(evener) > before
                    })
                });
                assert!(held, "child {child}");
            }
            drop(end);
        });
        assert!(combined(evener) > 40);
    });
}

/// Without which no trial begins: the controller judges by what it is told of calls that go alone.
#[test]
fn calls_that_go_alone_are_told_with_their_ends_to_who_decides() {
    in_program("calls_that_go_alone_are_told_with_their_ends_to_who_decides", "", AUTO, || {
        let (_default, evener) = both_providers(OSSL_provider_init);
        let says = evener.says(c"buildinfo").unwrap();
        if says.contains("combine = auto:") {
            return println!("skipped: {says}");
        }
        assert!(has_told(&evener, 16_384));
    });
}

#[test]
fn nobody_combines_who_did_not_ask_for_it() {
    in_program("nobody_combines_who_did_not_ask_for_it", "", &[], || {
        let (_default, evener) = providers(4);
        threads(6, 40);
        assert_eq!(combined(&evener), 0);
    });
}

#[test]
fn a_module_that_is_asked_to_combine_by_its_section_answers_as_by_default() {
    let name = "a_module_that_is_asked_to_combine_by_its_section_answers_as_by_default";
    in_program(name, &usual("combine = auto"), &[], || {
        let pair = ["evener", "default"]
            .map(|provider| DEFAULT.cipher("AES-128-CBC", &format!("provider={provider}")));
        assert_eq!(pair[0].as_ref().unwrap().provider(), "evener");
        threads(6, 40);
    });
}
