//! A kernel of ours that is wrong is found out, its answers are computed again, and it is used no more; what OpenSSL refuses it refuses in the same words.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it skips")]

use std::env;
use std::process::id;

use evener::counts_file::{Directories, of_process};
use evener_core::counts::{Count, Row};
use evener_provider::{OSSL_provider_init, plant_unwinding, plant_wrong_kernels};

mod support;

use support::ffi::{CipherCtx, DEFAULT, errors};
use support::kernels::{all, has_kernels, has_pipelines, message, messages, with_kernels};
use support::{both_providers, bytes, in_program, started};

/// Padding that is none, a message that ends within a block, a unit that is too short, two keys that are one.
#[test]
fn what_is_refused_is_refused_in_the_words_of_openssl() {
    let name = "what_is_refused_is_refused_in_the_words_of_openssl";
    if !has_kernels() {
        return;
    }
    in_program(name, "", &[("EVENER_KERNELS", "on")], || {
        let (_default, evener) = both_providers(OSSL_provider_init);
        let said = |provider: &str| {
            let context_of = |name: &str, key: &[u8], encrypts| {
                let cipher = DEFAULT.cipher(name, &format!("provider={provider}")).unwrap();
                let context = CipherCtx::new();
                let is_begun = context.init(Some(&cipher), Some(key), Some(&bytes(2, 16)), Some(encrypts));
                (context, is_begun)
            };
            let key = bytes(1, 16);
            let (no_padding, _) = context_of("AES-128-CBC", &key, false);
            assert!(no_padding.update(&bytes(3, 64)).is_some() && no_padding.last().is_none());
            let (partial, _) = context_of("AES-128-ECB", &key, true);
            partial.set_padding(false);
            assert!(partial.update(&bytes(3, 50)).is_some() && partial.last().is_none());
            let (short, _) = context_of("AES-128-XTS", &bytes(4, 32), true);
            assert!(short.update(&bytes(3, 15)).is_none());
            let (_, is_begun) = context_of("AES-128-XTS", &[7; 32], true);
            assert!(!is_begun);
            // A context goes on where a call was refused.
            short.set_padding(true);
            (errors(), short.update(&bytes(3, 40)).unwrap())
        };
        let (ours, theirs) = (said("evener"), said("default"));
        assert_eq!(ours, theirs);
        assert!(!ours.0.is_empty() && evener.count(c"evener-native").unwrap() > 0);
    });
}

/// In pieces, each of which comes out where it lies, before it or in it, also behind what a block has held back: OpenSSL writes there over what it has not read.
#[test]
fn an_answer_that_begins_in_its_input_is_right() {
    let name = "an_answer_that_begins_in_its_input_is_right";
    if !has_kernels() {
        return;
    }
    in_program(name, "", &[("EVENER_KERNELS", "on")], || {
        let (_default, evener) = both_providers(OSSL_provider_init);
        let text = bytes(3, 3_000);
        for (name, encrypts) in [
            ("AES-128-CTR", true),
            ("AES-256-ECB", true),
            ("AES-256-ECB", false),
            ("AES-192-CBC", false),
            ("AES-256-GCM", true),
        ] {
            if name.ends_with("-CBC") && has_pipelines() {
                continue;
            }
            let key_bytes = DEFAULT.cipher(name, "provider=evener").unwrap().key_bytes();
            let sealed = message(name, "default", true, &text);
            let (input, expected) = if encrypts { (&text, &sealed) } else { (&sealed, &text) };
            for (from, to) in [(0, 0), (0, 1), (0, 16), (0, 40), (9, 0), (40, 0)] {
                let cipher = DEFAULT.cipher(name, "provider=evener").unwrap();
                let (context, iv) = (CipherCtx::new(), bytes(2, cipher.iv_bytes()));
                assert!(context.init(Some(&cipher), Some(&bytes(1, key_bytes)), Some(&iv), Some(encrypts)));
                let mut out = Vec::new();
                for piece in input.chunks(701) {
                    let mut space = vec![0xa5; piece.len() + 40 + 32];
                    space[from..][..piece.len()].copy_from_slice(piece);
                    let (done, written) = context.update_within(&mut space, from, to, piece.len());
                    assert!(done);
                    out.extend_from_slice(&space[to..][..written]);
                }
                out.extend(context.last().unwrap());
                let expected = if name.ends_with("-GCM") { &expected[..text.len()] } else { expected };
                assert!(out == expected, "{name}, {encrypts}, {from} to {to}");
            }
        }
        assert!(evener.count(c"evener-native").unwrap() >= if has_pipelines() { 24 } else { 30 });
    });
}

/// What this process shows of kernels that were wrong: their results, and requests that were done again.
fn shown_wrong() -> [u64; 2] {
    let places = Directories::only(env::var_os("EVENER_STATISTICS_DIR").unwrap().into());
    let record = of_process(&places, u32::MAX, id()).unwrap().unwrap();
    let redone = Row::all().map(|row| record.count(row, Count::Redone)).sum();
    [record.wrong_kernels().into(), redone]
}

