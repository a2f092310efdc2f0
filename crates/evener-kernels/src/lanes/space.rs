//! Memory of the lanes: what the kernel reads and writes beside text, and which message is in which lane.

use std::mem;
use std::ptr;
use std::sync::Arc;

use zeroize::Zeroize as _;

use super::{Key, Message};
use crate::aes::MOST;
use crate::vector::{Block, Vector as _, fetch};

/// Most lanes of a level.
pub(super) const LANES_MAX: usize = 16;

/// Blocks of a line of the cache.
pub(super) const LINE: u32 = 4;

/// Blocks by which fetching runs ahead in a long message. Measured with `examples/lanes_speed.rs` over 64 MB on Sapphire Rapids.
const AHEAD: u32 = 4 * LINE;

/// Blocks of a message that would be at its end before what is fetched of it is there.
pub(super) const SHORT: u32 = 4 * AHEAD;

/// Up to [`LANES_MAX`] lanes. Those of a level with fewer stand side by side, too.
#[repr(C, align(64))]
pub(super) struct Space {
    /// Round keys: the first of all lanes, the second, and so on.
    pub(super) keys: [Block; MOST * LANES_MAX],
    /// Last block of ciphertext of each lane, or its IV.
    pub(super) chain: [Block; LANES_MAX],
    /// What is next of each lane.
    pub(super) from: [*const Block; LANES_MAX],
    pub(super) to: [*mut Block; LANES_MAX],
    /// What is to be fetched into the cache when `from` and `to` are next.
    ahead: [(*const Block, *mut Block); LANES_MAX],
    /// Blocks that are left of each lane before its last one that is apart.
    left: [u32; LANES_MAX],
    /// Last block of text that is apart from the others, if there is one to come.
    last: [*const Block; LANES_MAX],
    /// Whose round keys are there; 0 of none.
    key_ids: [u64; LANES_MAX],
    /// Whether any message goes from one place to another.
    is_apart: bool,
    /// Lanes that are used: so many messages further is probably the next of a lane.
    used: usize,
}

// SAFETY: the addresses are followed in a call that was given them, and not later.
unsafe impl Send for Space {}

impl Space {
    pub(super) fn new() -> Box<Self> {
        // SAFETY: every processor of this kind has the instruction.
        let zero = unsafe { Block::zero() };
        Box::new(Self {
            keys: [zero; MOST * LANES_MAX],
            chain: [zero; LANES_MAX],
            from: [ptr::null(); LANES_MAX],
            to: [ptr::null_mut(); LANES_MAX],
            ahead: [(ptr::null(), ptr::null_mut()); LANES_MAX],
            left: [0; LANES_MAX],
            last: [ptr::null(); LANES_MAX],
            key_ids: [0; LANES_MAX],
            is_apart: false,
            used: 0,
        })
    }

