//! CBC encryption of many messages side by side (NIST SP 800-38A, 6.2), each in a lane, under its own key and IV.

use std::cmp::Reverse;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::entries::{self, Kernel};
use super::key::{Planes, Schedule};
use super::means::Means;
use super::plane::Bytes;
use crate::message::Message;
use crate::stack::with_stack_wiped;

/// Most lanes of any means.
const LANES_MAX: usize = 16;

/// A key. Wiped when it goes.
pub struct Key {
    schedule: Schedule,
    /// No other key's of this process; lanes tell by it whose round keys they have.
    id: u64,
}

impl Key {
    /// A key of 16, 24 or 32 bytes; none of any other length.
    #[must_use]
    pub fn new(key: &[u8]) -> Option<Arc<Self>> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: only that it is another one matters.
        let mut made = Arc::new(Self { schedule: Schedule::new(), id: NEXT.fetch_add(1, Ordering::Relaxed) });
        // The round keys are made where they stay.
        Arc::get_mut(&mut made)?.schedule.set(key).then_some(made)
    }
}

/// Lanes, with the round keys that they had last until those are [forgotten](Self::forget), or the lanes go.
pub struct Cbc {
    lanes: Box<Lanes>,
    count: usize,
    encrypt: Kernel,
}

impl Cbc {
    /// Lanes by these means.
    #[must_use]
    pub fn new(means: Means) -> Self {
        Self {
            lanes: Box::new(Lanes::new(Planes::new(means.layout()))),
            count: means.blocks(),
            encrypt: entries::of(means).0,
        }
    }

