//! Many AES-128-CBC messages in flight from one thread, in place: the default provider one by one, against Evener's in
//! asynchronous jobs and in pipelines. Rounds take turns in one process; prints the medians of their ratios.
//!
//! `cargo run --release -p evener-provider --example in_flight -- 16384 1,2,4,8,16,32 41`: bytes, messages, rounds, which are
//! also what is usual; it takes half a minute. `EVENER_LIBCRYPTO` names a libcrypto of OpenSSL 3.5 or later; without it the pipelines of the system's libcrypto are
//! called through the provider's table.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "prints, and stops where it cannot go on")]

use std::env;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use evener_provider::{OSSL_provider_init, offer_pipelines_anyway};

mod report;
#[path = "../tests/support/mod.rs"]
mod support;

use report::argument;
use support::bytes;
use support::ffi::job::{Fibre, Step};
use support::ffi::pipe::{Library, PipelineContext};
use support::ffi::{Cipher, CipherCtx, DEFAULT};

/// Set in the process that measures: OpenSSL reads its environment as it starts.
const CHILD: &str = "EVENER_COMBINE";

/// Bytes in one window of one side, at least.
const WINDOW_BYTES: usize = 32 << 20;

const IV: [u8; 16] = [1; 16];

/// Messages of one thread.
struct Messages {
    key: Vec<u8>,
    spaces: Vec<Vec<u8>>,
    len: usize,
}

impl Messages {
    /// Repetitions in a window.
    fn turns(&self) -> usize {
        (WINDOW_BYTES / (self.len * self.spaces.len())).max(1)
    }

    /// One after the other, each in a context of its own.
    fn one_by_one(&mut self, cipher: &Cipher) -> Duration {
        let contexts: Vec<CipherCtx> = self.spaces.iter().map(|_| CipherCtx::new()).collect();
        let ready = |context: &CipherCtx| context.init(Some(cipher), Some(&self.key), Some(&IV), Some(true));
        assert!(contexts.iter().all(ready));
        let (turns, begin) = (self.turns(), Instant::now());
        for _ in 0..turns {
            for (context, space) in contexts.iter().zip(&mut self.spaces) {
                assert!(context.init(None, None, Some(&IV), None));
                assert_eq!(context.update_within(space, 0, 0, self.len), (true, self.len));
            }
        }
        begin.elapsed()
    }

    /// As many jobs as messages; each encrypts its own again and again.
    fn in_jobs(&mut self, cipher: &Cipher) -> Duration {
        let (turns, len, key) = (self.turns(), self.len, &self.key);
        let spaces = self.spaces.iter_mut();
        let mut fibres: Vec<Fibre<'_>> =
            spaces.map(|space| Fibre::new(job(cipher, key, space, len, turns))).collect();
        let begin = Instant::now();
        while !fibres.is_empty() {
            fibres.retain_mut(|fibre| fibre.step() == Step::Paused);
        }
        begin.elapsed()
    }

    /// All in one call.
    fn in_pipes(&mut self, pipes: &mut PipelineContext<'_>) -> Duration {
        let count = self.spaces.len();
        let (ivs, lens) = (vec![Some(&IV[..]); count], vec![self.len; count]);
        assert!(pipes.init(true, true, Some(&self.key), &ivs));
        let (turns, begin) = (self.turns(), Instant::now());
        for _ in 0..turns {
            assert!(pipes.init(false, true, None, &ivs));
            assert!(pipes.update(&mut self.spaces, None, &lens).is_some());
        }
        begin.elapsed()
    }
}

/// What one job does.
fn job<'b>(
    cipher: &'b Cipher,
    key: &'b [u8],
    space: &'b mut [u8],
    len: usize,
    turns: usize,
) -> impl FnMut() + Send + 'b {
    let context = CipherCtx::new();
    move || {
        assert!(context.init(Some(cipher), Some(key), Some(&IV), Some(true)));
        for _ in 0..turns {
            assert!(context.init(None, None, Some(&IV), None));
            assert_eq!(context.update_within(space, 0, 0, len), (true, len));
        }
    }
}

fn measure(len: usize, counts: &[usize], rounds: usize) {
    // Before the first provider: the system's libcrypto, opened again below, gives the one that it has.
    offer_pipelines_anyway();
    DEFAULT.add_builtin("evener", OSSL_provider_init);
    let (_default, evener) = (DEFAULT.load("default").unwrap(), DEFAULT.load("evener").unwrap());
    drop(std::panic::take_hook());
    let [plain, evener_cipher] = ["default", "evener"]
        .map(|provider| DEFAULT.cipher("AES-128-CBC", &format!("provider={provider}")).unwrap());
    let path = env::var("EVENER_LIBCRYPTO").unwrap_or_else(|_| "libcrypto.so.3".to_owned());
    let library = Library::open(Path::new(&path), OSSL_provider_init);
    let kind = library.kind("AES-128-CBC").expect("there are lanes");
    report::heading("cargo run --release -p evener-provider --example in_flight");
    println!("{len} bytes, {rounds} rounds; pipelines through {path}\n");
    println!("| messages | default MB/s | jobs, times the default | pipeline, times the default |");
    println!("|---|---|---|---|");
    for &count in counts {
        let spaces = (0..count as u64).map(|seed| bytes(seed, len + 16)).collect();
        let mut messages = Messages { key: bytes(7, 16), spaces, len };
        let mut pipes = PipelineContext::new(&kind);
        let (mut speed, mut jobs, mut lanes) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let by_default = messages.one_by_one(&plain).as_secs_f64();
            jobs.push(by_default / messages.in_jobs(&evener_cipher).as_secs_f64());
            lanes.push(by_default / messages.in_pipes(&mut pipes).as_secs_f64());
            speed.push((messages.turns() * count * len) as f64 / by_default / 1e6);
        }
        speed.sort_by(f64::total_cmp);
        let (speed, jobs, lanes) =
            (speed[speed.len() / 2], report::median(&jobs, 2), report::median(&lanes, 2));
        println!("| {count} | {speed:.0} | {jobs} | {lanes} |");
    }
    let counts = [c"evener-paused", c"evener-combined"].map(|key| evener.count(key).unwrap());
    println!(
        "paused {}, combined {}, pipelined {}",
        counts[0],
        counts[1],
        library.count(c"evener-pipelined")
    );
}

fn main() {
    if env::var_os(CHILD).is_none() {
        let mut again = Command::new(env::current_exe().unwrap());
        assert!(again.args(env::args().skip(1)).env(CHILD, "auto").status().unwrap().success());
        return;
    }
    let counts = argument(1, "1,2,4,8,16,32");
    let counts: Vec<usize> = counts.split(',').map(|count| count.parse().unwrap()).collect();
    measure(argument(0, "16384").parse().unwrap(), &counts, argument(2, "41").parse().unwrap());
}
