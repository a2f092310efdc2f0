//! Classes of jobs: what costs about the same is learned and planned together.
//!
//! A class is algorithm, direction, size to the next power of two, and whether input and output lie apart.
//! [`Class::of`] takes a few instructions, and [`Class::index`] is dense, so that tables by class are arrays.

use std::fmt;
use std::ops::RangeInclusive;

use crate::job::algorithm::{Algorithm, Direction};

/// Least size class: up to 2^4 bytes, one block.
const SIZE_LOG_MIN: u32 = 4;

/// Greatest size class with an upper end: up to 2^20 bytes. Longer jobs are all of one class.
const SIZE_LOG_MAX: u32 = 20;

/// Size classes: one for each power of two, and one for all above.
const SIZES: usize = (SIZE_LOG_MAX - SIZE_LOG_MIN + 2) as usize;

/// One class of jobs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class(u16);

impl Class {
    /// Number of classes: indices run from 0 to one less.
    pub const COUNT: usize = Algorithm::ALL.len() * 2 * SIZES * 2;

    /// The class of a job of `bytes`.
    #[must_use]
    #[inline]
    pub const fn of(algorithm: Algorithm, direction: Direction, bytes: usize, is_apart: bool) -> Self {
        // Bits of `bytes - 1`: the power of two that bytes do not exceed.
        let log = usize::BITS - bytes.saturating_sub(1).leading_zeros();
        let size = if log < SIZE_LOG_MIN {
            0
        } else if log > SIZE_LOG_MAX {
            SIZES - 1
        } else {
            (log - SIZE_LOG_MIN) as usize
        };
        let index = ((algorithm.index() * 2 + direction as usize) * SIZES + size) * 2 + is_apart as usize;
        #[expect(clippy::cast_possible_truncation, reason = "COUNT is below 2^16, asserted below")]
        Self(index as u16)
    }

    /// The class with this index.
    #[must_use]
    pub fn from_index(index: usize) -> Option<Self> {
        u16::try_from(index).ok().filter(|_| index < Self::COUNT).map(Self)
    }

    /// A dense index below [`Class::COUNT`].
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The algorithm.
    #[must_use]
    pub const fn algorithm(self) -> Algorithm {
        Algorithm::ALL[self.index() / (4 * SIZES)]
    }

    /// The direction.
    #[must_use]
    pub const fn direction(self) -> Direction {
        if self.index() / (2 * SIZES) % 2 == 0 { Direction::Encrypt } else { Direction::Decrypt }
    }

    /// Whether input and output lie apart.
    #[must_use]
    pub const fn is_apart(self) -> bool {
        self.index() % 2 == 1
    }

    /// The classes of its algorithm and direction, itself among them.
    #[must_use]
    pub const fn kind(self) -> RangeInclusive<Self> {
        #[expect(clippy::cast_possible_truncation, reason = "COUNT is below 2^16, asserted below")]
        const CLASSES: u16 = 2 * SIZES as u16;
        let first = self.0 / CLASSES * CLASSES;
        Self(first)..=Self(first + CLASSES - 1)
    }

    /// How far it is from another class of its [kind](Self::kind), for comparison: its own layout before the other, then the nearest size, of
    /// two the smaller one.
    #[must_use]
    pub const fn distance(self, other: Self) -> (bool, usize, bool) {
        let (own, its) = (self.index() / 2, other.index() / 2);
        (self.is_apart() != other.is_apart(), own.abs_diff(its), its > own)
    }

    /// The sizes in bytes that belong to it.
    #[must_use]
    pub const fn bytes(self) -> RangeInclusive<usize> {
        match self.index() / 2 % SIZES {
            0 => 0..=1 << SIZE_LOG_MIN,
            size if size == SIZES - 1 => (1 << SIZE_LOG_MAX) + 1..=usize::MAX,
            size => (1 << (size + SIZE_LOG_MIN as usize - 1)) + 1..=1 << (size + SIZE_LOG_MIN as usize),
        }
    }
}

const _: () = assert!(Class::COUNT <= u16::MAX as usize, "an index fits 16 bits");

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Class {
    /// For example `AES-128-CBC encrypt, up to 16384 B, in place`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.is_apart() { "out of place" } else { "in place" };
        write!(f, "{} {}, ", self.algorithm(), self.direction())?;
        match *self.bytes().end() {
            usize::MAX => write!(f, "above {} B", self.bytes().start() - 1)?,
            end => write!(f, "up to {end} B")?,
        }
        write!(f, ", {place}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_found_again_from_its_index_and_from_both_ends_of_its_sizes() {
        for index in 0..Class::COUNT {
            let class = Class::from_index(index).unwrap();
            assert_eq!(class.index(), index);
            for bytes in [*class.bytes().start(), *class.bytes().end()] {
                assert_eq!(Class::of(class.algorithm(), class.direction(), bytes, class.is_apart()), class);
            }
        }
        assert_eq!(Class::from_index(Class::COUNT), None);
    }

    #[test]
    fn the_classes_of_a_kind_are_all_sizes_of_both_layouts_and_the_nearest_comes_first() {
        let class = |bytes, is_apart| Class::of(Algorithm::Aes128Cbc, Direction::Decrypt, bytes, is_apart);
        let kind = class(64, true).kind();
        let mut near: Vec<Class> =
            (kind.start().index()..=kind.end().index()).filter_map(Class::from_index).collect();
        let is_alike =
            |near: &Class| near.algorithm() == Algorithm::Aes128Cbc && near.direction() == Direction::Decrypt;
        assert!(near.len() == 2 * SIZES && near.iter().all(is_alike));
        near.sort_by_key(|near| class(64, true).distance(*near));
        let nearest = [class(64, true), class(32, true), class(128, true), class(16, true), class(256, true)];
        assert_eq!(near[..5], nearest);
        assert_eq!(near[SIZES..SIZES + 3], [class(64, false), class(32, false), class(128, false)]);
    }

    #[test]
    fn the_sizes_of_one_kind_of_job_cover_everything_once() {
        let mut next = 0;
        let mut class = Class::of(Algorithm::Sha256, Direction::Encrypt, 0, true);
        loop {
            assert_eq!(*class.bytes().start(), next, "{class}");
            let Some(after) = class.bytes().end().checked_add(1) else { return };
            next = after;
            class = Class::of(Algorithm::Sha256, Direction::Encrypt, next, true);
        }
    }
}
