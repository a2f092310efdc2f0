//! AES-GCM by every level of this processor's instructions is libcrypto's, whatever the lengths and pieces.
#![cfg(kernels)]
#![allow(unsafe_code, reason = "places that overlap are told by their addresses")]
#![allow(clippy::unwrap_used, reason = "helpers of tests, where it means a failed test")]

use evener_kernels::Level;
use evener_kernels::gcm::{Key, Message};
use openssl::cipher::Cipher;
use openssl::cipher_ctx::CipherCtx;

mod random;
use random::bytes;

/// libcrypto's text and tag.
fn judged(key: &[u8], nonce: &[u8], aad: &[u8], text: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let cipher = match key.len() {
        16 => Cipher::aes_128_gcm(),
        24 => Cipher::aes_192_gcm(),
        _ => Cipher::aes_256_gcm(),
    };
    let mut context = CipherCtx::new().unwrap();
    context.encrypt_init(Some(cipher), None, None).unwrap();
    context.set_iv_length(nonce.len()).unwrap();
    context.encrypt_init(None, Some(key), Some(nonce)).unwrap();
    context.cipher_update(aad, None).unwrap();
    let mut sealed = Vec::new();
    context.cipher_update_vec(text, &mut sealed).unwrap();
    context.cipher_final_vec(&mut sealed).unwrap();
    let mut tag = vec![0; 16];
    context.tag(&mut tag).unwrap();
    (sealed, tag)
}

fn key(level: Level, bytes: &[u8]) -> Key {
    let mut key = Key::new(level);
    assert!(key.set(bytes));
    key
}

/// Text in one piece, both ways, in place and apart; the tag of each.
fn assert_judged(level: Level, key_bytes: &[u8], nonce: &[u8], aad: &[u8], text: &[u8]) {
    let said = || {
        format!(
            "{}: key {}, nonce {}, data {}, text {}",
            level.name(),
            key_bytes.len(),
            nonce.len(),
            aad.len(),
            text.len()
        )
    };
    let mut key = key(level, key_bytes);
    let (sealed, tag) = judged(key_bytes, nonce, aad, text);
    let mut message = Message::new(&mut key, nonce);
    message.aad(&mut key, aad);
    let mut place = text.to_vec();
    message.encrypt(&mut key, &mut place);
    assert_eq!(place, sealed, "{}", said());
    assert_eq!(message.tag(&key)[..], tag, "{}", said());
    let mut message = Message::new(&mut key, nonce);
    message.aad(&mut key, aad);
    message.decrypt(&mut key, &mut place);
    assert_eq!(place, text, "{}", said());
    assert_eq!(message.tag(&key)[..], tag, "{}", said());
    let mut message = Message::new(&mut key, nonce);
    message.aad(&mut key, aad);
    let mut apart = vec![0xa5; text.len() + 1];
    let (place, _) = apart.split_at_mut(text.len());
    message.encrypt_to(&mut key, text, place);
    assert_eq!(apart.pop(), Some(0xa5), "nothing behind the text is written: {}", said());
    assert_eq!(apart, sealed, "{}", said());
}

#[test]
fn every_length_of_text_to_four_kilobytes() {
    let (text, aad) = (bytes(4_096, 1), bytes(13, 2));
    for level in Level::all() {
        for key_bytes in [16, 24, 32] {
            let key = bytes(key_bytes, 3);
            for length in 0..=text.len() {
                assert_judged(level, &key, &bytes(12, length as u64), &aad, &text[..length]);
            }
        }
    }
}

#[test]
fn every_length_of_associated_data_to_a_kilobyte() {
    let (aad, text) = (bytes(1_100, 4), bytes(33, 5));
    for level in Level::all() {
        for length in 0..=aad.len() {
            assert_judged(level, &bytes(32, 6), &bytes(12, 7), &aad[..length], &text);
        }
    }
}

#[test]
fn every_length_of_nonce_to_a_hundred_bytes() {
    for level in Level::all() {
        for length in 1..=100 {
            assert_judged(level, &bytes(16, 8), &bytes(length, 9), &bytes(20, 10), &bytes(700, 11));
        }
    }
}

/// Nonces whose first counter is just below its end, found by trying: 96 bits always begin at one.
#[test]
fn counters_go_round() {
    let key_bytes = bytes(16, 12);
    for level in Level::all() {
        // A nonce of 16 bytes is hashed; this one is made to begin where it should.
        for back in [0_u32, 1, 2, 3, 5, 17, 31, 33] {
            let nonce = nonce_that_begins_at(&key_bytes, u32::MAX - back);
            assert_judged(level, &key_bytes, &nonce, b"", &bytes(1_500, 13));
        }
    }
}

