//! A tree of inputs, entry by entry: directories before what is in them, each opened in the one above it.

use std::collections::VecDeque;
use std::ffi::{CStr, OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{self, AtFlags, FileType, RawDir, Stat};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use crate::error::FileError;
use crate::input::place::{OpenPlaces, Place};
use crate::input::source_file::open_root;

/// Directories that are kept open for listing at a time; of those above them the rest is read ahead. As many as the crate
/// `walkdir` keeps.
const OPEN_MAX: usize = 10;

/// What was found; `depth` says how far below the root, which is 0.
pub(crate) enum Found {
    /// A directory as it was opened. What is in it comes next, unless [`Descent::skip`] is called.
    Directory { place: Arc<Place>, depth: usize, stat: Stat, name: OsString },
    /// Anything else, and the directory that it lies in.
    Other { place: Arc<Place>, name: OsString, depth: usize, kind: FileType },
    /// What cannot be read.
    Failed(PathBuf, FileError),
}

/// A walk through a tree.
pub(crate) struct Descent {
    root: Option<(Arc<Place>, Stat)>,
    /// Directories from the root to the current one.
    levels: Vec<Level>,
    /// The path of the current one.
    path: PathBuf,
    order: Order,
}

/// The order in which what is in a directory comes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// As file systems have them side by side, a good many at a time.
    Inodes,
    /// As `LC_ALL=C sort` puts paths, a whole directory at a time.
    Names,
}

struct Level {
    place: Arc<Place>,
    listing: Listing,
}

/// What is left of a directory's entries.
struct Listing {
    /// The directory, until its end was read.
    dir: Option<OwnedFd>,
    /// What was read of it.
    ahead: VecDeque<Listed>,
    order: Order,
}

type Listed = Result<(OsString, FileType), Errno>;

impl Descent {
    /// Opens the directory that the user named `path`.
    pub(crate) fn new(path: &Path, open: &Arc<OpenPlaces>) -> Result<Self, FileError> {
        Self::by(Order::Inodes, path, open)
    }

    /// The same in an order.
    pub(crate) fn by(order: Order, path: &Path, open: &Arc<OpenPlaces>) -> Result<Self, FileError> {
        let root = open_root(path, open)?;
        Ok(Self { root: Some(root), levels: Vec::new(), path: path.to_owned(), order })
    }

    /// The path of the current directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The next thing found; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<Found> {
        if let Some((root, stat)) = self.root.take() {
            return Some(match self.list(root, OsString::new(), stat) {
                Ok(found) => found,
                Err(error) => Found::Failed(self.path.clone(), error),
            });
        }
        loop {
            let depth = self.levels.len();
            let level = self.levels.last_mut()?;
            match level.listing.next() {
                Some(Ok((name, FileType::Directory))) => return Some(self.enter(name)),
                Some(Ok((name, kind))) => {
                    return Some(Found::Other { place: Arc::clone(&level.place), name, depth, kind });
                }
                Some(Err(errno)) => {
                    let path = self.path.clone();
                    self.skip();
                    return Some(Found::Failed(path, FileError::io("read")(errno)));
                }
                None => self.skip(),
            }
        }
    }

    /// Leaves the rest of the current directory out.
    pub(crate) fn skip(&mut self) {
        self.levels.pop();
        if !self.levels.is_empty() {
            self.path.pop();
        }
    }

    fn enter(&mut self, name: OsString) -> Found {
        let above = &self.levels.last().expect("a directory is found in another").place;
        let entered = above.enter(&name);
        self.path.push(&name);
        match entered.and_then(|(place, stat)| self.list(place, name, stat)) {
            Ok(found) => found,
            Err(error) => {
                let path = self.path.clone();
                self.path.pop();
                Found::Failed(path, error)
            }
        }
    }

    /// Begins to list a directory.
    fn list(&mut self, place: Arc<Place>, name: OsString, stat: Stat) -> Result<Found, FileError> {
        let fd = place.fd()?;
        // A descriptor of its own: that of the place may be closed while the listing goes on.
        let own = fcntl_dupfd_cloexec(&*fd, 0).map_err(FileError::io("read"))?;
        let listing = Listing { dir: Some(own), ahead: VecDeque::new(), order: self.order };
        let depth = self.levels.len();
        self.levels.push(Level { place: Arc::clone(&place), listing });
        if let Some(far) = depth.checked_sub(OPEN_MAX) {
            self.levels[far].listing.read_ahead();
        }
        Ok(Found::Directory { place, depth, stat, name })
    }
}

impl Listing {
    fn next(&mut self) -> Option<Listed> {
        if self.ahead.is_empty() {
            self.read_on();
        }
        self.ahead.pop_front()
    }

    /// Reads the rest, so that the directory is closed.
    fn read_ahead(&mut self) {
        while self.dir.is_some() {
            self.read_on();
        }
    }

