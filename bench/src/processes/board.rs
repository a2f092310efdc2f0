//! What the processes of a round share: a start that opens for all at once, the units of the emulated module, and the log of all requests.
//!
//! It is a memory file, mapped before the first fork. Times are ticks of 32 ns since the board was made, modulo 2^32: two minutes.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use evener_ring::{Mapping, Word, Words as _, sleep_shared};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::thread::futex;

use crate::error::BenchError;

/// Words that all processes of a round see.
#[derive(Debug)]
pub(super) struct Board {
    words: Mapping,
    began: Instant,
    units: usize,
    processes: usize,
    requests: usize,
}

/// A time in ticks.
pub(super) type Ticks = u32;

/// Nanoseconds of a tick.
pub(super) const TICK_NS: u64 = 32;

/// When a unit works on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) begins: Ticks,
    pub(super) ends: Ticks,
}

/// Writes a struct that one process writes on the board and another reads: each field is a word, in the order of the table.
macro_rules! record {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(super) struct $name {
            $($(#[$doc])* pub(super) $field: $type,)+
        }

        impl $name {
            const WORDS: usize = [$(stringify!($field)),+].len();

            /// Relaxed: read once its process has ended.
            fn write(&self, words: &[Word]) {
                words.iter().zip([$(self.$field),+]).for_each(|(word, value)| word.store(value, Relaxed));
            }

            fn read(words: &[Word]) -> Self {
                let mut values = words.iter().map(|word| word.load(Relaxed));
                Self { $($field: values.next().unwrap_or_default()),+ }
            }
        }
    };
}

record! {
    /// A request of the log.
    Entry {
        /// When its process wanted it done.
        wanted: Ticks,
        /// When a unit began and ended; both 0 where no unit of the board was asked.
        begins: Ticks,
        ends: Ticks,
        /// When its result was there.
        back: Ticks,
        /// The ticket under which it waited for a permit, and one more; 0 where it did not wait.
        ticket: u32,
        /// How many had their permit before it; counted while it held its own.
        before: u32,
    }
}

record! {
    /// What a process says of itself at its end.
    Usage {
        /// Switches to others because it waited, and because its time was over.
        voluntary: u32,
        involuntary: u32,
        /// Core time, user and system.
        core_us: u32,
        /// Requests for which this machine needed more core time than it was to emulate.
        late: u32,
        /// Results that were compared.
        compared: u32,
    }
}

impl Board {
    pub(super) fn new(units: usize, processes: usize, requests: usize) -> Result<Self, BenchError> {
        let refused = |error: std::io::Error| BenchError::Library(format!("no memory to share: {error}"));
        let word_count = LINE * (HEADER_LINES + units + processes) + processes * requests * Entry::WORDS;
        let file =
            memfd_create("evener-bench", MemfdFlags::CLOEXEC).map_err(|error| refused(error.into()))?;
        ftruncate(&file, (word_count * 4) as u64).map_err(|error| refused(error.into()))?;
        let words = Mapping::shared(&file, word_count).map_err(refused)?;
        Ok(Self { words, began: Instant::now(), units, processes, requests })
    }

    /// The time.
    pub(super) fn now(&self) -> Ticks {
        self.ticks(Instant::now())
    }

    /// How long it is until then; nothing where it has passed.
    pub(super) fn left_until(&self, then: Ticks) -> Duration {
        let left = then.wrapping_sub(self.now());
        if left >= HALF { Duration::ZERO } else { Duration::from_nanos(u64::from(left) * TICK_NS) }
    }

    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32")]
    fn ticks(&self, then: Instant) -> Ticks {
        (then.duration_since(self.began).as_nanos() / u128::from(TICK_NS)) as u32
    }

    /// Says that a process is ready, and waits for the start; `false` where none comes in time.
    pub(super) fn wait_for_start(&self, timeout: Duration) -> bool {
        self.word(READY).fetch_add(1, AcqRel);
        let deadline = Instant::now() + timeout;
        while self.word(START).load(Acquire) == 0 {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return false };
            sleep_shared(self.word(START), 0, left);
        }
        true
    }

    /// How many are ready.
    pub(super) fn ready(&self) -> usize {
        self.word(READY).load(Acquire) as usize
    }

    /// Says that a process cannot go on; how many said so before.
    pub(super) fn count_failure(&self) -> u32 {
        self.word(FAILED).fetch_add(1, AcqRel)
    }

    /// How many said so.
    pub(super) fn failures(&self) -> usize {
        self.word(FAILED).load(Acquire) as usize
    }

    /// Opens the start for all.
    pub(super) fn start(&self) {
        self.open(START);
    }

    /// By one call: on one core who is woken first would be through before the last is woken.
    fn open(&self, line: usize) {
        self.word(line).store(1, Release);
        let woken = futex::wake(self.word(line), futex::Flags::empty(), i32::MAX.unsigned_abs());
        woken.expect("the word is mapped");
    }

    /// Says that a process has all its results, and waits until all have theirs; until one fails, at most.
    pub(super) fn wait_for_all(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let last = self.word(DONE).fetch_add(1, AcqRel) as usize + 1 == self.processes;
        if last {
            self.open(END);
        }
        while self.word(END).load(Acquire) == 0 && self.failures() == 0 && Instant::now() < deadline {
            sleep_shared(self.word(END), 0, GLANCE);
        }
    }

    /// Counts a permit that was granted: how many were before it.
    pub(super) fn count_grant(&self) -> u32 {
        self.word(GRANTS).fetch_add(1, AcqRel)
    }

    /// Gives a unit that is free a request for so long; none where all are busy. `hint` spreads processes over the units.
    pub(super) fn occupy_free(&self, hint: usize, span: Ticks) -> Option<Work> {
        let now = self.now();
        (0..self.units).find_map(|step| {
            let unit = self.unit((hint + step) % self.units);
            let free = unit.load(Acquire);
            let is_free = now.wrapping_sub(free) < HALF;
            let ends = now.wrapping_add(span);
            (is_free && unit.compare_exchange(free, ends, AcqRel, Acquire).is_ok())
                .then_some(Work { begins: now, ends })
        })
    }

    /// Gives the unit that is free first a request for so long, behind what it has.
    pub(super) fn occupy(&self, span: Ticks) -> Work {
        loop {
            let now = self.now();
            // How long it works yet; those that are free are alike.
            let left = |unit: &usize| {
                let left = self.unit(*unit).load(Acquire).wrapping_sub(now);
                if left >= HALF { 0 } else { left }
            };
            let first = (0..self.units).min_by_key(left).unwrap_or(0);
            let (unit, seen) = (self.unit(first), self.unit(first).load(Acquire));
            let begins = if now.wrapping_sub(seen) < HALF { now } else { seen };
            let ends = begins.wrapping_add(span);
            if unit.compare_exchange(seen, ends, AcqRel, Acquire).is_ok() {
                return Work { begins, ends };
            }
        }
    }

    pub(super) fn write_entry(&self, process: usize, request: usize, entry: &Entry) {
        entry.write(self.entry(process, request));
    }

    pub(super) fn read_entry(&self, process: usize, request: usize) -> Entry {
        Entry::read(self.entry(process, request))
    }

    pub(super) fn write_usage(&self, process: usize, usage: &Usage) {
        usage.write(self.usage(process));
    }

    pub(super) fn read_usage(&self, process: usize) -> Usage {
        Usage::read(self.usage(process))
    }

    fn word(&self, line: usize) -> &Word {
        &self.line(line)[0]
    }

    fn unit(&self, unit: usize) -> &Word {
        self.word(HEADER_LINES + unit)
    }

    fn line(&self, line: usize) -> &[Word] {
        &self.words.words()[line * LINE..(line + 1) * LINE]
    }

    fn usage(&self, process: usize) -> &[Word] {
        self.line(HEADER_LINES + self.units + process)
    }

    fn entry(&self, process: usize, request: usize) -> &[Word] {
        let first = LINE * (HEADER_LINES + self.units + self.processes);
        let at = first + (process * self.requests + request) * Entry::WORDS;
        &self.words.words()[at..at + Entry::WORDS]
    }
}

