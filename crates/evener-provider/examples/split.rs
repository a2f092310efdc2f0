//! Splitting through EVP: one thread works on one large buffer, by the default provider and by Evener's with `threads = 2`,
//! in calls that take turns; and, for what the machine has to give, two threads of the default provider's, each on its half
//! of the same buffer, which wait for each other by spinning. Prints a table of ratios.
//!
//! `cargo run --release -p evener-provider --example split -- 64 5 idle,busy AES-128-CTR,AES-128-GCM`: MiB, seconds per
//! row, `idle` or `busy` (a spinning thread per core beside it), ciphers; without arguments all of it, in less than three
//! minutes. `EVENER_THREADS` and `EVENER_SPLIT` say how. Each row is a process of its own, which has learned nothing.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "prints, and stops where it cannot go on")]

use std::env;
use std::hint::{black_box, spin_loop};
use std::process::{self, Command};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::thread;
use std::time::{Duration, Instant};

use evener::SystemClock;
use evener::split::{HelperPool, helper_pool};
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

/// Rounds after which a row ends before its time.
const ROUNDS_MAX: usize = 1_000;

/// One kind of call.
#[derive(Clone, Copy)]
struct Task<'t> {
    name: &'t str,
    encrypts: bool,
    in_place: bool,
}

/// The default provider, Evener's, and two threads of the default one.
const SIDES: usize = 3;

/// The sides' contexts and what they work on.
struct Bench {
    ciphers: [Cipher; SIDES + 1],
    contexts: [CipherCtx; SIDES + 1],
    /// In place: what is worked on. Apart: the input, then the output.
    space: Vec<u8>,
}

impl Bench {
    fn new(task: Task<'_>, len: usize) -> Self {
        let by = |provider| DEFAULT.cipher(task.name, &format!("provider={provider}")).unwrap();
        let ciphers = ["default", "evener", "default", "default"].map(by);
        let contexts = [(); SIDES + 1].map(|()| CipherCtx::new());
        let sides = if task.in_place { 1 } else { 2 };
        // Not zero, so that each page is there.
        let this = Self { ciphers, contexts, space: vec![1; sides * len + 64] };
        for (context, cipher) in this.contexts.iter().zip(&this.ciphers) {
            let (key, iv) = (bytes(1, cipher.key_bytes()), bytes(2, cipher.iv_bytes()));
            assert!(context.init(Some(cipher), Some(&key), Some(&iv), Some(task.encrypts)));
            context.set_padding(false);
        }
        this
    }

    /// One message of one side; how long it took.
    fn call(&mut self, side: usize, task: Task<'_>, len: usize) -> Duration {
        if side == 2 {
            return self.halves(task, len);
        }
        let context = &self.contexts[side];
        let iv = bytes(2, self.ciphers[side].iv_bytes());
        let start = Instant::now();
        assert!(context.init(None, None, Some(&iv), None));
        let most = if task.name.ends_with("XTS") { UNIT_MAX } else { len };
        for at in (0..len).step_by(most) {
            let (this, to) = (most.min(len - at), if task.in_place { at } else { len + at });
            assert_eq!(context.update_within(&mut self.space, at, to, this), (true, this));
        }
        if task.name.ends_with("GCM") && task.encrypts {
            assert!(context.last().is_some());
        }
        start.elapsed()
    }

    /// One message of two threads, without the time that starting one takes. What it comes to is no message: the second
    /// half begins with the first one's IV, and the hashes of GCM are not joined.
    fn halves(&mut self, task: Task<'_>, len: usize) -> Duration {
        let iv = bytes(2, self.ciphers[2].iv_bytes());
        let [_, _, near, far] = &mut self.contexts;
        [&*near, &*far].into_iter().for_each(|context| assert!(context.init(None, None, Some(&iv), None)));
        let most = if task.name.ends_with("XTS") { UNIT_MAX } else { len };
        let (mut own, mut other): (Vec<_>, Vec<_>) =
            units(&mut self.space, task.in_place, len, most).into_iter().unzip();
        // Units that the other may begin, and those that it has done; it says with the first that it is there.
        let (open, done) = (&AtomicUsize::new(0), &AtomicUsize::new(0));
        thread::scope(|scope| {
            scope.spawn(move || {
                done.store(1, Release);
                for (number, half) in (1..).zip(&mut other) {
                    wait_for(open, number);
                    half.run(far);
                    done.store(number + 1, Release);
                }
            });
            wait_for(done, 1);
            let start = Instant::now();
            for (number, half) in (1..).zip(&mut own) {
                open.store(number, Release);
                half.run(near);
                wait_for(done, number + 1);
            }
            start.elapsed()
        })
    }
}

fn wait_for(count: &AtomicUsize, least: usize) {
    while count.load(Acquire) < least {
        spin_loop();
    }
}

/// Half a unit.
enum Half<'b> {
    InPlace(&'b mut [u8]),
    Apart(&'b [u8], &'b mut [u8]),
}

