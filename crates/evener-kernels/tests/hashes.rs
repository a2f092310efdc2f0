//! Hashes of many messages side by side, and HMAC over them, by every choice of this processor's instructions, are libcrypto's and the published ones of
//! each message.
#![cfg(hash_kernels)]
#![allow(clippy::unwrap_used, reason = "helpers of tests, where it means a failed test")]
#![allow(clippy::print_stdout, reason = "says what was left out")]

use std::sync::atomic::AtomicU8;

use evener_kernels::hashes::{Hash, Lanes, MacKey, Means, Running, Span};
use openssl::hash::{MessageDigest, hash as judged_hash};
use openssl::pkey::PKey;
use openssl::sign::Signer;

mod random;
use random::bytes;

fn judge(hash: Hash) -> MessageDigest {
    match hash {
        Hash::Sha1 => MessageDigest::sha1(),
        Hash::Sha224 => MessageDigest::sha224(),
        Hash::Sha256 => MessageDigest::sha256(),
        Hash::Sha384 => MessageDigest::sha384(),
        Hash::Sha512 => MessageDigest::sha512(),
    }
}

fn judged(hash: Hash, text: &[u8]) -> Vec<u8> {
    judged_hash(judge(hash), text).unwrap().to_vec()
}

fn digest(hash: Hash, running: &Running) -> Vec<u8> {
    let mut place = vec![0; hash.digest_bytes()];
    running.digest(&mut place);
    place
}

/// What lanes make of all texts in one call.
fn answered(lanes: &mut Lanes, hash: Hash, texts: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut running: Vec<Running> = texts.iter().map(|_| Running::new(hash)).collect();
    let spans = running.iter_mut().zip(texts);
    lanes.run(&mut spans.map(|(running, text)| Span::last(running, text)).collect::<Vec<_>>());
    running.iter().map(|running| digest(hash, running)).collect()
}

/// Every hash by every choice of instructions that has a kernel for it.
fn all() -> Vec<(Hash, Means)> {
    let pairs = Hash::ALL.into_iter().flat_map(|hash| Means::all().map(move |means| (hash, means)));
    let pairs: Vec<_> = pairs.filter(|(hash, means)| Lanes::count(*hash, *means) > 0).collect();
    if pairs.is_empty() {
        println!("skipped: the processor lacks the instructions");
    }
    pairs
}

fn check(texts: &[&[u8]], what: &str) {
    let mut answers: Vec<(Hash, Vec<Vec<u8>>)> = Vec::new();
    for (hash, means) in all() {
        if answers.last().is_none_or(|(last, _)| *last != hash) {
            answers.push((hash, texts.iter().map(|text| judged(hash, text)).collect()));
        }
        let (_, right) = answers.last().unwrap();
        let made = answered(&mut Lanes::new(means), hash, texts);
        let wrong: Vec<usize> = (0..texts.len()).filter(|at| made[*at] != right[*at]).collect();
        assert!(wrong.is_empty(), "{what}, {hash:?} by {}: wrong are {wrong:?}", means.name());
    }
}

#[test]
fn every_length_to_four_kilobytes() {
    let text = bytes(4_096 + 64, 1);
    let texts: Vec<&[u8]> = (0..=4_096).map(|length| &text[length % 61..][..length]).collect();
    check(&texts, "every length");
    for length in (0..300).chain([4_095, 4_096]) {
        check(&[&text[..length]], "one alone");
    }
}

#[test]
fn every_count_of_messages_alike_and_unlike() {
    let text = bytes(2_048, 2);
    for count in 1..=70_usize {
        let alike: Vec<&[u8]> = (0..count).map(|it| &text[it..it + 200]).collect();
        check(&alike, "alike");
        let unlike: Vec<&[u8]> = (0..count).map(|it| &text[it..it + it * 137 % 1_500]).collect();
        check(&unlike, "unlike");
    }
}

#[test]
fn long_and_short_messages_in_one_call_at_any_offset() {
    let text = bytes(80_000, 3);
    let lengths = [20_000, 16, 4_096, 0, 64, 3, 70_000, 3_072, 1_040, 111, 112, 55, 56, 119, 120, 127, 128];
    for count in [1, 2, 5, 11, 17, 40] {
        for shift in [0, 1, 31, 63] {
            let of = |it: usize| &text[shift + it..][..lengths[it * 5 % lengths.len()]];
            check(&(0..count).map(of).collect::<Vec<_>>(), "long and short");
        }
    }
}

