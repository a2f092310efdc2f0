//! What a process counts, where others can read it while it runs.
//!
//! A count: [`LocalCounter`] (in the caller's own memory) -> [`Statistics::flush`], [`ThreadDigests`] (in a thread's) ->
//! [`ThreadDigests::flush`], or [`Statistics::add`] -> the process's file, made at the first of these (`file.rs`) in the first directory that will do (`evener_fd::Directories`) ->
//! [`Record`], in a process that reads it. The layout is [`evener_core::counts`]; `docs/reference/counters.md` describes it.

mod file;
mod names;
mod process;
mod record;
mod thread_digests;

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use evener_core::Direction;
use evener_core::counts::{Count, Header, Kind, Row};
use evener_ring::{Counter, Mapping, PerProcess, Words as _, hold_cancellation};

pub use evener_fd::Directories;
pub use record::{EndedFiles, Record, RecordError, Totals, ended_files, of_process, of_user};
pub use thread_digests::ThreadDigests;

/// The variable that names the directory, where it is not the usual one ([`Directories::from_environment`]).
pub const DIRECTORY_VARIABLE: &str = "EVENER_STATISTICS_DIR";

/// Requests of one session that were done where they stood and are not in the file yet.
///
/// Two additions for each request: no atomic, no memory that others touch.
#[derive(Debug)]
pub struct LocalCounter {
    /// Requests until it is time to flush: what is counted down needs no other number to compare with.
    left: u32,
    bytes: u64,
}

impl Default for LocalCounter {
    fn default() -> Self {
        Self { left: FLUSH_REQUESTS, bytes: 0 }
    }
}

impl LocalCounter {
    /// Counts a request of `bytes`; says whether it is time to [`flush`](Statistics::flush).
    #[inline]
    #[must_use = "what is never flushed is never seen"]
    pub const fn record(&mut self, bytes: usize) -> bool {
        self.bytes += bytes as u64;
        self.left = self.left.wrapping_sub(1);
        self.left == 0
    }

    /// Whether it is time to [`flush`](Statistics::flush).
    #[must_use]
    #[inline]
    pub const fn is_due(&self) -> bool {
        self.requests() >= FLUSH_REQUESTS
    }

    /// Whether there is nothing to flush.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.requests() == 0
    }

    /// Requests that are not in the file. `left` goes on below 0 where no thread flushes.
    const fn requests(&self) -> u32 {
        FLUSH_REQUESTS.wrapping_sub(self.left)
    }
}

/// Requests between two flushes. Assumed, not measured: 256, because a flush costs three additions to shared
/// memory, some 20 ns.
const FLUSH_REQUESTS: u32 = 256;

/// The counts of this process.
///
/// Nothing is opened before the first count. A forked child opens a file of its own at its first one. Where no file can be
/// made, counts are lost, and nothing else is.
#[derive(Debug)]
pub struct Statistics {
    places: Directories,
    file: PerProcess<Mapping, Mapping>,
}

impl Statistics {
    /// Prepares counting in one of `places`.
    ///
    /// # Errors
    ///
    /// The system's, where it has no memory that a fork wipes (Linux before 4.14).
    pub fn new(places: Directories) -> io::Result<Self> {
        Ok(Self { places, file: PerProcess::new(Mapping::wiped_by_fork(1)?) })
    }

    /// Makes the file of this process, where there is none: before the first count, which may come when the program has no right to any more.
    pub fn prepare(&self) {
        _ = self.file();
    }

    /// Adds `number` to a count. Without effect where this process has no file.
    pub fn add(&self, row: Row, count: Count, number: u64) {
        if let Some(file) = self.file() {
            add(file, row, count, number);
        }
    }

    /// Shows how many results of lanes were wrong so far.
    pub fn show_wrong_lanes(&self, results: u32) {
        self.show(Header::WrongLanes, results);
    }

    /// Shows how many results of kernels were wrong so far.
    pub fn show_wrong_kernels(&self, results: u32) {
        self.show(Header::WrongKernels, results);
    }

    /// Shows how many results of modules were wrong so far.
    pub fn show_wrong_modules(&self, results: u32) {
        self.show(Header::WrongModules, results);
    }

    fn show(&self, field: Header, number: u32) {
        if let Some(word) = self.file().and_then(|file| file.words().get(field as usize)) {
            word.store(number, Relaxed);
        }
    }

    /// Nothing where there can be none, and while another thread makes it.
    fn file(&self) -> Option<&'static Mapping> {
        self.file.get_or_make(|| {
            // Its calls to the system are points at which a thread is cancelled, and no caller's frame may be unwound.
            let _held = hold_cancellation();
            file::create(&self.places).ok()
        })
    }

    /// Counts a request of `bytes` that went the way `way`.
    pub fn request(&self, kind: Kind, direction: Direction, bytes: usize, way: Count) {
        if let Some(file) = self.file() {
            let row = Row::of(kind, direction, bytes);
            add(file, row, way, 1);
            add(file, row, Count::Bytes, bytes as u64);
        }
    }

    /// Moves what a session counted into the file, all of which went the way `way`: its requests and bytes exactly, as of the size class of their mean.
    pub fn flush(&self, kind: Kind, direction: Direction, way: Count, counted: &mut LocalCounter) {
        let (requests, bytes) = (counted.requests(), counted.bytes);
        *counted = LocalCounter::default();
        let Some(mean) = bytes.checked_div(requests.into()) else { return };
        let row = Row::of(kind, direction, usize::try_from(mean).unwrap_or(usize::MAX));
        if let Some(file) = self.file() {
            add(file, row, way, requests.into());
            add(file, row, Count::Bytes, bytes);
        }
    }
}

fn add(file: &Mapping, row: Row, count: Count, number: u64) {
    if let Some(counter) = Counter::at(file.words(), row.word(count)) {
        counter.add(number);
    }
}
