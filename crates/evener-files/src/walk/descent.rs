//! A tree of inputs, entry by entry: directories before what is in them, each opened beneath the root.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{self, AtFlags, Dir, FileType, OFlags, Stat};
use rustix::io::Errno;

use crate::error::FileError;
use crate::input::beneath::{DIRECTORY_FLAGS, Root};

/// Directories that are kept open at a time; of those above them the rest is read ahead. As many as the crate
/// `walkdir` keeps.
const OPEN_MAX: usize = 10;

/// What was found; `depth` says how far below the root, which is 0.
pub(crate) enum Found {
    /// A directory as it was opened. What is in it comes next, unless [`Descent::skip`] is called.
    Directory { path: PathBuf, name: OsString, depth: usize, stat: Stat },
    /// Anything else.
    Other { path: PathBuf, name: OsString, depth: usize, kind: FileType },
    /// What cannot be read.
    Failed(PathBuf, FileError),
}

/// A walk through a tree.
pub(crate) struct Descent {
    pub(crate) root: Arc<Root>,
    /// Directories from the root to the current one.
    levels: Vec<Level>,
    begun: bool,
}

struct Level {
    path: PathBuf,
    listing: Listing,
}

/// What is left of a directory's entries.
enum Listing {
    Open(Dir),
    Ahead(std::vec::IntoIter<Listed>),
}

type Listed = Result<(OsString, FileType), Errno>;

impl Descent {
    pub(crate) fn new(root: Root) -> Self {
        Self { root: Arc::new(root), levels: Vec::new(), begun: false }
    }

    /// The next thing found; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<Found> {
        if !std::mem::replace(&mut self.begun, true) {
            return Some(self.enter(self.root.path().to_owned(), OsString::new()));
        }
        loop {
            let depth = self.levels.len();
            let level = self.levels.last_mut()?;
            match level.listing.next() {
                Some(Ok((name, kind))) => {
                    let path = level.path.join(&name);
                    return Some(match kind {
                        FileType::Directory => self.enter(path, name),
                        kind => Found::Other { path, name, depth, kind },
                    });
                }
                Some(Err(errno)) => {
                    let path = level.path.clone();
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
    }

    /// Length of a file of the current directory; 0 where it cannot be looked at.
    pub(crate) fn bytes_of(&self, path: &Path, name: &OsStr) -> u64 {
        let stat = match self.levels.last().map(|level| &level.listing) {
            Some(Listing::Open(dir)) => {
                dir.fd().and_then(|dir| fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)).ok()
            }
            _ => self.root.open_found(path, OFlags::PATH | OFlags::CLOEXEC).ok().map(|(_, stat)| stat),
        };
        stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
    }

    fn enter(&mut self, path: PathBuf, name: OsString) -> Found {
        let opened = self.root.open_found(&path, DIRECTORY_FLAGS).and_then(|(fd, stat)| {
            let dir = Dir::new(fd).map_err(FileError::io("read"))?;
            Ok((dir, stat))
        });
        match opened {
            Ok((dir, stat)) => {
                let depth = self.levels.len();
                self.levels.push(Level { path: path.clone(), listing: Listing::Open(dir) });
                if let Some(far) = depth.checked_sub(OPEN_MAX) {
                    self.levels[far].listing.read_ahead();
                }
                Found::Directory { path, name, depth, stat }
            }
            Err(error) => Found::Failed(path, error),
        }
    }
}

impl Listing {
    fn next(&mut self) -> Option<Listed> {
        match self {
            Self::Open(dir) => next_of(dir),
            Self::Ahead(entries) => entries.next(),
        }
    }

    /// Reads the rest, so that the directory is closed.
    fn read_ahead(&mut self) {
        let mut entries = Vec::new();
        while let Some(entry) = self.next() {
            entries.push(entry);
        }
        *self = Self::Ahead(entries.into_iter());
    }
}

fn next_of(dir: &mut Dir) -> Option<Listed> {
    loop {
        let entry = match dir.read()? {
            Ok(entry) => entry,
            Err(errno) => return Some(Err(errno)),
        };
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not say.
            FileType::Unknown => kind_of(dir, name),
            kind => Ok(kind),
        };
        return Some(kind.map(|kind| (OsStr::from_bytes(name.to_bytes()).to_owned(), kind)));
    }
}

fn kind_of(dir: &Dir, name: &std::ffi::CStr) -> Result<FileType, Errno> {
    let stat = fs::statat(dir.fd()?, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// Adds up the lengths of all regular files at or below `source`, as far as they can be looked at, until `is_enough`.
pub(crate) fn bytes_below(source: &Path, is_enough: impl Fn() -> bool) -> u64 {
    let Ok(root) = Root::open(source) else {
        return std::fs::metadata(source).map_or(0, |metadata| metadata.len());
    };
    let mut descent = Descent::new(root);
    let mut total = 0;
    while let Some(found) = descent.next().filter(|_| !is_enough()) {
        if let Found::Other { path, name, kind: FileType::RegularFile, .. } = found {
            total += descent.bytes_of(&path, &name);
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn found(descent: &mut Descent) -> (BTreeSet<PathBuf>, usize) {
        let (mut paths, mut deepest) = (BTreeSet::new(), 0);
        while let Some(found) = descent.next() {
            let (path, depth) = match found {
                Found::Directory { path, depth, .. } | Found::Other { path, depth, .. } => (path, depth),
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
        let mut descent = Descent::new(Root::open(place.path()).unwrap());
        assert_eq!(found(&mut descent), (expected, 3 * OPEN_MAX));
    }
}
