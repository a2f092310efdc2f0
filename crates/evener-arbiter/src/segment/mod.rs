//! The segment of this user: found or made, and the locks by which a process is known to live.
//!
//! A process: [`attach`] (`anchor.rs`: the file is opened and looked at, the segment that it names is attached or made) -> [`Shared::claim`] (a place whose lock is free) -> words
//! by [`World`](crate::world::World) (`words.rs`), modules by their names (`module_names.rs`) -> the end of the process drops its locks, wherever it was.

mod anchor;
mod anchor_text;
mod error;
mod module_names;
mod orphans;
mod words;

use std::os::fd::BorrowedFd;
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use evener_fd::{CheckedFd, range_lock};
use evener_ring::Segment;

use crate::gate::{self, Place};
use crate::layout::{Header, Line, Shape};
use crate::world::World as _;

pub(crate) use anchor::{Origin, attach, look, remove};
pub use error::NoArbiter;
pub(crate) use module_names::{name_hash, text_of};

/// A segment that this process has attached, and the anchor by which it shows that it lives.
#[derive(Debug)]
pub(crate) struct Shared {
    words: Segment,
    anchor: CheckedFd,
    shape: Shape,
    /// A bit for each place that a thread of this process has or is at: the kernel's locks are the whole process's.
    own: Box<[AtomicU32]>,
    naming: Mutex<()>,
}

/// What is shown of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) pid: u32,
    pub(crate) weight: u32,
    pub(crate) name: [u32; 4],
}

impl Shared {
    fn new(words: Segment, anchor: CheckedFd, shape: Shape) -> Self {
        let own = (0..shape.places().div_ceil(32)).map(|_| AtomicU32::new(0)).collect();
        Self { words, anchor, shape, own, naming: Mutex::new(()) }
    }

    pub(crate) const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Takes the segment off the system's list.
    pub(crate) fn unlink(&self) {
        self.words.remove();
    }

    /// Takes a place that no living process has: one of a dead process where one is met soon, so that the table does not fill with them; else one that is free; else any that can be had.
    pub(crate) fn claim(&self, about: &About) -> Option<Place> {
        let places = self.shape.places();
        let used = (self.load(self.shape.header(Header::Used)) as usize).min(places);
        let is_taken = |place: usize| self.load(self.shape.place(place, Line::Taken)) != 0;
        let start = usize::try_from(self.now() / 1_000).unwrap_or_default();
        let some = (0..used.min(TRIES)).map(|step| (start + step) % used);
        let free = (0..places).filter(|place| !is_taken(*place));
        let place = some.chain(free).chain(0..places).find(|place| self.lock(*place))?;
        let alive = gate::revive(self, &self.shape, place);
        let line = |word: Line| self.shape.place(place, word);
        self.store(line(Line::Pid), about.pid);
        self.store(line(Line::Weight), about.weight);
        (0..4).for_each(|word| self.store(line(Line::Name) + word, about.name[word]));
        // The count is of this life.
        (0..2).for_each(|word| self.store(line(Line::Grants) + word, 0));
        self.store(line(Line::Taken), 1);
        self.raise(self.shape.header(Header::Used), u32::try_from(place + 1).unwrap_or(u32::MAX));
        Some(alive)
    }

    fn is_own(&self, place: usize) -> bool {
        self.own.get(place / 32).is_none_or(|bits| bits.load(Acquire) >> (place % 32) & 1 == 1)
    }

    /// Takes the lock of a place for a thread of this process; `false` where another thread or process has it.
    fn lock(&self, place: usize) -> bool {
        let Some(bits) = self.own.get(place / 32) else { return false };
        let bit = 1 << (place % 32);
        if bits.fetch_or(bit, AcqRel) & bit != 0 {
            return false;
        }
        let is_locked =
            self.file().is_some_and(|file| range_lock::try_lock(file, byte(place)).unwrap_or(false));
        if !is_locked {
            bits.fetch_and(!bit, Release);
        }
        is_locked
    }

    /// None where the program closed the descriptor: no process's death can be told then.
    fn file(&self) -> Option<BorrowedFd<'_>> {
        self.anchor.checked().ok()
    }
}

/// Places of the dead that a process looks for before it takes a fresh one.
const TRIES: usize = 8;

const fn byte(place: usize) -> std::ops::Range<u64> {
    place as u64..place as u64 + 1
}
