//! Messages that this provider cuts itself come out as the default provider's, whatever the program does with them.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::ffi::CStr;

use evener_ossl_sys::{PARAM_INTEGER, PARAM_OCTET_PTR, PARAM_OCTET_STRING, PARAM_UNSIGNED_INTEGER};

mod support;

use support::ffi::{Cipher, CipherCtx, DEFAULT, LibCtx, Provider, errors};
use support::{Random, bytes, folder, in_program};

/// The threshold at one block: all that can be routed is. What overlaps comes out otherwise by kernels (docs/guide/limits.md), so that none is taken.
const ALL: &[(&str, &str)] = &[("EVENER_THRESHOLD", "16"), ("EVENER_KERNELS", "off")];

fn providers() -> (Provider, Provider) {
    DEFAULT.search(&folder());
    let default = DEFAULT.load("default").unwrap();
    (default, DEFAULT.load("evener").unwrap())
}

fn routed(evener: &Provider) -> u32 {
    evener.count(c"evener-routed").unwrap()
}

/// Two contexts that are treated alike: ours, and the default provider's as the judge.
struct Pair {
    ciphers: [Cipher; 2],
    contexts: [CipherCtx; 2],
    is_padded: bool,
    /// Whether something was asked that hands the message to the inner cipher: the key stream of a block that an earlier message has begun is not handed over.
    was_handed_over: bool,
    /// Whether it was said how much of such a block is used.
    has_other_stream: bool,
}

impl Pair {
    fn new(context: &LibCtx, name: &str) -> Self {
        let ciphers = ["evener", "default"]
            .map(|provider| context.cipher(name, &format!("provider={provider}")).unwrap());
        let is_padded = name.ends_with("-CBC") || name.ends_with("-ECB");
        Self {
            ciphers,
            contexts: [CipherCtx::new(), CipherCtx::new()],
            is_padded,
            was_handed_over: false,
            has_other_stream: false,
        }
    }

    /// Does `step` to both; panics with `what` where they do not agree.
    fn both<T: PartialEq + std::fmt::Debug>(&self, what: &str, step: impl Fn(&CipherCtx, &Cipher) -> T) -> T {
        let [(evener, said), (judge, said_by_judge)] = [0, 1].map(|at| {
            let answer = step(&self.contexts[at], &self.ciphers[at]);
            (answer, errors())
        });
        assert_eq!(evener, judge, "{what}");
        assert_eq!(said, said_by_judge, "{what}");
        evener
    }

    fn duplicate(&mut self) {
        self.contexts = [self.contexts[0].duplicate(), self.contexts[1].duplicate()];
    }
}

