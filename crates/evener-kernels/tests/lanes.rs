//! CBC encryption of many messages side by side, by every level of this processor's instructions and by planes, is libcrypto's of each of them.
#![allow(clippy::unwrap_used, reason = "helpers of tests, where it means a failed test")]

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

use evener_kernels::lanes::{self, BLOCK, Message};
use evener_kernels::{Level, bitsliced};
use openssl::symm::{Cipher, Crypter, Mode};

mod random;
use random::bytes;

/// A message of a test: its key among several, its IV, its text and whether padding is added.
#[derive(Clone)]
struct Case {
    key: usize,
    iv: [u8; BLOCK],
    text: Vec<u8>,
    is_padded: bool,
}

/// Lanes of either kind.
enum Cbc {
    Level(Level, lanes::Cbc),
    Sliced(&'static str, bitsliced::Cbc),
}

impl Cbc {
    /// By every level, and by all means.
    fn all() -> impl Iterator<Item = Self> {
        let levels = Level::all().map(|level| Self::Level(level, lanes::Cbc::new(level)));
        let means = bitsliced::Means::all();
        levels.chain(means.map(|means| Self::Sliced(means.name(), bitsliced::Cbc::new(means))))
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Level(level, _) => level.name(),
            Self::Sliced(name, _) => name,
        }
    }

