//! The segment of this user: found or made, and the locks by which a process is known to live.
//!
//! A process: [`attach`] (`anchor.rs`: the file is opened and looked at, the segment that it names is attached or made) -> [`Shared::claim`] (a place whose lock nobody has) -> words
//! by [`World`] -> the end of the process drops its locks, wherever it was.

mod anchor;
mod error;

use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use evener_fd::{CheckedFd, range_lock};
use evener_ring::{Counter, Segment, Words as _, fence, sleep_shared, wake_shared};
use rustix::time::{ClockId, clock_gettime};

use crate::costs;
use crate::gate::{self, Gate, Place};
use crate::layout::{Header, Identity, Line, ModuleCount, NAME_BYTES, Shape};
use crate::world::{World, elapsed_ms, millis};

pub(crate) use anchor::{Origin, attach, look, remove};
pub use error::NoArbiter;

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

    /// Takes a place that nobody has: one of a dead process where one is met soon, so that the table does not fill with them; else one that is free; else whichever can be had.
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
        let used = u32::try_from(used.max(place + 1)).unwrap_or(u32::MAX);
        self.store(self.shape.header(Header::Used), used);
        Some(alive)
    }

    /// Finds the module of this name, or gives it a place in the segment: one that has no name, else the one of those that nobody uses
    /// which was looked up longest ago.
    pub(crate) fn module(&self, name: &str, capacity: u32) -> Option<usize> {
        let found = self.find_or_name(name, capacity)?;
        self.store(self.shape.identity(found, Identity::LookedUp), millis(self.now()));
        Some(found)
    }

    fn find_or_name(&self, name: &str, capacity: u32) -> Option<usize> {
        if let Some(module) = self.find(name) {
            return Some(module);
        }
        let file = self.anchor.checked().ok()?;
        // The lock on the file is the whole process's.
        let _mine = self.naming.lock().unwrap_or_else(PoisonError::into_inner);
        anchor::with_lock(file, anchor::NAMING, || {
            self.find(name).or_else(|| {
                let unnamed = (0..self.shape.modules()).find(|module| !self.is_named(*module));
                let module = unnamed.or_else(|| self.unused_longest())?;
                self.name(module, name, capacity);
                Some(module)
            })
        })
        .flatten()
    }

    fn is_named(&self, module: usize) -> bool {
        self.load(self.shape.identity(module, Identity::State)) == 1
    }

    /// The module that was looked up longest ago, of those at which nobody has or wants a permit. A process that knows it by its old name
    /// sees at its next request that it has another ([`Self::is_called`]); one that asks at this moment has a permit of the new one, which is
    /// given back as any other.
    fn unused_longest(&self) -> Option<usize> {
        let now = self.now();
        let is_unused =
            |module: &usize| Gate::named(self, &self.shape, *module).is_none_or(|gate| gate.is_unused());
        let age =
            |module: &usize| elapsed_ms(self.load(self.shape.identity(*module, Identity::LookedUp)), now);
        (0..self.shape.modules()).filter(is_unused).max_by_key(age)
    }

    /// Whether a module still has the name that has these words ([`name_hash`]).
    #[inline]
    pub(crate) fn is_called(&self, module: usize, hash: [u32; 2]) -> bool {
        let at = self.shape.identity(module, Identity::Hash);
        [self.load(at), self.load(at + 1)] == hash
    }

    fn find(&self, name: &str) -> Option<usize> {
        let (hash, text) = name_words(name);
        (0..self.shape.modules()).find(|module| {
            let word = |word: Identity, step: usize| self.load(self.shape.identity(*module, word) + step);
            self.is_named(*module)
                && hash.iter().enumerate().all(|(step, part)| word(Identity::Hash, step) == *part)
                && text.iter().enumerate().all(|(step, part)| word(Identity::Name, step) == *part)
        })
    }

    fn name(&self, module: usize, name: &str, capacity: u32) {
        let (hash, text) = name_words(name);
        let at = |word: Identity| self.shape.identity(module, word);
        self.store(at(Identity::State), 0);
        // What was counted and learned of another module is not this one's.
        ModuleCount::ALL.iter().for_each(|count| {
            let word = self.shape.count(module, *count);
            [word, word + 1].into_iter().for_each(|word| self.store(word, 0));
        });
        costs::clear(self, &self.shape, module);
        hash.iter().enumerate().for_each(|(step, part)| self.store(at(Identity::Hash) + step, *part));
        text.iter().enumerate().for_each(|(step, part)| self.store(at(Identity::Name) + step, *part));
        self.store(at(Identity::Capacity), capacity.max(1));
        self.store(at(Identity::State), 1);
    }

    /// Permits of a module.
    pub(crate) fn capacity(&self, module: usize) -> usize {
        let capacity = self.load(self.shape.identity(module, Identity::Capacity)) as usize;
        capacity.clamp(1, self.shape.permits())
    }

    /// The name of a module as far as the segment keeps it; none where it has none.
    pub(crate) fn name_of(&self, module: usize) -> Option<String> {
        let first = self.shape.identity(module, Identity::Name);
        let bytes: Vec<u8> =
            (0..NAME_BYTES / 4).flat_map(|step| self.load(first + step).to_ne_bytes()).collect();
        self.is_named(module).then(|| text_of(&bytes))
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

    /// None where the program closed the descriptor: nobody's death can be told then.
    fn file(&self) -> Option<BorrowedFd<'_>> {
        self.anchor.checked().ok()
    }
}

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

/// Places of the dead that a process looks for before it takes a fresh one.
const TRIES: usize = 8;

const fn byte(place: usize) -> std::ops::Range<u64> {
    place as u64..place as u64 + 1
}

/// A name as words: its hash, and its first bytes.
fn name_words(name: &str) -> ([u32; 2], [u32; NAME_BYTES / 4]) {
    let mut text = [0; NAME_BYTES / 4];
    for (place, part) in text.iter_mut().zip(name.as_bytes().chunks(4)) {
        let mut bytes = [0; 4];
        bytes[..part.len()].copy_from_slice(part);
        *place = u32::from_ne_bytes(bytes);
    }
    (name_hash(name), text)
}

/// What tells a name from others that begin alike (FNV-1a).
pub(crate) fn name_hash(name: &str) -> [u32; 2] {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    let hash = name.bytes().fold(0xCBF2_9CE4_8422_2325, fold);
    [hash, hash >> 32].map(|part| u32::try_from(part & u64::from(u32::MAX)).unwrap_or_default())
}

/// Bytes up to the first zero, for a terminal: what is no letter, digit or sign is a question mark.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let plain =
        |sign: char| if sign.is_control() || sign == char::REPLACEMENT_CHARACTER { '?' } else { sign };
    String::from_utf8_lossy(&bytes[..end]).chars().map(plain).collect()
}
