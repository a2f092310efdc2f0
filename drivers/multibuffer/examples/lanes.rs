//! What the driver costs beside a bare loop over the same library: AES-128-CBC encryption, interleaved.
//!
//! `cargo run --release -p evener-driver-multibuffer --example lanes [SIZE,SIZE...]`
//!
//! Each round runs the bare loop, then the driver, over the same buffers, without padding and with PKCS#7 (one
//! block more in every job). Times are core time of the thread, median of the rounds; a ratio is bare loop over
//! driver, median of the rounds' ratios, so 1.00 is as fast and 0.93 takes 7 % more.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "talks to a terminal")]

use std::process::ExitCode;

use evener_core::{Algorithm, Direction, InlineDriver as _, Job, Outcome, Padding, Session};
use evener_driver_multibuffer::{BareLoop, BareSpan, Multibuffer};
use rustix::time::{ClockId, clock_gettime};

const WIDTHS: [usize; 4] = [16, 32, 64, 128];
const SIZES: [usize; 8] = [16, 64, 256, 1024, 4096, 8192, 16_384, 65_504];
/// Bytes of all buffers: within a core's second-level cache, and well beyond.
const CACHE: usize = 256 << 10;
const MEMORY: usize = 16 << 20;
const ROUNDS: usize = 15;
const KEY: [u8; 16] = [0x2B; 16];
const IV: [u8; 16] = [0x0F; 16];

fn main() -> ExitCode {
    let (mut driver, mut bare) = match (Multibuffer::load(), BareLoop::load(&KEY)) {
        (Ok(driver), Ok(bare)) => (driver, bare),
        (Err(unavailable), _) | (_, Err(unavailable)) => {
            eprintln!("skipped: {unavailable}");
            return ExitCode::SUCCESS;
        }
    };
    let sizes: Option<Vec<usize>> =
        std::env::args().nth(1).map(|list| list.split(',').filter_map(|size| size.parse().ok()).collect());
    println!("{}", driver.profile().detail);
    println!(" bytes width  KiB   layout | bare ns driver ns ratio | bare ns PKCS#7 ns ratio");
    for bytes in sizes.unwrap_or_else(|| SIZES.to_vec()) {
        for width in WIDTHS {
            for (arena_bytes, in_place) in [(CACHE, true), (CACHE, false), (MEMORY, true), (MEMORY, false)] {
                let setting = Setting { bytes, width, in_place, arena_bytes, padding: Padding::None };
                let plain = compare(&mut driver, &mut bare, setting);
                let padded = compare(&mut driver, &mut bare, Setting { padding: Padding::Pkcs7, ..setting });
                let layout = if in_place { "in place" } else { "apart" };
                println!("{bytes:>6} {width:>5} {:>4} {layout:>8} | {plain} | {padded}", arena_bytes >> 10);
            }
        }
    }
    ExitCode::SUCCESS
}

/// What a line of the table is about.
#[derive(Clone, Copy)]
struct Setting {
    bytes: usize,
    width: usize,
    in_place: bool,
    arena_bytes: usize,
    padding: Padding,
}

/// Median nanoseconds per job of bare loop and driver, and the median of their ratios, as text.
fn compare(driver: &mut Multibuffer, bare: &mut BareLoop, setting: Setting) -> String {
    let session =
        Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, setting.padding, &KEY).expect("a session");
    let worked = session.output_bytes_max(setting.bytes);
    let count = (setting.arena_bytes / worked / setting.width).clamp(1, 4096 / setting.width) * setting.width;
    let mut memory = Memory::new(count, worked);
    let repeat = 1 + 400_000 / (count * (20 + worked / 16));
    let mut rounds: Vec<(f64, f64)> = (0..ROUNDS)
        .map(|_| {
            let mut spans = memory.spans(setting.in_place, setting.bytes);
            let bare_ns =
                time(repeat, || spans.chunks_mut(setting.width).for_each(|burst| bare.encrypt(burst)));
            let mut jobs = memory.jobs(setting.in_place, setting.bytes);
            jobs.iter_mut().for_each(|job| job.arm(&session, &IV, setting.bytes));
            let ours_ns = time(repeat, || jobs.chunks_mut(setting.width).for_each(|burst| driver.run(burst)));
            assert!(jobs.iter().all(|job| job.outcome() == Outcome::Done { written: worked }));
            (bare_ns / count as f64, ours_ns / count as f64)
        })
        .collect();
    let mut median = |of: fn(&(f64, f64)) -> f64| {
        rounds.sort_by(|one, other| of(one).total_cmp(&of(other)));
        of(&rounds[ROUNDS / 2])
    };
    let (bare_ns, ours_ns, ratio) =
        (median(|round| round.0), median(|round| round.1), median(|round| round.0 / round.1));
    format!("{bare_ns:>8.1} {ours_ns:>8.1} {ratio:>5.2}")
}

/// The buffers, the same for both.
struct Memory {
    src: Vec<u8>,
    dst: Vec<u8>,
    /// Bytes of one buffer, padding included.
    worked: usize,
}

impl Memory {
    fn new(count: usize, worked: usize) -> Self {
        Self { src: vec![0x5A; count * worked], dst: vec![0xA5; count * worked], worked }
    }

    fn spans(&mut self, in_place: bool, bytes: usize) -> Vec<BareSpan<'_>> {
        let spaces = self.dst.chunks_mut(self.worked);
        match in_place {
            true => spaces.map(|space| BareSpan::in_place(IV, space, bytes)).collect(),
            false => spaces
                .zip(self.src.chunks(self.worked))
                .map(|(dst, src)| BareSpan::apart(IV, &src[..bytes], dst))
                .collect(),
        }
    }

    fn jobs(&mut self, in_place: bool, bytes: usize) -> Vec<Box<Job<'_>>> {
        let spaces = self.dst.chunks_mut(self.worked);
        match in_place {
            true => spaces.map(Job::in_place).collect(),
            false => spaces
                .zip(self.src.chunks(self.worked))
                .map(|(dst, src)| Job::apart(&src[..bytes], dst))
                .collect(),
        }
    }
}

/// Nanoseconds of core time of one call of `work`, mean of `repeat`.
fn time(repeat: usize, mut work: impl FnMut()) -> f64 {
    let start = core_ns();
    (0..repeat).for_each(|_| work());
    (core_ns() - start) / repeat as f64
}

fn core_ns() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}
