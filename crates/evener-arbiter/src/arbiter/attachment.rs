//! One process's part of the segment: the places that it has claimed, each for one request at a time.

use std::fs;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use evener_ring::{CachePadded, Inherited, Mapping, Words as _};
use rustix::process::getpid;

use crate::gate::{Place, Turn};
use crate::layout::Line;
use crate::segment::{About, NoArbiter, Origin, Shared, attach};
use crate::work::add_alone;

/// What a process has of a segment.
#[derive(Debug)]
pub(super) struct Attachment {
    shared: Shared,
    about: About,
    /// Told from that of a parent, whose copy a child has.
    number: u32,
    /// 1 in the process that attached, 0 in its children.
    here: Mapping,
    /// A bit for each line that no request of this process uses.
    idle: CachePadded<AtomicU32>,
    /// A bit for each line that has a place, or is about to.
    claimed: Bits,
    /// On the heap: a thread of the program may have a stack of 16 KiB.
    lines: Box<[CachePadded<ProcessLine>]>,
}

/// A place, and what its process knows of it.
#[derive(Debug, Default)]
struct ProcessLine {
    place: OnceLock<Place>,
    turn: Turn,
}

/// Requests that a process may have with the arbiter at once: bits of a word. Assumed, not measured: 32, because a process with more has threads enough to keep a core busy with each.
pub(super) const LINES_MAX: usize = 32;

impl Inherited for Attachment {
    /// Words that threads change one at a time, and places that are set once.
    fn is_whole(&mut self) -> bool {
        true
    }
}

impl Attachment {
    pub(super) fn new(origin: &Origin, weight: u32) -> Result<Self, NoArbiter> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let here = Mapping::wiped_by_fork(1).map_err(NoArbiter::of("memory that a fork wipes"))?;
        // Relaxed: no other thread knows the mapping yet.
        here.words().iter().for_each(|word| word.store(1, Relaxed));
        let about = About { pid: getpid().as_raw_nonzero().get().unsigned_abs(), weight, name: name() };
        let (shared, place) = attach(origin, &about)?;
        // Spread over the permits, so that processes settle on different ones.
        let line = |index: usize| {
            let hint = place.index.wrapping_add(index);
            ProcessLine { place: OnceLock::new(), turn: Turn::new(u32::try_from(hint).unwrap_or_default()) }
        };
        let lines = (0..LINES_MAX).map(|index| CachePadded::new(line(index))).collect();
        let attachment = Self {
            shared,
            about,
            number: NEXT.fetch_add(1, Relaxed),
            here,
            idle: CachePadded::new(AtomicU32::new(1)),
            claimed: Bits(AtomicU32::new(1)),
            lines,
        };
        attachment.lines[0]
            .place
            .set(place)
            .map_err(|_| NoArbiter::of("a place")(io::ErrorKind::AlreadyExists))?;
        Ok(attachment)
    }

    #[inline]
    pub(super) const fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    /// Whether this is the process that attached.
    #[inline]
    pub(super) fn is_here(&self) -> bool {
        self.here.words().iter().all(|word| word.load(Relaxed) == 1)
    }

    /// Takes a line that is idle, with a new place where there is none.
    #[inline]
    pub(super) fn take_line(&self) -> Option<usize> {
        loop {
            let idle = self.idle.load(Relaxed);
            if idle == 0 {
                return self.claim_line();
            }
            let line = idle.trailing_zeros();
            // Acquire: pairs with the Release of who gave it back.
            if self.idle.compare_exchange(idle, idle & !(1 << line), Acquire, Relaxed).is_ok() {
                return Some(line as usize);
            }
        }
    }

    #[inline]
    pub(super) fn give_line_back(&self, line: usize) {
        self.idle.fetch_or(1 << line, Release);
    }

    #[cold]
    fn claim_line(&self) -> Option<usize> {
        let claimed = self.claimed.take()?;
        match self.shared.claim(&self.about) {
            // No other thread has this line, so that its place is not set.
            Some(place) => self.lines.get(claimed)?.place.set(place).is_ok().then_some(claimed),
            None => {
                self.claimed.give_back(claimed);
                None
            }
        }
    }

    /// The place of a line that was taken, and its turn.
    #[inline]
    pub(super) fn line(&self, line: usize) -> (Place, &Turn) {
        let line = &self.lines[line % LINES_MAX];
        let nowhere = Place { index: usize::MAX >> 16, generation: u32::MAX };
        (line.place.get().copied().unwrap_or(nowhere), &line.turn)
    }

    /// Counts a request that was granted; the line is its process's alone.
    #[inline]
    pub(super) fn count_grant(&self, place: Place) {
        add_alone(&self.shared, self.shared.shape().place(place.index, Line::Grants), 1);
    }
}

/// Numbers below [`LINES_MAX`] of which each is one thread's at a time.
#[derive(Debug)]
struct Bits(AtomicU32);

impl Bits {
    /// Takes the least that no thread has.
    fn take(&self) -> Option<usize> {
        let mut taken = self.0.load(Relaxed);
        while taken != u32::MAX {
            let number = taken.trailing_ones();
            match self.0.compare_exchange_weak(taken, taken | 1 << number, AcqRel, Relaxed) {
                Ok(_) => return Some(number as usize),
                Err(other) => taken = other,
            }
        }
        None
    }

    fn give_back(&self, number: usize) {
        self.0.fetch_and(!(1 << number), AcqRel);
    }
}

const _: () = assert!(LINES_MAX == u32::BITS as usize, "a bit for each");

/// The process's name as the kernel keeps it, 15 bytes at most.
fn name() -> [u32; 4] {
    let text = fs::read("/proc/self/comm").unwrap_or_default();
    let mut bytes = [0; 16];
    let kept = text.iter().copied().take_while(|byte| *byte != b'\n').take(15);
    bytes.iter_mut().zip(kept).for_each(|(place, byte)| *place = byte);
    let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    [0, 4, 8, 12].map(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_found_no_place_is_taken_again_and_none_that_another_thread_has() {
        let lines = Bits(AtomicU32::new(1));
        assert_eq!([lines.take(), lines.take()], [Some(1), Some(2)]);
        // The table was full for the first of two, and not for the second.
        lines.give_back(1);
        assert_eq!([lines.take(), lines.take()], [Some(1), Some(3)]);
        let rest: Vec<_> = std::iter::from_fn(|| lines.take()).collect();
        assert_eq!(rest, (4..LINES_MAX).collect::<Vec<_>>());
    }
}