/// Sixteen bytes whose hash under this key ends with the number: GHASH(nonce, lengths) = (nonce * H + lengths) * H, solved bit by bit.
fn nonce_that_begins_at(key: &[u8], counter: u32) -> Vec<u8> {
    // The hash is linear in the nonce, so 32 bits of it are 32 sums of nonce bits: Gauss' elimination over nonces of one bit each.
    let base = first_counter_word(key, &[0; 16]);
    let mut rows: Vec<(u32, u128)> = (0..128)
        .map(|bit| {
            let nonce = 1_u128 << bit;
            (first_counter_word(key, &nonce.to_be_bytes()) ^ base, nonce)
        })
        .collect();
    let (mut left, mut nonce) = (counter ^ base, 0);
    for bit in (0..32).rev() {
        let Some(at) = rows.iter().position(|row| row.0 >> bit & 1 == 1 && row.0 >> bit == 1) else {
            continue;
        };
        let pivot = rows.swap_remove(at);
        for row in &mut rows {
            if row.0 >> bit & 1 == 1 {
                *row = (row.0 ^ pivot.0, row.1 ^ pivot.1);
            }
        }
        if left >> bit & 1 == 1 {
            (left, nonce) = (left ^ pivot.0, nonce ^ pivot.1);
        }
    }
    assert_eq!(left, 0, "the bits of a hash are independent");
    let nonce = nonce.to_be_bytes().to_vec();
    assert_eq!(first_counter_word(key, &nonce), counter);
    nonce
}

/// The lowest word of the first counter, told by libcrypto: a block of key stream, decrypted, is the counter after it.
fn first_counter_word(key: &[u8], nonce: &[u8]) -> u32 {
    let (stream, _) = judged(key, nonce, b"", &[0; 16]);
    let mut context = CipherCtx::new().unwrap();
    context.decrypt_init(Some(Cipher::aes_128_ecb()), Some(key), None).unwrap();
    context.set_padding(false);
    let mut block = Vec::new();
    context.cipher_update_vec(&stream, &mut block).unwrap();
    u32::from_be_bytes(block[12..].try_into().unwrap()).wrapping_sub(1)
}

#[test]
fn pieces_of_any_length_are_the_whole() {
    let (text, aad, nonce) = (bytes(3_000, 14), bytes(200, 15), bytes(12, 16));
    let key_bytes = bytes(32, 17);
    let (sealed, tag) = judged(&key_bytes, &nonce, &aad, &text);
    for level in Level::all() {
        let mut key = key(level, &key_bytes);
        for seed in 0..400 {
            let lengths = bytes(4_000, 100 + seed);
            let mut lengths = lengths.iter().map(|length| match length % 4 {
                0 => usize::from(length / 4),
                1 => usize::from(length / 4) * 16,
                2 => usize::from(length / 4) % 17,
                _ => usize::from(*length) * 3,
            });
            let mut message = Message::new(&mut key, &nonce);
            let mut rest = &aad[..];
            while !rest.is_empty() {
                let (piece, left) = rest.split_at(lengths.next().unwrap().min(rest.len()));
                message.aad(&mut key, piece);
                rest = left;
            }
            let mut place = text.clone();
            let mut rest = &mut place[..];
            while !rest.is_empty() {
                let length = lengths.next().unwrap().min(rest.len());
                let (piece, left) = rest.split_at_mut(length);
                // A copy in mid-message goes its own way.
                let mut copy = message.clone();
                copy.decrypt(&mut key, &mut piece.to_vec());
                message.encrypt(&mut key, piece);
                rest = left;
            }
            assert_eq!(place, sealed, "{}, seed {seed}", level.name());
            assert_eq!(message.tag(&key)[..], tag, "{}, seed {seed}", level.name());
        }
    }
}

/// Text in stretches of so many blocks, worked on from the last to the first and joined to the message.
fn by_stretches(key: &mut Key, message: &mut Message, encrypts: bool, text: &mut [u8], blocks: usize) {
    assert!(message.begin_parts(key));
    let key = &*key;
    let begun: Vec<_> = text
        .chunks_mut(blocks * 16)
        .enumerate()
        .map(|(at, part)| (message.stretch(at * blocks), part))
        .collect();
    let mut done: Vec<_> = begun
        .into_iter()
        .rev()
        .map(|(mut stretch, part)| {
            let place = part.as_mut_ptr();
            if encrypts {
                // SAFETY: in its place.
                unsafe { stretch.crypt::<true>(key, place, place, part.len() / 16) };
            } else {
                // SAFETY: as above.
                unsafe { stretch.crypt::<false>(key, place, place, part.len() / 16) };
            }
            stretch
        })
        .collect();
    done.drain(..).rev().for_each(|stretch| message.join(key, &stretch));
}

