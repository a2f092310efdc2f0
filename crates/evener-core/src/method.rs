//! How a core runs a burst: plain (one job after the other) or multi-buffer (many side by side).
//!
//! Multi-buffer is a method of the CPU worker, not a second unit: for a burst of independent CBC encryptions
//! or hashes it does several times the plain rate, for a single one less. The choice is made per burst from a
//! table by algorithm, direction, size and width; the table is measured on the machine where it is used.

use crate::algorithm::{Algorithm, Direction, Family};

/// A way to run a burst on one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// One job after the other, by libcrypto.
    Plain,
    /// Many jobs side by side, by the multi-buffer library.
    MultiBuffer,
}

impl Method {
    /// Both, in the order of reports.
    pub const ALL: [Self; 2] = [Self::Plain, Self::MultiBuffer];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::MultiBuffer => "multi-buffer",
        }
    }
}

/// Upper ends of the size classes in bytes; a larger job belongs to the last class.
pub const SIZE_CLASS_BYTES: [usize; 6] = [32, 128, 512, 2_048, 8_192, 65_536];

/// The size class of a job: index into [`SIZE_CLASS_BYTES`].
#[must_use]
pub fn size_class(bytes: usize) -> usize {
    SIZE_CLASS_BYTES.iter().position(|&end| bytes <= end).unwrap_or(SIZE_CLASS_BYTES.len() - 1)
}

/// Never: a width that no burst reaches.
pub const NEVER: u16 = u16::MAX;

/// From how many jobs on a burst goes to multi-buffer, per algorithm, direction and size class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodTable {
    /// `[algorithm][direction][size class]`; [`NEVER`] where plain is always better or the only way.
    width_min: Vec<[[u16; SIZE_CLASS_BYTES.len()]; 2]>,
}

impl Default for MethodTable {
    fn default() -> Self {
        Self::plain_only()
    }
}

impl MethodTable {
    /// The table of a machine without multi-buffer library.
    #[must_use]
    pub fn plain_only() -> Self {
        Self { width_min: vec![[[NEVER; SIZE_CLASS_BYTES.len()]; 2]; Algorithm::ALL.len()] }
    }

    /// A first guess where nothing was measured: AVX-512, libipsec-mb 1.3 against OpenSSL 3.0
    ///.
    #[must_use]
    pub fn guess() -> Self {
        let mut table = Self::plain_only();
        for &algorithm in Algorithm::ALL {
            for direction in [Direction::Encrypt, Direction::Decrypt] {
                let width = match (algorithm.family(), direction) {
                    (Family::Cbc, Direction::Encrypt) => 2,
                    (Family::Cbc | Family::Ctr | Family::Gcm, _) => 1,
                    (Family::Ecb, _) => 4,
                    (Family::Digest(_) | Family::Hmac(_), Direction::Encrypt) => 12,
                    _ => NEVER,
                };
                for class in 0..SIZE_CLASS_BYTES.len() {
                    table.set_width_min(algorithm, direction, class, width);
                }
            }
        }
        table
    }

    /// The method for a burst of `width` jobs of about `bytes` each.
    #[must_use]
    pub fn choose(&self, algorithm: Algorithm, direction: Direction, bytes: usize, width: usize) -> Method {
        let width_min = self.width_min(algorithm, direction, size_class(bytes));
        if width_min != NEVER && width >= usize::from(width_min) {
            Method::MultiBuffer
        } else {
            Method::Plain
        }
    }

    /// The least width for multi-buffer in a class, or [`NEVER`].
    #[must_use]
    pub fn width_min(&self, algorithm: Algorithm, direction: Direction, class: usize) -> u16 {
        self.width_min[algorithm.index()][direction as usize][class]
    }

    /// Sets the least width of a class.
    pub fn set_width_min(&mut self, algorithm: Algorithm, direction: Direction, class: usize, width: u16) {
        self.width_min[algorithm.index()][direction as usize][class] = width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stream_stays_plain_and_a_burst_goes_to_multi_buffer() {
        let table = MethodTable::guess();
        let choose = |width| table.choose(Algorithm::Aes128Cbc, Direction::Encrypt, 16_384, width);
        assert_eq!(
            (choose(1), choose(2), choose(16)),
            (Method::Plain, Method::MultiBuffer, Method::MultiBuffer)
        );
        let hash = |width| table.choose(Algorithm::Sha256, Direction::Encrypt, 4_096, width);
        assert_eq!((hash(4), hash(16)), (Method::Plain, Method::MultiBuffer));
    }

    #[test]
    fn without_the_library_everything_is_plain() {
        let table = MethodTable::plain_only();
        for &algorithm in Algorithm::ALL {
            assert_eq!(table.choose(algorithm, Direction::Encrypt, 1 << 20, 65_534), Method::Plain);
        }
    }
}
