//! The memory of one cipher job: in place, or an input and an output.

use evener_core::BLOCK_BYTES;

/// The memory of one cipher job.
pub(crate) enum Span<'p> {
    /// Output replaces input.
    InPlace(&'p mut [u8]),
    /// Input, and output of at least the same length.
    Apart(&'p [u8], &'p mut [u8]),
}

impl<'p> Span<'p> {
    /// Length of the input in bytes.
    pub(crate) const fn len(&self) -> usize {
        match self {
            Self::InPlace(room) => room.len(),
            Self::Apart(src, _) => src.len(),
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Both sides of `bytes`, or all of it and an empty one.
    pub(crate) fn split_at(self, bytes: usize) -> (Self, Self) {
        let bytes = bytes.min(self.len());
        match self {
            Self::InPlace(room) => {
                let (front, rest) = room.split_at_mut(bytes);
                (Self::InPlace(front), Self::InPlace(rest))
            }
            Self::Apart(src, dst) => {
                let ((front, rest), (to_front, to_rest)) = (src.split_at(bytes), dst.split_at_mut(bytes));
                (Self::Apart(front, to_front), Self::Apart(rest, to_rest))
            }
        }
    }

    /// Pieces of at most `bytes`.
    pub(crate) fn cut(self, bytes: usize) -> impl Iterator<Item = Self> {
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let (front, after) = rest.take().filter(|rest| !rest.is_empty())?.split_at(bytes);
            rest = Some(after);
            Some(front)
        })
    }

    /// The last block of the output.
    ///
    /// # Panics
    ///
    /// Where there is none.
    pub(crate) fn last_block(&self) -> &[u8; BLOCK_BYTES] {
        let output = match self {
            Self::InPlace(room) => &**room,
            Self::Apart(src, dst) => &dst[..src.len()],
        };
        output.last_chunk().expect("a span of whole blocks, and not empty")
    }

    /// The same span for a shorter time.
    pub(crate) const fn reborrow(&mut self) -> Span<'_> {
        match self {
            Self::InPlace(room) => Span::InPlace(room),
            Self::Apart(src, dst) => Span::Apart(src, dst),
        }
    }

    /// Input, output, length.
    pub(super) fn addresses(self) -> (*const u8, *mut u8, usize) {
        match self {
            Self::InPlace(room) => {
                let start = room.as_mut_ptr();
                (start.cast_const(), start, room.len())
            }
            Self::Apart(src, dst) => {
                assert!(src.len() <= dst.len(), "output has room for the input");
                (src.as_ptr(), dst.as_mut_ptr(), src.len())
            }
        }
    }
}
