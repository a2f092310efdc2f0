//! GCM messages whose large updates are split between threads, against the default provider.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::ffi::CStr;

use evener_ossl_sys::{PARAM_INTEGER, PARAM_OCTET_STRING, PARAM_UNSIGNED_INTEGER};

mod support;

use support::ffi::{Cipher, CipherCtx, DEFAULT, clear_errors};
use support::kernels::has_pipelines;
use support::pair::{Pair, evener, has_kernels, in_both, length, split_count, split_mostly};
use support::{Random, bytes};

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

/// Where input and output begin. To kernels in the same place: where the output begins in input that is not read yet, they give the right answer, and
/// OpenSSL has destroyed that.
fn overlap(random: &mut Random) -> (usize, usize) {
    let pair = [(0, 0), (0, 0), (16, 0), (0, 40)][random.below(4)];
    if has_kernels() { (0, 0) } else { pair }
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
                let (from, to) = overlap(random);
                pair.both(&what, |ctx, _| {
                    let mut space = bytes(seed, len + 80);
                    let answer = ctx.update_within(&mut space, from, to, len);
                    (answer, space)
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
    in_both("gcm_that_is_split_comes_out_as_by_default", || {
        split_mostly(GCM, 60, gcm_message);
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
    in_both(name, || {
        let evener = evener();
        for (at, name) in GCM.iter().enumerate() {
            let evener_cipher = DEFAULT.cipher(name, "provider=evener").unwrap();
            let judge = DEFAULT.cipher(name, "provider=default").unwrap();
            let before = split_count(&evener);
            for run in 0..15 {
                let run = 100 * at as u64 + run;
                for sides in
                    [[&evener_cipher, &judge], [&judge, &evener_cipher], [&evener_cipher, &evener_cipher]]
                {
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
    in_both(name, || {
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
    in_both("a_gcm_counter_wraps_in_its_word_only", || {
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

/// How a message is left in its middle.
type Leave = fn(&CipherCtx) -> String;

const LEAVES: &[(&str, Leave)] = &[
    ("nothing", |_| String::new()),
    ("a tag is queried", |ctx| format!("{:?}", [16, 4].map(|len| ctx.octets(c"tag", len)))),
    ("a tag is given", |ctx| format!("{:?}", ctx.set_octets(c"tag", &[7; 12]))),
    ("the same length of nonce", |ctx| format!("{:?}", ctx.set_length(c"ivlen", 12))),
    ("another length of nonce", |ctx| format!("{:?}", (ctx.set_length(c"ivlen", 8), ctx.length(c"ivlen")))),
    ("another length and nonce", |ctx| {
        format!("{:?}", (ctx.set_length(c"ivlen", 8), ctx.init(None, None, Some(&[9; 8]), None)))
    }),
    ("init by nothing", |ctx| format!("{:?}", ctx.init(None, None, None, None))),
    ("to encryption", |ctx| format!("{:?}", ctx.init(None, None, None, Some(true)))),
    ("to decryption", |ctx| format!("{:?}", ctx.init(None, None, None, Some(false)))),
    ("to decryption, a wrong tag, and more text", |ctx| {
        let turned = ctx.init(None, None, None, Some(false)) && ctx.set_octets(c"tag", &[3; 16]);
        format!("{:?}", (turned, ctx.last(), ctx.update(&[1; 20]), ctx.last()))
    }),
    ("a key without a nonce", |ctx| format!("{:?}", ctx.init(None, Some(&[8; 16]), None, None))),
    ("by the one-shot function", |ctx| {
        let mut data = [5; 50];
        format!("{:?}", (ctx.one_shot(&mut data), data))
    }),
    ("input and output that overlap", |ctx| {
        let mut space = bytes(9, 5_000);
        format!("{:?}", (ctx.update_within(&mut space, 7, 0, 4_000), space))
    }),
    ("an unknown parameter", |ctx| format!("{:?}", ctx.set_number(c"evener", 1))),
    ("a copy", |ctx| format!("{:?}", ctx.duplicate().last())),
    ("an end, and another", |ctx| format!("{:?}", (ctx.last(), ctx.last()))),
    ("a wrong tag, and more text", |ctx| {
        format!("{:?}", (ctx.set_octets(c"tag", &[3; 16]), ctx.last(), ctx.update(&[1; 20]), ctx.last()))
    }),
];

#[test]
fn a_split_gcm_message_that_is_left_in_its_middle_answers_as_openssls() {
    let name = "a_split_gcm_message_that_is_left_in_its_middle_answers_as_openssls";
    in_both(name, || {
        // OpenSSL's own code for AVX-512, since 3.1, goes on from another state than the rest of it.
        let is_told = |leave: &&(&str, Leave)| leave.0 != "a key without a nonce" || !has_pipelines();
        let leaves = LEAVES.iter().filter(is_told);
        let cases = leaves.flat_map(|leave| [(leave, true), (leave, false)]);
        let cases = cases.flat_map(|case| [0, 20].map(|aad| (case, aad)));
        for (((what, leave), encrypts), aad) in cases {
            for (first, last) in [(300_007, 20_003), (300_000, 7), (1, 300_000)] {
                let what = format!("{what}, encrypts {encrypts}, {aad} and {first} bytes before");
                let before = split_count(&evener());
                left(&what, *leave, encrypts, [aad, first, last]);
                assert!(split_count(&evener()) > before, "{what}");
            }
        }
    });
}

/// A message that is left, gone on with, ended and asked about; then another with the same context.
fn left(what: &str, leave: Leave, encrypts: bool, [aad, first, last]: [usize; 3]) {
    let pair = Pair::new(&DEFAULT, "AES-128-GCM");
    let begun = pair.both(what, |ctx, cipher| {
        ctx.init(Some(cipher), Some(&bytes(1, 16)), Some(&bytes(2, 12)), Some(encrypts))
    });
    assert!(begun);
    pair.both(what, |ctx, _| ctx.aad(&bytes(3, aad)));
    pair.both(what, |ctx, _| (ctx.update(&bytes(4, first)), ctx.update(&bytes(5, 200_011))));
    pair.both(what, |ctx, _| leave(ctx));
    pair.both(what, |ctx, _| (ctx.aad(&[1; 5]), ctx.update(&bytes(6, 33)), ctx.update(&bytes(7, last))));
    pair.both(what, |ctx, _| (ctx.octets(c"iv", 12), ctx.length(c"ivlen"), ctx.octets(c"tag", 16)));
    pair.both(what, |ctx, _| {
        (ctx.last(), ctx.octets(c"tag", 16), ctx.octets(c"tag", 5), ctx.update(&[1; 9]))
    });
    pair.both(what, |ctx, _| (ctx.init(None, None, Some(&bytes(8, 12)), None), ctx.octets(c"tag", 16)));
    pair.both(what, |ctx, _| (ctx.update(&bytes(9, 200_000)), ctx.last(), ctx.octets(c"tag", 16)));
}

/// What a program may ask a context for, with types and room, little among it.
const GETTABLE: &[(&CStr, u32, usize)] = &[
    (c"ivlen", PARAM_UNSIGNED_INTEGER, 8),
    (c"keylen", PARAM_UNSIGNED_INTEGER, 8),
    (c"taglen", PARAM_UNSIGNED_INTEGER, 8),
    (c"iv", PARAM_OCTET_STRING, 128),
    (c"updated-iv", PARAM_OCTET_STRING, 128),
    (c"iv", PARAM_OCTET_STRING, 12),
    (c"tag", PARAM_OCTET_STRING, 16),
    (c"tag", PARAM_OCTET_STRING, 4),
    (c"tlsaadpad", PARAM_UNSIGNED_INTEGER, 8),
    (c"tlsivgen", PARAM_OCTET_STRING, 8),
    (c"padding", PARAM_UNSIGNED_INTEGER, 4),
    (c"num", PARAM_UNSIGNED_INTEGER, 4),
    (c"unknown", PARAM_INTEGER, 4),
    (c"iv-generated", PARAM_UNSIGNED_INTEGER, 4),
];

/// Messages by one context whose nonces change their length, most of them short, each call with the same answer from both providers.
fn messages_with_nonces_of_any_length(name: &str, run: u64) {
    let mut random = Random::new(run);
    let pair = Pair::new(&DEFAULT, name);
    let key = bytes(run, pair.ciphers[0].key_bytes());
    let mut has_key = false;
    for step in 0..40 {
        let seed = random.next();
        let iv = bytes(seed, 256);
        let (number, len) = (random.below(12), random.below(300));
        let what = format!("{name} run {run} step {step} call {number} seed {seed}");
        match number {
            0 => {
                let len = [1, 11, 12, 12, 13, 16, 128, 129, 0][random.below(9)];
                pair.both(&what, |ctx, _| ctx.set_number(c"ivlen", len));
            }
            1..=4 => {
                let with_key = !has_key || random.below(4) == 0;
                let encrypts = [None, None, Some(true), Some(false)][random.below(4)];
                has_key |= pair.both(&what, |ctx, cipher| {
                    ctx.init(with_key.then_some(cipher), with_key.then_some(&*key), Some(&iv), encrypts)
                });
            }
            5 => _ = pair.both(&what, |ctx, _| ctx.aad(&bytes(seed, len % 40))),
            6 | 7 => drop(pair.both(&what, |ctx, _| ctx.update(&bytes(seed, len)))),
            8 => drop(pair.both(&what, |ctx, _| ctx.update(&bytes(seed, 200_000)))),
            9 => drop(pair.both(&what, |ctx, _| (ctx.last(), ctx.octets(c"tag", 16)))),
            10 => _ = pair.both(&what, |ctx, _| ctx.set_octets(c"tag", &bytes(seed, 16))),
            _ => {
                let questions: Vec<_> =
                    (0..=random.below(5)).map(|_| GETTABLE[random.below(GETTABLE.len())]).collect();
                let what = format!("{what}: {questions:?}");
                pair.both(&what, |ctx, _| ctx.answers(&questions));
                pair.both(&what, |ctx, _| ctx.size_of(questions[0]));
            }
        }
        pair.both(&what, |ctx, _| ctx.length(c"ivlen"));
    }
}

#[test]
fn short_gcm_messages_with_nonces_of_any_length_answer_as_by_default() {
    let name = "short_gcm_messages_with_nonces_of_any_length_answer_as_by_default";
    in_both(name, || split_mostly(GCM, 60, messages_with_nonces_of_any_length));
}

#[test]
fn a_nonce_that_is_asked_for_before_the_first_data_is_the_messages_or_is_refused_as_by_default() {
    let name = "a_nonce_that_is_asked_for_before_the_first_data_is_the_messages_or_is_refused_as_by_default";
    in_both(name, || {
        for key in [c"iv", c"updated-iv"] {
            let pair = Pair::new(&DEFAULT, "AES-256-GCM");
            let (secret, text) = (bytes(1, 32), bytes(2, 100));
            let who_made_it =
                || pair.both(name, |ctx, _| ctx.answers(&[(c"iv-generated", PARAM_UNSIGNED_INTEGER, 4)]));
            pair.both(name, |ctx, cipher| ctx.init(Some(cipher), Some(&secret), None, Some(true)));
            who_made_it();
            let is_told = pair.both(name, |ctx, _| ctx.octets(key, 12).is_some());
            let [ours, theirs] = &pair.contexts;
            let told = [ours, theirs].map(|ctx| is_told.then(|| ctx.octets(key, 12).unwrap()));
            for (ctx, told) in [ours, theirs].into_iter().zip(told) {
                let sealed = [ctx.update(&text).unwrap(), ctx.last().unwrap()].concat();
                let [nonce, tag] = [(key, 12), (c"tag", 16)].map(|(key, len)| ctx.octets(key, len).unwrap());
                assert!(told.is_none_or(|told| told == nonce), "one was told, and another used");
                let judge = CipherCtx::new();
                assert!(judge.init(Some(&pair.ciphers[1]), Some(&secret), Some(&nonce), Some(false)));
                assert_eq!(judge.update(&sealed).unwrap(), text);
                assert!(judge.set_octets(c"tag", &tag) && judge.last().is_some());
            }
            who_made_it();
            pair.both(name, |ctx, _| ctx.init(None, None, Some(&[5; 12]), None));
            who_made_it();
        }
    });
}

#[test]
fn a_question_without_an_address_is_answered_as_by_default_at_each_point_of_a_message() {
    let name = "a_question_without_an_address_is_answered_as_by_default_at_each_point_of_a_message";
    in_both(name, || {
        for encrypts in [true, false] {
            let pair = Pair::new(&DEFAULT, "AES-128-GCM");
            let query = |when: &str| {
                for question in GETTABLE
                    .iter()
                    .copied()
                    .chain([(c"iv", PARAM_OCTET_STRING, 0), (c"tag", PARAM_OCTET_STRING, 0)])
                {
                    pair.both(&format!("{when}, encrypts {encrypts}: {question:?}"), |ctx, _| {
                        ctx.size_of(question)
                    });
                }
            };
            pair.both("start", |ctx, cipher| {
                ctx.init(Some(cipher), Some(&[1; 16]), Some(&[2; 12]), Some(encrypts))
            });
            query("at the start");
            pair.both("tag", |ctx, _| ctx.set_octets(c"tag", &[3; 16]));
            query("with a tag");
            pair.both("update", |ctx, _| ctx.update(&bytes(4, 300)));
            query("in mid-message");
            pair.both("last", |ctx, _| ctx.last());
            query("at the end");
        }
    });
}

#[test]
fn a_decryption_to_which_no_tag_was_given_ends_as_by_default() {
    let name = "a_decryption_to_which_no_tag_was_given_ends_as_by_default";
    in_both(name, || {
        for text in [0, 100] {
            let pair = Pair::new(&DEFAULT, "AES-256-GCM");
            for nonce in [5, 6] {
                pair.both(name, |ctx, cipher| {
                    ctx.init(Some(cipher), Some(&[1; 32]), Some(&[nonce; 12]), Some(false))
                });
                pair.both(name, |ctx, _| ctx.update(&bytes(2, text)));
                pair.both(name, |ctx, _| (ctx.last(), ctx.last(), ctx.octets(c"iv", 12)));
            }
        }
    });
}
