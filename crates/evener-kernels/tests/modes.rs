//! ECB, CBC decryption, CTR and XTS by every level of this processor's instructions and by planes are libcrypto's, whatever the lengths, pieces and places.
#![allow(unsafe_code, reason = "places that overlap are told by their addresses")]
#![allow(clippy::unwrap_used, reason = "helpers of tests, where it means a failed test")]

use evener_kernels::modes::{self, BLOCK, Mode};
use evener_kernels::{Level, bitsliced};
use openssl::cipher::{Cipher, CipherRef};
use openssl::cipher_ctx::CipherCtx;

mod random;
use random::bytes;

/// Every mode with every length of key.
fn all() -> Vec<(Mode, usize)> {
    let plain = [Mode::EcbEncryption, Mode::EcbDecryption, Mode::CbcDecryption, Mode::Ctr];
    let plain = plain.into_iter().flat_map(|mode| [16, 24, 32].map(|key_bytes| (mode, key_bytes)));
    let xts = [Mode::XtsEncryption, Mode::XtsDecryption];
    plain.chain(xts.into_iter().flat_map(|mode| [32, 64].map(|key_bytes| (mode, key_bytes)))).collect()
}

fn is_xts(mode: Mode) -> bool {
    matches!(mode, Mode::XtsEncryption | Mode::XtsDecryption)
}

fn cipher(mode: Mode, key_bytes: usize) -> &'static CipherRef {
    match (mode, key_bytes) {
        (Mode::EcbEncryption | Mode::EcbDecryption, 16) => Cipher::aes_128_ecb(),
        (Mode::EcbEncryption | Mode::EcbDecryption, 24) => Cipher::aes_192_ecb(),
        (Mode::EcbEncryption | Mode::EcbDecryption, _) => Cipher::aes_256_ecb(),
        (Mode::CbcDecryption, 16) => Cipher::aes_128_cbc(),
        (Mode::CbcDecryption, 24) => Cipher::aes_192_cbc(),
        (Mode::CbcDecryption, _) => Cipher::aes_256_cbc(),
        (Mode::Ctr, 16) => Cipher::aes_128_ctr(),
        (Mode::Ctr, 24) => Cipher::aes_192_ctr(),
        (Mode::Ctr, _) => Cipher::aes_256_ctr(),
        (_, 32) => Cipher::aes_128_xts(),
        _ => Cipher::aes_256_xts(),
    }
}

/// libcrypto's answer.
fn judged(mode: Mode, key: &[u8], iv: &[u8; BLOCK], text: &[u8]) -> Vec<u8> {
    let cipher = cipher(mode, key.len());
    let iv = (cipher.iv_length() > 0).then_some(&iv[..]);
    let mut context = CipherCtx::new().unwrap();
    if matches!(mode, Mode::EcbEncryption | Mode::Ctr | Mode::XtsEncryption) {
        context.encrypt_init(Some(cipher), Some(key), iv).unwrap();
    } else {
        context.decrypt_init(Some(cipher), Some(key), iv).unwrap();
    }
    context.set_padding(false);
    let mut answer = Vec::new();
    if !text.is_empty() {
        context.cipher_update_vec(text, &mut answer).unwrap();
    }
    answer
}

/// A key of either kind of kernels.
enum Key {
    Level(Level, Box<modes::Key>),
    Sliced(&'static str, Box<bitsliced::modes::Key>),
}

/// Calls a function of either.
macro_rules! either {
    ($key:expr, $name:ident($($argument:expr),*)) => {
        match $key {
            Key::Level(_, key) => key.$name($($argument),*),
            Key::Sliced(_, key) => key.$name($($argument),*),
        }
    };
}

impl Key {
    /// Places for keys, by every level and by all means.
    fn places() -> impl Iterator<Item = Self> {
        let levels = Level::all().map(|level| Self::Level(level, Box::new(modes::Key::new(level))));
        let means = bitsliced::Means::all();
        levels
            .chain(means.map(|means| Self::Sliced(means.name(), Box::new(bitsliced::modes::Key::new(means)))))
    }

