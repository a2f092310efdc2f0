//! The file of a record: read when a run begins, appended to while it goes on, made shorter at its end where much is said twice.
//!
//! Runs beside each other append to one file, each block by one write. A run that has it open holds a shared lock; who would cut off a
//! torn end or write it anew needs the lock alone and does without where it cannot have it.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::time::Duration;

use evener_fd::open_named;
use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::Known;
use super::block::{self, Group, MAGIC, MAGIC_OF_ALL};
use super::place::Place;
use super::request_key::RequestKey;
use super::row::Row;
use crate::input::place::DIRECTORY_FLAGS;

/// Rows by which a record may be longer than what it says, beside a part of that: less than promises make of it, of which each has a row when
/// all is done. Assumed, not measured: 1000, 96 KiB, and a quarter.
const SPARE_ROWS: usize = 1_000;
const SPARE_PART: usize = 4;

pub(super) struct RecordFile {
    places: Vec<Place>,
    /// What is open: its place among the others, and how far it was read.
    open: Option<Open>,
    /// Rows in it that this run's key opened or wrote.
    rows: usize,
    /// Whether this run added any.
    has_added: bool,
    /// Nothing could be opened for writing; it is not tried again.
    is_given_up: bool,
}

struct Open {
    place: usize,
    dir: OwnedFd,
    file: File,
    is_writable: bool,
    /// Whether it was made just now, so that its name is to last, too.
    is_new: bool,
    /// Bytes that were read, whole blocks; the last of them are still in `ahead`.
    read: u64,
    ahead: Vec<u8>,
}

impl RecordFile {
    pub(super) fn new(places: Vec<Place>) -> Self {
        Self { places, open: None, rows: 0, has_added: false, is_given_up: false }
    }

    /// Adds the rows that were appended since the last look.
    pub(super) fn read_new(&mut self, key: &RequestKey, known: &mut Vec<Known>) {
        if self.open.is_none() {
            self.open = (0..self.places.len()).find_map(|place| open(&self.places[place], place, false));
        }
        let Some(open) = &mut self.open else { return };
        let mut bytes = std::mem::take(&mut open.ahead);
        if bytes.is_empty() {
            let end = open.file.seek(SeekFrom::Start(open.read));
            if end.and_then(|_| open.file.read_to_end(&mut bytes)).is_err() {
                return;
            }
        }
        let before = known.len();
        known.reserve(bytes.len() / Row::BYTES);
        let mut rest = bytes.as_mut_slice();
        while let Some(length) = block::length(rest) {
            let (block, behind) = rest.split_at_mut(length);
            block::open(&key.cipher, block, known);
            (rest, open.read) = (behind, open.read + length as u64);
        }
        self.rows += known.len() - before;
    }

    /// Appends a block, and gives up for good where that cannot be done; whether it is written.
    pub(super) fn append(&mut self, key: &RequestKey, group: Group, rows: &[Row]) -> bool {
        if self.is_given_up || !self.is_writable() {
            self.is_given_up = true;
            return false;
        }
        let (Some(open), Ok(blocks)) = (&mut self.open, block::seal(&key.cipher, key.request, group, rows))
        else {
            return false;
        };
        // One write to a file that is opened to be appended to: blocks of several runs do not mix.
        self.is_given_up = !matches!(open.file.write(&blocks), Ok(written) if written == blocks.len());
        self.rows += rows.len();
        self.has_added = true;
        !self.is_given_up
    }

    /// Makes what was appended last.
    pub(super) fn sync(&mut self) {
        if let Some(file) = self.unsynced() {
            file.sync_data().ok();
        }
    }

    /// The record, for a sync of what was appended so far. Its name lasts already; without a descriptor for it, so does the rest.
    pub(super) fn unsynced(&mut self) -> Option<File> {
        let open = self.open.as_mut().filter(|_| self.has_added)?;
        if std::mem::take(&mut open.is_new) {
            fs::fsync(&open.dir).ok();
        }
        match open.file.try_clone() {
            Ok(file) => Some(file),
            Err(_) => {
                open.file.sync_data().ok();
                None
            }
        }
    }

    /// Whether another run has the record open.
    pub(super) fn has_company(&self) -> bool {
        let Some(open) = &self.open else { return false };
        let alone = fs::flock(&open.file, FlockOperation::NonBlockingLockExclusive);
        fs::flock(&open.file, FlockOperation::NonBlockingLockShared).ok();
        alone == Err(Errno::WOULDBLOCK)
    }

    /// Opens the best place that can be written, unless what is open can.
    fn is_writable(&mut self) -> bool {
        if self.open.is_none() {
            self.open = (0..self.places.len()).find_map(|place| open(&self.places[place], place, true));
        }
        self.open.as_ref().is_some_and(|open| open.is_writable)
    }