    /// Puts the first of these messages into a lane of so many.
    ///
    /// Once in the program for all levels, as what follows.
    #[inline(never)]
    pub(super) unsafe fn begin(
        &mut self,
        lane: usize,
        lanes: usize,
        keys: &[Arc<Key>],
        messages: &[Message<'_>],
    ) {
        let message = &messages[0];
        let key = &keys[message.key];
        let known = if cfg!(mutant = "lanes_key_of_neighbour") { lane ^ 1 } else { lane };
        if self.key_ids[known] != key.id {
            self.set_key(lane, lanes, key);
        }
        let iv_lane = if cfg!(mutant = "lanes_iv_of_neighbour") { lane ^ 1 } else { lane };
        self.chain[iv_lane] = Block::load(message.iv.as_ptr().cast());
        (self.from[lane], self.to[lane]) = (message.from.cast(), message.to.cast());
        self.left[lane] = message.blocks;
        self.last[lane] = message.last.as_ref().map_or(ptr::null(), |last| last.as_ptr().cast());
        self.is_apart |= !ptr::eq(message.from, message.to);
        self.look_ahead(lane, message, messages.get(self.used).unwrap_or(message));
        if message.blocks == 0 {
            self.take_last(lane);
        }
    }

    /// Puts the first of these messages, which are short and alike, into so many of the lanes.
    #[inline(never)]
    pub(super) unsafe fn begin_alike(
        &mut self,
        active: usize,
        lanes: usize,
        keys: &[Arc<Key>],
        messages: &[Message<'_>],
    ) {
        let now = &messages[..active.min(LANES_MAX)];
        let Some(first) = now.first() else { return };
        let key = &keys[first.key];
        for lane in 0..now.len() {
            let known = if cfg!(mutant = "lanes_key_of_neighbour") { lane ^ 1 } else { lane };
            if self.key_ids[known] != key.id {
                self.set_key(lane, lanes, key);
            }
        }
        // Only a burst's last ones have none of their own behind them.
        let later = messages.get(self.used..).filter(|later| later.len() >= now.len()).unwrap_or(now);
        let Self { chain, from, to, ahead, .. } = self;
        let places = chain.iter_mut().zip(from).zip(to).zip(ahead);
        let mut is_apart = false;
        for ((message, later), (((chain, from), to), ahead)) in now.iter().zip(later).zip(places) {
            *chain = Block::load(message.iv.as_ptr().cast());
            (*from, *to) = (message.from.cast(), message.to.cast());
            *ahead = (later.from.cast(), later.to.cast());
            is_apart |= !ptr::eq(message.from, message.to);
        }
        self.is_apart |= is_apart;
        if cfg!(mutant = "lanes_iv_of_neighbour") {
            self.chain.swap(0, 1);
        }
    }

    unsafe fn set_key(&mut self, lane: usize, lanes: usize, key: &Key) {
        self.key_ids[lane] = key.id;
        let place = self.keys.as_mut_ptr().add(lane);
        for round in 0..=key.rounds.last() {
            *place.add(round * lanes) = *key.rounds.keys().add(round);
        }
    }

    /// In a long message what is fetched is its own; in a short one, which would be at its end before it is there, the next message of the lane.
    unsafe fn look_ahead(&mut self, lane: usize, message: &Message<'_>, later: &Message<'_>) {
        if message.blocks <= SHORT {
            self.ahead[lane] = (later.from.cast(), later.to.cast());
            return;
        }
        self.ahead[lane] = (
            message.from.wrapping_add(AHEAD as usize).cast(),
            message.to.wrapping_add(AHEAD as usize).cast(),
        );
        for at in (0..AHEAD as usize).step_by(LINE as usize) {
            fetch(later.from.wrapping_add(at).cast());
            if self.is_apart {
                fetch(later.to.wrapping_add(at).cast());
            }
        }
    }

    /// Has a line of each of the first lanes fetched: that which is next behind so many blocks.
    #[inline(always)]
    pub(super) unsafe fn fetch_ahead(&self, lanes: usize, at: usize) {
        for (from, _) in &self.ahead[..lanes] {
            fetch(from.wrapping_add(at));
        }
        if self.is_apart {
            for (_, to) in &self.ahead[..lanes] {
                fetch(to.wrapping_add(at));
            }
        }
    }

    /// Copies a lane: what either computes from then on is the same, unless another process changes it, and may be written by both.
    #[inline(never)]
    pub(super) unsafe fn copy(&mut self, from: usize, to: usize, lanes: usize, rounds: usize) {
        if self.key_ids[to] != self.key_ids[from] {
            self.key_ids[to] = self.key_ids[from];
            let keys = self.keys.as_mut_ptr();
            for round in 0..=rounds {
                *keys.add(round * lanes + to) = *keys.add(round * lanes + from);
            }
        }
        self.chain[to] = self.chain[from];
        self.from[to] = self.from[from];
        self.to[to] = self.to[from];
        self.ahead[to] = self.ahead[from];
        self.left[to] = self.left[from];
        self.last[to] = self.last[from];
    }

    /// Begins a burst that uses so many lanes.
    pub(super) fn clear(&mut self, used: usize) {
        (self.is_apart, self.used) = (false, used);
    }

    /// Fewest blocks that are left in one of the first lanes.
    #[inline(always)]
    pub(super) fn least_left(&self, active: usize) -> u32 {
        self.left[..active].iter().fold(u32::MAX, |least, left| least.min(*left))
    }

    /// Moves a lane on by so many blocks; whether it is at its end.
    #[inline(always)]
    pub(super) fn advance(&mut self, lane: usize, blocks: u32) -> bool {
        let (ahead, ahead_to) = self.ahead[lane];
        self.left[lane] -= blocks;
        let blocks = blocks as usize;
        self.from[lane] = self.from[lane].wrapping_add(blocks);
        self.to[lane] = self.to[lane].wrapping_add(blocks);
        self.ahead[lane] = (ahead.wrapping_add(blocks), ahead_to.wrapping_add(blocks));
        self.left[lane] == 0 && !self.take_last(lane)
    }

    /// Goes on to the block that is apart, if there is one.
    #[inline(always)]
    fn take_last(&mut self, lane: usize) -> bool {
        let last = mem::replace(&mut self.last[lane], ptr::null());
        if last.is_null() || cfg!(mutant = "lanes_last_block_lost") {
            return false;
        }
        self.from[lane] = last;
        self.left[lane] = 1;
        true
    }

    /// Wipes all keys; nothing where no lane has one.
    pub(super) fn forget(&mut self) {
        if self.key_ids == [0; LANES_MAX] {
            return;
        }
        if !cfg!(mutant = "lanes_keys_kept") {
            self.keys.zeroize();
        }
        self.key_ids = [0; LANES_MAX];
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    fn round_keys(space: &Space) -> &[u8] {
        // SAFETY: blocks are bytes.
        unsafe { std::slice::from_raw_parts(space.keys.as_ptr().cast(), size_of_val(&space.keys)) }
    }

    #[test]
    #[allow(clippy::print_stdout, reason = "says what was left out")]
    fn lanes_that_forget_have_no_byte_of_a_key() {
        let Some(level) = Level::best() else {
            return println!("skipped: the processor lacks the instructions");
        };
        let keys = [16, 32].map(|bytes| Key::new(level, &vec![7; bytes]).expect("a length of AES"));
        let mut space = Space::new();
        for (lane, key) in keys.iter().enumerate() {
            // SAFETY: a key exists only where its level's instructions do.
            unsafe { space.set_key(lane, 8, key) };
        }
        // SAFETY: as above.
        unsafe { space.copy(1, 5, 8, keys[1].rounds.last()) };
        assert!(round_keys(&space).iter().any(|byte| *byte != 0));
        space.forget();
        assert!(round_keys(&space).iter().all(|byte| *byte == 0));
        assert_eq!(space.key_ids, [0; LANES_MAX], "nor is any taken for known");
    }
}