    /// The key, likewise.
    fn all(mode: Mode, bytes: &[u8]) -> impl Iterator<Item = Self> {
        Self::places().map(move |mut key| {
            assert!(key.set(mode, bytes));
            key
        })
    }

    fn set(&mut self, mode: Mode, bytes: &[u8]) -> bool {
        either!(self, set(mode, bytes))
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Level(level, _) => level.name(),
            Self::Sliced(name, _) => name,
        }
    }

    unsafe fn crypt(&self, chain: &mut [u8; BLOCK], from: *const u8, to: *mut u8, blocks: usize) {
        // SAFETY: the caller's word.
        unsafe { either!(self, crypt(chain, from, to, blocks)) }
    }

    unsafe fn crypt_unit(&self, number: &[u8; BLOCK], from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's word.
        unsafe { either!(self, crypt_unit(number, from, to, bytes)) }
    }

    unsafe fn crypt_unit_at(&self, tweak: &mut [u8; BLOCK], from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's word.
        unsafe { either!(self, crypt_unit_at(tweak, from, to, bytes)) }
    }

    fn tweak(&self, number: &[u8; BLOCK]) -> [u8; BLOCK] {
        either!(self, tweak(number))
    }
}

/// The kernel's answer, with `text` at `from` of a place and the answer at `to` of it.
fn answered(key: &Key, mode: Mode, iv: &[u8; BLOCK], text: &[u8], (from, to): (usize, usize)) -> Vec<u8> {
    let mut place = vec![0xa5; from.max(to) + text.len() + 1];
    place[from..][..text.len()].copy_from_slice(text);
    let at = place.as_mut_ptr();
    let (input, output) = (at.wrapping_add(from), at.wrapping_add(to));
    if is_xts(mode) {
        // SAFETY: both lie within the place.
        unsafe { key.crypt_unit(iv, input, output, text.len()) };
    } else {
        // SAFETY: as above.
        unsafe { key.crypt(&mut iv.clone(), input, output, text.len() / BLOCK) };
    }
    assert_eq!(place.pop(), Some(0xa5), "nothing behind the text is written");
    place[to..][..text.len()].to_vec()
}

#[test]
fn every_length_to_four_kilobytes() {
    let text = bytes(4_096, 1);
    for (mode, key_bytes) in all() {
        let (key_bytes, iv) = (bytes(key_bytes, 2), bytes(BLOCK, 3).try_into().unwrap());
        let keys: Vec<Key> = Key::all(mode, &key_bytes).collect();
        let lengths: Vec<usize> =
            if is_xts(mode) { (16..=4_096).collect() } else { (0..=4_096).step_by(BLOCK).collect() };
        for length in lengths {
            let judge = judged(mode, &key_bytes, &iv, &text[..length]);
            for key in &keys {
                let answer = answered(key, mode, &iv, &text[..length], (0, 0));
                assert_eq!(answer, judge, "{mode:?}, {} bytes, {}", length, key.name());
            }
        }
    }
}

/// In place, apart, and begun before or behind its input by any number of bytes to five blocks.
#[test]
fn an_answer_may_lie_anywhere() {
    for (mode, key_bytes) in all() {
        let (key_bytes, iv) = (bytes(key_bytes, 4), bytes(BLOCK, 5).try_into().unwrap());
        for blocks in [1, 2, 7, 31, 32, 33, 70] {
            let text = bytes(blocks * BLOCK + if is_xts(mode) { 5 } else { 0 }, 6);
            let judge = judged(mode, &key_bytes, &iv, &text);
            for key in Key::all(mode, &key_bytes) {
                let shifts = (0..=80).chain([127, 512, 513, 1_000, text.len(), text.len() + 3]);
                for shift in shifts {
                    for places in [(0, shift), (shift, 0)] {
                        let answer = answered(&key, mode, &iv, &text, places);
                        assert_eq!(answer, judge, "{mode:?}, {blocks} blocks, {places:?}, {}", key.name());
                    }
                }
            }
        }
    }
}

