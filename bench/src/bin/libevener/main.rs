//! Measures `libevener.so.0` as a program in C has it, in turns with OpenSSL's EVP, the interface in Rust and the bare kernel:
//! `cargo xtask libevener && cargo run --release -p evener-bench --bin libevener -- target/release/libevener.so.0`.
//! docs/results/libevener.md has figures.
//!
//! Each contender encrypts the same messages in place by AES-128-CBC, in bursts, on so many threads with memory of their own. A turn runs all of
//! them once, beginning with another one each time; what is printed are medians over turns of each one's time by that of the library in the same turn.
#![allow(unsafe_code, reason = "room: a library that is loaded")]
#![allow(clippy::print_stdout, reason = "a measuring program")]

mod ffi;

use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Parser;
use evener::{CoreDrivers, Setup, SystemClock, calibrate, run};
use evener_bench::medians::Spread;
use evener_core::driver::Clock as _;
use evener_core::{Algorithm, Direction, Estimator, Job, Padding, Session};
use evener_driver_lanes::Lanes;
use evener_driver_libcrypto::Libcrypto;
use evener_kernels::Level;
use evener_kernels::lanes::{Cbc, Key, Message};
use openssl::cipher::Cipher;
use openssl::cipher_ctx::CipherCtx;

use self::ffi::{Handle, Library};

/// Measures bursts of AES-128-CBC through libevener.
#[derive(Parser)]
struct Arguments {
    /// libevener.so.0.
    library: PathBuf,
    /// Messages of each turn, over all threads.
    #[arg(long, default_value_t = 4096)]
    messages: usize,
    /// Bytes of a message.
    #[arg(long, default_value_t = 4096)]
    bytes: usize,
    /// Messages of a burst.
    #[arg(long, default_value_t = 64)]
    burst: usize,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Turns.
    #[arg(long, default_value_t = 31)]
    turns: usize,
    /// How often each contender does all messages in a turn.
    #[arg(long, default_value_t = 4)]
    times: usize,
    /// Core time of the threads in place of the time that passed: for a machine on which others work.
    #[arg(long)]
    core_time: bool,
}

const KEY: [u8; 16] = *b"a key of sixteen";
const IV: [u8; 16] = [9; 16];

/// Turns in which the library finds out what is quicker.
const WARM_UP: usize = 4;

/// Bytes behind the last message of EVP.
const BEHIND: usize = 16;

/// Who does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contender {
    /// `evener_crypt` on each thread.
    Crypt,
    /// `evener_submit` and `evener_reap` on one thread, and as many workers as there are threads.
    Submit,
    /// `Caller::crypt` on each thread.
    Rust,
    /// The kernel of this processor in a loop, on each thread.
    Kernel,
    /// EVP on each thread, message by message: what a program in C does without this library.
    Evp,
}

use Contender::{Crypt, Evp, Kernel, Rust, Submit};

const ALL: [Contender; 5] = [Crypt, Submit, Rust, Kernel, Evp];

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    ensure!(Level::best().is_some(), "no kernel is for this processor");
    let library = Library::load(&arguments.library)?;
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); ALL.len()];
    let arena = Arena::new(&arguments, library)?;
    for turn in 0..arguments.turns + WARM_UP {
        for at in 0..ALL.len() {
            let at = (at + turn) % ALL.len();
            let seconds = arena.seconds(ALL[at])?;
            if turn >= WARM_UP {
                times[at].push(seconds);
            }
        }
    }
    report(&arguments, &times)
}