/// The piece that shows it ends within a block, the next is long enough for another way and ends a block, and the third may go it.
#[test]
fn a_message_whose_kernel_is_found_wrong_goes_on_where_it_stood_by_other_ways() {
    let name = "a_message_whose_kernel_is_found_wrong_goes_on_where_it_stood_by_other_ways";
    if !has_kernels() {
        return;
    }
    in_program(name, "", &[("EVENER_KERNELS", "on"), ("EVENER_THRESHOLD", "160")], || {
        let (_default, evener) = both_providers(OSSL_provider_init);
        let answer = |name: &str, provider: &str| {
            let cipher = DEFAULT.cipher(name, &format!("provider={provider}")).unwrap();
            let context = CipherCtx::new();
            let (key, iv) = (bytes(1, cipher.key_bytes()), bytes(2, cipher.iv_bytes()));
            assert!(context.init(Some(&cipher), Some(&key), Some(&iv), Some(true)));
            [21, 4_107, 1_000].map(|bytes_of| context.update(&bytes(3, bytes_of)).unwrap())
        };
        // Known answers are right.
        assert_eq!(answer("AES-128-CTR", "evener"), answer("AES-128-CTR", "default"));
        plant_wrong_kernels();
        for name in ["AES-128-CTR", "AES-256-CTR", "AES-128-ECB"] {
            assert_eq!(answer(name, "evener"), answer(name, "default"), "{name}");
        }
        assert!(
            evener.count(c"evener-routed").unwrap() > 3 && evener.count(c"evener-wrong-kernels").unwrap() > 0
        );
    });
}

#[test]
fn what_a_wrong_kernel_computes_is_computed_again_and_it_is_used_no_more() {
    let name = "what_a_wrong_kernel_computes_is_computed_again_and_it_is_used_no_more";
    with_kernels(name, || {
        let all = all();
        // Known answers are given, and the first results are right.
        assert_eq!(messages(), (all, 0));
        plant_wrong_kernels();
        let (_default, evener) = both_providers(OSSL_provider_init);
        let count = |key| evener.count(key).unwrap();
        messages();
        // CTR is the same both ways.
        let classes = all - 3;
        assert_eq!(shown_wrong(), [u64::from(classes); 2]);
        let by_kernels = count(c"evener-native");
        messages();
        assert_eq!(shown_wrong(), [u64::from(classes); 2]);
        assert_eq!(count(c"evener-native"), by_kernels, "kernels are out of service");
    });
}

/// Nothing but associated data, both ways.
#[test]
fn a_wrong_tag_is_found_out_where_there_is_no_text() {
    with_kernels("a_wrong_tag_is_found_out_where_there_is_no_text", || {
        let (_default, _evener) = both_providers(OSSL_provider_init);
        let begun = |name: &str, provider: &str, encrypts| {
            let cipher = DEFAULT.cipher(name, &format!("provider={provider}")).unwrap();
            let context = CipherCtx::new();
            let key = bytes(1, cipher.key_bytes());
            assert!(context.init(Some(&cipher), Some(&key), Some(&bytes(2, 12)), Some(encrypts)));
            assert!(context.aad(&bytes(3, 100)));
            context
        };
        let tag = |name: &str, provider: &str| {
            let context = begun(name, provider, true);
            context.last().unwrap();
            context.octets(c"tag", 16).unwrap()
        };
        let sealed = ["AES-128-GCM", "AES-256-GCM"].map(|name| {
            assert_eq!(tag(name, "evener"), tag(name, "default"));
            tag(name, "default")
        });
        plant_wrong_kernels();
        assert_eq!(tag("AES-128-GCM", "evener"), sealed[0]);
        let opens = |tag: &[u8]| {
            let context = begun("AES-256-GCM", "evener", false);
            assert!(context.set_octets(c"tag", tag));
            context.last().is_some()
        };
        assert!(opens(&sealed[1]) && !opens(&sealed[0]));
        assert_eq!(shown_wrong(), [2, 2]);
    });
}

