//! Splitting through EVP: one thread works on one large buffer, by the default provider and by Evener's with `threads = 2`,
//! in calls that take turns. Prints a table of ratios.
//!
//! `cargo run --release -p evener-provider --example split -- 64 5 idle,busy AES-128-CTR,AES-128-GCM`: MiB, seconds per
//! row, `idle` or `busy` (a spinning thread per core beside it), ciphers; without arguments all of it, in less than three
//! minutes. `EVENER_THREADS` and `EVENER_SPLIT` say how. Each row is a process of its own, which has learned nothing.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "it stops where it cannot go on, and prints a table"
)]

use std::env;
use std::hint::black_box;
use std::process::{self, Command};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use evener::split::{Crew, crew};
use evener_provider::OSSL_provider_init;

mod report;
#[path = "../tests/support/mod.rs"]
mod support;

use report::argument;
use support::bytes;
use support::ffi::{Cipher, CipherCtx, DEFAULT};

/// The largest update that OpenSSL takes for XTS, SP 800-38E's 2^20 blocks.
const UNIT_MAX: usize = 16 << 20;

/// Set in the process that measures a row, to its name.
const ROW: &str = "SPLIT_ROW";

/// Pairs of calls after which a row ends before its time.
const PAIRS_MAX: usize = 1_000;

/// One kind of call.
#[derive(Clone, Copy)]
struct Task<'t> {
    name: &'t str,
    encrypts: bool,
    in_place: bool,
}

/// Both sides' contexts and what they work on.
struct Bench {
    ciphers: [Cipher; 2],
    contexts: [CipherCtx; 2],
    /// In place: what is worked on. Apart: the input, then the output.
    room: Vec<u8>,
}

impl Bench {
    fn new(task: Task<'_>, len: usize) -> Self {
        let by = |who| DEFAULT.cipher(task.name, &format!("provider={who}")).unwrap();
        let (ciphers, contexts) = (["default", "evener"].map(by), [CipherCtx::new(), CipherCtx::new()]);
        let sides = if task.in_place { 1 } else { 2 };
        // Not zero, so that each page is there.
        let this = Self { ciphers, contexts, room: vec![1; sides * len + 64] };
        for (context, cipher) in this.contexts.iter().zip(&this.ciphers) {
            let (key, iv) = (bytes(1, cipher.key_bytes()), bytes(2, cipher.iv_bytes()));
            assert!(context.init(Some(cipher), Some(&key), Some(&iv), Some(task.encrypts)));
            context.set_padding(false);
        }
        this
    }

    /// One message of one side; how long it took.
    fn call(&mut self, side: usize, task: Task<'_>, len: usize) -> Duration {
        let context = &self.contexts[side];
        let iv = bytes(2, self.ciphers[side].iv_bytes());
        let start = Instant::now();
        assert!(context.init(None, None, Some(&iv), None));
        let most = if task.name.ends_with("XTS") { UNIT_MAX } else { len };
        for at in (0..len).step_by(most) {
            let (this, to) = (most.min(len - at), if task.in_place { at } else { len + at });
            assert_eq!(context.update_within(&mut self.room, at, to, this), (true, this));
        }
        if task.name.ends_with("GCM") && task.encrypts {
            assert!(context.last().is_some());
        }
        start.elapsed()
    }
}

/// Seconds of both sides in calls that take turns, and the ratio of each pair.
fn race(task: Task<'_>, len: usize, time: Duration) -> ([f64; 2], Vec<f64>) {
    let mut bench = Bench::new(task, len);
    // The provider's first calls are its control, and pages come in.
    for _ in 0..12 {
        [0, 1].into_iter().for_each(|side| _ = bench.call(side, task, len));
    }
    let (mut total, mut ratios, start) = ([0.0; 2], Vec::new(), Instant::now());
    while start.elapsed() < time && ratios.len() < PAIRS_MAX {
        let mut took = [0.0; 2];
        let turn = ratios.len() % 2;
        [turn, 1 - turn].into_iter().for_each(|side| took[side] = bench.call(side, task, len).as_secs_f64());
        ratios.push(took[0] / took[1]);
        [0, 1].into_iter().for_each(|side| total[side] += took[side]);
    }
    (total, ratios)
}

