//! Random access to a sealed object.

use evener::Caller;

use super::{ReadAt, slots};
use crate::error::FileError;
use crate::format::Opener;
use crate::input::bytes::Foreign;
use crate::segments::OpenedSegments;

/// A sealed object that is read at any place, age, Tink or openssl enc in a cipher that drivers have.
///
/// Only segments that hold what is asked for are read and opened, and each byte that is given was authenticated, where the format
/// authenticates. The last segment is opened first, so that an object that was cut off is found out before anything of it is given.
pub struct SealedObject<'m, S> {
    segments: OpenedSegments<'m, Foreign<S>>,
}

impl<'m, S: ReadAt> SealedObject<'m, S> {
    /// Reads the header, finds the key and opens the last segment. Up to `segments_max` segments (at least two) are kept open, in
    /// memory of [`Opener::slot_bytes`] each; as many go to `caller` in one burst.
    ///
    /// # Errors
    ///
    /// Those of the source; [`FileError::Format`] where no key fits, the object is damaged or cut off, is armored, or is in a cipher that goes
    /// from its first byte to its last.
    pub fn open(
        opener: &Opener,
        source: S,
        segments_max: usize,
        caller: &mut Caller<'_, 'm>,
    ) -> Result<Self, FileError> {
        let slots = slots(opener.slot_bytes(), segments_max.max(2));
        Ok(Self { segments: OpenedSegments::new(opener, Foreign(source), slots, caller)? })
    }

    /// Length of the plaintext, in bytes.
    #[must_use]
    pub const fn text_bytes(&self) -> u64 {
        self.segments.text_bytes()
    }

    /// Where the segment that holds the byte `place` ends in the plaintext.
    #[must_use]
    pub fn segment_end(&self, place: u64) -> u64 {
        self.segments.segment_end(place)
    }

    /// Bytes of segments that were read from the source so far.
    #[must_use]
    pub const fn read_bytes(&self) -> u64 {
        self.segments.read_bytes
    }

    /// Fills `to` with plaintext from the byte `place` on; returns how much there was, less than `to` takes at the end only.
    ///
    /// # Errors
    ///
    /// Those of the source; [`FileError::Changed`] where it ends early; [`FileError::Format`] where a segment is not authentic. Segments are
    /// opened in runs of as many as are kept: of the run that failed nothing is in `to`, and what was read before it is.
    pub fn read_at(
        &mut self,
        place: u64,
        to: &mut [u8],
        caller: &mut Caller<'_, 'm>,
    ) -> Result<usize, FileError> {
        let end = place.saturating_add(to.len() as u64).min(self.text_bytes());
        let mut filled = 0;
        self.segments.each_piece(&(place..end), caller, |piece| {
            to[filled..filled + piece.len()].copy_from_slice(piece);
            filled += piece.len();
            Ok(())
        })?;
        Ok(filled)
    }
}