#[test]
fn stretches_in_any_order_are_the_whole() {
    for level in Level::all() {
        for (key_bytes, aad, before, blocks, text) in [
            (16, 0, 0, 1, 160),
            (16, 13, 16, 3, 1_024),
            (24, 32, 64, 33, 16_384),
            (32, 5, 0, 64, 65_536 + 4_096),
            (32, 0, 1_008, 257, 100_000),
        ] {
            let key_bytes = bytes(key_bytes, 61);
            // The second one's counter wraps within the first stretches.
            let wrapping = (key_bytes.len() == 16).then(|| nonce_that_begins_at(&key_bytes, u32::MAX - 40));
            for nonce in [bytes(12, 62)].into_iter().chain(wrapping) {
                let (text, aad) = (bytes(text, 63), bytes(aad, 64));
                let (sealed, tag) = judged(&key_bytes, &nonce, &aad, &text);
                for (encrypts, input, output) in [(true, &text, &sealed), (false, &sealed, &text)] {
                    let mut key = key(level, &key_bytes);
                    let mut message = Message::new(&mut key, &nonce);
                    message.aad(&mut key, &aad);
                    let crypt = |message: &mut Message, key: &mut Key, piece: &mut [u8]| match encrypts {
                        true => message.encrypt(key, piece),
                        false => message.decrypt(key, piece),
                    };
                    let mut place = input.clone();
                    let (first, rest) = place.split_at_mut(before);
                    let (middle, last) = rest.split_at_mut(rest.len() / 32 * 16 + 16);
                    crypt(&mut message, &mut key, first);
                    by_stretches(&mut key, &mut message, encrypts, middle, blocks);
                    crypt(&mut message, &mut key, last);
                    assert!(place == *output, "{} {blocks} blocks", level.name());
                    assert_eq!(message.tag(&key)[..], tag, "{} {blocks} blocks", level.name());
                }
            }
        }
    }
}

#[test]
fn stretches_begin_at_a_block_only() {
    for level in Level::all() {
        let mut key = key(level, &bytes(16, 65));
        let mut message = Message::new(&mut key, &bytes(12, 66));
        message.encrypt(&mut key, &mut [0; 5]);
        assert!(!message.begin_parts(&mut key));
    }
}

/// Begun before its text or behind, by any number of bytes to five blocks.
#[test]
fn an_answer_may_lie_anywhere() {
    let (key_bytes, nonce) = (bytes(32, 19), bytes(12, 20));
    for level in Level::all() {
        let mut key = key(level, &key_bytes);
        for length in [1, 16, 40, 1_000, 1_500] {
            let text = bytes(length, 21);
            let (sealed, tag) = judged(&key_bytes, &nonce, b"", &text);
            for shift in (0..=80).chain([511, 512, 513, length, length + 3]) {
                for (from, to) in [(0, shift), (shift, 0)] {
                    for (encrypts, input, output) in [(true, &text, &sealed), (false, &sealed, &text)] {
                        let mut place = vec![0xa5; shift + length + 1];
                        place[from..][..length].copy_from_slice(input);
                        let at = place.as_mut_ptr();
                        let (input, out) = (at.wrapping_add(from), at.wrapping_add(to));
                        let mut message = Message::new(&mut key, &nonce);
                        if encrypts {
                            // SAFETY: both lie within the place.
                            unsafe { message.crypt::<true>(&mut key, input, out, length) };
                        } else {
                            // SAFETY: as above.
                            unsafe { message.crypt::<false>(&mut key, input, out, length) };
                        }
                        assert!(place[to..][..length] == *output, "{length} bytes, {from} to {to}");
                        assert_eq!(message.tag(&key)[..], tag);
                    }
                }
            }
        }
    }
}

#[test]
fn a_key_of_another_length_is_refused() {
    for level in Level::all() {
        let mut key = Key::new(level);
        for length in (0..=40).filter(|length| ![16, 24, 32].contains(length)) {
            assert!(!key.set(&bytes(length, 18)));
        }
    }
}