/// A context that has its key for ever looks at one message in many, and others with keys of that class hear of it.
#[test]
fn a_kernel_that_goes_wrong_later_is_found_out_and_leaves_contexts_that_have_it() {
    with_kernels("a_kernel_that_goes_wrong_later_is_found_out_and_leaves_contexts_that_have_it", || {
        let (_default, _evener) = both_providers(OSSL_provider_init);
        let begun = |name: &str, provider: &str| {
            let cipher = DEFAULT.cipher(name, &format!("provider={provider}")).unwrap();
            let (context, iv) = (CipherCtx::new(), bytes(2, cipher.iv_bytes()));
            let key = bytes(1, cipher.key_bytes());
            assert!(context.init(Some(&cipher), Some(&key), Some(&iv), Some(true)));
            (context, iv)
        };
        let next = |(context, iv): &(CipherCtx, Vec<u8>)| {
            assert!(context.init(None, None, Some(iv), None));
            context.update(&bytes(3, 16)).unwrap()
        };
        let names = ["AES-128-GCM", "AES-128-CTR", "AES-256-ECB", "AES-256-XTS"];
        // The first of all are right, and looked at.
        let judges = names.map(|name| {
            let judge = next(&begun(name, "default"));
            assert!((0..5).all(|_| next(&begun(name, "evener")) == judge), "{name}");
            judge
        });
        plant_wrong_kernels();
        for (before, (name, judge)) in (0..).zip(names.into_iter().zip(judges)) {
            let [one, other] = [begun(name, "evener"), begun(name, "evener")];
            let wrong = (0..3_000).filter(|_| next(&one) != judge).count();
            let found = shown_wrong()[0];
            assert!((900..1_024).contains(&wrong) && found == before + 1, "{name}: {wrong}, {found}");
            assert!(next(&other) == judge, "{name}");
        }
    });
}

/// The inner cipher goes on within the message.
#[test]
fn a_message_on_its_way_leaves_a_kernel_that_was_found_wrong() {
    with_kernels("a_message_on_its_way_leaves_a_kernel_that_was_found_wrong", || {
        let (_default, _evener) = both_providers(OSSL_provider_init);
        let modes =
            [("AES-192-CBC", false), ("AES-128-CTR", true), ("AES-256-ECB", true), ("AES-256-XTS", true)];
        let modes = if has_pipelines() { &modes[1..] } else { &modes[..] };
        let begun = |(name, encrypts), who| started(name, who, encrypts, true);
        // The first of all are right, and looked at.
        for &mode in modes {
            (0..5).for_each(|_| assert!(begun(mode, "evener").update(&[5; 64]).is_some()));
        }
        plant_wrong_kernels();
        for &mode in modes {
            // What comes next: the end, whole blocks, or others.
            let begun = [0, 64, 100].map(|next| {
                let [ours, judge] = ["evener", "default"].map(|who| begun(mode, who));
                let first = [&ours, &judge].map(|context| context.update(&bytes(3, 1_000)).unwrap());
                assert!(first[0] != first[1], "{mode:?}: it is wrong by now");
                (ours, judge, next)
            });
            let other = started(mode.0, "evener", mode.1, true);
            (0..1_100).for_each(|_| assert!(other.update(&[5; 32]).is_some()));
            for (ours, judge, next) in begun {
                let pieces = [&ours, &judge]
                    .map(|context| if next > 0 { context.update(&bytes(4, next)) } else { None });
                assert!(pieces[0] == pieces[1], "{mode:?}, {next} bytes");
                assert!(ours.last() == judge.last(), "{mode:?}, {next} bytes, the end");
            }
        }
        assert_eq!(shown_wrong()[0], modes.len() as u64);
    });
}

/// The tag of nothing, a nonce that a record is to have, and one that it has.
#[test]
fn no_call_that_begins_a_look_at_a_message_is_unwound_into_openssl() {
    with_kernels("no_call_that_begins_a_look_at_a_message_is_unwound_into_openssl", || {
        let (_default, _evener) = both_providers(OSSL_provider_init);
        let records = |encrypts| {
            let context = started("AES-128-GCM", "evener", encrypts, true);
            assert!(context.set_octets(c"tlsivfixed", &[3; 4]));
            context
        };
        let [ends, seals, opens] =
            [started("AES-256-GCM", "evener", true, true), records(true), records(false)];
        plant_unwinding();
        assert!(ends.last().is_none());
        assert!(seals.octets(c"tlsivgen", 8).is_none());
        assert!(!opens.set_octets(c"tlsivinv", &[4; 8]));
        assert!(errors().iter().any(|error| error.contains("internal error")), "{:?}", errors());
    });
}

/// Pieces of which no copy is made, and those of which nothing comes out.
#[test]
fn a_piece_that_is_not_looked_at_leaves_its_turn_to_the_next() {
    with_kernels("a_piece_that_is_not_looked_at_leaves_its_turn_to_the_next", || {
        let (_default, _evener) = both_providers(OSSL_provider_init);
        let cipher = DEFAULT.cipher("AES-128-CTR", "provider=evener").unwrap();
        let long = || {
            let context = CipherCtx::new();
            assert!(context.init(Some(&cipher), Some(&[1; 16]), Some(&[2; 16]), Some(true)));
            context.update(&vec![3; 300_000]).unwrap();
            context
        };
        let contexts: Vec<CipherCtx> = (0..8).map(|_| long()).collect();
        plant_wrong_kernels();
        let key = CipherCtx::new();
        assert!(key.init(Some(&cipher), Some(&[1; 16]), Some(&[2; 16]), Some(true)));
        drop(contexts);
        let next = CipherCtx::new();
        assert!(next.init(Some(&cipher), Some(&[1; 16]), Some(&[2; 16]), Some(true)));
        next.update(&[3; 1_000]).unwrap();
        assert_eq!(shown_wrong()[0], 1);
    });
}