    /// Reads a good many entries on: one at least, unless none is left; all where they are to come by their names.
    fn read_on(&mut self) {
        let Some(dir) = self.dir.take() else { return };
        let mut room = [MaybeUninit::uninit(); LISTING_BYTES];
        let mut entries = RawDir::new(&dir, &mut room);
        let (mut found, mut is_end) = (Vec::new(), false);
        let is_enough = |found: &Vec<_>| self.order == Order::Inodes && found.len() >= SORTED_MIN;
        while !(is_end || is_enough(&found) && entries.is_buffer_empty()) {
            match entries.next() {
                None => is_end = true,
                Some(Err(errno)) => {
                    found.push((u64::MAX, Err(errno)));
                    is_end = true;
                }
                Some(Ok(entry)) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                Some(Ok(entry)) => {
                    found.push((entry.ino(), listed(dir.as_fd(), entry.file_name(), entry.file_type())));
                }
            }
        }
        match self.order {
            Order::Inodes => found.sort_by_key(|(inode, _)| *inode),
            Order::Names => found.sort_by_cached_key(|(_, listed)| place_among_paths(listed)),
        }
        self.ahead.extend(found.into_iter().map(|(_, listed)| listed));
        self.dir = (!is_end).then_some(dir);
    }
}

/// Where a path with this name stands among paths: that of a directory goes on behind a slash. What could not be read comes last.
fn place_among_paths(listed: &Listed) -> (bool, Vec<u8>) {
    let Ok((name, kind)) = listed else { return (true, Vec::new()) };
    let mut place = name.as_bytes().to_vec();
    if *kind == FileType::Directory {
        place.push(b'/');
    }
    (false, place)
}

/// Entries that are put in order together, as far as a directory has them. Assumed, not measured: 4096, some 300 KiB.
const SORTED_MIN: usize = 4_096;

/// Room for the entries that one call gives: several hundred. Assumed, not measured: 32 KiB.
const LISTING_BYTES: usize = 32 << 10;

fn listed(dir: BorrowedFd<'_>, name: &CStr, kind: FileType) -> Listed {
    let kind = match kind {
        // Some file systems do not say.
        FileType::Unknown => kind_of(dir, name)?,
        kind => kind,
    };
    Ok((OsStr::from_bytes(name.to_bytes()).to_owned(), kind))
}

fn kind_of(dir: BorrowedFd<'_>, name: &CStr) -> Result<FileType, Errno> {
    let stat = fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// Adds up the lengths of all regular files at or below `source`, as far as they can be looked at, until `is_enough`.
pub(crate) fn bytes_below(source: &Path, is_enough: impl Fn() -> bool) -> u64 {
    let Ok(mut descent) = Descent::new(source, &OpenPlaces::new(OPEN_MAX)) else {
        return std::fs::metadata(source).map_or(0, |metadata| metadata.len());
    };
    let mut total = 0;
    while let Some(found) = descent.next().filter(|_| !is_enough()) {
        if let Found::Other { place, name, kind: FileType::RegularFile, .. } = found {
            total += bytes_of(&place, &name);
        }
    }
    total
}

/// Length of a file; 0 where it cannot be looked at.
fn bytes_of(place: &Place, name: &OsStr) -> u64 {
    let stat = place.fd().ok().and_then(|dir| fs::statat(&*dir, name, AtFlags::SYMLINK_NOFOLLOW).ok());
    stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn found(descent: &mut Descent) -> (BTreeSet<PathBuf>, usize) {
        let (mut paths, mut deepest) = (BTreeSet::new(), 0);
        while let Some(found) = descent.next() {
            let (path, depth) = match found {
                Found::Directory { place, depth, .. } => (place.path(), depth),
                Found::Other { place, name, depth, .. } => (place.path().join(name), depth),
                Found::Failed(path, error) => unreachable!("{path:?}: {error}"),
            };
            deepest = deepest.max(depth);
            assert!(paths.insert(path));
        }
        (paths, deepest)
    }

    #[test]
    fn a_tree_deeper_than_directories_are_kept_open_is_found_whole() {
        let place = tempfile::tempdir().unwrap();
        let (mut at, mut expected) = (place.path().to_owned(), BTreeSet::new());
        expected.insert(at.clone());
        for _ in 0..3 * OPEN_MAX {
            for name in ["before", "zebra"] {
                std::fs::write(at.join(name), "").unwrap();
                expected.insert(at.join(name));
            }
            for name in ["aside", "middle"] {
                std::fs::create_dir(at.join(name)).unwrap();
                expected.insert(at.join(name));
            }
            at.push("middle");
        }
        for descriptors in [1, 2 * OPEN_MAX] {
            let mut descent = Descent::new(place.path(), &OpenPlaces::new(descriptors)).unwrap();
            assert_eq!(found(&mut descent), (expected.clone(), 3 * OPEN_MAX));
        }
    }
}
