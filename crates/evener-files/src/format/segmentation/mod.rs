//! Segmentation: how a file is cut into segments, by lengths and places only.
//!
//! `Cut` (of a format and key) + a length = [`Layout`] (of a file), which says where each [`Segment`] lies (`layout.rs`).

mod layout;

use std::ops::Range;

use crate::error::FormatError;

pub use layout::Layout;

/// Length of a tag unless a cut says otherwise, in bytes.
const TAG_BYTES: u64 = 16;
/// Length of a block unless a cut says otherwise, in bytes.
const BLOCK_BYTES: u64 = 16;

/// What a segment's ciphertext has more than its plaintext.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// A tag of 16 bytes behind every segment.
    Tag {
        /// Whether a reader takes an empty last segment after others. A writer never makes one.
        empty_last_is_read: bool,
    },
    /// Nothing, but the last segment is padded by 1 to 16 bytes to whole blocks (PKCS#7). Where the
    /// plaintext ends on the border of a segment, one more follows that holds padding only.
    Padding,
    /// Nothing.
    None,
}

/// How files of a format are cut into segments that are jobs. All lengths in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    header_bytes: u64,
    first_plain_bytes: u64,
    plain_bytes: u64,
    growth: Growth,
    /// Of each segment, where there are tags.
    tag_bytes: u64,
    /// To which the last segment is padded, where there is padding.
    block_bytes: u64,
    segment_count_max: u64,
}

/// One segment of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Place in the file, from 0.
    pub index: u64,
    /// Whether no segment follows.
    pub last: bool,
    /// Its bytes of the plaintext. Of the last segment of a padded ciphertext: at most these.
    pub plain: Range<u64>,
    /// Its bytes of the encrypted file (header counted), tag and padding included.
    pub cipher: Range<u64>,
}

impl Cut {
    /// A cut with segments of `plain_bytes`, the first of which has space for `first_plain_bytes` only.
    ///
    /// # Panics
    ///
    /// Where a segment would have no space or 4 GiB, the first would be the longest, or padded segments are
    /// not whole blocks: bugs of a format.
    #[must_use]
    pub fn new(header_bytes: u64, first_plain_bytes: u64, plain_bytes: u64, growth: Growth) -> Self {
        assert!(0 < first_plain_bytes && first_plain_bytes <= plain_bytes, "a segment has space");
        assert!(plain_bytes.max(header_bytes) < 1 << 32, "a segment and a header have less than 4 GiB");
        let equal_blocks = first_plain_bytes == plain_bytes && plain_bytes % BLOCK_BYTES == 0;
        assert!(growth != Growth::Padding || equal_blocks, "padded segments are equal and whole blocks");
        Self {
            header_bytes,
            first_plain_bytes,
            plain_bytes,
            growth,
            tag_bytes: TAG_BYTES,
            block_bytes: BLOCK_BYTES,
            segment_count_max: u64::MAX,
        }
    }

    /// The same cut with tags of `tag_bytes`.
    #[must_use]
    pub const fn with_tag_bytes(self, tag_bytes: u64) -> Self {
        Self { tag_bytes, ..self }
    }

    /// The same cut with padding to blocks of `block_bytes`, of which 16 are a multiple.
    #[must_use]
    pub const fn with_block_bytes(self, block_bytes: u64) -> Self {
        Self { block_bytes, ..self }
    }

    /// The same cut for a format that counts its segments no further than `segment_count_max`.
    #[must_use]
    pub const fn with_segment_count_max(self, segment_count_max: u64) -> Self {
        Self { segment_count_max, ..self }
    }

    /// Bytes before segment 0.
    #[must_use]
    pub const fn header_bytes(&self) -> u64 {
        self.header_bytes
    }

    /// Bytes of plaintext that a segment has if another follows.
    #[must_use]
    pub const fn full_plain_bytes(&self, index: u64) -> u64 {
        if index == 0 { self.first_plain_bytes } else { self.plain_bytes }
    }

    /// Bytes of ciphertext that a segment has if another follows, tag included.
    #[must_use]
    pub const fn full_cipher_bytes(&self, index: u64) -> u64 {
        self.full_plain_bytes(index) + self.tag_bytes()
    }

    /// The longest ciphertext of any segment: space that suffices for a segment in both forms.
    #[must_use]
    pub const fn slot_bytes(&self) -> u64 {
        self.plain_bytes + self.tag_bytes()
    }

    /// Bytes behind each segment's ciphertext that are its tag: 0 where there is none.
    #[must_use]
    pub const fn tag_bytes(&self) -> u64 {
        match self.growth {
            Growth::Tag { .. } => self.tag_bytes,
            Growth::Padding | Growth::None => 0,
        }
    }

