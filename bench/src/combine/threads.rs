//! The threads of a cell: each with a key, a context and buffers of its own, encrypting as it is told.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use evener::combine::{Combiner, Request, Span, Verdict};
use evener_core::{Algorithm, Direction, Padding, Session};
use evener_driver_libcrypto::CipherContext;

use super::{Cell, Histogram, Plan, combiner};
use crate::error::BenchError;

/// What the threads are told. Relaxed everywhere: each acts on it when it sees it.
pub(super) struct CellThreads<'c> {
    combiner: &'c Combiner,
    cell: &'c Cell,
    combines: AtomicBool,
    /// Index of the segment whose window is open, and one more; 0 for none.
    window: AtomicUsize,
    ends: AtomicBool,
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
    let cell_threads =
        CellThreads { combiner, cell, combines: AtomicBool::new(false), window: AtomicUsize::new(0), ends };
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

/// Lets the threads combine whatever it is worth, and compares with plain calls.
pub(super) fn verify(cell: &Cell, plan: &Plan) -> Result<(), BenchError> {
    let together = u32::try_from(cell.threads.clamp(2, 16)).unwrap_or(16);
    let combiner = combiner(plan, Some(together))?;
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
    /// Of its random moments (xorshift, after Marsaglia).
    random: u64,
}

impl Member {
    fn new(cell: &Cell, thread: usize) -> Result<Self, BenchError> {
        let number = thread as u64 + 1;
        let mut key = [0x5A; 16];
        key[..8].copy_from_slice(&number.to_le_bytes());
        let library = |error: &dyn std::fmt::Display| BenchError::Library(error.to_string());
        let session = Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &key)
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
        }
        Ok(times)
    }

    /// Sleeps until the next message is due, at exponential distances; the moment at which it was.
    fn wait_for_next(&mut self, due: &mut Instant, threads: usize, rate: f64) -> Instant {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        #[expect(clippy::cast_precision_loss, reason = "53 bits of a random number")]
        let uniform = ((self.random >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        #[expect(clippy::cast_precision_loss, reason = "a few threads")]
        let mean_s = threads as f64 / rate;
        *due += Duration::from_secs_f64(-uniform.ln() * mean_s);
        let was_due = *due;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        was_due
    }

    fn next_iv(&mut self) -> [u8; 16] {
        self.count += 1;
        (u128::from(self.count) << 64 | u128::from(self.number)).to_le_bytes()
    }

    fn encrypt(&mut self, combiner: Option<&Combiner>) -> Result<(), BenchError> {
        let iv = self.next_iv();
        let span = match self.in_place {
            true => Span::InPlace(&mut self.input),
            false => Span::Apart(&self.input, &mut self.output),
        };
        let request = Request { session: &self.session, iv: &iv, span };
        match combiner.map_or(Verdict::Inline, |combiner| combiner.encrypt(0, request)) {
            Verdict::Combined => Ok(()),
            Verdict::Inline => self.encrypt_plainly(&iv),
            Verdict::Failed(error) => Err(BenchError::Library(error.to_string())),
        }
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
