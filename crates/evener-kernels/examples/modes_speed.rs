//! Speed of CTR, CBC decryption, XTS and ECB by each level beside libcrypto's, one core, in turns: `cargo run --release -p evener-kernels --example modes_speed [KEY_BITS]`.
//!
//! A message is begun with its IV and worked on in place, by either. Medians of 41 rounds.
#![allow(clippy::print_stdout, reason = "it talks to a terminal")]
#![allow(unsafe_code, reason = "kernels are told places by their addresses")]

#[cfg(kernels)]
mod row;

fn main() {
    if !evener_kernels::Level::ARE_BUILT {
        println!("there are no kernels for this target or by this compiler");
    }
    #[cfg(kernels)]
    measured::main();
}

#[cfg(kernels)]
mod measured {
    use std::time::Instant;

    use evener_kernels::Level;
    use evener_kernels::modes::{BLOCK, Key, Mode};
    use openssl::cipher::{Cipher, CipherRef};
    use openssl::cipher_ctx::CipherCtx;

    use crate::row::print_row;

    const ROUNDS: usize = 41;
    const SIZES: [usize; 7] = [16, 64, 256, 1_024, 4_096, 16_384, 1 << 20];

    pub(super) fn main() {
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

    fn measure(name: &str, mode: Mode, cipher: &CipherRef, key: &[u8]) {
        let levels: String = Level::all().map(|level| format!("{:>28}", level.name())).collect();
        println!("{name}, {} bits\n{:>8} {:>14} {levels}", key.len() * 8, "bytes", "libcrypto GB/s");
        for size in SIZES {
            // libcrypto wants room for a block more.
            let (mut text, iv) = (vec![3; size + BLOCK], [9; BLOCK]);
            let calls = ((1 << 20) / size).clamp(4, 4_000);
            let mut context = CipherCtx::new().expect("a context");
            let is_encryption = matches!(mode, Mode::Ctr | Mode::XtsEncryption);
            let init = |context: &mut CipherCtx, cipher, key| {
                let iv = (mode != Mode::EcbDecryption).then_some(&iv[..]);
                if is_encryption {
                    context.encrypt_init(cipher, key, iv)
                } else {
                    context.decrypt_init(cipher, key, iv)
                }
            };
            init(&mut context, Some(cipher), Some(key)).expect("a key");
            context.set_padding(false);
            let keys: Vec<Key> = Level::all()
                .map(|level| {
                    let mut taken = Key::new(level);
                    assert!(taken.set(mode, key));
                    taken
                })
                .collect();
            let mut times = vec![Vec::new(); keys.len() + 1];
            for _ in 0..ROUNDS {
                let start = Instant::now();
                for _ in 0..calls {
                    init(&mut context, None, None).expect("an IV");
                    context.cipher_update_inplace(&mut text, size).expect("text");
                }
                times[0].push(start.elapsed().as_secs_f64());
                for (key, times) in keys.iter().zip(&mut times[1..]) {
                    let start = Instant::now();
                    for _ in 0..calls {
                        let at = text.as_mut_ptr();
                        if mode == Mode::XtsEncryption {
                            // SAFETY: the text, in its place.
                            unsafe { key.crypt_unit(&iv, at, at, size) };
                        } else {
                            // SAFETY: as above.
                            unsafe { key.crypt(&mut iv.clone(), at, at, size / BLOCK) };
                        }
                    }
                    times.push(start.elapsed().as_secs_f64());
                }
            }
            print_row(size, calls, times);
        }
    }
}
