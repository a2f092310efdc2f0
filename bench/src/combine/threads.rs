//! The threads of a cell: each with a key, a context and buffers of its own, encrypting as it is told.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use evener::combine::{Combiner, Request, Span, Turn, Verdict, Waiting};
use evener_core::{Direction, Padding, Session};
use evener_driver_libcrypto::CipherContext;

use super::{Between, Cell, Histogram, Plan, combiner};
use crate::error::BenchError;

/// What the threads are told. Relaxed everywhere: each acts on it when it sees it.
pub(super) struct CellThreads<'c> {
    combiner: &'c Combiner,
    cell: &'c Cell,
    combines: AtomicBool,
    /// Index of the segment whose window is open, and one more; 0 for none.
    window: AtomicUsize,
    ends: AtomicBool,
    /// Of work of their own.
    rounds_per_us: u64,
}

impl CellThreads<'_> {
    pub(super) fn turn_to(&self, combined: bool) {
        self.combines.store(combined, Ordering::Relaxed);
    }

    pub(super) fn open(&self, segment: usize) {
        self.window.store(segment + 1, Ordering::Relaxed);
    }

    pub(super) fn close(&self) {
        self.window.store(0, Ordering::Relaxed);
    }
}

/// Starts the threads, lets `lead` lead them, and returns what it returns with the times of each segment.
pub(super) fn with<T>(
    cell: &Cell,
    combiner: &Combiner,
    segments: usize,
    lead: impl FnOnce(&CellThreads<'_>) -> T,
) -> Result<(T, Vec<Histogram>), BenchError> {
    let ends = AtomicBool::new(false);
    let (combines, window) = (AtomicBool::new(false), AtomicUsize::new(0));
    let cell_threads = CellThreads { combiner, cell, combines, window, ends, rounds_per_us: rounds_per_us() };
    let members = (0..cell.threads).map(|thread| Member::new(cell, thread));
    let members = members.collect::<Result<Vec<_>, _>>()?;
    thread::scope(|scope| {
        let cell_threads = &cell_threads;
        let threads: Vec<_> = members
            .into_iter()
            .map(|member| scope.spawn(move || member.work(cell_threads, segments)))
            .collect();
        let led = lead(cell_threads);
        cell_threads.ends.store(true, Ordering::Relaxed);
        let mut times = vec![Histogram::default(); segments];
        for thread in threads {
            let own = thread.join().map_err(|_| BenchError::Library("a thread panicked".into()))??;
            times.iter_mut().zip(&own).for_each(|(all, own)| all.merge(own));
        }
        Ok((led, times))
    })
}

/// So many rounds of xorshift, after Marsaglia.
fn spun(mut random: u64, rounds: u64) -> u64 {
    for _ in 0..rounds {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
    }
    random
}

/// Rounds in a microsecond of a core: the best of some, for other programs may want it.
fn rounds_per_us() -> u64 {
    const ROUNDS: u64 = 100_000;
    let timed = (1..50).map(|seed| {
        let start = Instant::now();
        std::hint::black_box(spun(seed, ROUNDS));
        start.elapsed()
    });
    let us = timed.min().map_or(0, |least| least.as_micros());
    ROUNDS / u64::try_from(us).unwrap_or(u64::MAX).max(1)
}

/// Lets the threads combine whatever it is worth, and compares with plain calls.
pub(super) fn verify(cell: &Cell, plan: &Plan) -> Result<(), BenchError> {
    let together = u32::try_from(cell.threads.clamp(2, 16)).unwrap_or(16);
    let combiner = combiner(plan, Some(Waiting::for_others(together)))?;
    let members = (0..cell.threads).map(|thread| Member::new(cell, thread));
    let members = members.collect::<Result<Vec<_>, _>>()?;
    let start = Barrier::new(cell.threads);
    thread::scope(|scope| {
        let (combiner, start) = (&combiner, &start);
        let threads: Vec<_> = members
            .into_iter()
            .map(|mut member| {
                scope.spawn(move || {
                    start.wait();
                    (0..30).try_for_each(|job| member.compare(combiner, job))
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(compared) => compared,
            Err(_) => Err(BenchError::Library("a thread panicked".into())),
        })
    })
}

/// What one thread has.
struct Member {
    in_place: bool,
    session: Session,
    context: CipherContext,
    input: Vec<u8>,
    output: Vec<u8>,
    number: u64,
    /// Messages so far.
    count: u64,
    /// Of its random moments.
    random: u64,
}

impl Member {
    fn new(cell: &Cell, thread: usize) -> Result<Self, BenchError> {
        let number = thread as u64 + 1;
        let mut key = vec![0x5A; cell.algorithm.key_bytes().unwrap_or(16)];
        key[..8].copy_from_slice(&number.to_le_bytes());
        let library = |error: &dyn std::fmt::Display| BenchError::Library(error.to_string());
        let session = Session::new(cell.algorithm, Direction::Encrypt, Padding::None, &key)
            .map_err(|error| library(&error))?;
        let context = CipherContext::new(&session).map_err(|error| library(&error))?;
        let (input, output) = (vec![1; cell.bytes], vec![2; cell.bytes]);
        let random = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Ok(Self { in_place: cell.in_place, session, context, input, output, number, count: 0, random })
    }

    /// Encrypts until the end; the times of its calls, segment by segment.
    fn work(mut self, cell_threads: &CellThreads<'_>, segments: usize) -> Result<Vec<Histogram>, BenchError> {
        let mut times = vec![Histogram::default(); segments];
        let mut due = Instant::now();
        while !cell_threads.ends.load(Ordering::Relaxed) {
            let start = match cell_threads.cell.rate {
                None => Instant::now(),
                Some(rate) => self.wait_for_next(&mut due, cell_threads.cell.threads, rate),
            };
            let combiner = cell_threads.combines.load(Ordering::Relaxed).then_some(cell_threads.combiner);
            self.encrypt(combiner)?;
            let taken = start.elapsed();
            if let Some(segment) = cell_threads.window.load(Ordering::Relaxed).checked_sub(1) {
                times[segment].add(u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX));
            }
            if let Some(between) = cell_threads.cell.between {
                self.live(between, cell_threads.rounds_per_us);
            }
        }
        Ok(times)
    }

    /// Sleeps until the next message is due, at exponential distances; the moment at which it was.
    fn wait_for_next(&mut self, due: &mut Instant, threads: usize, rate: f64) -> Instant {
        #[expect(clippy::cast_precision_loss, reason = "a few threads")]
        let mean_s = threads as f64 / rate;
        *due += self.random_distance(mean_s);
        let was_due = *due;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        was_due
    }

    /// Works and sleeps between two messages.
    fn live(&mut self, between: Between, rounds_per_us: u64) {
        let us = u64::try_from(between.work.as_micros()).unwrap_or(u64::MAX);
        self.random = spun(self.random, us.saturating_mul(rounds_per_us));
        thread::sleep(self.random_distance(between.sleep.as_secs_f64()));
    }

    /// A distance of two random moments, exponential with this mean.
    fn random_distance(&mut self, mean_s: f64) -> Duration {
        self.random = spun(self.random, 1);
        #[expect(clippy::cast_precision_loss, reason = "53 bits of a random number")]
        let uniform = ((self.random >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        Duration::from_secs_f64(-uniform.ln() * mean_s)
    }

    fn next_iv(&mut self) -> [u8; 16] {
        self.count += 1;
        (u128::from(self.count) << 64 | u128::from(self.number)).to_le_bytes()
    }

    fn encrypt(&mut self, combiner: Option<&Combiner>) -> Result<(), BenchError> {
        let (iv, bytes) = (self.next_iv(), self.input.len());
        let span = match self.in_place {
            true => Span::InPlace(&mut self.input),
            false => Span::Apart(&self.input, &mut self.output),
        };
        let request = Request { session: &self.session, iv: &iv, span };
        let turn = combiner.map_or_else(Turn::default, |combiner| combiner.wants(0, bytes));
        let done = match turn.combined.map_or(Verdict::Inline, |call| call.encrypt(request)) {
            Verdict::Combined => Ok(()),
            Verdict::Inline => self.encrypt_plainly(&iv),
            Verdict::Failed(error) => Err(BenchError::Library(error.to_string())),
        };
        if let (Some(combiner), Some(timed)) = (combiner, turn.timed) {
            combiner.leave(0, timed);
        }
        done
    }

    fn encrypt_plainly(&mut self, iv: &[u8; 16]) -> Result<(), BenchError> {
        let done = match self.in_place {
            true => {
                let bytes = self.input.len();
                self.context.run_in_place(iv, &mut self.input, bytes)
            }
            false => self.context.run(iv, &self.input, &mut self.output),
        };
        done.map(drop).map_err(|error| BenchError::Library(error.to_string()))
    }

    fn result(&self) -> &[u8] {
        if self.in_place { &self.input } else { &self.output }
    }

    /// Encrypts the same message by the combiner and plainly.
    fn compare(&mut self, combiner: &Combiner, job: usize) -> Result<(), BenchError> {
        let (message, count) = (self.input.clone(), self.count);
        self.encrypt(Some(combiner))?;
        let combined = self.result().to_vec();
        (self.input, self.count) = (message, count);
        self.encrypt(None)?;
        match combined == self.result() {
            true => Ok(()),
            false => Err(BenchError::WrongResult {
                contender: "combining".into(),
                cell: format!("{} bytes", combined.len()),
                job,
            }),
        }
    }
}
