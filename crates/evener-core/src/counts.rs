//! Where the counts of a process lie in its statistics file, and what they are called.
//!
//! The path of a request: [`Row::of`] (kind of work, direction, size) -> [`Row::word`] of each [`Count`] that it raises.
//! The file is made of 32-bit words: a header, then one row for each kind, direction and size class, then in each row two
//! words for each count. `docs/reference/counters.md` describes the same for programs that read the file without this crate.

use std::fmt;

use crate::job::algorithm::Direction;
use crate::named::is_same_name;

/// First word of a file. In another byte order it reads otherwise, so that no reader takes such a file for its own.
pub const MAGIC: u32 = 0x4556_5331;

/// Second word: the layout that this module describes.
pub const VERSION: u32 = 2;

/// Words before the first row.
pub const HEADER_WORDS: usize = 16;

/// Words of a whole file: 7468, in eight pages of 4 KiB.
pub const FILE_WORDS: usize = HEADER_WORDS + Row::COUNT * ROW_WORDS;

/// Upper ends of the size classes in bytes; what is longer belongs to one class more.
pub const SIZE_CLASS_BYTES: [usize; 8] = [64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// Size classes: those with an upper end, and one for all above.
pub const SIZES: usize = SIZE_CLASS_BYTES.len() + 1;

/// The size class of a request of `bytes`, below [`SIZES`].
#[must_use]
#[inline]
pub const fn size_class(bytes: usize) -> usize {
    // Each end is four times the one before: two bits of the number of halves of the first class.
    let halves = (bytes.saturating_sub(1) / (SIZE_CLASS_BYTES[0] / 2)) | 1;
    let class = halves.ilog2().div_ceil(2) as usize;
    if class < SIZES { class } else { SIZES - 1 }
}

/// What the words of the header say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// [`MAGIC`]; written last, so that a file without it is still being made.
    Magic = 0,
    /// [`VERSION`].
    Version = 1,
    /// [`FILE_WORDS`].
    Words = 2,
    /// The process that counts.
    Pid = 3,
    /// When the process began, in clock ticks since the machine started, lower half: a reused number is recognised by it.
    StartLow = 4,
    /// Upper half of the same.
    StartHigh = 5,
    /// Four bytes of the kernel's boot id: a number that was reused after a restart is recognised by it.
    Boot = 6,
    /// Results of lanes that were not the inner cipher's: from the first one on lanes are out of service in the process.
    WrongLanes = 7,
    /// First of four words with the name of the process, 15 bytes at most, as the kernel keeps it.
    Name = 8,
    /// Results of kernels that were not the inner cipher's: where there are any, the kernels of their classes are out of service in the process.
    WrongKernels = 12,
    /// Results of modules that were not the inner cipher's: their modules are out of service in the process, and of what they did before only a
    /// sample was compared.
    WrongModules = 13,
    /// In which namespace of process numbers the process has its own: the inode of `/proc/self/ns/pid`. A reader in another one cannot tell whether it runs.
    Namespace = 14,
}

/// Bytes of a process's name, the closing zero included (Linux, `TASK_COMM_LEN`).
pub const NAME_BYTES: usize = 16;

/// A kind of work, under its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(u8);

impl Kind {
    /// Names of all kinds, in the order of the file. `other` is whatever has no name here.
    pub const NAMES: [&'static str; 23] = [
        "AES-128-ECB",
        "AES-192-ECB",
        "AES-256-ECB",
        "AES-128-CBC",
        "AES-192-CBC",
        "AES-256-CBC",
        "AES-128-CTR",
        "AES-192-CTR",
        "AES-256-CTR",
        "AES-128-GCM",
        "AES-192-GCM",
        "AES-256-GCM",
        "AES-128-XTS",
        "AES-256-XTS",
        "SHA-1",
        "SHA-224",
        "SHA-256",
        "SHA-384",
        "SHA-512",
        "SHA-512/224",
        "SHA-512/256",
        "MD5",
        "other",
    ];

    /// The first so many are ciphers, the others hashes and [`Kind::OTHER`].
    pub const CIPHERS: usize = 14;

    /// Whatever has no name of its own.
    pub const OTHER: Self = Self(22);

    /// The kind with this name, in any case, [`Kind::OTHER`] where there is none.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let found = Self::NAMES.iter().position(|known| is_same_name(known, name));
        found.and_then(|index| u8::try_from(index).ok()).map_or(Self::OTHER, Self)
    }

    /// The one at this place among [`NAMES`](Self::NAMES), [`Kind::OTHER`] where there is none.
    #[must_use]
    #[inline]
    pub const fn at(index: u8) -> Self {
        if index < Self::OTHER.0 { Self(index) } else { Self::OTHER }
    }

    /// Its place among [`NAMES`](Self::NAMES).
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self.0 as usize]
    }
}

crate::named! {
    /// What is counted, in the order of a row.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Count {
        /// Requests that OpenSSL's own code did where they stood.
        Direct = "direct",
        /// Requests that a kernel of ours did where they stood.
        Kernel = "kernel",
        /// Requests that were done side by side with those of other threads.
        Combined = "combined",
        /// Requests that were cut and done on several cores.
        Split = "split",
        /// Requests that went to a module.
        Routed = "routed",
        /// Bytes of all these requests.
        Bytes = "bytes",
        /// Helpers that had not come when a split request was done, and requests to be combined that no leader took.
        TakenBack = "taken back",
        /// Requests that a module failed and that were done again on the CPU.
        Redone = "failed and redone",
        /// Times that the guard kept this class on the direct path, because the other ways had cost more than they saved.
        Locked = "locked by the guard",
    }
}

