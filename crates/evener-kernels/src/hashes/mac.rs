//! HMAC (RFC 2104): the states behind the key's two blocks are kept, so that a MAC costs a block beside its text.

use std::sync::Arc;

use zeroize::{Zeroize as _, Zeroizing};

use super::space::STATE_WORDS;
use super::{Hash, Lanes, Running, Span};
use crate::stack::with_stack_wiped;

/// A key of HMAC. Wiped when it goes.
pub struct MacKey {
    hash: Hash,
    inner: [u64; STATE_WORDS],
    outer: [u64; STATE_WORDS],
}

impl MacKey {
    /// A key of any length.
    ///
    /// # Panics
    /// Where lanes have no kernel for the hash.
    #[must_use]
    pub fn new(lanes: &mut Lanes, hash: Hash, key: &[u8]) -> Arc<Self> {
        let mut made = Arc::new(Self { hash, inner: [0; STATE_WORDS], outer: [0; STATE_WORDS] });
        // The states are made where they stay.
        let place = Arc::get_mut(&mut made).expect("nobody else has it yet");
        with_stack_wiped(|| place.set(lanes, key));
        made
    }

    fn set(&mut self, lanes: &mut Lanes, key: &[u8]) {
        let mut block = Zeroizing::new([0; BLOCK_BYTES_MAX]);
        let block = &mut block[..self.hash.block_bytes()];
        if key.len() > block.len() {
            let mut running = Running::new(self.hash);
            lanes.run(&mut [Span::last(&mut running, key)]);
            running.digest(block);
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        for (state, pad) in [(&mut self.inner, INNER), (&mut self.outer, INNER ^ OUTER)] {
            block.iter_mut().for_each(|byte| *byte ^= pad);
            let mut running = Running::new(self.hash);
            lanes.run(&mut [Span::more(&mut running, block)]);
            *state = running.state;
        }
        lanes.forget();
    }

    /// The hash inside a MAC: its text comes next.
    #[must_use]
    pub fn inner(&self) -> Running {
        Running { hash: self.hash, state: self.inner, bytes: self.hash.block_bytes() as u64 }
    }

    /// Puts the hash around an inner one, whose last span was run, into its place: what it takes is its last span, and its digest is the MAC. The inner digest goes
    /// to the front of `place`, and is the caller's to overwrite.
    ///
    /// # Panics
    /// Where the place is shorter than the digest.
    #[must_use]
    pub fn outer<'m>(&self, running: &'m mut Running, place: &'m mut [u8]) -> Span<'m> {
        let bytes = running.digest(place);
        running.state = self.outer;
        running.bytes = self.hash.block_bytes() as u64;
        Span::last(running, &place[..bytes])
    }
}

/// Of the longest.
const BLOCK_BYTES_MAX: usize = 128;

/// What each byte of the key is added to.
const INNER: u8 = 0x36;
const OUTER: u8 = 0x5c;

impl Drop for MacKey {
    fn drop(&mut self) {
        self.inner.zeroize();
        self.outer.zeroize();
    }
}
