//! Large updates that are split between threads, against the default provider.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::thread;

mod support;

use evener_kernels::Level;
use evener_testing::programs::{in_child, skipped};
use support::ffi::DEFAULT;
use support::pair::{Pair, SPLIT, evener, has_kernels, in_both, length, split_count, split_mostly};
use support::{Random, bytes, in_program, usual};

const NAMES: &[&str] = &[
    "AES-128-CBC",
    "AES-256-CBC",
    "AES-192-ECB",
    "AES-128-CTR",
    "AES-256-CTR",
    "AES-128-XTS",
    "AES-256-XTS",
];

/// One message with random updates, apart, in place and overlapping, copied and started anew.
fn message(name: &str, run: u64) {
    message_by(&mut Pair::new(&DEFAULT, name), name, run);
}

/// Where input and output begin. To kernels apart: where the output begins in input that is not read yet, as it does in place behind a held block, they
/// give the right answer, and OpenSSL has destroyed that.
fn overlap(random: &mut Random, len: usize) -> (usize, usize) {
    let pair = [(0, 0), (0, 0), (16, 0), (0, 16), (5, 0), (0, 40)][random.below(6)];
    if has_kernels() { (pair.0, len + 16 + pair.1) } else { pair }
}

fn message_by(pair: &mut Pair, name: &str, run: u64) {
    let mut random = Random::new(run);
    let (key_bytes, iv_bytes) = (pair.ciphers[0].key_bytes(), pair.ciphers[0].iv_bytes());
    let (key, iv) = (bytes(run, key_bytes), bytes(run + 1, iv_bytes));
    let (encrypts, padding) = (random.below(3) == 0, random.below(2) == 0);
    pair.both(name, |ctx, cipher| {
        ctx.init(Some(cipher), Some(&key), Some(&iv), Some(encrypts)) && {
            ctx.set_padding(padding);
            true
        }
    });
    for step in 0..6 {
        let (len, seed) = (length(&mut random), random.next());
        let what = format!("{name} run {run} step {step} len {len} encrypts {encrypts}");
        match random.below(8) {
            0..=2 => drop(pair.both(&what, |ctx, _| ctx.update(&bytes(seed, len)))),
            3..=5 => {
                let (from, to) = overlap(&mut random, len);
                pair.both(&what, |ctx, _| {
                    let mut space = bytes(seed, 2 * len + 80);
                    let answer = ctx.update_within(&mut space, from, to, len);
                    (answer, space)
                });
            }
            6 => pair.duplicate(),
            _ => {
                pair.both(&what, |ctx, _| ctx.init(None, None, Some(&bytes(seed, iv_bytes)), None));
            }
        }
        if iv_bytes > 0 {
            pair.both(&what, |ctx, _| (ctx.octets(c"updated-iv", iv_bytes), ctx.octets(c"iv", iv_bytes)));
        }
    }
    pair.both(name, |ctx, _| ctx.last());
}

#[test]
fn whatever_is_split_comes_out_as_by_default() {
    in_both("whatever_is_split_comes_out_as_by_default", || {
        split_mostly(NAMES, 40, message);
    });
}

#[test]
fn a_message_that_is_split_in_its_place_comes_out_as_by_default() {
    in_both("a_message_that_is_split_in_its_place_comes_out_as_by_default", || {
        split_mostly(NAMES, 10, |name, run| {
            let (pair, mut random) = (Pair::new(&DEFAULT, name), Random::new(run));
            let (key, iv) = (bytes(run, pair.ciphers[0].key_bytes()), bytes(2, pair.ciphers[0].iv_bytes()));
            pair.both("init", |ctx, cipher| {
                let is_begun = ctx.init(Some(cipher), Some(&key), Some(&iv), Some(false));
                ctx.set_padding(false);
                is_begun
            });
            for _ in 0..4 {
                let (len, seed) = (16 * (5_000 + random.below(20_000)), random.next());
                pair.both(&format!("{name} run {run} len {len}"), |ctx, _| {
                    let mut space = bytes(seed, len + 16);
                    (ctx.update_within(&mut space, 0, 0, len), space)
                });
            }
        });
    });
}