    /// Encrypts messages under keys of one size, in the order of their lengths.
    ///
    /// # Panics
    /// Where keys have several sizes, or a message names a key that is not there.
    pub fn encrypt(&mut self, keys: &[Arc<Key>], messages: &mut [Message<'_>]) {
        let Some(first) = messages.first() else { return };
        let rounds = keys[first.key].schedule.last();
        assert!(keys.iter().all(|key| key.schedule.last() == rounds), "keys have one size");
        if messages.iter().all(|message| message.key == first.key) {
            self.lanes.set_keys(0..self.count, &keys[first.key]);
        }
        if messages.windows(2).any(|pair| pair[0].blocks != pair[1].blocks) {
            // The longest first, so that no lane is left alone with one at the end.
            messages.sort_unstable_by_key(|message| Reverse(message.blocks));
        }
        with_stack_wiped(|| self.run(keys, messages, rounds));
    }

    fn run(&mut self, keys: &[Arc<Key>], messages: &[Message<'_>], rounds: usize) {
        let lanes = &mut *self.lanes;
        let mut waiting = messages.iter();
        loop {
            for lane in 0..self.count {
                while lanes.left[lane] == 0 && !lanes.take_last(lane) {
                    let Some(message) = waiting.next() else { break };
                    lanes.begin(lane, message, &keys[message.key]);
                }
            }
            let busy = lanes.left[..self.count].iter().filter(|left| **left > 0);
            let Some(&least) = busy.min() else { return lanes.clear() };
            for _ in 0..least {
                lanes.add_texts();
                // SAFETY: a means exists only where its instructions do; there are blocks of all lanes, and planes of all round keys.
                unsafe { (self.encrypt)(lanes.chain.as_mut_ptr(), lanes.keys.as_ptr(), rounds) };
                lanes.write_out();
            }
            for left in &mut lanes.left[..self.count] {
                *left = left.saturating_sub(least);
            }
        }
    }

    /// Wipes the round keys that it still has.
    pub fn forget(&mut self) {
        self.lanes.forget();
    }
}

/// What lanes have, those that there are and up to [`LANES_MAX`].
#[repr(C, align(64))]
struct Lanes {
    /// Last block of ciphertext of each, or its IV.
    chain: [Bytes; LANES_MAX],
    /// What is next of each that has blocks left.
    from: [*const Bytes; LANES_MAX],
    to: [*mut Bytes; LANES_MAX],
    /// Blocks that are left before the one that is apart.
    left: [u32; LANES_MAX],
    /// The last block of text that is apart from the others, if there is one to come.
    last: [*const Bytes; LANES_MAX],
    /// Whose round keys are there; 0 of none.
    key_ids: [u64; LANES_MAX],
    keys: Planes,
}

// SAFETY: the addresses are followed in a call that was given them, and not later.
unsafe impl Send for Lanes {}

impl Lanes {
    const fn new(keys: Planes) -> Self {
        Self {
            chain: [[0; 16]; LANES_MAX],
            from: [ptr::null(); LANES_MAX],
            to: [ptr::null_mut(); LANES_MAX],
            left: [0; LANES_MAX],
            last: [ptr::null(); LANES_MAX],
            key_ids: [0; LANES_MAX],
            keys,
        }
    }

    fn begin(&mut self, lane: usize, message: &Message<'_>, key: &Key) {
        let known = if cfg!(mutant = "bitsliced_key_of_neighbour") { lane ^ 1 } else { lane };
        if self.key_ids[known] != key.id {
            self.set_keys(lane..lane + 1, key);
        }
        let iv_lane = if cfg!(mutant = "bitsliced_iv_of_neighbour") { lane ^ 1 } else { lane };
        self.chain[iv_lane] = *message.iv;
        (self.from[lane], self.to[lane]) = (message.from, message.to);
        self.left[lane] = message.blocks;
        self.last[lane] = message.last.as_ref().map_or(ptr::null(), |last| last);
    }

    /// Puts a key into lanes of which any has another.
    fn set_keys(&mut self, lanes: std::ops::Range<usize>, key: &Key) {
        if self.key_ids[lanes.clone()].iter().all(|id| *id == key.id) {
            return;
        }
        self.key_ids[lanes.clone()].fill(key.id);
        self.keys.put(lanes.fold(0, |bits, lane| bits | 1 << lane), &key.schedule);
    }

    /// Goes on to the block that is apart, if there is one.
    fn take_last(&mut self, lane: usize) -> bool {
        let last = std::mem::replace(&mut self.last[lane], ptr::null());
        if last.is_null() || cfg!(mutant = "bitsliced_last_block_lost") {
            return false;
        }
        self.from[lane] = last;
        self.left[lane] = 1;
        true
    }

    /// Adds the next block of each message to the one before.
    fn add_texts(&mut self) {
        for ((chain, from), left) in self.chain.iter_mut().zip(&mut self.from).zip(&self.left) {
            if *left > 0 {
                // SAFETY: the message's own blocks, of which there are as many as are left.
                let text = unsafe { from.read_unaligned() };
                *chain = (u128::from_ne_bytes(*chain) ^ u128::from_ne_bytes(text)).to_ne_bytes();
                *from = from.wrapping_add(1);
            }
        }
    }

    /// Writes the block of each message.
    fn write_out(&mut self) {
        for ((chain, to), left) in self.chain.iter().zip(&mut self.to).zip(&self.left) {
            if *left > 0 {
                // SAFETY: as above, of what is written.
                unsafe { to.write_unaligned(*chain) };
                *to = to.wrapping_add(1);
            }
        }
    }

    /// Ends a burst.
    fn clear(&mut self) {
        self.from.fill(ptr::null());
        self.to.fill(ptr::null_mut());
    }

    /// Wipes all keys; nothing where no lane has one.
    fn forget(&mut self) {
        if self.key_ids == [0; LANES_MAX] {
            return;
        }
        if !cfg!(mutant = "bitsliced_keys_kept") {
            self.keys.wipe();
        }
        self.key_ids = [0; LANES_MAX];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_forget_have_no_byte_of_a_key() {
        for means in Means::all() {
            let mut lanes = Lanes::new(Planes::new(means.layout()));
            let keys = [16, 32].map(|bytes| Key::new(&vec![7; bytes]).unwrap());
            lanes.set_keys(0..2, &keys[0]);
            lanes.set_keys(2..4, &keys[1]);
            assert!(lanes.keys.words().iter().any(|word| *word != 0));
            lanes.forget();
            assert!(lanes.keys.words().iter().all(|word| *word == 0), "{}", means.name());
            assert_eq!(lanes.key_ids, [0; LANES_MAX], "nor is any taken for known");
        }
    }
}
