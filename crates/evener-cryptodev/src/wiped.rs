//! Text in clear, which is overwritten before its memory is given back. `zeroize` makes a store of each byte, which is right for keys: 16 KiB would take
//! a tenth of a request.

use std::ops::{Deref, DerefMut};

use evener_ring::wipe;

/// Bytes on their way between a client and a job. What grows leaves a copy behind: they are made with their space.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wiped(Vec<u8>);

impl Wiped {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Overwrites the first `bytes` of them now.
    pub(crate) fn wipe_first(&mut self, bytes: usize) {
        wipe(&mut self.0[..bytes]);
    }
}

impl From<Vec<u8>> for Wiped {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Deref for Wiped {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Wiped {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}
