//! The segment's words as the arbiter's algorithms see them ([`World`]): atomics in shared memory, futexes to sleep at, the monotonic clock, and the locks by
//! which a dead process is told from a slow one.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::time::Duration;

use evener_fd::range_lock;
use evener_ring::{Counter, Words as _, fence, sleep_shared, wake_shared};
use rustix::time::{ClockId, clock_gettime};

use super::{Shared, byte};
use crate::world::World;

impl World for Shared {
    #[inline]
    fn load(&self, at: usize) -> u32 {
        self.words.words().get(at).map_or(0, |word| word.load(Acquire))
    }

    #[inline]
    fn store(&self, at: usize, value: u32) {
        if let Some(word) = self.words.words().get(at) {
            word.store(value, Release);
        }
    }

    #[inline]
    fn exchange(&self, at: usize, old: u32, new: u32) -> bool {
        self.words
            .words()
            .get(at)
            .is_some_and(|word| word.compare_exchange(old, new, AcqRel, Acquire).is_ok())
    }

    #[inline]
    fn count(&self, at: usize) {
        if let Some(counter) = Counter::at(self.words.words(), at) {
            counter.add(1);
        }
    }

    #[inline]
    fn fence(&self) {
        fence(std::sync::atomic::Ordering::SeqCst);
    }

    fn sleep(&self, at: usize, seen: u32, timeout: Duration) {
        if let Some(word) = self.words.words().get(at) {
            sleep_shared(word, seen, timeout);
        }
    }

    fn wake(&self, at: usize) -> bool {
        self.words.words().get(at).is_some_and(wake_shared)
    }

    #[inline]
    fn now(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        let [seconds, nanos] = [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or_default());
        seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos)
    }

    fn seize(&self, place: usize) -> bool {
        // To ask first takes two thirds of the time of an attempt, and most live.
        let lives = |file| range_lock::is_locked(file, byte(place)).unwrap_or_default();
        place < self.shape.places()
            && !self.is_own(place)
            && !self.file().is_some_and(lives)
            && self.lock(place)
    }

    fn let_go(&self, place: usize) {
        if let Some(file) = self.file() {
            range_lock::unlock(file, byte(place)).ok();
        }
        if let Some(bits) = self.own.get(place / 32) {
            bits.fetch_and(!(1 << (place % 32)), Release);
        }
    }
}
