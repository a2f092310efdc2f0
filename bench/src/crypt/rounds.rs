//! Rounds of the rivals: threads that take chunks of jobs, round after round, from the barrier on that holds Evener's
//! workers too.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Thread};

use evener::core::driver::Clock as _;
use evener::{Barrier, SystemClock};
use evener_core::Nanos;

use crate::crypt::round_budget::RoundBudget;
use crate::crypt::visit::Visit;

pub(crate) fn chunks_of<T>(jobs: Vec<T>, chunk_jobs: usize) -> Vec<Mutex<Vec<T>>> {
    let mut jobs = jobs.into_iter().peekable();
    let mut chunks = Vec::new();
    while jobs.peek().is_some() {
        chunks.push(Mutex::new(jobs.by_ref().take(chunk_jobs).collect()));
    }
    chunks
}

pub(crate) fn lock<T>(chunk: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    chunk.lock().expect("no worker panics")
}

/// Threads that take chunks, round after round, from a barrier on: the one that holds Evener's workers.
struct RivalThreads {
    barrier: Barrier,
    next: AtomicUsize,
    ended: AtomicUsize,
    over: AtomicBool,
    last_end_ns: AtomicU64,
    core_ns: AtomicU64,
}

/// Runs rounds until `budget` is used up ([`RoundBudget`]); without budget each job is done exactly once.
pub(crate) fn run_rounds<C: Send>(
    chunks: &[Mutex<C>],
    mut work: Vec<impl FnMut(&mut C) + Send>,
    turns: usize,
    budget: Nanos,
    restore: impl Fn(),
) -> Visit {
    if budget == Nanos::ZERO {
        run_once(chunks, &mut work);
        return Visit::default();
    }
    let clock = SystemClock;
    let threads = RivalThreads {
        barrier: Barrier::new(work.len()),
        next: AtomicUsize::new(0),
        ended: AtomicUsize::new(0),
        over: AtomicBool::new(false),
        last_end_ns: AtomicU64::new(0),
        core_ns: AtomicU64::new(0),
    };
    let workers = work.len();
    let mut round_budget = RoundBudget::new(budget);
    threads.barrier.hold();
    thread::scope(|scope| {
        for (worker, work) in work.iter_mut().enumerate() {
            let threads = &threads;
            let starter = thread::current();
            scope.spawn(move || threads.run(worker, chunks, work, &starter));
        }
        while round_budget.wants_more() {
            round_budget.round(turns, || {
                restore();
                threads.one_turn(workers)
            });
        }
        threads.over.store(true, Ordering::Release);
    });
    let core = Nanos(threads.core_ns.into_inner() / round_budget.rounds.len() as u64);
    restore();
    let start = clock.now();
    run_once(chunks, &mut work);
    let paper_clock = Nanos((clock.now() - start).0 * turns as u64);
    let RoundBudget { rounds, crowded, .. } = round_budget;
    Visit { rounds, crowded, core: Some(core), paper_clock: Some(paper_clock), ..Visit::default() }
}

/// One round by the paper's clock: threads made for it and joined after it.
fn run_once<C: Send>(chunks: &[Mutex<C>], work: &mut [impl FnMut(&mut C) + Send]) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for work in work {
            let next = &next;
            scope.spawn(move || take_chunks(next, chunks, work));
        }
    });
}

/// Works until nothing is left; returns whether there was anything to do.
fn take_chunks<C>(next: &AtomicUsize, chunks: &[Mutex<C>], work: &mut impl FnMut(&mut C)) -> bool {
    let mut has_worked = false;
    while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
        work(&mut lock(chunk));
        has_worked = true;
    }
    has_worked
}

impl RivalThreads {
    /// Opens the barrier once and waits for the end; returns the time between, and whether workers had cores of their own.
    fn one_turn(&self, workers: usize) -> (Nanos, bool) {
        self.barrier.hold();
        while !self.barrier.all_stand() {
            thread::yield_now();
        }
        self.next.store(0, Ordering::Relaxed);
        self.ended.store(0, Ordering::Relaxed);
        let is_spread = self.barrier.spread();
        let start = SystemClock.now();
        self.barrier.release();
        // Asleep, as Evener's caller is: two workers want two cores.
        while self.ended.load(Ordering::Acquire) < workers {
            thread::park();
        }
        (Nanos(self.last_end_ns.load(Ordering::Acquire)) - start, is_spread)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// One worker: rounds until there are no more.
    fn run<C>(&self, worker: usize, chunks: &[Mutex<C>], work: &mut impl FnMut(&mut C), starter: &Thread) {
        loop {
            self.barrier.stop(worker, || self.is_over());
            if self.is_over() {
                return;
            }
            let core_start = SystemClock.thread_time();
            // As Evener's clock: it ends with the last job, not when a thread that came too late for any has come.
            if take_chunks(&self.next, chunks, work) {
                self.last_end_ns.fetch_max(SystemClock.now().0, Ordering::AcqRel);
            }
            self.core_ns.fetch_add((SystemClock.thread_time() - core_start).0, Ordering::Relaxed);
            self.ended.fetch_add(1, Ordering::AcqRel);
            starter.unpark();
            while !self.barrier.is_held() && !self.is_over() {
                thread::yield_now();
            }
        }
    }
}
