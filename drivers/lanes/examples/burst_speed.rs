//! Speed of bursts of AES-CBC encryption by drivers of one core in turns: libcrypto, libipsec-mb where it is installed, and lanes at each level:
//! `cargo run --release -p evener-driver-lanes --example burst_speed [KEY_BITS] [JOBS] [BURST]`.
//!
//! Jobs of one session, 4000 unless told, handed over in bursts of 128 unless told, in place and apart. Medians of 21 rounds, in GB/s and over
//! libcrypto. With `--count` as the only word it runs bursts of 64 jobs of 64 bytes by the widest level, 1000 of them, and prints nothing: for
//! `valgrind --tool=callgrind`.
#![allow(clippy::print_stdout, reason = "it talks to a terminal")]

use std::sync::Arc;
use std::time::Instant;

use evener_core::{Algorithm, Direction, InlineDriver, Job, Padding, Session};
use evener_driver_lanes::Lanes;
use evener_kernels::Level;
use evener_testing::drivers::{libcrypto, multibuffer};

const ROUNDS: usize = 21;
const SIZES: [usize; 5] = [64, 256, 1_024, 4_096, 16_384];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words == ["--count"] {
        return count();
    }
    let told: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let algorithm = match told.first() {
        Some(192) => Algorithm::Aes192Cbc,
        Some(256) => Algorithm::Aes256Cbc,
        _ => Algorithm::Aes128Cbc,
    };
    let (jobs, burst) = (told.get(1).copied().unwrap_or(4_000), told.get(2).copied().unwrap_or(128));
    let mut drivers: Vec<(String, Box<dyn InlineDriver>)> =
        vec![("libcrypto".to_owned(), Box::new(libcrypto()))];
    drivers.extend(multibuffer().map(|it| ("libipsec-mb".to_owned(), Box::new(it) as Box<dyn InlineDriver>)));
    drivers.extend(Level::all().map(|level| {
        (format!("lanes, {} bits", level.bits()), Box::new(Lanes::unchecked(level)) as Box<dyn InlineDriver>)
    }));
    for is_apart in [false, true] {
        let names: String = drivers.iter().map(|(name, _)| format!("{name:>22}")).collect();
        println!(
            "{algorithm}, {jobs} jobs, {}\n{:>8}{names}",
            if is_apart { "apart" } else { "in place" },
            "bytes"
        );
        for size in SIZES {
            measure(&mut drivers, algorithm, (size, jobs, burst), is_apart);
        }
    }
}

fn session(algorithm: Algorithm) -> Arc<Session> {
    let key = vec![7; algorithm.key_bytes().expect("a cipher has a key")];
    Arc::new(Session::new(algorithm, Direction::Encrypt, Padding::None, &key).expect("its key"))
}

fn measure(
    drivers: &mut [(String, Box<dyn InlineDriver>)],
    algorithm: Algorithm,
    (size, count, burst): (usize, usize, usize),
    is_apart: bool,
) {
    let session = session(algorithm);
    let mut from = vec![3_u8; size * count];
    let mut to = vec![4_u8; size * count];
    let places = from.chunks_exact_mut(size).zip(to.chunks_exact_mut(size));
    let mut jobs: Vec<Box<Job<'_>>> =
        places.map(|(from, to)| if is_apart { Job::apart(from, to) } else { Job::in_place(from) }).collect();
    let mut times = vec![Vec::new(); drivers.len()];
    for _ in 0..ROUNDS {
        for ((_, driver), times) in drivers.iter_mut().zip(&mut times) {
            jobs.iter_mut().for_each(|job| job.arm(&*session, &[9; 16], size));
            let start = Instant::now();
            jobs.chunks_mut(burst).for_each(|burst| driver.run(burst));
            times.push(start.elapsed().as_secs_f64());
        }
    }
    let medians: Vec<f64> = times
        .iter_mut()
        .map(|times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        })
        .collect();
    let rates: String = medians
        .iter()
        .map(|time| format!("{:>13.2} ({:>5.2})", (size * count) as f64 / time / 1e9, medians[0] / time))
        .collect();
    println!("{size:>8}{rates}");
}

fn count() {
    let Some(mut lanes) = Lanes::new() else { return };
    let session = session(Algorithm::Aes128Cbc);
    let mut space = vec![3_u8; 64 * 64];
    let mut jobs: Vec<Box<Job<'_>>> = space.chunks_exact_mut(64).map(Job::in_place).collect();
    for _ in 0..1_000 {
        jobs.iter_mut().for_each(|job| job.arm(&*session, &[9; 16], 64));
        lanes.run(&mut jobs);
    }
}
