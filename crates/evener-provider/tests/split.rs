//! Large updates that are split between threads, against the default provider.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::thread;

mod support;

use support::ffi::{Cipher, CipherCtx, DEFAULT, LibCtx, Provider, clear_errors, in_child};
use support::{Random, bytes, in_program, usual};

/// Splits whatever has two parts.
const SPLIT: &[(&str, &str)] = &[("EVENER_THREADS", "3"), ("EVENER_SPLIT", "16")];

const NAMES: &[&str] = &[
    "AES-128-CBC",
    "AES-256-CBC",
    "AES-192-ECB",
    "AES-128-CTR",
    "AES-256-CTR",
    "AES-128-XTS",
    "AES-256-XTS",
];

fn evener() -> Provider {
    DEFAULT.load("evener").unwrap()
}

fn split_count(evener: &Provider) -> u32 {
    evener.count(c"evener-split").unwrap()
}

/// The same program by both providers.
struct Pair {
    ciphers: [Cipher; 2],
    contexts: [CipherCtx; 2],
}

impl Pair {
    fn new(context: &LibCtx, name: &str) -> Self {
        let by = |who| context.cipher(name, &format!("provider={who}")).unwrap();
        Self { ciphers: ["evener", "default"].map(by), contexts: [CipherCtx::new(), CipherCtx::new()] }
    }

    /// Does `step` to both; panics with `what` where they do not agree.
    fn both<T: PartialEq>(&self, what: &str, step: impl Fn(&CipherCtx, &Cipher) -> T) -> T {
        let [ours, judge] = [0, 1].map(|at| step(&self.contexts[at], &self.ciphers[at]));
        clear_errors();
        assert!(ours == judge, "{what}");
        ours
    }

    fn duplicate(&mut self) {
        self.contexts = [self.contexts[0].duplicate(), self.contexts[1].duplicate()];
    }
}

/// Lengths about which a cut may go wrong: mostly of several parts, sometimes of a few bytes.
fn length(random: &mut Random) -> usize {
    match random.below(6) {
        0 => random.below(100),
        1 => 16 * random.below(100),
        2 => 16_384 * (1 + random.below(20)) + random.below(40),
        3 => 16 * random.below(20_000),
        _ => random.below(300_000),
    }
}

