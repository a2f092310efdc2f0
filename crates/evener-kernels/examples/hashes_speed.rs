//! Speed of hashes of many messages by each choice of instructions beside libcrypto's, one core, in turns:
//! `cargo run --release -p evener-kernels --example hashes_speed [HASH] [MESSAGES]`.
//!
//! HASH is 1, 256 (unless told) or 512. 32 MB of messages unless told how many, one behind the other from a page's beginning. Medians of 11 rounds.
//! `OPENSSL_ia32cap=:~0x20000000` hides the SHA extensions from libcrypto.
#![allow(clippy::print_stdout, reason = "it talks to a terminal")]

use std::time::Instant;

use evener_kernels::hashes::{Hash, Lanes, Means, Running, Span};
use openssl::md::Md;
use openssl::md_ctx::MdCtx;

mod row;
use row::print_row;

const ROUNDS: usize = 11;
const SIZES: [usize; 6] = [64, 256, 1_024, 4_096, 16_384, 65_536];
const BYTES: usize = 32 << 20;
/// Messages handed over at a time.
const BURST: usize = 64;

fn main() {
    if Means::best().is_none() {
        println!("there are no kernels for this processor or target or by this compiler");
    }
    let told: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let hash = match told.first() {
        Some(1) => Hash::Sha1,
        Some(512) => Hash::Sha512,
        _ => Hash::Sha256,
    };
    let all: Vec<Means> = Means::all().filter(|means| Lanes::count(hash, *means) > 0).collect();
    let names: String = all.iter().map(|means| format!("{:>28}", means.name())).collect();
    println!("{hash:?}\n{:>8} {:>14} {names}", "bytes", "libcrypto GB/s");
    for size in SIZES {
        let count = told.get(1).copied().filter(|count| *count > 0).unwrap_or(BYTES / size);
        measure(hash, &all, size, count);
    }
}

fn measure(hash: Hash, all: &[Means], size: usize, count: usize) {
    let place = vec![3_u8; size * count + 4_096];
    let texts = &place[place.as_ptr().align_offset(4_096)..][..size * count];
    let judge = match hash {
        Hash::Sha1 => Md::sha1(),
        Hash::Sha512 => Md::sha512(),
        _ => Md::sha256(),
    };
    let mut context = MdCtx::new().expect("a context");
    let mut digest = [0; Hash::DIGEST_BYTES_MAX];
    let mut lanes: Vec<Lanes> = all.iter().copied().map(Lanes::new).collect();
    let mut times = vec![Vec::new(); lanes.len() + 1];
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for text in texts.chunks_exact(size) {
            context.digest_init(judge).expect("a hash");
            context.digest_update(text).expect("text");
            context.digest_final(&mut digest).expect("a digest");
        }
        times[0].push(start.elapsed().as_secs_f64());
        for (lanes, times) in lanes.iter_mut().zip(&mut times[1..]) {
            let start = Instant::now();
            for burst in texts.chunks(BURST * size) {
                let mut running: Vec<Running> = (0..burst.len() / size).map(|_| Running::new(hash)).collect();
                let spans = running.iter_mut().zip(burst.chunks_exact(size));
                let mut spans: Vec<_> = spans.map(|(running, text)| Span::last(running, text)).collect();
                lanes.run(&mut spans);
                drop(spans);
                let mut made = [0; Hash::DIGEST_BYTES_MAX];
                for running in &running {
                    running.digest(&mut made);
                }
                assert_eq!(made, digest, "the same digest");
            }
            times.push(start.elapsed().as_secs_f64());
        }
    }
    print_row(size, count, times);
}