fn main() {
    let mib: usize = argument(0, "64").parse().unwrap();
    let time = Duration::from_secs_f64(argument(1, "5").parse().unwrap());
    match env::var(ROW) {
        Ok(row) => measure(&row, mib << 20, time),
        Err(_) => table(),
    }
}

/// Starts a process for each row.
fn table() {
    report::heading("cargo run --release -p evener-provider --example split");
    println!(
        "| cores | cipher | memory | MiB | default GB/s | default/Evener, total | median | deciles | pairs | calls \
         split, kept whole | locks |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for cores in argument(2, "idle,busy").split(',') {
        for cipher in argument(3, "AES-128-CTR,AES-128-XTS,AES-128-CBC,AES-128-GCM").split(',') {
            // The direction that can be split; both where they differ.
            let directions: &[&str] = if cipher.ends_with("GCM") { &["open", "seal"] } else { &["open"] };
            for direction in directions {
                for memory in ["in-place", "apart"] {
                    row(&[cores, cipher, direction, memory].join(" "));
                }
            }
        }
    }
}

/// Has one row measured: the provider reads its environment when it is loaded.
fn row(name: &str) {
    let mut again = Command::new(env::current_exe().unwrap());
    again.args(env::args().skip(1)).env(ROW, name);
    if env::var_os("EVENER_THREADS").is_none() {
        again.env("EVENER_THREADS", "2");
    }
    if !again.status().unwrap().success() {
        process::exit(1);
    }
}

fn measure(row: &str, len: usize, time: Duration) {
    let [cores, name, direction, memory] = row.split(' ').collect::<Vec<_>>()[..] else { return };
    DEFAULT.add_builtin("evener", OSSL_provider_init);
    let (_default, _evener) = (DEFAULT.load("default").unwrap(), DEFAULT.load("evener").unwrap());
    // Linked in, the provider has hushed this program's panics.
    drop(std::panic::take_hook());
    let task = Task { name, encrypts: direction == "seal", in_place: memory == "in-place" };
    let ends = AtomicBool::new(false);
    let spinners = if cores == "busy" { thread::available_parallelism().map_or(1, usize::from) } else { 0 };
    thread::scope(|scope| {
        for _ in 0..spinners {
            scope.spawn(|| {
                let mut work = 1_u64;
                while !ends.load(Relaxed) {
                    work = black_box(work.wrapping_mul(3));
                }
            });
        }
        print_row(cores, task, len, race(task, len, time));
        ends.store(true, Relaxed);
    });
}

#[expect(clippy::cast_precision_loss, reason = "three digits are printed")]
fn print_row(cores: &str, task: Task<'_>, len: usize, (total, mut ratios): ([f64; 2], Vec<f64>)) {
    ratios.sort_by(f64::total_cmp);
    let at = |part: usize| ratios[part * (ratios.len() - 1) / 10];
    let guarded = crew().and_then(Crew::learned).map(|splits| splits.total()).unwrap_or_default();
    println!(
        "| {cores} | {} {} | {} | {} | {:.1} | {:.2} | {} | {:.2} {:.2} | {} | {}, {} | {} |",
        task.name,
        if task.encrypts { "encryption" } else { "decryption" },
        if task.in_place { "in place" } else { "apart" },
        len >> 20,
        len as f64 * ratios.len() as f64 / total[0] / 1e9,
        total[0] / total[1],
        report::median(&ratios, 2),
        at(1),
        at(9),
        ratios.len(),
        guarded.routed_jobs,
        guarded.kept_inline_jobs,
        guarded.locks,
    );
}
