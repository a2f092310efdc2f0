//! HMAC (RFC 2104): the states behind the key's two blocks are kept, so that a MAC costs a block beside its text.

use zeroize::{Zeroize as _, Zeroizing};

use super::space::STATE_WORDS;
use super::{Hash, Lanes, Running, Span};

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
    pub fn new(lanes: &mut Lanes, hash: Hash, key: &[u8]) -> Self {
        let mut block = Zeroizing::new([0; BLOCK_BYTES_MAX]);
        let block = &mut block[..hash.block_bytes()];
        if key.len() > block.len() {
            let mut running = Running::new(hash);
            lanes.run(&mut [Span::last(&mut running, key)]);
            running.digest(block);
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        let [inner, outer] = [0x36, 0x5c].map(|pad| {
            let padded: Zeroizing<Vec<u8>> = Zeroizing::new(block.iter().map(|byte| byte ^ pad).collect());
            let mut running = Running::new(hash);
            lanes.run(&mut [Span::more(&mut running, &padded)]);
            running.state
        });
        lanes.forget();
        Self { hash, inner, outer }
    }

    /// The hash inside a MAC: its text comes next.
    #[must_use]
    pub fn inner(&self) -> Running {
        Running { hash: self.hash, state: self.inner, bytes: self.hash.block_bytes() as u64 }
    }

    /// The hash around it: the digest of the [inner](Self::inner) one comes next and last, and its own is the MAC.
    #[must_use]
    pub fn outer(&self) -> Running {
        Running { hash: self.hash, state: self.outer, bytes: self.hash.block_bytes() as u64 }
    }
}

/// Of the longest.
const BLOCK_BYTES_MAX: usize = 128;

impl Drop for MacKey {
    fn drop(&mut self) {
        self.inner.zeroize();
        self.outer.zeroize();
    }
}
