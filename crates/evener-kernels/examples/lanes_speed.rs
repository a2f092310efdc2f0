//! Speed of CBC encryption of many messages by each level, and by planes, beside libcrypto's, one core, in turns, and beside a copy of the same bytes:
//! `cargo run --release -p evener-kernels --example lanes_speed [KEY_BITS] [MESSAGES] [KEYS]`.
//!
//! A message is given its IV and encrypted, in place or from one place to another, by as many keys as are told, one unless told, in turns. 64 MB of
//! messages unless told how many, one behind the other from a page's beginning. A copy in place is a change of each byte. Medians of 41 rounds.
#![allow(clippy::print_stdout, reason = "it talks to a terminal")]

use std::time::Instant;

use evener_kernels::lanes::{self, BLOCK, Message};
use evener_kernels::{Level, bitsliced};
use openssl::cipher::Cipher;
use openssl::cipher_ctx::CipherCtx;

mod row;
use row::print_row;

const ROUNDS: usize = 41;
const SIZES: [usize; 5] = [64, 256, 1_024, 4_096, 16_384];
const BYTES: usize = 64 << 20;
/// Messages handed over at a time.
const BURST: usize = 128;

fn main() {
    let told: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let key_bytes = told.first().map_or(16, |bits| bits / 8);
    let keys: Vec<Vec<u8>> =
        (1..=u8::MAX).take(told.get(2).copied().unwrap_or(1)).map(|key| vec![key; key_bytes]).collect();
    for is_apart in [false, true] {
        let names: String = contenders(&keys).iter().map(|(name, _)| format!("{name:>28}")).collect();
        let place = if is_apart { "apart" } else { "in place" };
        println!(
            "CBC encryption, {} bits, {place}\n{:>8} {:>14} {names} {:>28}",
            key_bytes * 8,
            "bytes",
            "libcrypto GB/s",
            "copy"
        );
        for size in SIZES {
            let count = told.get(1).copied().filter(|count| *count > 0).unwrap_or(BYTES / size);
            measure(&keys, size, count, is_apart);
        }
    }
}

/// Lanes of each kind with the same keys, and their names.
fn contenders(keys: &[Vec<u8>]) -> Vec<(&'static str, Encrypt)> {
    let mut contenders: Vec<(&str, Encrypt)> = Vec::new();
    for level in Level::all() {
        let keys: Vec<_> = keys.iter().map(|key| lanes::Key::new(level, key).expect("a key")).collect();
        let mut cbc = lanes::Cbc::new(level);
        contenders.push((level.name(), Box::new(move |messages| cbc.encrypt(&keys, messages))));
    }
    for means in bitsliced::Means::all() {
        let keys: Vec<_> = keys.iter().map(|key| bitsliced::Key::new(key).expect("a key")).collect();
        let mut cbc = bitsliced::Cbc::new(means);
        contenders.push((means.name(), Box::new(move |messages| cbc.encrypt(&keys, messages))));
    }
    contenders
}

type Encrypt = Box<dyn FnMut(&mut [Message<'_>])>;

fn measure(keys: &[Vec<u8>], size: usize, count: usize, is_apart: bool) {
    let ivs = vec![[9; BLOCK]; count];
    let mut places = [3_u8, 4].map(|fill| vec![fill; size * count + BLOCK + 4096]);
    let [from, to] = &mut places;
    let [from, to] = [from, to].map(|place| {
        let start = place.as_ptr().align_offset(4096);
        &mut place[start..][..size * count + BLOCK]
    });
    let cipher = match keys[0].len() {
        16 => Cipher::aes_128_cbc(),
        24 => Cipher::aes_192_cbc(),
        _ => Cipher::aes_256_cbc(),
    };
    let mut contexts: Vec<CipherCtx> = keys
        .iter()
        .map(|key| {
            let mut context = CipherCtx::new().expect("a context");
            context.encrypt_init(Some(cipher), Some(key), Some(&ivs[0])).expect("a key");
            context.set_padding(false);
            context
        })
        .collect();
    let mut contenders = contenders(keys);
    let mut times = vec![Vec::new(); contenders.len() + 2];
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for (number, iv) in ivs.iter().enumerate() {
            let context = &mut contexts[number % keys.len()];
            context.encrypt_init(None, None, Some(iv)).expect("an IV");
            let at = number * size;
            if is_apart {
                let to = &mut to[at..at + size + BLOCK];
                context.cipher_update(&from[at..at + size], Some(to)).expect("text");
            } else {
                context.cipher_update_inplace(&mut from[at..at + size + BLOCK], size).expect("text");
            }
        }
        times[0].push(start.elapsed().as_secs_f64());
        for ((_, encrypt), times) in contenders.iter_mut().zip(&mut times[1..]) {
            let start = Instant::now();
            let bursts = from.chunks_mut(BURST * size).zip(to.chunks_mut(BURST * size));
            for ((from, to), ivs) in bursts.zip(ivs.chunks(BURST)) {
                let texts = from.chunks_exact_mut(size).zip(to.chunks_exact_mut(size));
                let messages = texts.zip(ivs).enumerate().map(|(number, ((from, to), iv))| {
                    let key = number % keys.len();
                    if is_apart {
                        Message::apart(key, iv, from, to)
                    } else {
                        Message::in_place(key, iv, from, size)
                    }
                });
                encrypt(&mut messages.collect::<Vec<_>>());
            }
            times.push(start.elapsed().as_secs_f64());
        }
        let start = Instant::now();
        if is_apart {
            for (from, to) in from.chunks(size).zip(to.chunks_mut(size)) {
                to[..from.len()].copy_from_slice(from);
            }
        } else {
            for from in from.chunks_mut(size) {
                from.iter_mut().for_each(|byte| *byte ^= 1);
            }
        }
        times.last_mut().expect("of copies").push(start.elapsed().as_secs_f64());
    }
    print_row(size, count, times);
}