impl Half<'_> {
    fn run(&mut self, context: &CipherCtx) {
        let (done, len) = match self {
            Self::InPlace(data) => (context.update_whole(data), data.len()),
            Self::Apart(input, output) => (context.update_apart(input, output), input.len()),
        };
        assert_eq!(done, (true, len));
    }
}

/// The two halves of each unit of `most` bytes.
fn units(space: &mut [u8], in_place: bool, len: usize, most: usize) -> Vec<(Half<'_>, Half<'_>)> {
    let (input, output) = space.split_at_mut(len);
    if in_place {
        let halves = input.chunks_mut(most).map(|unit| unit.split_at_mut(unit.len() / 2));
        return halves.map(|(one, two)| (Half::InPlace(one), Half::InPlace(two))).collect();
    }
    let both = input.chunks(most).zip(output[..len].chunks_mut(most));
    both.map(|(from, to)| {
        let ((one, two), (to_one, to_two)) = (from.split_at(from.len() / 2), to.split_at_mut(from.len() / 2));
        (Half::Apart(one, to_one), Half::Apart(two, to_two))
    })
    .collect()
}

/// What the rounds of a row gave.
#[derive(Default)]
struct Race {
    /// Seconds of each side.
    total: [f64; SIDES],
    /// The default provider's time over Evener's, and over that of its two threads.
    ratios: [Vec<f64>; 2],
    /// Evener's speed, as a share of that of the two threads.
    shares: Vec<f64>,
    /// Core time of the process in each side's calls, in seconds.
    core: [f64; SIDES],
    /// Times of ten rounds each, of the default provider and of Evener.
    tens: Vec<[f64; 2]>,
}

/// Rounds whose times are added up before they are compared: with every core busy a call either gets a core for a slice
/// or waits for one, and only sums show the result.
const TEN: usize = 10;

/// Calls of all sides that take turns.
fn race(task: Task<'_>, len: usize, time: Duration) -> Race {
    let mut bench = Bench::new(task, len);
    // The provider's first calls are its control, and pages come in.
    for _ in 0..12 {
        (0..SIDES).for_each(|side| _ = bench.call(side, task, len));
    }
    let (mut race, start) = (Race::default(), Instant::now());
    for turn in 0..ROUNDS_MAX {
        if start.elapsed() >= time {
            break;
        }
        let mut took = [0.0; SIDES];
        for side in 0..SIDES {
            let side = (side + turn) % SIDES;
            let core = core_time();
            took[side] = bench.call(side, task, len).as_secs_f64();
            race.core[side] += core_time() - core;
            race.total[side] += took[side];
        }
        if turn % TEN == 0 {
            race.tens.push([0.0; 2]);
        }
        if let Some(ten) = race.tens.last_mut() {
            [0, 1].into_iter().for_each(|side| ten[side] += took[side]);
        }
        [0, 1].into_iter().for_each(|side| race.ratios[side].push(took[0] / took[side + 1]));
        race.shares.push(took[2] / took[1]);
    }
    race
}

/// Core time of this process so far, in seconds.
#[expect(clippy::cast_precision_loss, reason = "seconds since this program began")]
fn core_time() -> f64 {
    SystemClock.process_time().0 as f64 / 1e9
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
        "| cores | cipher | memory | MiB | default GB/s | default/Evener, total | median | deciles | tens | two threads: \
         total | median | Evener of those | core time | rounds | calls split, kept whole | locks |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
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
        print_row(cores, task, len, &race(task, len, time));
        ends.store(true, Relaxed);
    });
}

#[expect(clippy::cast_precision_loss, reason = "three digits are printed")]
fn print_row(cores: &str, task: Task<'_>, len: usize, race: &Race) {
    let Race { total, ratios: [evener, bound], shares, core, tens } = race;
    let mut sorted = evener.clone();
    sorted.sort_by(f64::total_cmp);
    let at = |part: usize| sorted[part * (sorted.len() - 1) / 10];
    let tens: Vec<f64> =
        tens[..evener.len() / TEN].iter().map(|[default, evener]| default / evener).collect();
    let guarded =
        helper_pool().and_then(HelperPool::learned).map(|splits| splits.total()).unwrap_or_default();
    let awake = helper_pool().map_or(0.0, |helper_pool| helper_pool.awake().0 as f64 / 1e9);
    // Spinning threads are of the same process.
    let core = if cores == "idle" { format!("{:.2}", (core[1] + awake) / core[0]) } else { "-".to_owned() };
    println!(
        "| {cores} | {} {} | {} | {} | {:.1} | {:.2} | {} | {:.2} {:.2} | {} | {:.2} | {} | {} | {core} | {} | {}, {} | {} |",
        task.name,
        if task.encrypts { "encryption" } else { "decryption" },
        if task.in_place { "in place" } else { "apart" },
        len >> 20,
        len as f64 * evener.len() as f64 / total[0] / 1e9,
        total[0] / total[1],
        report::median(evener, 2),
        at(1),
        at(9),
        report::median(&tens, 2),
        total[0] / total[2],
        report::median(bound, 2),
        report::median(shares, 2),
        evener.len(),
        guarded.routed_jobs,
        guarded.kept_inline_jobs,
        guarded.locks,
    );
}