/// One message with random updates, apart, in place and overlapping, copied and started anew.
fn message(name: &str, run: u64) {
    message_by(&mut Pair::new(&DEFAULT, name), name, run);
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
                let (from, to) = [(0, 0), (0, 0), (16, 0), (0, 16), (5, 0), (0, 40)][random.below(6)];
                pair.both(&what, |ctx, _| {
                    let mut room = bytes(seed, len + 80);
                    let answer = ctx.update_within(&mut room, from, to, len);
                    (answer, room)
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
    in_program("whatever_is_split_comes_out_as_by_default", &usual(""), SPLIT, || {
        let evener = evener();
        for name in NAMES {
            let before = split_count(&evener);
            for run in 0..40 {
                message(name, run);
            }
            assert!(split_count(&evener) - before > 20, "{name}: {}", split_count(&evener) - before);
        }
    });
}

#[test]
fn ciphertext_is_stolen_within_the_last_part() {
    in_program("ciphertext_is_stolen_within_the_last_part", &usual(""), SPLIT, || {
        let evener = evener();
        for encrypts in [true, false] {
            let pair = Pair::new(&DEFAULT, "AES-128-XTS");
            pair.both("init", |ctx, cipher| {
                ctx.init(Some(cipher), Some(&bytes(1, 32)), Some(&bytes(2, 16)), Some(encrypts))
            });
            for rest in 0..33 {
                let (len, before) = (5 * 16_384 + rest, split_count(&evener));
                pair.both(&format!("{rest} in place"), |ctx, _| {
                    let mut room = bytes(3, len + 16);
                    (ctx.update_within(&mut room, 0, 0, len), room)
                });
                pair.both(&format!("{rest} apart"), |ctx, _| ctx.update(&bytes(3, len)));
                assert_eq!(split_count(&evener) - before, 2, "{rest}");
            }
        }
    });
}

#[test]
fn threads_that_split_at_the_same_moment_get_what_they_would_alone() {
    in_program("threads_that_split_at_the_same_moment_get_what_they_would_alone", &usual(""), SPLIT, || {
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
    in_program("a_child_of_a_program_that_split_splits_by_threads_of_its_own", &usual(""), SPLIT, || {
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
    in_program(
        "a_program_that_forks_while_others_split_goes_on_with_its_children",
        &usual(""),
        SPLIT,
        || {
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
        },
    );
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
    in_program("helpers_are_started_by_the_first_split_and_hear_no_signal", &usual(""), SPLIT, || {
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

const GCM: &[&str] = &["AES-128-GCM", "AES-192-GCM", "AES-256-GCM"];

/// One GCM message by both providers: associated data, updates of random lengths, copies and questions in between, and a
/// tag that is made, checked, or damaged and refused.
fn gcm_message(name: &str, run: u64) {
    let mut random = Random::new(run);
    let mut pair = Pair::new(&DEFAULT, name);
    gcm_by(&mut pair, name, &mut random, true);
    // Another message by the same contexts and, sometimes, the same key.
    let with_key = random.below(2) == 0;
    gcm_by(&mut pair, name, &mut random, with_key);
}

fn gcm_by(pair: &mut Pair, name: &str, random: &mut Random, with_key: bool) {
    let seed = random.next();
    let (key, encrypts) = (bytes(seed, pair.ciphers[0].key_bytes()), random.below(2) == 0);
    let iv = bytes(seed + 1, 12);
    let what = format!("{name} seed {seed} encrypts {encrypts} key {with_key}");
    if random.below(4) == 0 {
        pair.both(&what, |ctx, _| ctx.set_padding(false));
    }
    let started = pair.both(&what, |ctx, cipher| {
        ctx.init(with_key.then_some(cipher), with_key.then_some(&*key), Some(&iv), Some(encrypts))
    });
    assert!(started);
    if random.below(8) == 0 {
        // A message that is given up.
        pair.both(&what, |ctx, _| ctx.update(&bytes(seed, 200_000)));
        assert!(pair.both(&what, |ctx, _| ctx.init(None, None, Some(&iv), None)));
    }
    for _ in 0..random.below(3) {
        let aad = bytes(random.next(), random.below(50));
        pair.both(&what, |ctx, _| ctx.aad(&aad));
    }
    // Text that decrypts to something with a tag that fits is made by the judge.
    for step in 0..1 + random.below(5) {
        let (len, seed) = (length(random), random.next());
        let what = format!("{what} step {step} len {len}");
        match random.below(8) {
            0..=2 => drop(pair.both(&what, |ctx, _| ctx.update(&bytes(seed, len)))),
            3..=5 => {
                let (from, to) = [(0, 0), (0, 0), (16, 0), (0, 40)][random.below(4)];
                pair.both(&what, |ctx, _| {
                    let mut room = bytes(seed, len + 80);
                    let answer = ctx.update_within(&mut room, from, to, len);
                    (answer, room)
                });
            }
            6 => pair.duplicate(),
            _ => _ = pair.both(&what, |ctx, _| ctx.octets(c"updated-iv", 12)),
        }
        pair.both(&what, |ctx, _| (ctx.octets(c"iv", 12), ctx.length(c"ivlen")));
    }
    if encrypts {
        pair.both(&what, |ctx, _| ctx.last());
        for len in [16, 12, 4] {
            pair.both(&what, |ctx, _| ctx.octets(c"tag", len));
        }
    } else {
        // Hardly ever the right one.
        pair.both(&what, |ctx, _| ctx.set_octets(c"tag", &[7; 16]));
        pair.both(&what, |ctx, _| ctx.last());
    }
}

#[test]
fn gcm_that_is_split_comes_out_as_by_default() {
    in_program("gcm_that_is_split_comes_out_as_by_default", &usual(""), SPLIT, || {
        let evener = evener();
        for name in GCM {
            let before = split_count(&evener);
            for run in 0..60 {
                gcm_message(name, run);
            }
            assert!(split_count(&evener) - before > 30, "{name}: {}", split_count(&evener) - before);
        }
    });
}

/// Encrypts by the one provider in `first`, decrypts by the other in `second` chunks; whether the tag was accepted.
fn sealed_and_opened(ciphers: [&Cipher; 2], run: u64, tag_bytes: usize, damage: Option<usize>) -> bool {
    let mut random = Random::new(run);
    let (key, iv) = (bytes(run, ciphers[0].key_bytes()), bytes(run + 1, 12));
    let (aad, text) = (bytes(run + 2, random.below(100)), bytes(run + 3, 200_000 + random.below(300_000)));
    let chunked = |ctx: &CipherCtx, data: &[u8], random: &mut Random| {
        let (mut out, mut rest) = (Vec::new(), data);
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at((1 + length(random)).min(rest.len()));
            out.extend(ctx.update(chunk).unwrap());
            rest = after;
        }
        out
    };
    let seal = CipherCtx::new();
    assert!(seal.init(Some(ciphers[0]), Some(&key), Some(&iv), Some(true)) && seal.aad(&aad));
    let mut sealed = chunked(&seal, &text, &mut random);
    assert!(seal.last().is_some());
    let mut tag = seal.octets(c"tag", tag_bytes).unwrap();
    match damage {
        Some(at) if at < tag_bytes => tag[at] ^= 1,
        Some(at) => sealed[at * 1000] ^= 0x80,
        None => {}
    }
    let open = CipherCtx::new();
    assert!(open.init(Some(ciphers[1]), Some(&key), Some(&iv), Some(false)));
    let early = random.below(2) == 0;
    assert!(!early || open.set_octets(c"tag", &tag));
    assert!(open.aad(&aad));
    let opened = chunked(&open, &sealed, &mut random);
    assert!(early || open.set_octets(c"tag", &tag));
    let accepted = open.last().is_some();
    clear_errors();
    assert!(damage.is_some() || opened == text);
    accepted
}

#[test]
fn a_split_gcm_message_is_accepted_by_the_other_side_and_a_damaged_one_refused() {
    let name = "a_split_gcm_message_is_accepted_by_the_other_side_and_a_damaged_one_refused";
    in_program(name, &usual(""), SPLIT, || {
        let evener = evener();
        for (at, name) in GCM.iter().enumerate() {
            let ours = DEFAULT.cipher(name, "provider=evener").unwrap();
            let judge = DEFAULT.cipher(name, "provider=default").unwrap();
            let before = split_count(&evener);
            for run in 0..15 {
                let run = 100 * at as u64 + run;
                for sides in [[&ours, &judge], [&judge, &ours], [&ours, &ours]] {
                    assert!(sealed_and_opened(sides, run, 16, None), "{name} run {run}");
                    assert!(sealed_and_opened(sides, run, 12, None), "{name} run {run}, short tag");
                    assert!(
                        !sealed_and_opened(sides, run, 16, Some((run % 16) as usize)),
                        "{name} run {run}"
                    );
                    assert!(
                        !sealed_and_opened(sides, run, 16, Some(20 + (run % 100) as usize)),
                        "{name} run {run}"
                    );
                }
            }
            let count = split_count(&evener) - before;
            assert!(count > 100, "{name}: {count}");
        }
    });
}

#[test]
fn a_tag_that_was_given_once_is_there_for_the_same_message_again() {
    let name = "a_tag_that_was_given_once_is_there_for_the_same_message_again";
    in_program(name, &usual(""), SPLIT, || {
        let pair = Pair::new(&DEFAULT, "AES-256-GCM");
        let (key, iv, text) = (bytes(1, 32), bytes(2, 12), bytes(3, 300_000));
        let seal = CipherCtx::new();
        assert!(seal.init(Some(&pair.ciphers[1]), Some(&key), Some(&iv), Some(true)));
        let sealed = seal.update(&text).unwrap();
        assert!(seal.last().is_some());
        let tag = seal.octets(c"tag", 16).unwrap();
        pair.both("init", |ctx, cipher| ctx.init(Some(cipher), Some(&key), Some(&iv), Some(false)));
        assert!(pair.both("tag", |ctx, _| ctx.set_octets(c"tag", &tag)));
        for len in [300_000, 300_000, 1000, 300_000] {
            pair.both("again", |ctx, _| ctx.init(None, None, Some(&iv), None));
            pair.both("update", |ctx, _| ctx.update(&sealed[..len]));
            let accepted = pair.both("last", |ctx, _| ctx.last().is_some());
            assert_eq!(accepted, len == 300_000);
        }
        // Shorter than what is split: the inner context's own tag is the one that was given.
        let small = CipherCtx::new();
        assert!(small.init(Some(&pair.ciphers[1]), Some(&key), Some(&iv), Some(true)));
        let sealed = small.update(&text[..100]).unwrap();
        assert!(small.last().is_some());
        let tag = small.octets(c"tag", 16).unwrap();
        pair.both("init", |ctx, _| ctx.init(None, None, Some(&iv), None));
        pair.both("tag", |ctx, _| ctx.set_octets(c"tag", &tag));
        pair.both("split", |ctx, _| (ctx.update(&text), ctx.last()));
        pair.both("init", |ctx, _| ctx.init(None, None, Some(&iv), None));
        assert!(pair.both("small", |ctx, _| (ctx.update(&sealed), ctx.last())).1.is_some());
    });
}

#[test]
fn a_gcm_counter_wraps_in_its_word_only() {
    in_program("a_gcm_counter_wraps_in_its_word_only", &usual(""), SPLIT, || {
        // No nonce of 96 bits begins near the wrap; one of another length stays whole, and comes out the same.
        let pair = Pair::new(&DEFAULT, "AES-128-GCM");
        for (run, iv_bytes) in [(1, 1), (2, 8), (3, 16), (4, 60)] {
            let iv = bytes(run, iv_bytes);
            pair.both("init", |ctx, cipher| ctx.init(Some(cipher), Some(&bytes(1, 16)), None, Some(true)));
            pair.both("ivlen", |ctx, _| ctx.set_length(c"ivlen", iv_bytes));
            pair.both("iv", |ctx, _| ctx.init(None, None, Some(&iv), None));
            pair.both("update", |ctx, _| ctx.update(&bytes(run, 300_000)));
            pair.both("last", |ctx, _| (ctx.last(), ctx.octets(c"tag", 16)));
        }
    });
}