/// One step of a program, chosen by `random`; a line that says which.
fn step(pair: &mut Pair, random: &mut Random, overlaps: bool) -> String {
    let (key_bytes, iv_bytes) = (pair.ciphers[0].key_bytes(), pair.ciphers[0].iv_bytes());
    let seed = random.next();
    match random.below(24) {
        0..=2 => {
            let (key, iv) = (bytes(seed, key_bytes), bytes(seed + 1, iv_bytes));
            let (with_key, with_iv) = (random.below(4) > 0, random.below(4) > 0);
            let encrypts = random.below(2) == 0;
            pair.both("init", |ctx, cipher| {
                let key = with_key.then_some(&*key);
                ctx.init(key.is_some().then_some(cipher), key, with_iv.then_some(&*iv), Some(encrypts))
            });
            pair.has_other_stream &= !with_iv;
            format!("init key {with_key} iv {with_iv} encrypts {encrypts}")
        }
        3 => {
            pair.both("again", |ctx, _| ctx.init(None, None, None, None));
            "again".into()
        }
        4 => {
            let on = random.below(2) == 0;
            pair.both("padding", |ctx, _| ctx.set_padding(on));
            format!("padding {on}")
        }
        5 => {
            pair.both("last", |ctx, _| ctx.last());
            "last".into()
        }
        6 => {
            pair.duplicate();
            "duplicate".into()
        }
        7 => asked_or_set(pair, random),
        8 => {
            // Of CBC a part of a block is OpenSSL's own affair, by whatever it has held.
            let is_cbc = pair.ciphers[0].iv_bytes() == 16 && pair.is_padded;
            let len = if is_cbc || seed % 2 == 0 { random.below(24) * 16 } else { random.below(200) };
            // Of ECB's block and a part of the next, OpenSSL's code for AArch64 does the next one (seen with 3.0.20).
            let is_ecb = pair.ciphers[0].iv_bytes() == 0;
            let len = if cfg!(target_arch = "aarch64") && is_ecb && len < 32 { len / 16 * 16 } else { len };
            pair.both("one-shot", |ctx, _| {
                let mut data = bytes(seed, len);
                (ctx.one_shot(&mut data), data)
            });
            format!("one-shot {len}")
        }
        9..=12 if overlaps => {
            let (len, shift) = (length(random), [0, 0, 16, 5][random.below(4)]);
            let way = pair.both("within", |ctx, _| {
                let mut space = bytes(seed, len + 64);
                let answer = ctx.update_within(&mut space, shift, [shift, 0][random_bit(seed)], len);
                (answer, space)
            });
            format!("within {len} shift {shift} wrote {}", way.0.1)
        }
        _ => {
            let data = bytes(seed, length(random));
            pair.both("update", |ctx, _| ctx.update(&data));
            format!("update {}", data.len())
        }
    }
}

/// A question, or a parameter, chosen by `random`; a line that says which.
fn asked_or_set(pair: &mut Pair, random: &mut Random) -> String {
    let iv_bytes = pair.ciphers[0].iv_bytes();
    match random.below(4) {
        0 if !pair.has_other_stream => {
            pair.both("little room", |ctx, _| ctx.octets(c"iv", 4).is_some());
            pair.was_handed_over = true;
            "little room".into()
        }
        1 if !pair.was_handed_over => {
            pair.has_other_stream = true;
            let used = u32::try_from(random.below(16)).unwrap();
            pair.both("num", |ctx, _| ctx.set_numbers([(c"num", used), (c"use-bits", 0)]));
            format!("num {used}")
        }
        _ => {
            let kinds = if pair.has_other_stream { GETTABLE.len() - 1 } else { GETTABLE.len() };
            let chosen: Vec<_> = (0..=random.below(5)).map(|_| GETTABLE[random.below(kinds)]).collect();
            pair.was_handed_over |= chosen.iter().any(|question| question.0 == c"tls-mac");
            let said = format!("{chosen:?}");
            pair.both(&said, |ctx, _| ctx.answers(&chosen));
            pair.both("iv", |ctx, _| [c"iv", c"updated-iv"].map(|name| ctx.octets(name, iv_bytes)));
            said
        }
    }
}

/// What a program may ask a context for, with types and room; last what hands a message over.
const GETTABLE: &[(&CStr, u32, usize)] = &[
    (c"ivlen", PARAM_UNSIGNED_INTEGER, 8),
    (c"keylen", PARAM_UNSIGNED_INTEGER, 8),
    (c"padding", PARAM_UNSIGNED_INTEGER, 4),
    (c"num", PARAM_UNSIGNED_INTEGER, 4),
    (c"iv", PARAM_OCTET_STRING, 16),
    (c"updated-iv", PARAM_OCTET_STRING, 16),
    (c"taglen", PARAM_UNSIGNED_INTEGER, 8),
    (c"tag", PARAM_OCTET_STRING, 16),
    (c"tlsaadpad", PARAM_UNSIGNED_INTEGER, 8),
    (c"tlsivgen", PARAM_OCTET_STRING, 8),
    (c"algorithm-id-params", PARAM_OCTET_STRING, 64),
    (c"unknown", PARAM_INTEGER, 4),
    (c"tls-mac", PARAM_OCTET_PTR, 8),
];