#[test]
fn a_piece_whose_output_begins_in_its_input_is_done_by_one_kernel() {
    if Level::best().is_none() {
        return skipped("this processor has no kernels");
    }
    let kernels = [SPLIT, &[("EVENER_KERNELS", "on")]].concat();
    in_program(
        "a_piece_whose_output_begins_in_its_input_is_done_by_one_kernel",
        &usual(""),
        &kernels,
        || {
            for name in ["AES-128-CTR", "AES-256-GCM", "AES-256-XTS", "AES-128-ECB"] {
                let pair = Pair::new(&DEFAULT, name);
                let (key, iv) = (bytes(1, pair.ciphers[0].key_bytes()), bytes(2, pair.ciphers[0].iv_bytes()));
                for (from, to) in [(0, 40), (40, 0), (0, 16_400), (150_000, 0)] {
                    let len = 200_000;
                    pair.both("init", |ctx, cipher| {
                        ctx.init(Some(cipher), Some(&key), Some(&iv), Some(true))
                    });
                    let before = split_count(&evener());
                    let mut space = bytes(3, len + from.max(to) + 16);
                    // OpenSSL's, where they lie apart.
                    let right = pair.contexts[1].update(&space[from..from + len]).unwrap();
                    let answer = pair.contexts[0].update_within(&mut space, from, to, len);
                    assert_eq!(answer, (true, len), "{name} {from} {to}");
                    assert!(space[to..to + len] == right, "{name} {from} {to}");
                    assert_eq!(split_count(&evener()), before, "{name} {from} {to}");
                }
            }
        },
    );
}

/// A threshold below what a block that is begun still waits for.
#[test]
fn a_piece_that_ends_within_the_block_that_it_began_in_is_not_split() {
    if Level::best().is_none() {
        return skipped("this processor has no kernels");
    }
    let all =
        [("EVENER_THREADS", "3"), ("EVENER_SPLIT", "1"), ("EVENER_GUARD", "off"), ("EVENER_KERNELS", "on")];
    in_program("a_piece_that_ends_within_the_block_that_it_began_in_is_not_split", &usual(""), &all, || {
        for name in ["AES-128-CTR", "AES-256-GCM", "AES-192-ECB", "AES-128-CBC"] {
            let (pair, mut random) = (Pair::new(&DEFAULT, name), Random::new(7));
            let (key, iv) = (bytes(1, pair.ciphers[0].key_bytes()), bytes(2, pair.ciphers[0].iv_bytes()));
            pair.both("init", |ctx, cipher| ctx.init(Some(cipher), Some(&key), Some(&iv), Some(false)));
            for len in (0..500).map(|_| 1 + random.below(40)) {
                pair.both(&format!("{name} {len}"), |ctx, _| ctx.update(&bytes(3, len)));
            }
        }
    });
}

#[test]
fn ciphertext_is_stolen_within_the_last_part() {
    in_both("ciphertext_is_stolen_within_the_last_part", || {
        let evener = evener();
        for encrypts in [true, false] {
            let pair = Pair::new(&DEFAULT, "AES-128-XTS");
            pair.both("init", |ctx, cipher| {
                ctx.init(Some(cipher), Some(&bytes(1, 32)), Some(&bytes(2, 16)), Some(encrypts))
            });
            for rest in 0..33 {
                let (len, before) = (5 * 16_384 + rest, split_count(&evener));
                pair.both(&format!("{rest} in place"), |ctx, _| {
                    let mut space = bytes(3, len + 16);
                    (ctx.update_within(&mut space, 0, 0, len), space)
                });
                pair.both(&format!("{rest} apart"), |ctx, _| ctx.update(&bytes(3, len)));
                assert_eq!(split_count(&evener) - before, 2, "{rest}");
            }
        }
    });
}

#[test]
fn threads_that_split_at_the_same_moment_get_what_they_would_alone() {
    in_both("threads_that_split_at_the_same_moment_get_what_they_would_alone", || {
        thread::scope(|scope| {
            for caller in 0..4 {
                scope.spawn(move || {
                    (0..10).for_each(|run| message(NAMES[(run % 7) as usize], 100 * caller + run));
                });
            }
        });
        assert!(split_count(&evener()) > 0);
    });
}

#[test]
fn a_child_of_a_program_that_split_splits_by_threads_of_its_own() {
    in_both("a_child_of_a_program_that_split_splits_by_threads_of_its_own", || {
        message("AES-128-CTR", 1);
        let evener = evener();
        for run in 0..5 {
            let split = || {
                let before = split_count(&evener);
                (0..4).for_each(|at| message(NAMES[at], 10 * run + at as u64));
                split_count(&evener) > before
            };
            assert!(in_child(|| split() && in_child(split)));
            assert!(split());
        }
    });
}

