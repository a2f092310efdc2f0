//! Speed of CTR, CBC decryption, XTS and ECB by each level, and by planes, beside libcrypto's, one core, in turns: `cargo run --release -p evener-kernels --example modes_speed [KEY_BITS]`.
//!
//! A message is begun with its IV and worked on in place, by either. Medians of 41 rounds.
#![allow(clippy::print_stdout, reason = "it talks to a terminal")]
#![allow(unsafe_code, reason = "kernels are told places by their addresses")]

use std::time::Instant;

use evener_kernels::modes::{self, BLOCK, Mode};
use evener_kernels::{Level, bitsliced};
use openssl::cipher::{Cipher, CipherRef};
use openssl::cipher_ctx::CipherCtx;

mod row;
use row::print_row;

const ROUNDS: usize = 41;
const IV: [u8; BLOCK] = [9; BLOCK];
const SIZES: [usize; 7] = [16, 64, 256, 1_024, 4_096, 16_384, 1 << 20];

fn main() {
    let is_long = std::env::args().nth(1).is_some_and(|bits| bits == "256");
    let (ctr, cbc, xts, ecb) = if is_long {
        (Cipher::aes_256_ctr(), Cipher::aes_256_cbc(), Cipher::aes_256_xts(), Cipher::aes_256_ecb())
    } else {
        (Cipher::aes_128_ctr(), Cipher::aes_128_cbc(), Cipher::aes_128_xts(), Cipher::aes_128_ecb())
    };
    let pair: Vec<u8> = (0..if is_long { 64 } else { 32 }).collect();
    let key = &pair[..pair.len() / 2];
    measure("CTR", Mode::Ctr, ctr, key);
    measure("CBC decryption", Mode::CbcDecryption, cbc, key);
    measure("XTS", Mode::XtsEncryption, xts, &pair);
    measure("ECB decryption", Mode::EcbDecryption, ecb, key);
}

/// A message in its place by each kind of kernels, and their names.
fn contenders(mode: Mode, key: &[u8]) -> Vec<(&'static str, Crypt)> {
    macro_rules! crypt {
        ($key:expr) => {{
            let mut taken = $key;
            assert!(taken.set(mode, key));
            Box::new(move |text: &mut [u8]| {
                let (at, bytes) = (text.as_mut_ptr(), text.len());
                if mode == Mode::XtsEncryption {
                    // SAFETY: the text, in its place.
                    unsafe { taken.crypt_unit(&IV, at, at, bytes) };
                } else {
                    // SAFETY: as above.
                    unsafe { taken.crypt(&mut IV.clone(), at, at, bytes / BLOCK) };
                }
            })
        }};
    }
    let mut contenders: Vec<(&str, Crypt)> = Vec::new();
    for level in Level::all() {
        contenders.push((level.name(), crypt!(modes::Key::new(level))));
    }
    for means in bitsliced::Means::all() {
        contenders.push((means.name(), crypt!(bitsliced::modes::Key::new(means))));
    }
    contenders
}

type Crypt = Box<dyn FnMut(&mut [u8])>;

fn measure(name: &str, mode: Mode, cipher: &CipherRef, key: &[u8]) {
    let names: String = contenders(mode, key).iter().map(|(name, _)| format!("{name:>28}")).collect();
    println!("{name}, {} bits\n{:>8} {:>14} {names}", key.len() * 8, "bytes", "libcrypto GB/s");
    for size in SIZES {
        // libcrypto wants room for a block more.
        let mut text = vec![3; size + BLOCK];
        let calls = ((1 << 20) / size).clamp(4, 4_000);
        let mut context = CipherCtx::new().expect("a context");
        let is_encryption = matches!(mode, Mode::Ctr | Mode::XtsEncryption);
        let init = |context: &mut CipherCtx, cipher, key| {
            let iv = (mode != Mode::EcbDecryption).then_some(&IV[..]);
            if is_encryption {
                context.encrypt_init(cipher, key, iv)
            } else {
                context.decrypt_init(cipher, key, iv)
            }
        };
        init(&mut context, Some(cipher), Some(key)).expect("a key");
        context.set_padding(false);
        let mut contenders = contenders(mode, key);
        let mut times = vec![Vec::new(); contenders.len() + 1];
        for _ in 0..ROUNDS {
            let start = Instant::now();
            for _ in 0..calls {
                init(&mut context, None, None).expect("an IV");
                context.cipher_update_inplace(&mut text, size).expect("text");
            }
            times[0].push(start.elapsed().as_secs_f64());
            for ((_, crypt), times) in contenders.iter_mut().zip(&mut times[1..]) {
                let start = Instant::now();
                for _ in 0..calls {
                    crypt(&mut text[..size]);
                }
                times.push(start.elapsed().as_secs_f64());
            }
        }
        print_row(size, calls, times);
    }
}