fn random_bit(seed: u64) -> usize {
    usize::from(seed % 2 == 1)
}

const NAMES: &[&str] = &[
    "AES-128-CBC",
    "AES-192-CBC",
    "AES-256-CBC",
    "AES-128-ECB",
    "AES-192-ECB",
    "AES-256-ECB",
    "AES-128-CTR",
    "AES-192-CTR",
    "AES-256-CTR",
    "AES-128-XTS",
    "AES-256-XTS",
];

/// A length of an update: often short, often of whole blocks.
fn length(random: &mut Random) -> usize {
    match random.below(4) {
        0 => random.below(40),
        1 => random.below(20) * 16,
        2 => random.below(300),
        _ => random.below(3) * 16 + random.below(2),
    }
}

/// A program of so many steps, by both providers.
fn program(name: &str, seed: u64, steps: usize, overlaps: bool) {
    let mut random = Random::new(seed);
    let mut pair = Pair::new(&DEFAULT, name);
    let mut story = vec![format!("{name} seed {seed}")];
    let (key, iv) = (bytes(seed, pair.ciphers[0].key_bytes()), bytes(seed + 1, pair.ciphers[0].iv_bytes()));
    let encrypts = seed % 2 == 0;
    pair.both("start", |ctx, cipher| ctx.init(Some(cipher), Some(&key), Some(&iv), Some(encrypts)));
    for _ in 0..steps {
        let outcome =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| step(&mut pair, &mut random, overlaps)));
        story.push(outcome.unwrap_or_else(|_| panic!("after {story:#?}")));
    }
}

#[test]
fn whatever_a_program_does_comes_out_as_by_default() {
    in_program("whatever_a_program_does_comes_out_as_by_default", "", ALL, || {
        let (_default, evener) = providers();
        for (at, name) in NAMES.iter().enumerate() {
            let before = routed(&evener);
            (0..1000).for_each(|run| program(name, 1000 * at as u64 + run, 30, true));
            let count = routed(&evener) - before;
            assert!(count > 1000, "{name}: only {count} pieces were routed");
        }
    });
}

/// Ciphers whose contexts are a kernel's, before which other ways come with the first long update.
const LATE: &[&str] = &["AES-128-CTR", "AES-256-CTR", "AES-128-XTS", "AES-256-XTS", "AES-128-ECB"];

/// Runs programs of [`LATE`] ciphers, of which some updates are long enough for another way; what was routed, and what kernels did.
fn late_programs(name: &str, kernels: &str, check: impl Fn(&str, u32, u32)) {
    let variables = [("EVENER_THRESHOLD", "160"), ("EVENER_KERNELS", kernels), ("EVENER_STATISTICS", "off")];
    in_program(name, "", &variables, || {
        let (_default, evener) = providers();
        for (at, cipher) in LATE.iter().enumerate() {
            let before = [c"evener-routed", c"evener-native"].map(|name| evener.count(name).unwrap());
            // What overlaps comes out otherwise by kernels.
            (0..600).for_each(|run| program(cipher, 7000 * at as u64 + run, 40, kernels != "on"));
            let [routed, native] =
                [c"evener-routed", c"evener-native"].map(|name| evener.count(name).unwrap());
            check(cipher, routed - before[0], native - before[1]);
        }
    });
}

#[test]
fn a_context_of_a_kernels_before_which_other_ways_come_gives_what_it_gives_by_default() {
    let name = "a_context_of_a_kernels_before_which_other_ways_come_gives_what_it_gives_by_default";
    if evener_kernels::Level::best().is_none() {
        return evener_testing::programs::skipped("this processor has no kernels");
    }
    late_programs(name, "on", |cipher, routed, native| {
        assert!(routed > 100 && native > 100, "{cipher}: {routed} routed, {native} by kernels");
    });
}

