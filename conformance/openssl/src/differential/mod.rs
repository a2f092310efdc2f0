//! The same calls at random through two providers: whatever one answers, the other answers too.
//!
//! Path: a seed and a number make a sequence ([`run_sequence`]) -> a [`SeededRandom`] draws algorithm, key and calls -> [`ContextPair`] make
//! each call twice, in a library with the default provider alone and in one with Evener's, and compare what C sees:
//! code, lengths, every byte of input and output, IVs, tags. The first difference ends it, with all calls so far.

mod context_pair;
mod general;
mod random;
mod records;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use random::SeededRandom;

use crate::ffi::{Digest, Library};

/// The two that must not differ.
#[derive(Clone, Copy)]
pub struct Libraries {
    /// The judge.
    pub plain: &'static Library,
    /// The judged.
    pub evener: &'static Library,
}

/// Sequences that belong together: the same series and number run the same sequence.
#[derive(Clone, Copy)]
pub struct Series {
    /// The libraries that they run on.
    pub libraries: Libraries,
    /// What they are drawn from.
    pub seed: u64,
    /// One sequence in so many forks on its way; at least 1.
    pub fork_one_in: u64,
    /// Whether output of what a kernel of ours may do may come where input is not read yet, which OpenSSL destroys then: what comes of it is its order of
    /// reading and writing, where a kernel gives the right answer.
    pub destroys_input: bool,
}

impl Series {
    /// Where nothing else is wanted: forks take longer than all other calls of a sequence.
    pub const FORK_ONE_IN: u64 = 64;
}

/// How long to go on: until one of the two is reached.
#[derive(Clone, Copy)]
pub struct Limit {
    /// Calls, counted once for both sides.
    pub calls: u64,
    /// Time on the clock.
    pub time: Duration,
}

/// Runs sequences 0, 1, 2 … of `series` on `threads` threads; returns the number of sequences and of calls.
///
/// # Panics
///
/// At the first difference, with the seed, the sequence's number and its calls.
#[must_use]
pub fn run(series: Series, threads: usize, limit: Limit) -> (u64, u64) {
    let (sequences, calls) = (AtomicU64::new(0), AtomicU64::new(0));
    let end = Instant::now() + limit.time;
    thread::scope(|scope| {
        let runner = || {
            while calls.load(Ordering::Relaxed) < limit.calls && Instant::now() < end {
                let number = sequences.fetch_add(1, Ordering::Relaxed);
                calls.fetch_add(run_sequence(series, number), Ordering::Relaxed);
            }
        };
        let runners: Vec<_> = (0..threads).map(|_| scope.spawn(runner)).collect();
        for runner in runners {
            // The first panic is the test's; the message was printed by its thread.
            runner.join().expect("both providers answer the same");
        }
    });
    (sequences.into_inner(), calls.into_inner())
}

/// Runs one sequence and returns the number of its calls.
///
/// # Panics
///
/// Where the two differ.
#[must_use]
pub fn run_sequence(series: Series, number: u64) -> u64 {
    let Series { libraries, seed, .. } = series;
    let mut random = SeededRandom::new(seed, number);
    let title = format!("seed {seed}, sequence {number}");
    match random.below(16) {
        0 => hash(libraries, &mut random, &title),
        1..=3 => records::cbc(libraries, &mut random, title),
        4..=5 => records::gcm(libraries, &mut random, title),
        _ => general::run_sequence(series, &mut random, title),
    }
}

/// A hash in pieces, with copies on the way.
fn hash(libraries: Libraries, random: &mut SeededRandom, title: &str) -> u64 {
    let name = random.one_of(&["SHA1", "SHA2-224", "SHA2-256", "SHA2-384", "SHA2-512", "MD5"]);
    let fetched = [libraries.plain, libraries.evener].map(|library| Digest::fetch(library, name));
    let [Some(mut plain), Some(mut evener)] = fetched else { return 0 };
    let calls = 1 + random.below(12);
    for call in 0..calls {
        let length = random.length(1);
        let data = random.bytes(length);
        assert_eq!(plain.update(&data), evener.update(&data), "{title}: {name}, call {call}");
        assert_eq!(plain.so_far(), evener.so_far(), "{title}: {name}, call {call}");
    }
    2 * calls
}