#[test]
fn a_program_that_forks_while_others_split_goes_on_with_its_children() {
    in_both("a_program_that_forks_while_others_split_goes_on_with_its_children", || {
        thread::scope(|scope| {
            let busy = scope.spawn(|| (0..30).for_each(|run| message("AES-256-CTR", run)));
            for run in 0..10 {
                // Made here: to fetch a cipher takes locks of libcrypto, which the child finds as another thread left them.
                let mut pair = Pair::new(&DEFAULT, "AES-128-XTS");
                assert!(in_child(|| {
                    message_by(&mut pair, "AES-128-XTS", run);
                    true
                }));
            }
            busy.join().unwrap();
        });
    });
}

#[test]
fn nothing_is_split_and_no_thread_started_where_none_is_configured() {
    let off: &[(&str, &str)] = &[("EVENER_SPLIT", "16")];
    in_program("nothing_is_split_and_no_thread_started_where_none_is_configured", &usual(""), off, || {
        message("AES-128-CTR", 1);
        assert_eq!(split_count(&evener()), 0);
        assert!(!threads().iter().any(|name| name == "evener-split"));
    });
}

#[test]
fn helpers_are_started_by_the_first_split_and_hear_no_signal() {
    let large = [("EVENER_THREADS", "3"), ("EVENER_SPLIT", "65536"), ("EVENER_GUARD", "off")];
    in_program("helpers_are_started_by_the_first_split_and_hear_no_signal", &usual(""), &large, || {
        let pair = Pair::new(&DEFAULT, "AES-128-CTR");
        pair.both("init", |ctx, cipher| {
            ctx.init(Some(cipher), Some(&bytes(1, 16)), Some(&bytes(2, 16)), Some(true))
        });
        pair.both("small", |ctx, _| ctx.update(&bytes(3, 10)));
        assert!(!threads().iter().any(|name| name == "evener-split"));
        pair.both("large", |ctx, _| ctx.update(&bytes(3, 1_000_000)));
        // A thread gives itself its name.
        while threads().iter().filter(|name| *name == "evener-split").count() < 2 {
            thread::yield_now();
        }
    });
}

/// The names of this process's threads; fails where a helper would hear a signal that can be blocked.
fn threads() -> Vec<String> {
    let read = |task: std::fs::DirEntry| {
        let field = |status: &str, name: &str| {
            status.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
        };
        let status = std::fs::read_to_string(task.path().join("status")).ok()?;
        let name = field(&status, "Name:")?;
        if name == "evener-split" {
            let blocked = u64::from_str_radix(&field(&status, "SigBlk:")?, 16).unwrap();
            // All but SIGKILL and SIGSTOP, and the two that the C library keeps for itself.
            assert_eq!(blocked & 0x7fff_ffff, 0x7fff_ffff & !(1 << 8 | 1 << 18), "{blocked:x}");
        }
        Some(name)
    };
    std::fs::read_dir("/proc/self/task").unwrap().filter_map(|task| read(task.unwrap())).collect()
}

#[test]
fn num_points_into_the_last_broken_block_also_after_a_split() {
    in_both("num_points_into_the_last_broken_block_also_after_a_split", || {
        let pair = Pair::new(&DEFAULT, "AES-128-CTR");
        for (len, rest) in [(300_005, 11), (300_005, 4), (300_000, 0), (300_001, 15 + 160)] {
            pair.both("init", |ctx, cipher| {
                ctx.init(Some(cipher), Some(&bytes(1, 16)), Some(&bytes(2, 16)), Some(true))
            });
            pair.both("large", |ctx, _| ctx.update(&bytes(3, len)));
            pair.both("rest", |ctx, _| ctx.update(&bytes(4, rest)));
            pair.both("num", |ctx, _| (ctx.number(c"num"), ctx.set_number(c"num", 5), ctx.number(c"num")));
            pair.both("behind it", |ctx, _| (ctx.update(&bytes(5, 30)), ctx.update(&bytes(6, 300_000))));
        }
        assert!(split_count(&evener()) >= 4);
    });
}