/// A span in ticks, at least one.
pub(super) fn ticks_of(span: evener_core::Nanos) -> Ticks {
    Ticks::try_from(span.0.div_ceil(TICK_NS)).unwrap_or(HALF).max(1)
}

/// Whether a time has come is told by which half of the clock it lies in.
const HALF: u32 = 1 << 31;

/// Words of a line: two lines of a cache, so that what two processes write lies apart.
const LINE: usize = 32;

/// How often who waits for all looks whether one has failed.
const GLANCE: Duration = Duration::from_secs(5);

/// Lines of the header, a word each: whether the start is open; processes that are ready; permits granted; processes that failed; those that have all results; whether all have.
const START: usize = 0;
const READY: usize = 1;
const GRANTS: usize = 2;
const FAILED: usize = 3;
const DONE: usize = 4;
const END: usize = 5;
const HEADER_LINES: usize = 6;

const _: () = assert!(Usage::WORDS <= LINE);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_busy_until_its_work_ends_and_what_comes_meanwhile_is_refused_or_waits_behind_it() {
        let board = Board::new(2, 1, 1).unwrap();
        let hour = HALF / 4;
        let works = [board.occupy_free(0, hour).unwrap(), board.occupy_free(0, hour).unwrap()];
        assert_eq!(board.occupy_free(0, 1), None);
        let third = board.occupy(hour);
        assert_eq!((third.begins, third.ends), (works[0].ends, works[0].ends + hour));
        let fourth = board.occupy(7);
        assert_eq!(fourth.begins, works[1].ends);
    }

    #[test]
    fn a_unit_whose_work_is_over_is_free_again() {
        let board = Board::new(1, 1, 1).unwrap();
        let first = board.occupy_free(0, 1).unwrap();
        while !board.left_until(first.ends).is_zero() {}
        let second = board.occupy_free(0, 1).unwrap();
        assert!(second.begins >= first.ends, "{first:?} {second:?}");
    }

    #[test]
    fn what_a_process_wrote_is_read_and_no_two_entries_share_a_word() {
        let board = Board::new(3, 2, 2).unwrap();
        let entry = |n: u32| Entry {
            wanted: n,
            begins: n + 1,
            ends: n + 2,
            back: n + 3,
            ticket: n + 4,
            before: n + 5,
        };
        let usage =
            |n: u32| Usage { voluntary: n, involuntary: n + 1, core_us: n + 2, late: n + 3, compared: n + 4 };
        let all = [(0, 0), (0, 1), (1, 0), (1, 1)];
        for (number, (process, request)) in (0..).zip(all) {
            board.write_entry(process, request, &entry(number * 10));
            board.write_usage(process, &usage(number * 10 + 1_000));
        }
        for (number, (process, request)) in (0..).zip(all) {
            assert_eq!(board.read_entry(process, request), entry(number * 10));
        }
        assert_eq!(board.read_usage(0), usage(1_010));
        assert_eq!(board.read_usage(1), usage(1_030));
        assert_eq!(board.occupy_free(0, 1).map(|work| work.ends - work.begins), Some(1));
    }
}
