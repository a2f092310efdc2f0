//! Rows: what an output was made from, as what the file system said of both.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;
use sha2::{Digest as _, Sha256};

use super::Trust;

/// Where an output stands below the run's output, as the start of a SHA-256 of its directory's spot and its name, so that all rows are
/// equally long. The run's output itself is [`Spot::default`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Spot([u8; 16]);

impl Spot {
    /// The spot of `name` in the directory whose spot this is.
    pub(crate) fn join(self, name: &OsStr) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(name.as_bytes());
        Self(first_16(&hash.finalize()))
    }
}

impl Spot {
    /// The spot of the directory at `path`, where outputs are single ones: these lie anywhere and have one record in common.
    pub(crate) fn of_single_outputs(path: &Path) -> Self {
        let absolute = std::path::absolute(path);
        absolute.map_or_else(|_| Self::default(), |path| Self::default().join(path.as_os_str()))
    }

    /// Bits that are as good as random.
    pub(super) fn first_bits(self) -> u64 {
        u64::from_le_bytes(*self.0.first_chunk().expect("a spot has 16 bytes"))
    }
}

/// The start of a SHA-256 of the header of the encrypted side, which holds fresh random bytes: it is that of no other file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header([u8; 16]);

impl Header {
    pub(crate) fn of(header: &[u8]) -> Self {
        Self(first_16(&Sha256::digest(header)))
    }
}

fn first_16(hash: &[u8]) -> [u8; 16] {
    *hash.first_chunk().expect("a SHA-256 has 32 bytes")
}

/// What the file system says of a file, as far as that shows whether it is the one that it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) bytes: u64,
    /// Time of the contents, and of the inode. In ns since 1970, and beyond the year 2262 something else that is as different.
    pub(crate) modified_ns: i64,
    pub(crate) changed_ns: i64,
    pub(crate) inode: u64,
}

/// Longest tick of the kernel's clock for files: 10 ms, at 100 ticks a second.
const TICK_NS: i64 = 10_000_000;
/// What is waited for at most: one such tick.
pub(crate) const TICK: Duration = Duration::from_millis(10);
/// The time of the inode in a promise: no file has it.
const PROMISED_NS: i64 = i64::MIN;
/// Longest unit of times in whole seconds: two seconds, of FAT.
const COARSE_TICK_NS: i64 = 2_000_000_000;

/// Of a time since 1970. On 32-bit processors the kernel's nanoseconds have 32 bits.
fn nanoseconds(seconds: i64, more: impl Into<u64>) -> i64 {
    seconds.wrapping_mul(1_000_000_000).wrapping_add_unsigned(more.into())
}

fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

impl Stamp {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
            changed_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
            inode: stat.st_ino,
        }
    }

    /// A time that no change to come will have, by this machine's clock: a tick ago.
    pub(crate) fn settled_ns() -> i64 {
        now_ns().saturating_sub(TICK_NS)
    }

    /// How long it takes until a change of the file shows in its times: within the tick of the clock in which they were set, none does.
    pub(crate) fn settles_in(&self) -> Duration {
        let now_ns = now_ns();
        let last_ns = self.modified_ns.max(self.changed_ns);
        let tick_ns = if last_ns % 1_000_000_000 == 0 { COARSE_TICK_NS } else { TICK_NS };
        // Times to come are some other clock's, and tell nothing.
        let young_ns =
            if last_ns > now_ns { 0 } else { last_ns.saturating_add(tick_ns).saturating_sub(now_ns) };
        Duration::from_nanos(u64::try_from(young_ns).unwrap_or(0))
    }

    pub(super) fn is(&self, other: &Self, trust: Trust) -> bool {
        (self.bytes, self.modified_ns) == (other.bytes, other.modified_ns)
            && (!trust.ctime || self.changed_ns == other.changed_ns)
            && (!trust.inode || self.inode == other.inode)
    }

    fn to_bytes(self) -> [[u8; 8]; 4] {
        let Self { bytes, modified_ns, changed_ns, inode } = self;
        [bytes.to_le_bytes(), modified_ns.to_le_bytes(), changed_ns.to_le_bytes(), inode.to_le_bytes()]
    }

    fn from_bytes(words: &[[u8; 8]]) -> Self {
        Self {
            bytes: u64::from_le_bytes(words[0]),
            modified_ns: i64::from_le_bytes(words[1]),
            changed_ns: i64::from_le_bytes(words[2]),
            inode: u64::from_le_bytes(words[3]),
        }
    }
}

