//! Where each word of the segment lies, and what is packed into those that hold several things. `docs/design/arbiter.md` has the same as a table.

mod packing;
mod shape;

pub(crate) use packing::{FREE, Kind, Owner, Phase, Slot};
pub use shape::{ModuleCount, Shape, WaitQueue};

/// Words of a line: what two processes write lies two lines of x86-64's caches apart, whose prefetcher takes them in pairs.
pub(crate) const LINE: usize = 32;

/// What the words of the header say.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Header {
    /// [`MAGIC`]; written last.
    Magic = 0,
    /// [`VERSION`].
    Version = 1,
    /// The five numbers of the [`Shape`].
    Shape = 2,
    /// The number of the anchor, in two words.
    Number = 8,
    /// Places that were ever taken, at least: those behind need no look.
    Used = 10,
    /// First of [`PATH_BYTES`] with the path of the anchor, zeros behind it; all zeros where that is longer.
    Path = 11,
}

/// Bytes of an anchor's path that a segment has space for: the rest of the header's line.
pub(crate) const PATH_BYTES: usize = 4 * (LINE - Header::Path as usize);

/// Words of a module's first line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Identity {
    /// 1 where the line is written; written last.
    State = 0,
    /// Permits.
    Capacity = 1,
    /// Two words that tell names apart which the segment cuts.
    Hash = 2,
    /// When a process last looked it up, in milliseconds: where all are named, the one of longest ago gives way.
    LookedUp = 4,
    /// The name, cut and filled with zeros.
    Name = 8,
}

/// Bytes of a module's name that are kept.
pub(crate) const NAME_BYTES: usize = 64;

/// Words of a module's second line: those of its queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Queue {
    /// Next position to serve and next to fill of the main wait queue, then of the express wait queue.
    Ends = 0,
    /// One more than the place whose sleeper looks after the dead; 0: none.
    Watcher = 4,
    /// When a process last looked, in milliseconds.
    Patrolled = 5,
    /// The front that did not move at the last look, and since when.
    Stalled = 6,
    /// Where the next look at a long queue goes on: of the main wait queue, then of the express wait queue.
    Sweep = 8,
}

/// Words of a place's line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Line {
    /// How many lives it has had.
    Generation = 0,
    /// Odd: rung and not answered.
    QueueDoorbell = 1,
    /// [`Phase`].
    Phase = 2,
    /// What its request is predicted to take on the module, in nanoseconds.
    Predicted = 3,
    /// When it asked, or was granted, in microseconds.
    Since = 4,
    /// Requests that its process may have in a row of a turn.
    Weight = 5,
    /// The process, to be shown.
    Pid = 6,
    /// 1 where a process has it, or had it when it died.
    Taken = 7,
    /// Four words with the name of the process.
    Name = 8,
    /// Requests that were granted, a count in two words.
    Grants = 12,
}

/// Words of a permit's line, which who has the permit writes alone.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PermitWord {
    /// Who has it.
    Owner = 0,
    /// Requests that were done with it, a count in two words.
    Requests = 2,
    /// Their bytes, a count in two words.
    Bytes = 4,
}

/// First word of a segment and of its anchor.
pub(crate) const MAGIC: u32 = 0x4556_4142;

/// The layout that this module describes.
pub(crate) const VERSION: u32 = 2;

/// Words of a class's costs: c, d, h, their deviations, mean bytes, samples, when, check.
pub(crate) const COST_WORDS: usize = 10;