#[test]
fn counters_go_round_at_32_64_and_128_bits() {
    let text = bytes(3_000 / BLOCK * BLOCK, 7);
    let key_bytes = bytes(16, 8);
    for key in Key::all(Mode::Ctr, &key_bytes) {
        for end in [1_u128 << 32, 1 << 64, (0xabcd << 96) | (1 << 64), 1 << 96, 0] {
            for back in 0..80 {
                let iv = end.wrapping_sub(back).to_be_bytes();
                let answer = answered(&key, Mode::Ctr, &iv, &text, (0, 0));
                assert_eq!(answer, judged(Mode::Ctr, &key_bytes, &iv, &text), "{iv:x?}, {}", key.name());
            }
        }
    }
}

#[test]
fn pieces_are_the_whole() {
    let text = bytes(5_000 / BLOCK * BLOCK, 9);
    for (mode, key_bytes) in all().into_iter().filter(|&(mode, _)| !is_xts(mode)) {
        let (key_bytes, iv) = (bytes(key_bytes, 10), bytes(BLOCK, 11).try_into().unwrap());
        let judge = judged(mode, &key_bytes, &iv, &text);
        for key in Key::all(mode, &key_bytes) {
            for seed in 0..50 {
                let (mut place, mut chain) = (text.clone(), iv);
                let mut rest = &mut place[..];
                for blocks in bytes(400, 12 + seed) {
                    let blocks = usize::from(blocks % 40).min(rest.len() / BLOCK);
                    let (piece, behind) = rest.split_at_mut(blocks * BLOCK);
                    let at = piece.as_mut_ptr();
                    // SAFETY: a piece that is worked on in its place.
                    unsafe { key.crypt(&mut chain, at, at, blocks) };
                    rest = behind;
                }
                assert!(rest.is_empty());
                assert_eq!(place, judge, "{mode:?}, {}, seed {seed}", key.name());
            }
        }
    }
}

/// Times x in the field of XTS (IEEE 1619-2018, 5.2), once for each block.
fn moved_on(tweak: [u8; BLOCK], blocks: usize) -> [u8; BLOCK] {
    (0..blocks).fold(tweak, |tweak, _| {
        let number = u128::from_le_bytes(tweak);
        ((number << 1) ^ ((number >> 127) * 0x87)).to_le_bytes()
    })
}

#[test]
fn a_unit_goes_on_from_the_tweak_of_any_of_its_blocks() {
    for (mode, key_bytes) in all().into_iter().filter(|(mode, _)| is_xts(*mode)) {
        let (key_bytes, iv, text) = (bytes(key_bytes, 51), [7; BLOCK], bytes(1_000, 52));
        for key in Key::all(mode, &key_bytes) {
            let expected = judged(mode, &key_bytes, &iv, &text);
            let mut place = text.clone();
            let at = 23 * BLOCK;
            let (first, rest) = place.split_at_mut(at);
            let mut tweak = moved_on(key.tweak(&iv), 23);
            // SAFETY: in their places.
            unsafe { key.crypt_unit_at(&mut tweak, rest.as_ptr(), rest.as_mut_ptr(), rest.len()) };
            // SAFETY: as above.
            unsafe { key.crypt(&mut key.tweak(&iv), first.as_ptr(), first.as_mut_ptr(), 23) };
            assert!(place == expected, "{} {mode:?}", key.name());
        }
    }
}

/// A unit as long as XTS allows, whose tweak is moved on by a million blocks.
#[test]
fn the_longest_unit() {
    let text = bytes(16 << 20, 13);
    let (key_bytes, iv) = (bytes(64, 14), bytes(BLOCK, 15).try_into().unwrap());
    let judge = judged(Mode::XtsEncryption, &key_bytes, &iv, &text);
    for key in Key::all(Mode::XtsEncryption, &key_bytes) {
        assert!(answered(&key, Mode::XtsEncryption, &iv, &text, (0, 0)) == judge, "{}", key.name());
    }
}

#[test]
fn a_key_of_another_length_is_refused() {
    for mut key in Key::places() {
        for length in (0..=70).filter(|length| ![16, 24, 32].contains(length)) {
            assert!(!key.set(Mode::Ctr, &bytes(length, 16)));
        }
        for length in (0..=70).filter(|length| ![32, 64].contains(length)) {
            assert!(!key.set(Mode::XtsDecryption, &bytes(length, 17)));
        }
    }
}