    /// Writes the record anew where much in it is said twice or may go.
    pub(super) fn finish(mut self, key: &RequestKey) {
        // Of a tree, so that what it tells of can be deleted later, too.
        if self.open.as_ref().is_some_and(|open| self.places[open.place].rows_max == usize::MAX) {
            self.sync();
        }
        let Some(open) = &mut self.open else { return };
        let place = &self.places[open.place];
        // A run that added nothing leaves it as short as it was.
        if !self.has_added || self.rows <= SPARE_ROWS || !open.is_writable {
            return;
        }
        let mut all = Vec::new();
        let mut bytes = Vec::new();
        let start = SeekFrom::Start(MAGIC.len() as u64);
        if fs::flock(&open.file, FlockOperation::NonBlockingLockExclusive).is_err()
            || open.file.seek(start).and_then(|_| open.file.read_to_end(&mut bytes)).is_err()
        {
            return;
        }
        let mut anew = MAGIC.to_vec();
        let mut rest = bytes.as_mut_slice();
        while let Some(length) = block::length(rest) {
            let (block, behind) = rest.split_at_mut(length);
            if !block::open(&key.cipher, block, &mut all) {
                anew.extend_from_slice(block);
            }
            rest = behind;
        }
        let newest = newest(&all, place.rows_max);
        let spare = all.len() - newest.len();
        if spare > newest.len() / SPARE_PART + SPARE_ROWS || all.len() > place.rows_max.saturating_mul(2) {
            for same in newest.chunk_by(|one, other| (one.request, one.group) == (other.request, other.group))
            {
                let rows: Vec<Row> = same.iter().map(|known| known.row).collect();
                let Ok(blocks) = block::seal(&key.cipher, same[0].request, same[0].group, &rows) else {
                    return;
                };
                anew.extend_from_slice(&blocks);
            }
            replace(open, place, &anew);
        }
    }
}

/// The newest row of each spot and what was promised since, the oldest first.
fn newest(all: &[Known], rows_max: usize) -> Vec<Known> {
    let mut seen = HashSet::new();
    let newest = all.iter().rev().filter(|known| match known.row.is_promise() {
        true => !seen.contains(&known.row.spot),
        false => seen.insert(known.row.spot),
    });
    let mut newest: Vec<Known> = newest.take(rows_max).copied().collect();
    newest.reverse();
    newest
}

/// Puts `bytes` in the place of the record.
fn replace(open: &Open, place: &Place, bytes: &[u8]) {
    let mut draft = place.name.clone();
    draft.push(".new");
    // Of a run that was killed; the lock says that no other is here.
    fs::unlinkat(&open.dir, &draft, AtFlags::empty()).ok();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let Ok(file) = fs::openat(&open.dir, &draft, flags, Mode::RUSR | Mode::WUSR) else { return };
    let mut file = File::from(file);
    let written = file.write_all(bytes).and_then(|()| file.sync_data());
    if written.is_err() || fs::renameat(&open.dir, &draft, &open.dir, &place.name).is_err() {
        fs::unlinkat(&open.dir, &draft, AtFlags::empty()).ok();
    }
}

/// Opens the record of a place; `make` says that one is made, or made anew of what is none, where that can be written.
fn open(place: &Place, number: usize, make: bool) -> Option<Open> {
    if make && place.is_kept {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&place.dir).ok()?;
    }
    let dir = open_named(&place.dir, DIRECTORY_FLAGS).ok()?;
    let open = |access: OFlags, mode: Mode| {
        let flags = OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        fs::openat(&dir, &place.name, access | flags, mode)
    };
    let to_append = OFlags::RDWR | OFlags::APPEND;
    let found = open(to_append, Mode::empty());
    let is_new = make && matches!(found, Err(Errno::NOENT));
    let (file, is_writable) = match found {
        Err(Errno::NOENT) if make => (open(to_append | OFlags::CREATE, Mode::RUSR | Mode::WUSR).ok()?, true),
        Err(Errno::ACCESS | Errno::ROFS | Errno::PERM) => (open(OFlags::RDONLY, Mode::empty()).ok()?, false),
        found => (found.ok()?, true),
    };
    let mut file = File::from(file);
    if !is_ours(&file)? {
        return None;
    }
    let ahead = read_whole(&mut file, is_writable)?;
    fs::flock(&file, FlockOperation::NonBlockingLockShared).ok();
    let read = MAGIC.len() as u64;
    Some(Open { place: number, dir, file, is_writable, is_new, read, ahead })
}

/// Whether it is a file of this user under this name only: another user's, or one that has another name as well, is not written to.
fn is_ours(file: &File) -> Option<bool> {
    let stat = fs::fstat(file).ok()?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    Some(is_file && stat.st_nlink == 1 && stat.st_uid == rustix::process::geteuid().as_raw())
}

/// The blocks of a record; what is none is cut off. `None` where it is one of another version, or cannot be mended.
fn read_whole(file: &mut File, is_writable: bool) -> Option<Vec<u8>> {
    for _ in 0..LOOKS {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes)).ok()?;
        let whole = whole_bytes(&bytes)?;
        if whole < bytes.len() || whole == 0 {
            // Torn by a crash, or damaged; or another run is just writing here, and holds the lock.
            let is_alone = is_writable && fs::flock(&*file, FlockOperation::NonBlockingLockExclusive).is_ok();
            if is_alone {
                file.set_len(whole as u64).ok()?;
                if whole == 0 {
                    file.write_all(MAGIC).ok()?;
                }
            } else if whole == 0 {
                std::thread::sleep(BETWEEN_LOOKS);
                continue;
            }
        }
        bytes.truncate(whole);
        bytes.drain(..MAGIC.len().min(whole));
        return Some(bytes);
    }
    None
}

/// How far `bytes` are a record: 0 where they are none at all, `None` where they are one of another version.
fn whole_bytes(bytes: &[u8]) -> Option<usize> {
    let Some(mut rest) = bytes.strip_prefix(MAGIC) else {
        return if bytes.starts_with(MAGIC_OF_ALL) { None } else { Some(0) };
    };
    while let Some(length) = block::length(rest) {
        rest = &rest[length..];
    }
    Some(bytes.len() - rest.len())
}

/// How often and at which intervals a record is looked at that another run has just made and not yet begun. Assumed, not measured: 0.2 s
/// together; a run that sees nothing by then goes without.
const LOOKS: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