fn report(arguments: &Arguments, times: &[Vec<f64>]) -> anyhow::Result<()> {
    let jobs = (arguments.messages * arguments.times) as f64;
    println!("| contender | ns a message | times the library's speed: median | bounds |\n|---|---|---|---|");
    for (contender, own) in ALL.iter().zip(times) {
        let each = Spread::of(own).context("no turns")?.scaled(1e9 / jobs);
        let ratios: Vec<f64> = own.iter().zip(&times[0]).map(|(own, library)| library / own).collect();
        let ratio = Spread::of(&ratios).context("no turns")?;
        println!(
            "| {contender:?} | {:.1} | {:.3} | {:.3} to {:.3} |",
            each.median, ratio.median, ratio.low, ratio.high
        );
    }
    let differences: Vec<f64> =
        times[0].iter().zip(&times[2]).map(|(library, rust)| (library - rust) * 1e9 / jobs).collect();
    let over = Spread::of(&differences).context("no turns")?.scaled(arguments.threads as f64);
    println!(
        "\na message costs a core {:.1} ns more than over Rust ({:.1} to {:.1})",
        over.median, over.low, over.high
    );
    Ok(())
}

/// What a thread does with its memory: from when all were ready until it was done.
type Work<'w> = dyn Fn(&mut [u8], &Barrier) -> Span + Sync + 'w;

/// What a thread took.
struct Span {
    start: Instant,
    end: Instant,
    core: Duration,
}

/// What all contenders work on.
struct Arena<'a> {
    arguments: &'a Arguments,
    library: Library,
    /// Without threads: for [`Crypt`].
    here: Handle,
    here_session: Handle,
    threads: Handle,
    threads_session: Handle,
    /// What a run in Rust begins with; the library learns in the first turns.
    learned: Estimator,
}

impl<'a> Arena<'a> {
    fn new(arguments: &'a Arguments, library: Library) -> anyhow::Result<Self> {
        let open = |threads| {
            let runtime = library.runtime(threads)?;
            anyhow::Ok((runtime, library.session(runtime, c"AES-128-CBC", &KEY)?))
        };
        let (here, here_session) = open(0)?;
        let (threads, threads_session) = open(i32::try_from(arguments.threads)?)?;
        let mut learned = Estimator::default();
        if let Some(mut lanes) = Lanes::new() {
            let rows = [(Algorithm::Aes128Cbc, Direction::Encrypt)];
            calibrate::measure(&mut Libcrypto::put_off(), &mut lanes, &rows, &SystemClock, &mut learned);
        }
        Ok(Self { arguments, library, here, here_session, threads, threads_session, learned })
    }

