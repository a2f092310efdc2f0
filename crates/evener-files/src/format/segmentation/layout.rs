//! A layout: how one file is cut, and where each of its segments lies.

use super::{Cut, Segment};

/// The cut of one file whose length is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub(super) cut: Cut,
    pub(super) count: u64,
    pub(super) plain_bytes: u64,
    pub(super) cipher_bytes: u64,
}

impl Layout {
    /// Number of segments, at least 1: an empty file has one empty segment.
    #[must_use]
    pub const fn segment_count(&self) -> u64 {
        self.count
    }

    /// Length of the plaintext; at most so long where [`Layout::plain_bytes_is_exact`] says no.
    #[must_use]
    pub const fn plain_bytes(&self) -> u64 {
        self.plain_bytes
    }

    /// Whether the plaintext's length follows from the layout. Of a padded ciphertext only the last segment's
    /// plaintext shows it: up to 15 bytes less.
    #[must_use]
    pub const fn plain_bytes_is_exact(&self) -> bool {
        !self.cut.is_padded()
    }

    /// Length of the encrypted file, header counted.
    #[must_use]
    pub const fn cipher_bytes(&self) -> u64 {
        self.cipher_bytes
    }

    /// Which segment holds byte `place` of the plaintext; the last one where none does.
    #[must_use]
    pub const fn index_of(&self, place: u64) -> u64 {
        let index = match place.checked_sub(self.cut.first_plain_bytes) {
            None => 0,
            Some(behind) => 1 + behind / self.cut.plain_bytes,
        };
        if index < self.count { index } else { self.count - 1 }
    }

    /// The segment `index`.
    ///
    /// # Panics
    ///
    /// Where the file has no such segment: a bug of the caller.
    #[must_use]
    pub fn segment(&self, index: u64) -> Segment {
        assert!(index < self.count, "segment {index} of {}", self.count);
        let mut segment = self.cut.full(index);
        if index + 1 == self.count {
            segment.last = true;
            segment.plain.end = self.plain_bytes;
            segment.cipher.end = self.cipher_bytes;
        }
        segment
    }
}
