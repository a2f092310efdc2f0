//! The messages that one thread hashes.
//!
//! [`ThreadDigests::begin`] -> [`ThreadDigests::update`] adds to the message at hand; where that is another one than before, the old one
//! is set aside and the new one looked for there -> [`ThreadDigests::finish`] counts it under its size -> [`ThreadDigests::flush`], now and then.
//! All of it is the thread's own memory: additions, and no atomic. The usual case of each step has a short form.

use std::cell::Cell;
use std::fmt;

use evener_core::Direction;
use evener_core::counts::{Count, Kind, Row, SIZES, size_class};
use evener_ring::Mapping;

use super::{FLUSH_REQUESTS, Statistics, add};

/// What a thread hashed and hashes. A thread-local value, so that it takes no lock and needs no allocation.
///
/// A message is known by a number of the caller's, such as its context's address. Each finished message is counted
/// once, and each byte once, whichever threads worked on it. Its size class is right where one thread did all of it and had at
/// most eight others unfinished; where not, bytes are counted apart from it, as those of messages that are never finished are.
pub struct ThreadDigests {
    /// The message at hand: its number, or that of one that is finished.
    message: Cell<usize>,
    first: Cell<usize>,
    bytes: Cell<usize>,
    /// Messages that are begun; those without bytes are free places.
    aside: [Cell<Begun>; ASIDE],
    /// The place that is made free next where there is none.
    next: Cell<usize>,
    /// Finished messages that are not in the file yet, by kind and size.
    finished: [Cell<Finished>; KINDS * SIZES],
    /// Messages until the next flush; 0 as 1. A thread begins with 0, as all here: places in a static take no space in a file.
    left: Cell<u32>,
    /// Messages that went into the file.
    flushed: Cell<u32>,
    /// Only the messages themselves flush any more.
    has_ended: Cell<bool>,
}

/// A message that was not at its end when another came.
#[derive(Clone, Copy)]
struct Begun {
    message: usize,
    /// As [`ThreadDigests::first`].
    first: usize,
    bytes: usize,
}

/// Finished messages of one kind and size.
#[derive(Clone, Copy, Default)]
struct Finished {
    requests: u32,
    bytes: u64,
}

impl Finished {
    const NONE: Self = Self { requests: 0, bytes: 0 };
}

/// Unfinished messages that a thread remembers besides the one at hand. Assumed, not measured: 8, because a TLS handshake
/// has three.
const ASIDE: usize = 8;

/// Hashes, and [`Kind::OTHER`].
const KINDS: usize = Kind::NAMES.len() - Kind::CIPHERS;

/// What is not in the file yet is at most this share of what is, besides at most [`FLUSH_REQUESTS`] messages.
const LAG: u32 = 8;

impl fmt::Debug for ThreadDigests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hashes").finish_non_exhaustive()
    }
}

impl Default for ThreadDigests {
    fn default() -> Self {
        Self::new()
    }
}

impl ThreadDigests {
    /// A thread that has hashed nothing.
    #[must_use]
    pub const fn new() -> Self {
        const NONE: Begun = Begun { message: 0, first: 0, bytes: 0 };
        Self {
            message: Cell::new(0),
            first: Cell::new(0),
            bytes: Cell::new(0),
            aside: [const { Cell::new(NONE) }; ASIDE],
            next: Cell::new(0),
            finished: [const { Cell::new(Finished::NONE) }; KINDS * SIZES],
            left: Cell::new(0),
            flushed: Cell::new(0),
            has_ended: Cell::new(false),
        }
    }

    /// Where messages of this kind are counted: what the others want to know of it.
    #[must_use]
    pub const fn first(kind: Kind) -> usize {
        kind.index().saturating_sub(Kind::CIPHERS) * SIZES
    }

    /// A message begins. One of that number that was not finished never will be.
    pub fn begin(&self, message: usize, first: usize) {
        self.turn_to(message, first);
        self.leave(first, self.bytes.take());
        self.first.set(first);
    }

    /// The same, where the message at hand was of that number and is finished; does nothing and says so where not.
    #[inline]
    #[must_use]
    pub fn begins(&self, message: usize) -> bool {
        self.message.get() == message && self.bytes.get() == 0
    }

    /// So many more bytes of a message.
    pub fn update(&self, message: usize, first: usize, bytes: usize) {
        self.turn_to(message, first);
        self.bytes.set(self.bytes.get().wrapping_add(bytes));
    }

    /// The same, where it is the message at hand; does nothing and says so where it is not.
    #[inline]
    #[must_use]
    pub fn goes_on(&self, message: usize, bytes: usize) -> bool {
        let is_at_hand = self.message.get() == message;
        if is_at_hand {
            self.bytes.set(self.bytes.get().wrapping_add(bytes));
        }
        is_at_hand
    }

