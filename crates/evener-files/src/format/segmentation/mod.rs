//! Segmentation: how a file is cut into segments, by lengths and places only.
//!
//! `Cut` (of a format and key) + a length = [`Layout`] (of a file), which says where each [`Segment`] lies.

use std::ops::Range;

use crate::error::FormatError;

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

/// The cut of one file whose length is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    cut: Cut,
    count: u64,
    plain_bytes: u64,
    cipher_bytes: u64,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, byte by byte: hands out plaintext to segments as a writer would, and counts.
    fn cut_by_hand(cut: &Cut, plain_bytes: u64) -> Vec<Segment> {
        let mut segments = Vec::new();
        let (mut plain, mut cipher) = (0, cut.header_bytes);
        loop {
            let index = segments.len() as u64;
            let space = if index == 0 { cut.first_plain_bytes } else { cut.plain_bytes };
            let mut taken = 0;
            while taken < space && plain + taken < plain_bytes {
                taken += 1;
            }
            let done = plain + taken == plain_bytes;
            let (last, grown) = match cut.growth {
                Growth::Tag { .. } => (done, taken + 16),
                Growth::None => (done, taken),
                Growth::Padding if taken == space => (false, taken),
                Growth::Padding => (true, (taken / 16 + 1) * 16),
            };
            segments.push(Segment {
                index,
                last,
                plain: plain..plain + taken,
                cipher: cipher..cipher + grown,
            });
            (plain, cipher) = (plain + taken, cipher + grown);
            if last {
                return segments;
            }
        }
    }

    fn cuts() -> Vec<Cut> {
        let tag = |empty_last_is_read| Growth::Tag { empty_last_is_read };
        let mut cuts = vec![
            Cut::new(24, 1, 25, tag(true)),
            Cut::new(40, 7, 47, tag(true)),
            Cut::new(0, 5, 5, tag(false)),
            Cut::new(200, 64, 64, tag(false)),
            Cut::new(16, 32, 32, Growth::Padding),
            Cut::new(16, 16, 16, Growth::Padding),
            Cut::new(16, 32, 32, Growth::None),
        ];
        cuts.extend((1..40).map(|space| Cut::new(space % 7, space / 2 + 1, space, tag(space % 2 == 0))));
        cuts
    }

    fn segments(layout: &Layout) -> Vec<Segment> {
        (0..layout.segment_count()).map(|index| layout.segment(index)).collect()
    }

    #[test]
    fn a_plaintext_is_cut_as_a_writer_would_that_goes_byte_by_byte() {
        for cut in cuts() {
            for plain_bytes in 0..300 {
                let by_hand = cut_by_hand(&cut, plain_bytes);
                let layout = cut.of_plain(plain_bytes).unwrap();
                assert_eq!(segments(&layout), by_hand, "{cut:?} {plain_bytes}");
                assert_eq!(layout.cipher_bytes(), by_hand.last().unwrap().cipher.end);
                assert!(by_hand.iter().all(|s| s.cipher.end - s.cipher.start <= cut.slot_bytes()));
            }
        }
    }

    #[test]
    fn a_ciphertext_is_cut_as_it_was_written_and_other_lengths_are_refused() {
        for cut in cuts() {
            for cipher_bytes in 0..400 {
                let written = (0..400).rev().find(|&plain_bytes| {
                    cut_by_hand(&cut, plain_bytes).last().unwrap().cipher.end == cipher_bytes
                });
                match (cut.of_cipher(cipher_bytes), written) {
                    (Ok(layout), Some(plain_bytes)) => {
                        assert_eq!(
                            segments(&layout),
                            cut_by_hand(&cut, plain_bytes),
                            "{cut:?} {cipher_bytes}"
                        );
                    }
                    (Ok(layout), None) => {
                        let last = segments(&layout).pop().unwrap();
                        assert_eq!(cut.growth, Growth::Tag { empty_last_is_read: true }, "{cut:?}");
                        assert!(last.index > 0 && last.plain.is_empty(), "{cut:?} {cipher_bytes}");
                    }
                    (Err(error), written) => assert_eq!(written, None, "{cut:?} {cipher_bytes} {error}"),
                }
            }
        }
    }

    #[test]
    fn the_longest_plaintext_of_a_padded_ciphertext_fills_all_but_one_byte() {
        let cut = Cut::new(16, 32, 32, Growth::Padding);
        let layout = cut.of_cipher(16 + 64).unwrap();
        assert_eq!((layout.plain_bytes(), layout.plain_bytes_is_exact()), (63, false));
    }

    #[test]
    fn lengths_near_the_end_of_64_bits_are_refused_or_exact() {
        for cut in cuts() {
            for distance in 0..300 {
                let bytes = u64::MAX - distance;
                let body_bytes = match cut.growth {
                    Growth::Padding => u128::from(bytes) / 16 * 16 + 16,
                    Growth::None => bytes.into(),
                    // Some tags for so many bytes go beyond in any case.
                    Growth::Tag { .. } => 1 << 64,
                };
                let fits = u64::try_from(body_bytes + u128::from(cut.header_bytes)).ok();
                let cipher_bytes = cut.of_plain(bytes).map(|layout| layout.cipher_bytes());
                assert_eq!(cipher_bytes.ok(), fits);
                if let Ok(layout) = cut.of_cipher(bytes) {
                    let last = layout.segment(layout.segment_count() - 1);
                    assert_eq!(last.cipher.end, bytes);
                    assert!(last.cipher.end - last.cipher.start <= cut.slot_bytes(), "{cut:?} {last:?}");
                }
            }
        }
    }

    #[test]
    fn every_byte_is_found_in_the_segment_that_holds_it() {
        for cut in cuts() {
            for plain_bytes in [0, 1, 64, 65, 299] {
                let layout = cut.of_plain(plain_bytes).unwrap();
                for place in 0..plain_bytes {
                    assert!(layout.segment(layout.index_of(place)).plain.contains(&place), "{cut:?} {place}");
                }
                assert_eq!(layout.index_of(plain_bytes + 1000), layout.segment_count() - 1);
            }
        }
    }

    #[test]
    fn a_format_that_counts_to_four_refuses_a_fifth_segment() {
        let cut = Cut::new(8, 10, 20, Growth::Tag { empty_last_is_read: true }).with_segment_count_max(4);
        assert_eq!(cut.of_plain(70).unwrap().segment_count(), 4);
        assert_eq!(cut.of_plain(71), Err(FormatError::TooLong { bytes: 71 }));
        let cipher_bytes = cut.of_plain(70).unwrap().cipher_bytes();
        assert_eq!(cut.of_cipher(cipher_bytes + 16), Err(FormatError::TooLong { bytes: cipher_bytes + 16 }));
    }
}
