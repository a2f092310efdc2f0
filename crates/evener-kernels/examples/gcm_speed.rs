//! Speed of AES-GCM by each level beside libcrypto's, one core, in turns: `cargo run --release -p evener-kernels --example gcm_speed [KEY_BYTES]`.
//!
//! A message is begun, gets 13 bytes of associated data, is encrypted in place, and its tag is taken, by either. Medians of 41 rounds.
#![allow(clippy::print_stdout, reason = "it talks to a terminal")]

#[cfg(kernels)]
mod row;

#[cfg(kernels)]
fn main() {
    measured::main();
}

#[cfg(not(kernels))]
fn main() {
    println!("there are no kernels for this target or by this compiler");
}

#[cfg(kernels)]
mod measured {
    use std::hint::black_box;
    use std::time::Instant;

    use evener_kernels::Level;
    use evener_kernels::gcm::{Key, Message};
    use openssl::cipher::Cipher;
    use openssl::cipher_ctx::CipherCtx;

    use crate::row::print_row;

    const ROUNDS: usize = 41;

    pub(super) fn main() {
        let key_bytes: usize =
            std::env::args().nth(1).map_or(32, |words| words.parse().expect("16, 24 or 32"));
        let (key, nonce, aad) = (vec![7; key_bytes], [9; 12], [1; 13]);
        println!(
            "{:>8} {:>14} {}",
            "bytes",
            "libcrypto GB/s",
            Level::all().map(|level| format!("{:>28}", level.name())).collect::<String>()
        );
        for size in [16, 64, 256, 1_024, 1_350, 4_096, 16_384, 65_536, 1 << 20] {
            let mut text = vec![3; size];
            let calls = ((1 << 20) / size).clamp(4, 4_000);
            let cipher = match key_bytes {
                16 => Cipher::aes_128_gcm(),
                24 => Cipher::aes_192_gcm(),
                _ => Cipher::aes_256_gcm(),
            };
            let mut context = CipherCtx::new().expect("a context");
            context.encrypt_init(Some(cipher), Some(&key), Some(&nonce)).expect("a key");
            let mut tag = [0; 16];
            let mut keys: Vec<Key> = Level::all()
                .map(|level| {
                    let mut taken = Key::new(level);
                    assert!(taken.set(&key));
                    taken
                })
                .collect();
            let mut times = vec![Vec::new(); keys.len() + 1];
            for _ in 0..ROUNDS {
                let start = Instant::now();
                for _ in 0..calls {
                    context.encrypt_init(None, None, Some(&nonce)).expect("a nonce");
                    context.cipher_update(&aad, None).expect("data");
                    context.cipher_update_inplace(&mut text, size).expect("text");
                    context.cipher_final(&mut []).expect("an end");
                    context.tag(&mut tag).expect("a tag");
                }
                times[0].push(start.elapsed().as_secs_f64());
                for (key, times) in keys.iter_mut().zip(&mut times[1..]) {
                    let start = Instant::now();
                    for _ in 0..calls {
                        let mut message = Message::new(key, &nonce);
                        message.aad(key, &aad);
                        message.encrypt(key, &mut text);
                        black_box(message.tag(key));
                    }
                    times.push(start.elapsed().as_secs_f64());
                }
            }
            print_row(size, calls, times);
        }
    }
}