#[test]
fn spans_of_messages_make_what_the_whole_makes() {
    let text = bytes(9_000, 4);
    for (hash, means) in all() {
        let block = hash.block_bytes();
        let mut lanes = Lanes::new(means);
        let mut running: Vec<Running> = (0..23).map(|_| Running::new(hash)).collect();
        let lengths: Vec<usize> = (0..23).map(|it| it * 389).collect();
        let mut at = 0;
        while at < 9_000 {
            // A message that is at its end is left out.
            let spans = running.iter_mut().zip(&lengths).filter(|(_, length)| **length >= at);
            let mut spans: Vec<_> = spans
                .map(|(running, length)| match &text[at..*length] {
                    text if text.len() < 5 * block => Span::last(running, text),
                    text => Span::more(running, &text[..5 * block]),
                })
                .collect();
            lanes.run(&mut spans);
            at += 5 * block;
        }
        for (running, length) in running.iter().zip(&lengths) {
            assert_eq!(digest(hash, running), judged(hash, &text[..*length]), "{hash:?} by {}", means.name());
        }
    }
}

#[test]
fn memory_that_is_shared_makes_the_same() {
    let text = bytes(1_000, 5);
    let shared: Vec<AtomicU8> = text.iter().map(|byte| AtomicU8::new(*byte)).collect();
    for (hash, means) in all() {
        let mut running: Vec<Running> = (0..19).map(|_| Running::new(hash)).collect();
        let spans = running.iter_mut().enumerate();
        let spans = spans.map(|(it, running)| Span::last_shared(running, &shared[it..it * 53]));
        Lanes::new(means).run(&mut spans.collect::<Vec<_>>());
        for (it, running) in running.iter().enumerate() {
            assert_eq!(
                digest(hash, running),
                judged(hash, &text[it..it * 53]),
                "{hash:?} by {}",
                means.name()
            );
        }
    }
}

fn mac(lanes: &mut Lanes, key: &MacKey, hash: Hash, text: &[u8]) -> Vec<u8> {
    let mut running = key.inner();
    lanes.run(&mut [Span::last(&mut running, text)]);
    lanes.run(&mut [key.outer(&mut running, &mut [0; Hash::DIGEST_BYTES_MAX])]);
    digest(hash, &running)
}

#[test]
fn macs_under_keys_of_any_length_are_libcryptos() {
    let text = bytes(400, 6);
    for (hash, means) in all() {
        let mut lanes = Lanes::new(means);
        for length in [1, 20, 63, 64, 65, 127, 128, 129, 300] {
            let key = MacKey::new(&mut lanes, hash, &text[..length]);
            let made = mac(&mut lanes, &key, hash, &text[length..]);
            let judge_key = PKey::hmac(&text[..length]).unwrap();
            let right =
                Signer::new(judge(hash), &judge_key).unwrap().sign_oneshot_to_vec(&text[length..]).unwrap();
            assert_eq!(made, right, "{hash:?} by {}, a key of {length}", means.name());
        }
    }
}

#[test]
fn published_digests_and_macs_come_out() {
    let of = |name: &'static str| evener_vectors::all().filter(move |case| case.algorithm == name);
    for (hash, digests, macs) in
        [(Hash::Sha1, "SHA-1", "HMAC-SHA-1"), (Hash::Sha256, "SHA-256", "HMAC-SHA-256")]
    {
        let cases: Vec<_> = of(digests).collect();
        assert!(cases.len() > 60, "{digests}: {} cases", cases.len());
        let texts: Vec<&[u8]> = cases.iter().map(|case| &*case.plaintext).collect();
        for (_, means) in all().into_iter().filter(|(other, _)| *other == hash) {
            let mut lanes = Lanes::new(means);
            for (made, case) in answered(&mut lanes, hash, &texts).iter().zip(&cases) {
                assert_eq!(*made, case.tag, "{} by {}", case.id, means.name());
            }
            for case in of(macs) {
                let key = MacKey::new(&mut lanes, hash, &case.key);
                let made = mac(&mut lanes, &key, hash, &case.plaintext);
                assert_eq!(made == case.tag, case.valid, "{} by {}", case.id, means.name());
            }
        }
    }
}

#[test]
fn means_are_what_is_asked_for() {
    let Some(best) = Means::best() else { return println!("skipped: the processor lacks the instructions") };
    assert!(Means::all().all(|means| means.bits() <= best.bits() && (best.has_sha() || !means.has_sha())));
    assert!(best.without_sha().is_none_or(|means| !means.has_sha() && means.bits() == best.bits()));
    assert!(best.up_to(256).is_none_or(|means| means.bits() <= 256 && means.has_sha() == best.has_sha()));
    assert_eq!(best.up_to(0).is_some(), best.has_sha());
}

#[test]
#[should_panic(expected = "one kernel is for all of them")]
fn hashes_of_several_kernels_are_refused() {
    let Some(means) = Means::best() else {
        panic!("one kernel is for all of them: skipped, the processor lacks the instructions")
    };
    let mut running = [Hash::Sha1, Hash::Sha256].map(Running::new);
    let [one, other] = &mut running;
    Lanes::new(means).run(&mut [Span::last(one, b"a"), Span::last(other, b"b")]);
}

#[test]
#[should_panic(expected = "what is behind it begins a block")]
fn a_span_that_ends_within_a_block_is_the_last() {
    _ = Span::more(&mut Running::new(Hash::Sha256), &[0; 63]);
}