impl Count {
    /// The ways that a request can go: each request is counted under one of them.
    pub const WAYS: [Self; 5] = [Self::Direct, Self::Kernel, Self::Combined, Self::Split, Self::Routed];
}

/// A row: kind, direction and size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row(u16);

impl Row {
    /// Number of rows: indices run from 0 to one less.
    pub const COUNT: usize = Kind::NAMES.len() * 2 * SIZES;

    /// The row of a request of `bytes`.
    #[must_use]
    pub const fn of(kind: Kind, direction: Direction, bytes: usize) -> Self {
        Self::in_class(kind, direction, size_class(bytes))
    }

    /// The row of requests of this size class, or of the last one where there are not so many.
    #[must_use]
    pub const fn in_class(kind: Kind, direction: Direction, class: usize) -> Self {
        let class = if class < SIZES { class } else { SIZES - 1 };
        Self::from_index((kind.0 as usize * 2 + direction as usize) * SIZES + class)
    }

    /// All rows in the order of the file.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self::from_index)
    }

    /// The kind of work.
    #[must_use]
    pub const fn kind(self) -> Kind {
        #[expect(clippy::cast_possible_truncation, reason = "kinds are fewer than 2^8, asserted below")]
        Kind((self.0 as usize / (2 * SIZES)) as u8)
    }

    /// The direction; hashes have the first only.
    #[must_use]
    pub const fn direction(self) -> Direction {
        if self.0 as usize / SIZES % 2 == 0 { Direction::Encrypt } else { Direction::Decrypt }
    }

    /// Greatest size in bytes that belongs to it; none in the last class.
    #[must_use]
    pub fn bytes_max(self) -> Option<usize> {
        SIZE_CLASS_BYTES.get(usize::from(self.0) % SIZES).copied()
    }

    /// Where `count` lies: the upper of its two words; the lower one is the next.
    #[must_use]
    #[inline]
    pub const fn word(self, count: Count) -> usize {
        HEADER_WORDS + self.0 as usize * ROW_WORDS + count as usize * 2
    }

    const fn from_index(index: usize) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "COUNT is below 2^16, asserted below")]
        Self(index as u16)
    }
}

/// Why a file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreadable {
    /// It does not begin as statistics do, or not yet.
    NotOurs,
    /// Its layout is another one's.
    Version(u32),
    /// It has fewer words than it must have.
    Short(usize),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOurs => f.write_str("this is no statistics file"),
            Self::Version(version) => write!(f, "layout {version} of another release of Evener"),
            Self::Short(words) => write!(f, "cut off after {words} words of {FILE_WORDS}"),
        }
    }
}

impl std::error::Error for Unreadable {}

/// Checks the header of a file with these `words`; what it counts may then be read at [`Row::word`].
///
/// # Errors
///
/// [`Unreadable`] where the words are not those of a whole file of this layout.
pub fn check(words: &[u32]) -> Result<(), Unreadable> {
    let header = |field: Header| words.get(field as usize).copied();
    if header(Header::Magic) != Some(MAGIC) {
        return Err(Unreadable::NotOurs);
    }
    match header(Header::Version) {
        Some(VERSION) => {}
        other => return Err(other.map_or(Unreadable::NotOurs, Unreadable::Version)),
    }
    if words.len() < FILE_WORDS {
        return Err(Unreadable::Short(words.len()));
    }
    Ok(())
}

/// Two words for each count.
const ROW_WORDS: usize = Count::ALL.len() * 2;

const _: () =
    assert!(Row::COUNT <= u16::MAX as usize && Kind::NAMES.len() <= u8::MAX as usize, "indices fit");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_again_from_both_ends_of_its_sizes() {
        let mut least = 0;
        for row in Row::all() {
            let ends = [least, row.bytes_max().unwrap_or(usize::MAX)];
            for bytes in ends {
                assert_eq!(Row::of(row.kind(), row.direction(), bytes), row, "{bytes}");
            }
            least = row.bytes_max().map_or(0, |max| max + 1);
        }
    }

    #[test]
    fn no_two_counts_share_a_word_and_together_they_fill_the_file() {
        let mut words: Vec<usize> =
            Row::all().flat_map(|row| Count::ALL.map(|count| row.word(count))).collect();
        words.sort_unstable();
        let expected: Vec<usize> = (HEADER_WORDS..FILE_WORDS).step_by(2).collect();
        assert_eq!(words, expected);
        assert!(Header::Name as usize + NAME_BYTES / 4 <= HEADER_WORDS);
    }

    #[test]
    fn a_kind_is_found_by_its_name_and_anything_else_is_other() {
        for name in Kind::NAMES {
            assert_eq!(Kind::named(name).name(), name);
        }
        assert_eq!(Kind::named("AES-512-CBC"), Kind::OTHER);
        assert_eq!(Kind::OTHER.name(), "other");
    }

    #[test]
    fn only_a_whole_file_of_this_layout_is_read() {
        let mut words = vec![0; FILE_WORDS];
        assert_eq!(check(&words), Err(Unreadable::NotOurs));
        words[0] = MAGIC;
        assert_eq!(check(&words), Err(Unreadable::Version(0)));
        words[1] = VERSION;
        assert_eq!(check(&words), Ok(()));
        assert_eq!(check(&words[..FILE_WORDS - 1]), Err(Unreadable::Short(FILE_WORDS - 1)));
        assert_eq!(check(&words[..1]), Err(Unreadable::NotOurs));
        assert_eq!(check(&[]), Err(Unreadable::NotOurs));
        words[1] = VERSION + 1;
        assert_eq!(check(&words), Err(Unreadable::Version(VERSION + 1)));
    }
}
