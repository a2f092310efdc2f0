//! Combining through EVP: threads of this program that encrypt AES-128-CBC messages in place, by the default provider and by
//! Evener's with `combine = auto`, in segments that take turns. Prints a table of medians of ratios.
//!
//! `cargo run --release -p evener-provider --example combine -- 16384,65536 1,4,8,16,64 7 1088`: bytes, threads, pairs, and by
//! how many bytes more than the thread's before it each thread's message lies from the start of its buffer. With 0 the
//! buffers of all threads lie at the same place of their allocator's regions, and so in the same sets of the caches. These
//! are also what is usual; it takes two and a half minutes. A fifth number is the milliseconds of a segment, usually 800.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "prints, and stops where it cannot go on")]

use std::env;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use evener_provider::OSSL_provider_init;

mod report;
#[path = "../tests/support/mod.rs"]
mod support;

use report::argument;
use support::bytes;
use support::ffi::{Cipher, CipherCtx, DEFAULT};

/// Time before each window that is not counted.
const SETTLE: Duration = Duration::from_millis(200);

/// Signals to the threads, and their answers.
#[derive(Default)]
struct HelperPool {
    /// Whose turn it is: 0 is the default provider's, 1 Evener's.
    side: AtomicUsize,
    ends: AtomicBool,
    messages: AtomicU64,
}

/// Encrypts messages of its own until the end.
fn work(helper_pool: &HelperPool, ciphers: &[Cipher; 2], number: u64, (len, shift): (usize, usize)) {
    let start = usize::try_from(number % 64).unwrap() * shift;
    let (key, mut space) = (bytes(number, 16), bytes(number, start + len + 16));
    let contexts = [CipherCtx::new(), CipherCtx::new()];
    for (context, cipher) in contexts.iter().zip(ciphers) {
        assert!(context.init(Some(cipher), Some(&key), Some(&[1; 16]), Some(true)));
    }
    for count in 0_u128.. {
        if helper_pool.ends.load(Relaxed) {
            return;
        }
        let context = &contexts[helper_pool.side.load(Relaxed)];
        assert!(context.init(None, None, Some(&count.to_le_bytes()), None));
        assert_eq!(context.update_within(&mut space, start, start, len), (true, len));
        helper_pool.messages.fetch_add(1, Relaxed);
    }
}

/// Messages in one window.
fn segment(helper_pool: &HelperPool, side: usize, window: Duration) -> u64 {
    helper_pool.side.store(side, Relaxed);
    thread::sleep(SETTLE);
    let (before, start) = (helper_pool.messages.load(Relaxed), Instant::now());
    thread::sleep(window);
    let count = helper_pool.messages.load(Relaxed) - before;
    // A sleep that was too long is no gain.
    let ns = u64::try_from(start.elapsed().as_nanos()).unwrap();
    count * u64::try_from(window.as_nanos()).unwrap() / ns
}

/// Messages of both sides in each pair of segments.
fn pairs(
    ciphers: &[Cipher; 2],
    threads: u64,
    place: (usize, usize),
    (count, window): (usize, Duration),
) -> Vec<[u64; 2]> {
    let helper_pool = HelperPool::default();
    thread::scope(|scope| {
        for number in 0..threads {
            let helper_pool = &helper_pool;
            scope.spawn(move || work(helper_pool, ciphers, number, place));
        }
        let pairs = (0..count).map(|pair| {
            let mut messages = [0; 2];
            // The first of each pair changes, so that no side always follows the other.
            [pair % 2, 1 - pair % 2]
                .into_iter()
                .for_each(|side| messages[side] = segment(&helper_pool, side, window));
            messages
        });
        let pairs = pairs.collect();
        helper_pool.ends.store(true, Relaxed);
        pairs
    })
}

fn numbers(text: &str) -> Vec<u64> {
    text.split(',').map(|number| number.parse().unwrap()).collect()
}

fn main() {
    if env::var_os("EVENER_COMBINE").is_none() {
        // The provider reads it when it is loaded.
        let mut again = Command::new(env::current_exe().unwrap());
        again.args(env::args().skip(1)).env("EVENER_COMBINE", "auto");
        assert!(again.status().unwrap().success());
        return;
    }
    report::heading("cargo run --release -p evener-provider --example combine");
    DEFAULT.add_builtin("evener", OSSL_provider_init);
    let (_default, evener) = (DEFAULT.load("default").unwrap(), DEFAULT.load("evener").unwrap());
    let ciphers = ["default", "evener"]
        .map(|provider| DEFAULT.cipher("AES-128-CBC", &format!("provider={provider}")).unwrap());
    println!("| bytes | threads | default MB/s | Evener/default, median | least to greatest | combined |");
    println!("|---|---|---|---|---|---|");
    let (count, shift) = (argument(2, "7").parse().unwrap(), argument(3, "1088").parse().unwrap());
    let window = Duration::from_millis(argument(4, "800").parse().unwrap());
    for len in numbers(&argument(0, "16384,65536")) {
        for threads in numbers(&argument(1, "1,4,8,16,64")) {
            let before = evener.count(c"evener-combined").unwrap();
            let place = (usize::try_from(len).unwrap(), shift);
            let pairs = pairs(&ciphers, threads, place, (count, window));
            let combined = evener.count(c"evener-combined").unwrap() - before;
            print_row(len, threads, &pairs, window, combined);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "three digits are printed")]
fn print_row(len: u64, threads: u64, pairs: &[[u64; 2]], window: Duration, combined: u32) {
    let mut ratios: Vec<f64> = pairs.iter().map(|[plain, evener]| *evener as f64 / *plain as f64).collect();
    ratios.sort_by(f64::total_cmp);
    let mut plain: Vec<u64> = pairs.iter().map(|[plain, _]| *plain).collect();
    plain.sort_unstable();
    let megabytes = (plain[plain.len() / 2] * len) as f64 / window.as_secs_f64() / 1e6;
    let (least, greatest) = (ratios[0], ratios[ratios.len() - 1]);
    println!(
        "| {len} | {threads} | {megabytes:.0} | {} | {least:.2} to {greatest:.2} | {combined} |",
        report::median(&ratios, 2)
    );
}