    /// Whether the last segment is padded, so that a full one is never the last.
    #[must_use]
    pub const fn is_padded(&self) -> bool {
        matches!(self.growth, Growth::Padding)
    }

    /// Where the segments of a plaintext of `plain_bytes` lie.
    ///
    /// # Errors
    ///
    /// [`FormatError::TooLong`] where the format does not count that far.
    pub fn of_plain(&self, plain_bytes: u64) -> Result<Layout, FormatError> {
        let too_long = FormatError::TooLong { bytes: plain_bytes };
        let later = plain_bytes.saturating_sub(self.first_plain_bytes);
        let count = match self.growth {
            Growth::Tag { .. } | Growth::None => 1 + later.div_ceil(self.plain_bytes),
            Growth::Padding => 1 + plain_bytes / self.plain_bytes,
        };
        let added = match self.growth {
            Growth::Tag { .. } => count.checked_mul(self.tag_bytes),
            Growth::Padding => Some(self.block_bytes - plain_bytes % self.block_bytes),
            Growth::None => Some(0),
        };
        let body_bytes = added.and_then(|added| plain_bytes.checked_add(added));
        let cipher_bytes = body_bytes.and_then(|body| body.checked_add(self.header_bytes));
        match cipher_bytes {
            Some(cipher_bytes) if count <= self.segment_count_max => {
                Ok(Layout { cut: *self, count, plain_bytes, cipher_bytes })
            }
            _ => Err(too_long),
        }
    }

    /// Where the segments of an encrypted file of `cipher_bytes` (header counted) lie.
    ///
    /// # Errors
    ///
    /// [`FormatError::Truncated`], [`FormatError::EmptyLastSegment`] or [`FormatError::TooLong`] where no
    /// plaintext gives this length.
    pub fn of_cipher(&self, cipher_bytes: u64) -> Result<Layout, FormatError> {
        let truncated = FormatError::Truncated { cipher_bytes, place: "header" };
        let body_bytes = cipher_bytes.checked_sub(self.header_bytes).ok_or(truncated)?;
        let later = body_bytes.saturating_sub(self.full_cipher_bytes(0));
        let count = 1 + later.div_ceil(self.full_cipher_bytes(1));
        if count > self.segment_count_max {
            return Err(FormatError::TooLong { bytes: cipher_bytes });
        }
        let last_cipher_bytes = cipher_bytes - self.cipher_start(count - 1);
        let last_plain_bytes = self.last_plain_bytes(count - 1, last_cipher_bytes)?;
        Ok(Layout {
            cut: *self,
            count,
            plain_bytes: self.plain_start(count - 1) + last_plain_bytes,
            cipher_bytes,
        })
    }

    /// Bytes of plaintext in a last segment of `cipher_bytes` (at most so many where it is padded): for
    /// readers that learn which segment is the last only when the stream ends.
    ///
    /// # Errors
    ///
    /// [`FormatError::Truncated`] or [`FormatError::EmptyLastSegment`] where a last segment cannot have this
    /// length.
    pub fn last_plain_bytes(&self, index: u64, cipher_bytes: u64) -> Result<u64, FormatError> {
        let ends_at = self.cipher_start(index).saturating_add(cipher_bytes);
        let truncated = FormatError::Truncated { cipher_bytes: ends_at, place: "segment" };
        match self.growth {
            Growth::Padding if cipher_bytes == 0 || cipher_bytes % self.block_bytes != 0 => Err(truncated),
            Growth::Padding => Ok(cipher_bytes - 1),
            Growth::Tag { empty_last_is_read: false } if cipher_bytes == self.tag_bytes && index > 0 => {
                Err(FormatError::EmptyLastSegment)
            }
            Growth::Tag { .. } => cipher_bytes.checked_sub(self.tag_bytes).ok_or(truncated),
            Growth::None => Ok(cipher_bytes),
        }
    }

    /// The segment `index` where another follows it.
    #[must_use]
    pub const fn full(&self, index: u64) -> Segment {
        let next = index.saturating_add(1);
        let plain = self.plain_start(index)..self.plain_start(next);
        Segment { index, last: false, plain, cipher: self.cipher_start(index)..self.cipher_start(next) }
    }

    // Saturating: an index from `Layout` stays below the length of a file; any other gives a place that no
    // file has, not a wrong one.
    const fn plain_start(&self, index: u64) -> u64 {
        match index {
            0 => 0,
            _ => self.first_plain_bytes.saturating_add(self.plain_bytes.saturating_mul(index - 1)),
        }
    }

    const fn cipher_start(&self, index: u64) -> u64 {
        let tags = self.tag_bytes().saturating_mul(index);
        self.header_bytes.saturating_add(self.plain_start(index)).saturating_add(tags)
    }
}

#[cfg(test)]
mod tests;
