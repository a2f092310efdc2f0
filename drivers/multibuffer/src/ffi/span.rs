//! The memory of one cipher job: in place, an input and an output, or both in memory that another process may change.

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

use evener_core::BLOCK_BYTES;

/// The memory of one cipher job.
pub(crate) enum Span<'p> {
    /// Output replaces input.
    InPlace(&'p mut [u8]),
    /// Input, and output of at least the same length.
    Apart(&'p [u8], &'p mut [u8]),
    /// Input, and output of at least the same length, which may be the same place.
    Shared(&'p [AtomicU8], &'p [AtomicU8]),
}

impl<'p> Span<'p> {
    /// Length of the input in bytes.
    pub(crate) const fn len(&self) -> usize {
        match self {
            Self::InPlace(space) => space.len(),
            Self::Apart(src, _) => src.len(),
            Self::Shared(src, _) => src.len(),
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Both sides of `bytes`, or all of it and an empty one.
    pub(crate) fn split_at(self, bytes: usize) -> (Self, Self) {
        let bytes = bytes.min(self.len());
        match self {
            Self::InPlace(space) => {
                let (front, rest) = space.split_at_mut(bytes);
                (Self::InPlace(front), Self::InPlace(rest))
            }
            Self::Apart(src, dst) => {
                let ((front, rest), (to_front, to_rest)) = (src.split_at(bytes), dst.split_at_mut(bytes));
                (Self::Apart(front, to_front), Self::Apart(rest, to_rest))
            }
            Self::Shared(src, dst) => {
                let ((front, rest), (to_front, to_rest)) = (src.split_at(bytes), dst.split_at(bytes));
                (Self::Shared(front, to_front), Self::Shared(rest, to_rest))
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
    pub(crate) fn last_block(&self) -> [u8; BLOCK_BYTES] {
        const WHOLE: &str = "a span of whole blocks, and not empty";
        match self {
            Self::InPlace(space) => *space.last_chunk().expect(WHOLE),
            Self::Apart(src, dst) => *dst[..src.len()].last_chunk().expect(WHOLE),
            Self::Shared(src, dst) => {
                let block: &[AtomicU8; BLOCK_BYTES] = dst[..src.len()].last_chunk().expect(WHOLE);
                // Relaxed: written by this thread, or spoilt by who shares it.
                std::array::from_fn(|at| block[at].load(Relaxed))
            }
        }
    }

    /// The same span for a shorter time.
    pub(crate) const fn reborrow(&mut self) -> Span<'_> {
        match self {
            Self::InPlace(space) => Span::InPlace(space),
            Self::Apart(src, dst) => Span::Apart(src, dst),
            Self::Shared(src, dst) => Span::Shared(src, dst),
        }
    }

    /// Input, output, length.
    pub(super) fn addresses(self) -> (*const u8, *mut u8, usize) {
        match self {
            Self::InPlace(space) => {
                let start = space.as_mut_ptr();
                (start.cast_const(), start, space.len())
            }
            Self::Apart(src, dst) => {
                assert!(src.len() <= dst.len(), "output has space for the input");
                (src.as_ptr(), dst.as_mut_ptr(), src.len())
            }
            Self::Shared(src, dst) => {
                assert!(src.len() <= dst.len(), "output has space for the input");
                (src.as_ptr().cast(), dst.as_ptr().cast_mut().cast(), src.len())
            }
        }
    }
}

/// What is hashed.
#[derive(Clone, Copy)]
pub(crate) enum Input<'p> {
    /// It does not change.
    Own(&'p [u8]),
    /// Another process may change it.
    Shared(&'p [AtomicU8]),
}

impl Input<'_> {
    /// Start and length.
    pub(super) const fn address(self) -> (*const u8, usize) {
        match self {
            Self::Own(bytes) => (bytes.as_ptr(), bytes.len()),
            Self::Shared(bytes) => (bytes.as_ptr().cast(), bytes.len()),
        }
    }
}