#[test]
fn a_context_of_the_inner_ciphers_before_which_other_ways_come_gives_what_it_gives_by_default() {
    let name = "a_context_of_the_inner_ciphers_before_which_other_ways_come_gives_what_it_gives_by_default";
    late_programs(name, "auto", |cipher, routed, native| {
        assert!(routed > 100 && native == 0, "{cipher}: {routed} routed, {native} by kernels");
    });
}

/// Lists of parameters: the one that each init queries, and similar ones.
const QUESTIONS: &[&[(&CStr, u32, usize)]] = &[
    &[(c"ivlen", PARAM_UNSIGNED_INTEGER, 8)],
    &[(c"ivlen", PARAM_UNSIGNED_INTEGER, 4)],
    &[(c"ivlen", PARAM_UNSIGNED_INTEGER, 0)],
    &[(c"ivlen", PARAM_INTEGER, 8)],
    &[(c"ivlen", PARAM_OCTET_STRING, 8)],
    &[(c"ivle", PARAM_UNSIGNED_INTEGER, 8)],
    &[(c"ivlens", PARAM_UNSIGNED_INTEGER, 8)],
    &[(c"", PARAM_UNSIGNED_INTEGER, 8)],
    &[(c"keylen", PARAM_UNSIGNED_INTEGER, 8)],
    &[(c"ivlen", PARAM_UNSIGNED_INTEGER, 8), (c"keylen", PARAM_UNSIGNED_INTEGER, 8)],
    &[(c"ivlen", PARAM_UNSIGNED_INTEGER, 8), (c"num", PARAM_UNSIGNED_INTEGER, 8)],
    &[],
];

#[test]
fn whoever_asks_for_lengths_hears_what_the_default_provider_says() {
    let name = "whoever_asks_for_lengths_hears_what_the_default_provider_says";
    in_program(name, "", ALL, || {
        assert!(routed(&lengths_by_both()) >= 8);
    });
}

#[test]
fn whoever_asks_kernels_for_lengths_hears_what_the_default_provider_says() {
    let name = "whoever_asks_kernels_for_lengths_hears_what_the_default_provider_says";
    in_program(name, "", &[("EVENER_KERNELS", "on")], || _ = lengths_by_both());
}

/// Messages of several modes with all questions at each point of them.
fn lengths_by_both() -> Provider {
    let (_default, evener) = providers();
    for name in ["AES-128-CBC", "AES-256-CTR", "AES-192-ECB", "AES-256-XTS", "AES-128-GCM"] {
        let pair = Pair::new(&DEFAULT, name);
        let (key, iv) = (bytes(1, pair.ciphers[0].key_bytes()), bytes(2, pair.ciphers[0].iv_bytes()));
        let query = |when: &str| {
            for questions in QUESTIONS {
                pair.both(&format!("{name} {when}: {questions:?}"), |ctx, _| ctx.answers(questions));
            }
        };
        pair.both("a cipher", |ctx, cipher| ctx.init(Some(cipher), None, None, Some(true)));
        query("without a key");
        pair.both("key and IV", |ctx, _| ctx.init(None, Some(&key), Some(&iv), None));
        query("at the start");
        pair.both("update", |ctx, _| ctx.update(&bytes(3, 4_096)));
        query("in mid-message");
        pair.both("the rest", |ctx, _| ctx.update(&bytes(4, 160)));
        pair.both("last", |ctx, _| ctx.last());
        query("at the end");
        pair.both("the next", |ctx, _| ctx.init(None, None, Some(&iv), None));
        query("in the next message");
    }
    evener
}

