//! Words in the heap, shared by threads: of std, or of loom. Threads sleep by a lock and a condition variable instead of the kernel's.

#[cfg(loom)]
use loom::sync::{Condvar, Mutex};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex};

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release, SeqCst};
use std::time::Duration;

use evener_arbiter::World;
use evener_ring::{Word, fence};

pub(crate) struct Heap {
    words: Box<[Word]>,
    bed: (Mutex<()>, Condvar),
}

impl Heap {
    pub(crate) fn new(words: usize) -> Self {
        let words = (0..words).map(|_| Word::new(0)).collect();
        Self { words, bed: (Mutex::new(()), Condvar::new()) }
    }
}

impl World for Heap {
    fn load(&self, at: usize) -> u32 {
        self.words.get(at).map_or(0, |word| word.load(Acquire))
    }

    fn store(&self, at: usize, value: u32) {
        if let Some(word) = self.words.get(at) {
            word.store(value, Release);
        }
    }

    fn exchange(&self, at: usize, old: u32, new: u32) -> bool {
        self.words.get(at).is_some_and(|word| word.compare_exchange(old, new, AcqRel, Acquire).is_ok())
    }

    fn count(&self, _: usize) {}

    fn fence(&self) {
        fence(SeqCst);
    }

    /// No time passes here: a wake-up that does not come is a thread that hangs.
    fn sleep(&self, at: usize, seen: u32, _: Duration) {
        let guard = self.bed.0.lock().expect("nobody panics with it");
        if self.load(at) == seen {
            drop(self.bed.1.wait(guard).expect("nobody panics with it"));
        }
    }

    fn wake(&self, _: usize) -> bool {
        let _guard = self.bed.0.lock().expect("nobody panics with it");
        self.bed.1.notify_all();
        true
    }

    fn now(&self) -> u64 {
        1_000_000_000
    }

    fn seize(&self, _: usize) -> bool {
        false
    }

    fn let_go(&self, _: usize) {}
}