    /// Time for all messages, so many times.
    fn seconds(&self, contender: Contender) -> anyhow::Result<f64> {
        let Arguments { messages, bytes, burst, threads, times, .. } = *self.arguments;
        if contender == Submit {
            let mut space = vec![1; messages * bytes];
            let mut jobs = Library::jobs(self.threads_session, &mut space, bytes);
            let jobs: Vec<_> = jobs.iter_mut().map(|job| &raw mut *job).collect();
            let queue = self.library.queue(self.threads, u32::try_from(burst * 8)?)?;
            self.library.through(queue, &jobs, burst);
            let (start, core) = (Instant::now(), process_time());
            (0..times).for_each(|_| self.library.through(queue, &jobs, burst));
            let span = Span { start, end: Instant::now(), core: process_time() - core };
            return Ok(self.time_of(&[span], threads));
        }
        let each = messages / threads * bytes;
        match contender {
            Crypt => self.on_threads(each, &|space, ready| {
                let queue = self.library.queue(self.here, 64).expect("there is one");
                let mut jobs = Library::jobs(self.here_session, space, bytes);
                let jobs: Vec<_> = jobs.iter_mut().map(|job| &raw mut *job).collect();
                measured(times, ready, || self.library.crypt(queue, &jobs, burst))
            }),
            Rust => {
                let session = Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &KEY)?;
                let known = (&session, &self.learned);
                let work = |space: &mut [u8], ready: &Barrier| by_rust(space, self.arguments, known, ready);
                self.on_threads(each, &work)
            }
            Kernel => self.on_threads(each, &|space, ready| by_kernel(space, self.arguments, ready)),
            Evp | Submit => self.on_threads(each + BEHIND, &|space, ready| {
                let mut context = CipherCtx::new().expect("libcrypto has memory");
                context.encrypt_init(Some(Cipher::aes_128_cbc()), Some(&KEY), Some(&IV)).expect("it has AES");
                context.set_padding(false);
                measured(times, ready, || {
                    for start in (0..space.len() - BEHIND).step_by(bytes) {
                        // The crate wants space for a block more than is written.
                        let message = &mut space[start..start + bytes + BEHIND];
                        context.encrypt_init(None, None, Some(&IV)).expect("it had a key");
                        context.cipher_update_inplace(message, bytes).expect("whole blocks");
                    }
                })
            }),
        }
    }

    /// Runs on each thread with memory of its own; the time from when all were ready until the last was done.
    fn on_threads(&self, each: usize, work: &Work<'_>) -> anyhow::Result<f64> {
        let ready = Barrier::new(self.arguments.threads);
        let spans: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..self.arguments.threads)
                .map(|_| scope.spawn(|| work(&mut vec![1; each], &ready)))
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        Ok(self.time_of(&spans, self.arguments.threads))
    }

    /// From when the first began until the last was done, or the core time of one of so many threads.
    fn time_of(&self, spans: &[Span], threads: usize) -> f64 {
        if self.arguments.core_time {
            return spans.iter().map(|span| span.core.as_secs_f64()).sum::<f64>() / threads as f64;
        }
        let start = spans.iter().map(|span| span.start).min().expect("there is a thread");
        let end = spans.iter().map(|span| span.end).max().expect("there is a thread");
        (end - start).as_secs_f64()
    }
}

/// Once to warm up, then so many times from when all threads are ready.
fn measured(times: usize, ready: &Barrier, mut all: impl FnMut()) -> Span {
    all();
    ready.wait();
    let (start, core) = (Instant::now(), SystemClock.thread_time());
    (0..times).for_each(|_| all());
    Span { start, end: Instant::now(), core: (SystemClock.thread_time() - core).into() }
}

/// A caller of a run, jobs armed anew for each burst.
fn by_rust(
    space: &mut [u8],
    arguments: &Arguments,
    (session, learned): (&Session, &Estimator),
    ready: &Barrier,
) -> Span {
    let Arguments { bytes, burst, times, .. } = *arguments;
    let mut bursts: Vec<Vec<Box<Job<'_>>>> = space
        .chunks_mut(bytes * burst)
        .map(|part| part.chunks_exact_mut(bytes).map(Job::in_place).collect())
        .collect();
    let lanes = Lanes::new().map(|lanes| Box::new(lanes) as _);
    let drivers = CoreDrivers::new(Box::new(Libcrypto::put_off()), lanes).watching_lanes();
    let (span, _) = run(Setup { callers: 1, learned: learned.clone(), ..Setup::default() }, |runtime| {
        let mut caller = runtime.caller(drivers);
        measured(times, ready, || {
            for jobs in &mut bursts {
                jobs.iter_mut().for_each(|job| job.arm(session, &IV, bytes));
                caller.crypt(jobs);
            }
        })
    });
    span
}

/// The kernel, with messages made anew for each burst.
fn by_kernel(space: &mut [u8], arguments: &Arguments, ready: &Barrier) -> Span {
    let Arguments { bytes, burst, times, .. } = *arguments;
    let level = Level::best().expect("there is one");
    let keys = [Key::new(level, &KEY).expect("the key fits")];
    let mut lanes = Cbc::new(level);
    measured(times, ready, || {
        for part in space.chunks_mut(bytes * burst) {
            let mut messages: Vec<_> =
                part.chunks_exact_mut(bytes).map(|place| Message::in_place(0, &IV, place, bytes)).collect();
            lanes.encrypt(&keys, &mut messages);
        }
    })
}

/// Core time of all threads of this program.
fn process_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
