//! What others counted: files are read, never mapped, so that one that is cut short or full of noise does no harm.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use evener_core::counts::{Count, FILE_WORDS, HEADER_WORDS, Header, NAME_BYTES, Row, Unreadable, check};
use evener_fd::{Directories, open_private};
use evener_ring::value;
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};

use super::names;
use super::process::Identity;

/// Bytes of a whole file.
pub(super) const FILE_BYTES: usize = FILE_WORDS * size_of::<u32>();

/// The counts of one process, as they were when they were read.
#[derive(Clone, Debug)]
pub struct Record {
    identity: Identity,
    words: Vec<u32>,
}

impl Record {
    /// The process.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.identity.pid
    }

    /// When it began, in clock ticks since the machine started (proc_pid_stat(5), field 22): tells it from another one with its number. 0 where the
    /// system did not tell.
    #[must_use]
    pub const fn start_ticks(&self) -> u64 {
        self.identity.start
    }

    /// Whether its number means this process here too: in another container it may be another's.
    #[must_use]
    pub fn is_of_this_namespace(&self) -> bool {
        self.identity.is_of_here()
    }

    /// Whether it had ended when the file was read.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        !self.identity.runs()
    }

    /// Its name when it began to count, in plain characters.
    #[must_use]
    pub fn name(&self) -> String {
        let start = Header::Name as usize;
        let bytes = self.words[start..start + NAME_BYTES / 4].iter().flat_map(|word| word.to_ne_bytes());
        let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
        let plain = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        String::from_utf8_lossy(&bytes).chars().map(plain).collect()
    }

    /// Results of lanes that were wrong; lanes are out of service where there are any.
    #[must_use]
    pub fn wrong_lanes(&self) -> u32 {
        self.words[Header::WrongLanes as usize]
    }

    /// Results of kernels that were wrong; kernels of their classes are out of service where there are any.
    #[must_use]
    pub fn wrong_kernels(&self) -> u32 {
        self.words[Header::WrongKernels as usize]
    }

    /// Results of modules that were wrong; their modules are out of service where there are any.
    #[must_use]
    pub fn wrong_modules(&self) -> u32 {
        self.words[Header::WrongModules as usize]
    }

    /// One count.
    #[must_use]
    pub fn count(&self, row: Row, count: Count) -> u64 {
        let at = row.word(count);
        value(self.words[at], self.words[at + 1])
    }

    /// All counts of a row.
    #[must_use]
    pub fn row(&self, row: Row) -> Totals {
        Totals(Count::ALL.map(|count| self.count(row, count)))
    }
}

/// A value for each count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals([u64; Count::ALL.len()]);

impl Totals {
    /// One of them.
    #[must_use]
    pub const fn of(&self, count: Count) -> u64 {
        self.0[count as usize]
    }

    /// Requests, whichever way they went.
    #[must_use]
    pub fn requests(&self) -> u64 {
        Count::WAYS.iter().fold(0, |sum, way| sum.saturating_add(self.of(*way)))
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; Count::ALL.len()]
    }
}

impl std::ops::AddAssign for Totals {
    /// Sums stop at the greatest value: a hostile file may hold any.
    fn add_assign(&mut self, other: Self) {
        for (sum, part) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(part);
        }
    }
}

/// Why the counts of a process cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordError {
    /// The system refused to read it.
    Io(io::Error),
    /// It is not what it should be.
    Unreadable(Unreadable),
}

impl std::fmt::Display for RecordError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Unreadable(reason) => reason.fmt(f),
        }
    }
}

impl std::error::Error for RecordError {}

impl From<io::Error> for RecordError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A file that is there, by the process that its name says.
type Found = (u32, Result<Record, RecordError>);

/// Every record of user `uid`, by number of the process.
#[must_use]
pub fn of_user(places: &Directories, uid: u32) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for path in places.of(uid) {
        let Ok(directory) = open_private(&path, uid) else { continue };
        let pids = pids(directory.as_fd());
        found.extend(pids.into_iter().map(|pid| (pid, read(directory.as_fd(), uid, pid))));
    }
    found.sort_by_key(|(pid, _)| *pid);
    found
}

