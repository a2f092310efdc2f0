//! CBC encryption of eight messages, so many times over, for counting instructions: `cargo run --release -p evener-kernels --example lanes_rounds WHO ROUNDS [KEYS] [BYTES]`.
//!
//! WHO is `libcrypto`, a level or means by its name. Twice the rounds take twice the instructions and what the start takes, so that two runs give the instructions of a byte
//! (docs/results/kernels-arm.md). One key unless told, and 4096 bytes a message.
#![allow(clippy::print_stdout, reason = "it talks to a terminal")]

use std::hint::black_box;

use evener_kernels::lanes::{self, BLOCK, Message};
use evener_kernels::{Level, bitsliced};
use openssl::cipher::Cipher;
use openssl::cipher_ctx::CipherCtx;

const MESSAGES: usize = 8;
const IV: [u8; BLOCK] = [9; BLOCK];

fn main() {
    let mut words = std::env::args().skip(1);
    let who = words.next().unwrap_or_default();
    let mut numbers = words.map(|word| word.parse::<usize>().expect("a number"));
    let rounds = numbers.next().unwrap_or(1);
    let (count, size) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(4_096));
    let keys: Vec<Vec<u8>> = (1..=u8::MAX).take(count).map(|key| vec![key; 16]).collect();
    let mut text = vec![3; MESSAGES * (size + BLOCK)];
    if who == "libcrypto" {
        return encrypt_by_libcrypto(&keys, &mut text, size, rounds);
    }
    let Some(mut encrypt) = lanes(&who, &keys) else { return println!("there is no {who:?} here") };
    for _ in 0..rounds {
        let mut messages = Vec::with_capacity(MESSAGES);
        for (number, place) in text.chunks_exact_mut(size + BLOCK).enumerate() {
            messages.push(Message::in_place(number % keys.len(), &IV, place, size));
        }
        encrypt(&mut messages);
    }
    black_box(&text);
}

type Encrypt = Box<dyn FnMut(&mut [Message<'_>])>;

/// Lanes of that name.
fn lanes(who: &str, keys: &[Vec<u8>]) -> Option<Encrypt> {
    if let Some(level) = Level::all().find(|level| level.name() == who) {
        let keys: Option<Vec<_>> = keys.iter().map(|key| lanes::Key::new(level, key)).collect();
        let (keys, mut cbc) = (keys?, lanes::Cbc::new(level));
        return Some(Box::new(move |messages| cbc.encrypt(&keys, messages)));
    }
    let means = bitsliced::Means::all().find(|means| means.name() == who)?;
    let keys: Option<Vec<_>> = keys.iter().map(|key| bitsliced::Key::new(key)).collect();
    let (keys, mut cbc) = (keys?, bitsliced::Cbc::new(means));
    Some(Box::new(move |messages| cbc.encrypt(&keys, messages)))
}

fn encrypt_by_libcrypto(keys: &[Vec<u8>], text: &mut [u8], size: usize, rounds: usize) {
    let mut contexts: Vec<CipherCtx> = keys
        .iter()
        .map(|key| {
            let mut context = CipherCtx::new().expect("a context");
            context.encrypt_init(Some(Cipher::aes_128_cbc()), Some(key), Some(&IV)).expect("a key");
            context.set_padding(false);
            context
        })
        .collect();
    for _ in 0..rounds {
        for (number, place) in text.chunks_exact_mut(size + BLOCK).enumerate() {
            let context = &mut contexts[number % keys.len()];
            context.encrypt_init(None, None, Some(&IV)).expect("an IV");
            context.cipher_update_inplace(place, size).expect("text");
        }
    }
}