    fn encrypt(&mut self, keys: &[Vec<u8>], messages: &mut [Message<'_>]) {
        match self {
            Self::Level(level, cbc) => {
                let keys: Vec<_> = keys.iter().map(|key| lanes::Key::new(*level, key).unwrap()).collect();
                cbc.encrypt(&keys, messages);
            }
            Self::Sliced(_, cbc) => {
                let keys: Vec<_> = keys.iter().map(|key| bitsliced::Key::new(key).unwrap()).collect();
                cbc.encrypt(&keys, messages);
            }
        }
    }

    fn forget(&mut self) {
        match self {
            Self::Level(_, cbc) => cbc.forget(),
            Self::Sliced(_, cbc) => cbc.forget(),
        }
    }
}

/// Where text and answer of a message lie.
#[derive(Clone, Copy, Debug)]
enum Place {
    Same,
    Apart,
    Shared,
}

const PLACES: [Place; 3] = [Place::Same, Place::Apart, Place::Shared];

/// Filling before and behind what is written.
const FILL: u8 = 0xa5;

fn case(key: usize, bytes_: usize, seed: u64) -> Case {
    let iv = bytes(BLOCK, seed).try_into().unwrap();
    Case { key, iv, text: bytes(bytes_, seed + 1), is_padded: bytes_ % BLOCK != 0 }
}

/// Several keys of one size.
fn keys(key_bytes: usize, count: usize) -> Vec<Vec<u8>> {
    (0..count as u64).map(|number| bytes(key_bytes, 1_000 + number)).collect()
}

fn judged(keys: &[Vec<u8>], case: &Case) -> Vec<u8> {
    let key = &keys[case.key];
    let cipher = match key.len() {
        16 => Cipher::aes_128_cbc(),
        24 => Cipher::aes_192_cbc(),
        _ => Cipher::aes_256_cbc(),
    };
    let mut crypter = Crypter::new(cipher, Mode::Encrypt, key, Some(&case.iv)).unwrap();
    crypter.pad(case.is_padded);
    let mut answer = vec![0; case.text.len() + BLOCK];
    let written = crypter.update(&case.text, &mut answer).unwrap();
    let end = crypter.finalize(&mut answer[written..]).unwrap();
    answer.truncate(written + end);
    answer
}

/// What lanes make of all cases in one call, `shift` bytes behind a place's start.
fn answered(cbc: &mut Cbc, keys: &[Vec<u8>], cases: &[Case], place: Place, shift: usize) -> Vec<Vec<u8>> {
    let end =
        |case: &Case| if case.is_padded { case.text.len() / BLOCK * BLOCK + BLOCK } else { case.text.len() };
    let mut spaces: Vec<Vec<u8>> = cases.iter().map(|case| vec![FILL; shift + end(case) + BLOCK]).collect();
    let mut inputs: Vec<Vec<u8>> = spaces.clone();
    for ((space, input), case) in spaces.iter_mut().zip(&mut inputs).zip(cases) {
        for place in [space, input] {
            place[shift..][..case.text.len()].copy_from_slice(&case.text);
        }
    }
    let shared: Vec<Vec<AtomicU8>> =
        spaces.iter().map(|space| space.iter().map(|byte| AtomicU8::new(*byte)).collect()).collect();
    let mut messages = Vec::new();
    for (number, (space, case)) in spaces.iter_mut().zip(cases).enumerate() {
        let whole = case.text.len() / BLOCK * BLOCK;
        let room = shift..shift + end(case);
        let message = match place {
            Place::Same => Message::in_place(case.key, &case.iv, &mut space[room], whole),
            Place::Apart => {
                Message::apart(case.key, &case.iv, &inputs[number][shift..][..whole], &mut space[room])
            }
            Place::Shared => {
                let shared = &shared[number][room];
                Message::shared(case.key, &case.iv, &shared[..whole], shared)
            }
        };
        messages.push(match case.is_padded {
            true => {
                let rest = &case.text[whole..];
                let mut last = [u8::try_from(BLOCK - rest.len()).unwrap(); BLOCK];
                last[..rest.len()].copy_from_slice(rest);
                message.ending_with(last)
            }
            false => message,
        });
    }
    cbc.encrypt(keys, &mut messages);
    drop(messages);
    let of = |number: usize| match place {
        Place::Shared => shared[number].iter().map(|byte| byte.load(Relaxed)).collect(),
        _ => spaces[number].clone(),
    };
    (0..cases.len())
        .map(|number| {
            let (mut made, end) = (of(number), end(&cases[number]));
            assert!(made[..shift].iter().all(|byte| *byte == FILL), "written before the message");
            assert!(made[shift + end..].iter().all(|byte| *byte == FILL), "written behind the message");
            made.drain(..shift);
            made.truncate(end);
            made
        })
        .collect()
}

/// All levels, all places and two shifts give libcrypto's answers.
fn check(keys: &[Vec<u8>], cases: &[Case], what: &str) {
    let judges: Vec<Vec<u8>> = cases.iter().map(|case| judged(keys, case)).collect();
    for mut cbc in Cbc::all() {
        for place in PLACES {
            for shift in [0, 1] {
                let answers = answered(&mut cbc, keys, cases, place, shift);
                let wrong: Vec<usize> =
                    (0..cases.len()).filter(|number| answers[*number] != judges[*number]).collect();
                assert!(
                    wrong.is_empty(),
                    "{what}, {place:?}, shift {shift}, {}: wrong are {wrong:?}",
                    cbc.name()
                );
            }
        }
    }
}

#[test]
fn every_length_to_four_kilobytes_with_and_without_padding() {
    for key_bytes in [16, 24, 32] {
        let keys = keys(key_bytes, 5);
        let cases: Vec<Case> =
            (0..=4_096).map(|length| case(length % 5, length, length as u64 * 2)).collect();
        check(&keys, &cases, "every length");
        let blocks: Vec<Case> = cases.into_iter().filter(|case| !case.is_padded).collect();
        check(&keys, &blocks, "whole blocks");
    }
}

#[test]
fn every_count_of_messages_alike_and_unlike() {
    let keys = keys(32, 7);
    for count in 1..=70_usize {
        let alike: Vec<Case> = (0..count).map(|it| case(it % 7, 48, it as u64 * 2)).collect();
        check(&keys, &alike, "alike");
        let unlike: Vec<Case> =
            (0..count).map(|it| case(it * 3 % 7, it * 37 % 320 / BLOCK * BLOCK, it as u64 * 2)).collect();
        check(&keys, &unlike, "unlike");
    }
}

/// As most bursts are: short messages of one length under one key, and the first length that counts as long; among them one under another key, or
/// with padding.
#[test]
fn bursts_of_one_key_and_length() {
    let keys = keys(16, 2);
    for (length, counts) in [(0, 1..20), (16, 1..40), (64, 1..70), (1_024, 1..20), (1_040, 1..20)] {
        for count in counts {
            let burst = |odd: usize| {
                let key = |it| usize::from(it == odd && it % 2 == 0);
                let padded = |it: usize| usize::from(it == odd && it % 2 == 1);
                (0..count).map(|it| case(key(it), length + padded(it), it as u64 * 2)).collect::<Vec<Case>>()
            };
            check(&keys, &burst(usize::MAX), "all alike");
            check(&keys, &burst(count / 2), "one unlike");
        }
    }
}

/// Long ones, which begin one register after the other, beside short ones, empty ones and ones of padding only.
#[test]
fn long_and_short_messages_in_one_call() {
    let keys = keys(16, 3);
    let lengths = [20_000, 16, 4_096, 0, 64, 3, 70_000, 3_072, 1_040, 15, 160, 33];
    for count in [1, 2, 5, 11, 17, 40] {
        let cases: Vec<Case> =
            (0..count).map(|it| case(it % 3, lengths[it * 5 % lengths.len()], it as u64 * 2)).collect();
        check(&keys, &cases, "long and short");
        let pages: Vec<Case> = (0..count).map(|it| case(it % 3, 4_096, it as u64 * 2)).collect();
        check(&keys, &pages, "pages");
    }
}

/// More text than the caches hold, of which fewer lanes are used where it goes from one place to another.
#[test]
fn bursts_that_fewer_lanes_take() {
    let keys = keys(32, 3);
    for (count, least) in [(7, 40_000), (33, 8_192), (70, 4_096)] {
        let alike: Vec<Case> = (0..count).map(|it| case(it % 3, least, it as u64 * 2)).collect();
        check(&keys, &alike, "alike");
        let unlike: Vec<Case> =
            (0..count).map(|it| case(it % 3, least + it * 7 % 5 * 1_040 + it % 2, it as u64 * 2)).collect();
        check(&keys, &unlike, "unlike");
    }
}

/// One after the other, with other keys and other sizes of keys in the same lanes, and after the lanes forgot.
#[test]
fn lanes_serve_one_burst_after_the_other() {
    for mut cbc in Cbc::all() {
        for round in 0..40 {
            let keys = keys([16, 32, 24][round % 3], 1 + round % 4);
            let cases: Vec<Case> = (0..round)
                .map(|it| case(it % keys.len(), 16 * (it % 9), (round * 100 + it) as u64))
                .collect();
            let answers = answered(&mut cbc, &keys, &cases, Place::Same, 0);
            for (answer, case) in answers.iter().zip(&cases) {
                assert_eq!(*answer, judged(&keys, case), "round {round}, {}", cbc.name());
            }
            if round % 5 == 0 {
                cbc.forget();
            }
        }
    }
}

#[test]
fn only_keys_of_aes_are_taken() {
    for length in 0..=64 {
        let (key, is_right) = (vec![1; length], [16, 24, 32].contains(&length));
        assert_eq!(bitsliced::Key::new(&key).is_some(), is_right, "{length} bytes");
        for level in Level::all() {
            assert_eq!(lanes::Key::new(level, &key).is_some(), is_right, "{length} bytes");
        }
    }
}

#[test]
#[should_panic(expected = "no more than there is room for")]
fn a_place_that_is_too_short_is_refused() {
    _ = Message::apart(0, &[0; BLOCK], &[0; 32], &mut [0; 16]);
}

#[test]
#[should_panic(expected = "room for a block more")]
fn padding_without_room_is_refused() {
    _ = Message::in_place(0, &[0; BLOCK], &mut [0; 32], 32).ending_with([16; BLOCK]);
}

#[test]
#[should_panic(expected = "keys have one size")]
fn keys_of_several_sizes_are_refused() {
    let mut places = [[0; 16]; 2];
    for mut cbc in Cbc::all() {
        let messages = places.iter_mut().map(|place| Message::in_place(0, &[0; BLOCK], place, 16));
        cbc.encrypt(&[vec![1; 16], vec![1; 32]], &mut messages.collect::<Vec<_>>());
    }
}