/// The record of process `pid`: of its user, in its own view of the file system if it is not in ours. `uid` is whose
/// directories are looked at where the process has ended.
#[must_use]
pub fn of_process(places: &Directories, uid: u32, pid: u32) -> Option<Result<Record, RecordError>> {
    let owner = std::fs::metadata(format!("/proc/{pid}")).map_or(uid, |stat| stat.uid());
    let own_paths = places.of(owner);
    let foreign_paths =
        own_paths.iter().filter_map(|path| Some(own_view(pid)?.join(path.strip_prefix("/").ok()?)));
    for path in own_paths.iter().cloned().chain(foreign_paths) {
        let Ok(directory) = open_private(&path, owner) else { continue };
        match read(directory.as_fd(), owner, pid) {
            Err(RecordError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
            found => return Some(found),
        }
    }
    None
}

/// The files of those processes of user `uid` that have ended. What is read afterwards holds all that they counted.
#[must_use]
pub fn ended_files(places: &Directories, uid: u32) -> EndedFiles {
    let found = places.of(uid).into_iter().filter_map(|path| {
        let directory = open_private(&path, uid).ok()?;
        let owners = pids(directory.as_fd()).into_iter().map(|pid| owner(directory.as_fd(), uid, pid));
        let ended = owners.filter(|owner| !owner.runs()).collect();
        Some((directory, ended))
    });
    EndedFiles { uid, found: found.collect() }
}

/// Files of processes that had ended when these were looked for: to be removed once they were shown.
#[derive(Debug)]
pub struct EndedFiles {
    uid: u32,
    /// By directory.
    found: Vec<(OwnedFd, Vec<Identity>)>,
}

impl EndedFiles {
    /// Removes them and returns how many. A file that another process has made under the same number since stays.
    pub fn remove(self) -> usize {
        let mut removed = 0;
        for (directory, owners) in &self.found {
            for known in owners {
                let now = owner(directory.as_fd(), self.uid, known.pid);
                let is_the_same = now == *known && !now.runs();
                let unlink = || fs::unlinkat(directory, file_name(known.pid), AtFlags::empty());
                removed += usize::from(is_the_same && unlink().is_ok());
            }
        }
        removed
    }
}

/// Removes the files of some processes of user `uid` that are no more, where it is the turn of process `own`; a number that is in use again is left to
/// readers. Most processes look at none: where many live side by side, each would pay for all of them.
pub(super) fn remove_leftovers(directory: BorrowedFd<'_>, uid: u32, own: u32) {
    if own % LEFTOVERS_EVERY != 0 {
        return;
    }
    let pids = pids(directory);
    // A few are no burden, and who asks next is told what they counted.
    if pids.len() <= LEFTOVERS_KEPT {
        return;
    }
    // From one place to the next by the process's number, for the same ones always come first.
    let first = own as usize / LEFTOVERS_EVERY as usize * LEFTOVERS_MAX;
    let some =
        (0..(pids.len() - LEFTOVERS_KEPT).min(LEFTOVERS_MAX)).map(|index| pids[(first + index) % pids.len()]);
    // First by the number alone: most run, and need no look into their files.
    let is_left_over = |pid: &u32| !Identity::numbered(*pid).runs() && !owner(directory, uid, *pid).runs();
    for pid in some.filter(is_left_over) {
        fs::unlinkat(directory, file_name(pid), AtFlags::empty()).ok();
    }
}

/// One process in so many looks for leftovers. Assumed, not measured: as many as it looks at, so that as many go as come.
const LEFTOVERS_EVERY: u32 = 64;
/// Files that stay, of whichever processes. Assumed, not measured: 64, as many as are made from one turn to the next.
const LEFTOVERS_KEPT: usize = 64;
/// Files that it looks at. Assumed, not measured: 64, because one look takes some microseconds.
const LEFTOVERS_MAX: usize = 64;

/// The file of process `pid`.
pub(super) fn file_name(pid: u32) -> String {
    format!("{pid}.stats")
}

fn own_view(pid: u32) -> Option<PathBuf> {
    let root = Path::new("/proc").join(pid.to_string()).join("root");
    root.is_dir().then_some(root)
}

/// The processes whose files lie there.
fn pids(directory: BorrowedFd<'_>) -> Vec<u32> {
    let mut pids = Vec::new();
    let mut look = |name: &CStr| {
        // A program that has no memory left makes its file, too: what does not fit is left to the next one.
        let has_room = pids.try_reserve(1).is_ok();
        pids.extend(pid_of(name).filter(|_| has_room));
        has_room
    };
    _ = names::each(directory, &mut look);
    pids
}

/// The process in a file's name, if it is such a name. Takes no memory: a process that looks for leftovers goes through thousands of names.
fn pid_of(name: &CStr) -> Option<u32> {
    let digits = name.to_str().ok()?.strip_suffix(".stats")?;
    let is_as_we_write_it = digits.starts_with(|first| matches!(first, '1'..='9'));
    digits.parse().ok().filter(|_| is_as_we_write_it)
}

fn read(directory: BorrowedFd<'_>, uid: u32, pid: u32) -> Result<Record, RecordError> {
    let words = first_words(open(directory, uid, pid)?, FILE_WORDS)?;
    check(&words).map_err(RecordError::Unreadable)?;
    let identity = Identity::from_header(&words);
    if identity.pid != pid {
        return Err(RecordError::Unreadable(Unreadable::NotOurs));
    }
    Ok(Record { identity, words })
}

/// The process whose file it is, also where no more of that can be read than its header, or its name.
fn owner(directory: BorrowedFd<'_>, uid: u32, pid: u32) -> Identity {
    let words = open(directory, uid, pid).and_then(|file| Ok(first_words(file, HEADER_WORDS)?));
    let said = Identity::from_header(&words.unwrap_or_default());
    if said.pid == pid { said } else { Identity::numbered(pid) }
}

fn open(directory: BorrowedFd<'_>, uid: u32, pid: u32) -> Result<OwnedFd, RecordError> {
    // Not blocking: a pipe under that name would keep us for ever.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file: OwnedFd =
        fs::openat(directory, file_name(pid), flags, Mode::empty()).map_err(io::Error::from)?;
    let stat = fs::fstat(&file).map_err(io::Error::from)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_uid != uid {
        return Err(RecordError::Unreadable(Unreadable::NotOurs));
    }
    Ok(file)
}

fn first_words(file: OwnedFd, count: usize) -> io::Result<Vec<u32>> {
    let mut bytes = Vec::with_capacity(count * size_of::<u32>());
    File::from(file).take((count * size_of::<u32>()) as u64).read_to_end(&mut bytes)?;
    let words = bytes.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    Ok(words.collect())
}

#[cfg(test)]
mod tests {
    use std::fs::{File, create_dir, remove_dir_all};

    use super::*;

    /// Numbers beyond every process's (`pid_max` is 2^22 at most), so that all of them are gone.
    const GONE: u32 = 1 << 23;

    #[test]
    fn the_names_that_count_are_those_that_processes_write() {
        let odd = [".stats", "007.stats", "+7.stats", "-7.stats", "7", "7.stats2", "4294967296.stats"];
        let written = [1, 42, 4_194_304, u32::MAX].map(file_name);
        for name in odd.iter().copied().chain(written.iter().map(String::as_str)) {
            let read = pid_of(&std::ffi::CString::new(name).unwrap());
            assert_eq!(read.map(file_name), written.iter().find(|text| *text == name).cloned(), "{name:?}");
        }
    }

    #[test]
    fn a_process_looks_at_no_neighbour_unless_it_is_its_turn_and_then_at_some() {
        let place = std::env::temp_dir().join(format!("evener-leftovers-{}", std::process::id()));
        create_dir(&place).unwrap();
        let files = u32::try_from(3 * LEFTOVERS_MAX + LEFTOVERS_KEPT).unwrap();
        (0..files).for_each(|index| drop(File::create(place.join(file_name(GONE + index))).unwrap()));
        let directory = File::open(&place).unwrap();
        let left = || pids(directory.as_fd()).len();
        let uid = rustix::process::geteuid().as_raw();
        (1..LEFTOVERS_EVERY).for_each(|own| remove_leftovers(directory.as_fd(), uid, own));
        assert_eq!(left(), files as usize);
        let turns = [5, 9, 2, 7].map(|turn| {
            remove_leftovers(directory.as_fd(), uid, turn * LEFTOVERS_EVERY);
            left()
        });
        assert_eq!(turns.map(|left| left - LEFTOVERS_KEPT), [2 * LEFTOVERS_MAX, LEFTOVERS_MAX, 0, 0]);
        // Those that count in another namespace of process numbers, however far they have come with their files.
        remove_dir_all(&place).unwrap();
        create_dir(&place).unwrap();
        let directory = File::open(&place).unwrap();
        for pid in GONE..GONE + u32::try_from(LEFTOVERS_KEPT + 5).unwrap() {
            let mut header = [0_u32; HEADER_WORDS];
            (header[Header::Pid as usize], header[Header::Namespace as usize]) = (pid, 1);
            let bytes: Vec<u8> = header.iter().flat_map(|word| word.to_ne_bytes()).collect();
            std::fs::write(place.join(file_name(pid)), bytes).unwrap();
        }
        remove_leftovers(directory.as_fd(), uid, LEFTOVERS_EVERY);
        assert_eq!(pids(directory.as_fd()).len(), LEFTOVERS_KEPT + 5);
        remove_dir_all(&place).unwrap();
    }
}