/// One output that was there, complete, when this was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) spot: Spot,
    pub(crate) source: Stamp,
    pub(crate) output: Stamp,
    pub(crate) header: Header,
}

impl Row {
    /// Of a directory that a run made. What is in it changes, so its inode is all that is known of it; no file is as long.
    pub(crate) fn of_directory(spot: Spot, inode: u64) -> Self {
        let output = Stamp { bytes: u64::MAX, inode, ..Stamp::default() };
        Self { spot, output, ..Self::default() }
    }

    /// Of an output that is whole and about to get its name. It stands there if it can be known by its header, and else nothing is said:
    /// a kill may have come before.
    pub(crate) fn as_promise(self) -> Self {
        let output = Stamp { changed_ns: PROMISED_NS, ..self.output };
        Self { output, ..self }
    }

    /// Whether it tells of an output that was yet to get its name.
    pub(crate) fn is_promise(&self) -> bool {
        self.output.changed_ns == PROMISED_NS
    }

    pub(super) const BYTES: usize = 96;

    pub(super) fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.spot.0);
        to.extend_from_slice(self.source.to_bytes().as_flattened());
        to.extend_from_slice(self.output.to_bytes().as_flattened());
        to.extend_from_slice(&self.header.0);
    }

    pub(super) fn read(bytes: &[u8; Self::BYTES]) -> Self {
        let words: Vec<[u8; 8]> =
            bytes[16..80].chunks_exact(8).map(|word| word.try_into().expect("eight bytes")).collect();
        Self {
            spot: Spot(first_16(bytes)),
            source: Stamp::from_bytes(&words[..4]),
            output: Stamp::from_bytes(&words[4..]),
            header: Header(first_16(&bytes[80..])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_to_count_is_left_out_of_the_comparison_and_nothing_else_is() {
        let stamp = Stamp { bytes: 1, modified_ns: 2, changed_ns: 3, inode: 4 };
        let (ctime, inode) = (Stamp { changed_ns: 9, ..stamp }, Stamp { inode: 9, ..stamp });
        let (length, time) = (Stamp { bytes: 9, ..stamp }, Stamp { modified_ns: 9, ..stamp });
        for (trusts_ctime, trusts_inode) in [(true, true), (true, false), (false, true), (false, false)] {
            let trust = Trust { ctime: trusts_ctime, inode: trusts_inode };
            assert!(stamp.is(&stamp, trust));
            assert_eq!(stamp.is(&ctime, trust), !trusts_ctime);
            assert_eq!(stamp.is(&inode, trust), !trusts_inode);
            assert!(!stamp.is(&length, trust) && !stamp.is(&time, trust));
        }
    }

    #[test]
    fn a_row_comes_back_as_it_was_written() {
        let source = Stamp { bytes: u64::MAX, modified_ns: i64::MIN, changed_ns: -1, inode: 1 << 63 };
        let output = Stamp { bytes: 1, modified_ns: 2, changed_ns: 3, inode: 4 };
        let (spot, header) = (Spot::default().join(OsStr::new("b")), Header::of(b"a header"));
        let row = Row { spot, source, output, header };
        let mut bytes = Vec::new();
        row.write(&mut bytes);
        assert_eq!(Row::read(bytes.as_slice().try_into().unwrap()), row);
    }
}
