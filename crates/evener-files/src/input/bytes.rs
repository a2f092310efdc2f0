//! Bytes at known places of a known whole: what segments are read from, be it a file or anything else.

use std::io::{self, IoSliceMut};
use std::sync::Arc;

use super::source_file::SourceFile;
use crate::error::FileError;

/// A whole of known length that is read at any place.
pub(crate) trait Bytes {
    /// Its length, in bytes.
    fn count(&self) -> u64;

    /// Fills `parts` from `offset` on.
    fn fill(&self, parts: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), FileError>;

    /// What there is from the start, at most `most` bytes.
    fn start(&self, most: usize) -> Result<Vec<u8>, FileError> {
        let mut start = vec![0; most.min(usize::try_from(self.count()).unwrap_or(most))];
        self.fill(&mut [IoSliceMut::new(&mut start)], 0)?;
        Ok(start)
    }
}

impl Bytes for SourceFile {
    fn count(&self) -> u64 {
        self.len()
    }

    fn fill(&self, parts: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), FileError> {
        self.read(parts, offset)
    }
}

/// A source of others' making that is read at any place: an object in a store, a mapped file, a buffer.
pub trait ReadAt {
    /// Its length, in bytes. It stays the same.
    fn byte_count(&self) -> u64;

    /// Fills all of `parts`, one after the other, from the byte `place` on.
    ///
    /// # Errors
    ///
    /// Those of the source; [`io::ErrorKind::UnexpectedEof`] where it ends before `parts` are full, which says that it was changed.
    fn read_exact_at(&self, parts: &mut [IoSliceMut<'_>], place: u64) -> io::Result<()>;
}

/// A source of others' making among ours.
pub(crate) struct Foreign<S>(pub(crate) S);

impl<S: ReadAt> Bytes for Foreign<S> {
    fn count(&self) -> u64 {
        self.0.byte_count()
    }

    fn fill(&self, parts: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), FileError> {
        self.0.read_exact_at(parts, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => FileError::Changed,
            _ => FileError::io("read")(error),
        })
    }
}

impl ReadAt for [u8] {
    fn byte_count(&self) -> u64 {
        self.len() as u64
    }

    fn read_exact_at(&self, parts: &mut [IoSliceMut<'_>], place: u64) -> io::Result<()> {
        let ends_early = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let mut rest =
            usize::try_from(place).ok().and_then(|place| self.get(place..)).ok_or_else(ends_early)?;
        for part in parts {
            let own;
            (own, rest) = rest.split_at_checked(part.len()).ok_or_else(ends_early)?;
            part.copy_from_slice(own);
        }
        Ok(())
    }
}

/// What is shared or lent is read like what it leads to.
macro_rules! read_through {
    ($($owner:ty),*) => {$(
        impl<S: ReadAt + ?Sized> ReadAt for $owner {
            fn byte_count(&self) -> u64 {
                (**self).byte_count()
            }

            fn read_exact_at(&self, parts: &mut [IoSliceMut<'_>], place: u64) -> io::Result<()> {
                (**self).read_exact_at(parts, place)
            }
        }
    )*};
}

read_through!(&S, Box<S>, Arc<S>);

impl ReadAt for Vec<u8> {
    fn byte_count(&self) -> u64 {
        self.as_slice().byte_count()
    }

    fn read_exact_at(&self, parts: &mut [IoSliceMut<'_>], place: u64) -> io::Result<()> {
        self.as_slice().read_exact_at(parts, place)
    }
}
