//! Memory of the lanes: their states, and what of a message is next in each.

use std::{mem, ptr};

use zeroize::Zeroize as _;

use super::tail::Places;
use super::{LANES_MAX, Span, Width};

/// Words of a state.
pub(super) const STATE_WORDS: usize = 8;

/// Words of 32 bits from one word of a state to the next: those of the other lanes lie between.
pub(super) const STRIDE: usize = LANES_MAX;

/// The same of words of 64 bits.
pub(super) const LONG_STRIDE: usize = LANES_MAX / 2;

/// Up to [`LANES_MAX`] lanes.
#[repr(C, align(64))]
pub(super) struct Space {
    /// States of words of 32 bits: the first word of all lanes, the second, and so on.
    pub(super) states: [u32; STATE_WORDS * STRIDE],
    /// States of words of 64 bits.
    pub(super) long_states: [u64; STATE_WORDS * LONG_STRIDE],
    /// What is next of each lane.
    pub(super) from: [*const u8; LANES_MAX],
    /// Blocks that are left of each lane where it is.
    left: [usize; LANES_MAX],
    /// Blocks that lie elsewhere and come behind those.
    tail: [(*const u8, usize); LANES_MAX],
    /// The number of the span in each lane.
    span: [u32; LANES_MAX],
}

// SAFETY: the addresses are followed in a call that was given them, and not later.
unsafe impl Send for Space {}

impl Space {
    pub(super) fn new() -> Box<Self> {
        Box::new(Self {
            states: [0; STATE_WORDS * STRIDE],
            long_states: [0; STATE_WORDS * LONG_STRIDE],
            from: [ptr::null(); LANES_MAX],
            left: [0; LANES_MAX],
            tail: [(ptr::null(), 0); LANES_MAX],
            span: [0; LANES_MAX],
        })
    }

    /// Puts a span that has blocks into a lane, and its tail, where it has one, into the lane's place for it.
    ///
    /// # Safety
    /// As [`Places::put`].
    pub(super) unsafe fn begin(&mut self, lane: usize, number: u32, span: &Span<'_>, tails: Places) {
        self.span[lane] = number;
        self.put_state(lane, span.running.hash.width(), &span.running.state);
        let least_here = self.left[lane ^ 1].max(1);
        let blocks = if cfg!(mutant = "hashes_length_of_neighbour") {
            span.blocks.min(least_here)
        } else {
            span.blocks
        };
        (self.from[lane], self.left[lane]) = (span.from, blocks);
        self.tail[lane] = match span.tail_blocks {
            0 => (ptr::null(), 0),
            // SAFETY: as the caller says.
            blocks => (unsafe { tails.put(lane, span) }, blocks),
        };
        if span.blocks == 0 {
            self.take_tail(lane);
        }
    }

    /// The number of the span in a lane.
    pub(super) fn span(&self, lane: usize) -> u32 {
        self.span[lane]
    }

    fn put_state(&mut self, lane: usize, width: Width, state: &[u64; STATE_WORDS]) {
        for (number, word) in state.iter().enumerate() {
            match width {
                // The low half is the word.
                Width::Narrow => self.states[number * STRIDE + lane] = (*word & 0xffff_ffff) as u32,
                Width::Long => self.long_states[number * LONG_STRIDE + lane] = *word,
            }
        }
    }

    /// The state of a lane.
    pub(super) fn state(&self, lane: usize, width: Width) -> [u64; STATE_WORDS] {
        std::array::from_fn(|number| match width {
            Width::Narrow => u64::from(self.states[number * STRIDE + lane]),
            Width::Long => self.long_states[number * LONG_STRIDE + lane],
        })
    }

    /// Moves a lane to the place of another. Its tail stays where it is: lanes move only when no span is waiting for one.
    pub(super) fn relocate(&mut self, from: usize, to: usize, width: Width) {
        let state = self.state(from, width);
        self.put_state(to, width, &state);
        self.from[to] = self.from[from];
        self.left[to] = self.left[from];
        self.tail[to] = self.tail[from];
        self.span[to] = self.span[from];
    }

    /// Has lanes without a message read what the first reads; what becomes of their states is of no use.
    pub(super) fn imitate(&mut self, from: usize, to: usize) {
        let first = self.from[0];
        self.from[from..to].fill(first);
    }

    /// Fewest blocks that are left in one of so many lanes.
    pub(super) fn least_left(&self, first: usize, count: usize) -> usize {
        self.left[first..first + count].iter().fold(usize::MAX, |least, left| least.min(*left))
    }

    /// Moves a lane on by so many blocks; whether it is at its end.
    pub(super) fn advance(&mut self, lane: usize, blocks: usize, block_bytes: usize) -> bool {
        self.left[lane] -= blocks;
        self.from[lane] = self.from[lane].wrapping_add(blocks * block_bytes);
        self.left[lane] == 0 && !self.take_tail(lane)
    }

    /// Goes on to the blocks that lie elsewhere, if there are any.
    fn take_tail(&mut self, lane: usize) -> bool {
        let (from, blocks) = mem::replace(&mut self.tail[lane], (ptr::null(), 0));
        if blocks == 0 || cfg!(mutant = "hashes_tail_lost") {
            return false;
        }
        (self.from[lane], self.left[lane]) = (from, blocks);
        true
    }

    /// Wipes all states.
    pub(super) fn forget(&mut self) {
        self.states.zeroize();
        self.long_states.zeroize();
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        self.forget();
    }
}