    /// A message is at its end; says whether it is time to [`flush`](Self::flush).
    #[must_use = "what is never flushed is never seen"]
    pub fn finish(&self, message: usize, first: usize) -> bool {
        self.turn_to(message, first);
        self.count(first);
        self.left.set(self.left.get().saturating_sub(1));
        self.left.get() == 0
    }

    /// The same, where it is the message at hand and no flush will be due; does nothing and says so where not.
    #[inline]
    #[must_use]
    pub fn finishes(&self, message: usize, first: usize) -> bool {
        let left = self.left.get();
        let is_usual = self.message.get() == message && left > 1;
        if is_usual {
            self.count(first);
            self.left.set(left - 1);
        }
        is_usual
    }

    #[inline]
    fn count(&self, first: usize) {
        let bytes = self.bytes.take();
        if let Some(place) = self.place(first, bytes) {
            let Finished { requests, bytes: before } = place.take();
            place.set(Finished {
                requests: requests.wrapping_add(1),
                bytes: before.wrapping_add(bytes as u64),
            });
        }
    }

    /// Moves what is finished into the file; tries again after as many messages as may be late where there is none yet. Where nothing
    /// is finished no file is made: most programs that load a provider are short, and many of them hash nothing.
    pub fn flush(&self, to: &Statistics) {
        if !self.is_empty() {
            self.left.set(FLUSH_REQUESTS);
            let Some(file) = to.file() else { return };
            self.move_into(file);
        }
        let lag = if self.has_ended.get() { 1 } else { (self.flushed.get() / LAG).clamp(1, FLUSH_REQUESTS) };
        self.left.set(lag);
    }

    fn is_empty(&self) -> bool {
        self.finished.iter().all(|place| matches!(place.get(), Finished { requests: 0, bytes: 0 }))
    }

    fn move_into(&self, file: &Mapping) {
        for (index, place) in self.finished.iter().enumerate() {
            let Finished { requests, bytes } = place.take();
            let row = Row::in_class(kind_of(index / SIZES), Direction::Encrypt, index % SIZES);
            for (count, number) in [(Count::Direct, requests.into()), (Count::Bytes, bytes)] {
                if number > 0 {
                    add(file, row, count, number);
                }
            }
            self.flushed.set(self.flushed.get().saturating_add(requests));
        }
    }

    /// The thread's end: all goes into the file, bytes of unfinished messages too, and so does each message that comes yet.
    pub fn end(&self, to: &Statistics) {
        self.has_ended.set(true);
        self.set_aside();
        self.aside.iter().for_each(|place| self.discard(place));
        self.flush(to);
    }

    fn turn_to(&self, message: usize, first: usize) {
        if self.message.get() == message {
            return;
        }
        // Taken first, so that its place is free for the one that was at hand.
        let known = self.aside.iter().find(|place| is_begun(place) && place.get().message == message);
        let bytes = known.map_or(0, |place| place.replace(Begun { bytes: 0, ..place.get() }).bytes);
        self.set_aside();
        self.message.set(message);
        self.first.set(first);
        self.bytes.set(bytes);
    }

    /// Leaves the message at hand.
    fn set_aside(&self) {
        let bytes = self.bytes.take();
        if bytes == 0 {
            return;
        }
        let next = self.next.get();
        let place = self.aside.iter().find(|place| !is_begun(place)).or_else(|| self.aside.get(next % ASIDE));
        if let Some(place) = place {
            self.discard(place);
            place.set(Begun { message: self.message.get(), first: self.first.get(), bytes });
            self.next.set(next.wrapping_add(1));
        }
    }

    /// Makes the place of a message free whose end this thread may never see.
    fn discard(&self, place: &Cell<Begun>) {
        let Begun { first, bytes, .. } = place.get();
        self.leave(first, bytes);
        place.set(Begun { bytes: 0, ..place.get() });
    }

    /// Counts bytes without their message.
    fn leave(&self, first: usize, bytes: usize) {
        if let Some(place) = self.place(first, bytes) {
            let Finished { requests, bytes: before } = place.take();
            place.set(Finished { requests, bytes: before.wrapping_add(bytes as u64) });
        }
    }

    #[inline]
    fn place(&self, first: usize, bytes: usize) -> Option<&Cell<Finished>> {
        self.finished.get(first.wrapping_add(size_class(bytes)))
    }
}

fn is_begun(place: &Cell<Begun>) -> bool {
    place.get().bytes > 0
}

fn kind_of(hash: usize) -> Kind {
    u8::try_from(Kind::CIPHERS + hash).map_or(Kind::OTHER, Kind::at)
}