#[test]
fn long_messages_in_chunks_come_out_as_by_default() {
    in_program("long_messages_in_chunks_come_out_as_by_default", "", ALL, || {
        let (_default, evener) = providers();
        for name in NAMES.iter().filter(|name| !name.ends_with("XTS")) {
            for (run, encrypts) in [(1, true), (2, false), (3, true), (4, false)] {
                let mut random = Random::new(run);
                let pair = Pair::new(&DEFAULT, name);
                let (key, iv) =
                    (bytes(run, pair.ciphers[0].key_bytes()), bytes(run + 1, pair.ciphers[0].iv_bytes()));
                pair.both(name, |ctx, cipher| ctx.init(Some(cipher), Some(&key), Some(&iv), Some(encrypts)));
                pair.both(name, |ctx, _| ctx.set_padding(run < 3));
                let before = routed(&evener);
                for _ in 0..50 {
                    let data = bytes(random.next(), random.below(20_000));
                    pair.both(name, |ctx, _| ctx.update(&data));
                }
                assert!(routed(&evener) - before >= 50);
                pair.both(name, |ctx, _| (ctx.octets(c"iv", iv.len()), ctx.octets(c"updated-iv", iv.len())));
                pair.both(name, |ctx, _| ctx.last());
            }
        }
    });
}

/// A pair in record mode.
fn records(version: u32, mac_bytes: u32, encrypts: bool) -> Pair {
    let pair = Pair::new(&DEFAULT, "AES-256-CBC");
    pair.both("init", |ctx, cipher| {
        ctx.init(Some(cipher), Some(&bytes(1, 32)), Some(&bytes(2, 16)), Some(encrypts))
    });
    pair.both("records", |ctx, _| ctx.set_numbers([(c"tls-version", version), (c"tls-mac-size", mac_bytes)]));
    pair
}

/// One record of both, in place; gives what came out.
fn record(pair: &Pair, input: &[u8]) -> Option<Vec<u8>> {
    pair.both("record", |ctx, _| {
        let mut space = [input, &[0; 16]].concat();
        let (done, written) = ctx.update_within(&mut space, 0, 0, input.len());
        // What lies behind the result is the padding that was there.
        done.then(|| space[..written].to_vec())
    })
}

#[test]
fn records_under_encrypt_then_mac_are_sealed_and_opened_here() {
    in_program("records_under_encrypt_then_mac_are_sealed_and_opened_here", "", ALL, || {
        let (_default, evener) = providers();
        for (version, iv_bytes) in [(0x0301, 0), (0x0302, 16), (0x0303, 16), (0xFEFD, 16)] {
            let (sealing, opening) = (records(version, 0, true), records(version, 0, false));
            let before = routed(&evener);
            for len in [16, 17, 100, 1000, 16_400_usize] {
                let text = bytes(u64::try_from(len).unwrap(), len);
                let sealed = record(&sealing, &text).unwrap();
                // With an IV of its own, a record begins behind it and its bytes stay where they are.
                let opened = record(&opening, &sealed).unwrap();
                assert_eq!(opened.len(), len - iv_bytes);
                if iv_bytes == 0 {
                    assert_eq!(opened, text);
                }
            }
            assert_eq!(routed(&evener) - before, 10, "{version:#x}");
            let mut damaged = record(&sealing, &bytes(7, 160)).unwrap();
            let last = damaged.len() - 17;
            damaged[last] ^= 1;
            assert_eq!(record(&opening, &damaged), None, "a wrong padding is refused");
        }
    });
}

#[test]
fn records_with_a_mac_inside_are_opened_by_the_inner_context_alone() {
    in_program("records_with_a_mac_inside_are_opened_by_the_inner_context_alone", "", ALL, || {
        let (_default, evener) = providers();
        for (version, mac_bytes) in [(0x0303, 20), (0x0302, 32), (0x0301, 48), (0x0300, 0)] {
            let opening = records(version, mac_bytes, false);
            let before = routed(&evener);
            record(&opening, &bytes(3, 1600));
            pair_again(&opening);
            record(&opening, &bytes(4, 1600));
            assert_eq!(routed(&evener), before, "{version:#x}");
        }
    });
}

/// A new key leaves the record mode as it is.
fn pair_again(pair: &Pair) {
    pair.both("again", |ctx, _| ctx.init(None, Some(&bytes(5, 32)), Some(&bytes(6, 16)), None));
}
