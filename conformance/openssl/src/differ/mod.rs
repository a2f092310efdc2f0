//! The same calls at random through two providers: whatever one answers, the other answers too.
//!
//! The way: a seed and a number make a story ([`tell`]) -> a [`Dice`] draws algorithm, key and calls -> [`Twins`] make
//! each call twice, in a library with the default provider alone and in one with Evener's, and compare what C sees:
//! code, lengths, every byte of input and output, IVs, tags. The first difference ends it, with all calls so far.

mod context_pair;
mod general;
mod random;
mod records;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use random::Dice;

use crate::ffi::{Digest, Library};

/// The two that must not differ.
#[derive(Clone, Copy)]
pub struct Pair {
    /// The judge.
    pub plain: &'static Library,
    /// The judged.
    pub evener: &'static Library,
}

/// Stories that belong together: the same book and number tell the same story.
#[derive(Clone, Copy)]
pub struct Book {
    /// Whom they are told of.
    pub pair: Pair,
    /// What they are drawn from.
    pub seed: u64,
    /// One story in so many forks on its way; at least 1.
    pub fork_one_in: u64,
}

impl Book {
    /// Where nothing else is wanted: forks take longer than all other calls of a story.
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

/// Tells stories 0, 1, 2 … of `book` on `threads` threads; returns the number of stories and of calls.
///
/// # Panics
///
/// At the first difference, with the seed, the story's number and its calls.
#[must_use]
pub fn run(book: Book, threads: usize, limit: Limit) -> (u64, u64) {
    let (stories, calls) = (AtomicU64::new(0), AtomicU64::new(0));
    let end = Instant::now() + limit.time;
    thread::scope(|scope| {
        let teller = || {
            while calls.load(Ordering::Relaxed) < limit.calls && Instant::now() < end {
                let number = stories.fetch_add(1, Ordering::Relaxed);
                calls.fetch_add(tell(book, number), Ordering::Relaxed);
            }
        };
        let tellers: Vec<_> = (0..threads).map(|_| scope.spawn(teller)).collect();
        for teller in tellers {
            // The first panic is the test's; the message was printed by its thread.
            teller.join().expect("both providers answer the same");
        }
    });
    (stories.into_inner(), calls.into_inner())
}

/// Tells one story and returns the number of its calls.
///
/// # Panics
///
/// Where the two differ.
#[must_use]
pub fn tell(book: Book, number: u64) -> u64 {
    let Book { pair, seed, fork_one_in } = book;
    let mut dice = Dice::new(seed, number);
    let title = format!("seed {seed}, story {number}");
    match dice.below(16) {
        0 => hash(pair, &mut dice, &title),
        1..=3 => records::cbc(pair, &mut dice, title),
        4..=5 => records::gcm(pair, &mut dice, title),
        _ => general::tell(pair, &mut dice, title, fork_one_in),
    }
}

/// A hash in pieces, with copies on the way.
fn hash(pair: Pair, dice: &mut Dice, title: &str) -> u64 {
    let name = dice.one_of(&["SHA1", "SHA2-224", "SHA2-256", "SHA2-384", "SHA2-512", "MD5"]);
    let fetched = [pair.plain, pair.evener].map(|library| Digest::fetch(library, name));
    let [Some(mut plain), Some(mut evener)] = fetched else { return 0 };
    let calls = 1 + dice.below(12);
    for call in 0..calls {
        let length = dice.length(1);
        let data = dice.bytes(length);
        assert_eq!(plain.update(&data), evener.update(&data), "{title}: {name}, call {call}");
        assert_eq!(plain.so_far(), evener.so_far(), "{title}: {name}, call {call}");
    }
    2 * calls
}
