//! Places: directories of a tree, each opened by its own name in the one above it, so that no link leads anywhere and no path
//! is too long, however the tree is changed meanwhile.
//!
//! A place knows its directory by device and inode. Descriptors are a budget ([`OpenPlaces`]): one that was closed is
//! opened again, name by name from the nearest place that is open, and what else stands there by then is an error.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::FileError;

/// For opening a directory to list it or to work in it.
pub(crate) const DIRECTORY_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// A directory at or below one that the user named.
pub(crate) struct Place {
    /// The place that it lies in; `None` for what the user named.
    above: Option<Arc<Self>>,
    /// Its name there, or the path that the user named.
    name: OsString,
    /// Device and inode.
    pub(crate) identity: (u64, u64),
    slot: Arc<Slot>,
    open: Arc<OpenPlaces>,
}

impl Place {
    /// The directory behind `fd`, which the user named `path`. It stays open.
    pub(crate) fn root(fd: OwnedFd, path: &Path, open: &Arc<OpenPlaces>) -> Result<Arc<Self>, Errno> {
        let identity = identity(&fs::fstat(&fd)?);
        let slot = Arc::new(Slot::of(fd));
        Ok(Arc::new(Self { above: None, name: path.into(), identity, slot, open: Arc::clone(open) }))
    }

    /// Opens the directory `name` in this one, with what it is. [`Errno::LOOP`] where a link stands there.
    pub(crate) fn enter(self: &Arc<Self>, name: &OsStr) -> Result<(Arc<Self>, Stat), FileError> {
        let fd = self.open(name, DIRECTORY_FLAGS)?;
        let stat = fs::fstat(&fd).map_err(FileError::io("read"))?;
        let slot = Arc::new(Slot::of(fd));
        self.open.admit(&slot);
        let above = Some(Arc::clone(self));
        let place = Self {
            above,
            name: name.to_owned(),
            identity: identity(&stat),
            slot,
            open: Arc::clone(&self.open),
        };
        Ok((Arc::new(place), stat))
    }

    /// Opens `name` in this directory; [`FileError::Link`] where a link stands there.
    pub(crate) fn open(&self, name: &OsStr, flags: OFlags) -> Result<OwnedFd, FileError> {
        open_one(self.fd()?.as_fd(), name, flags).map_err(|errno| match errno {
            Errno::LOOP => FileError::Link,
            errno => FileError::io("read")(errno),
        })
    }

    /// Opens the symbolic link `name` in this directory, for a look at it; [`FileError::Changed`] where something else stands there.
    pub(crate) fn open_link(&self, name: &OsStr) -> Result<OwnedFd, FileError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let link = fs::openat(&*self.fd()?, name, flags, Mode::empty()).map_err(FileError::io("read"))?;
        let stat = fs::fstat(&link).map_err(FileError::io("read"))?;
        let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        if is_link { Ok(link) } else { Err(FileError::Changed) }
    }

    /// The directory itself, opened again where it was closed; [`FileError::Moved`] where another stands in its place.
    pub(crate) fn fd(&self) -> Result<Arc<OwnedFd>, FileError> {
        if let Some(fd) = self.slot.fd() {
            return Ok(fd);
        }
        let mut way = vec![self];
        let mut at = loop {
            let above = way.last().and_then(|place| place.above.as_deref()).expect("a root stays open");
            match above.slot.fd() {
                Some(fd) => break fd,
                None => way.push(above),
            }
        };
        for place in way.into_iter().rev() {
            at = place.open_again(at.as_fd())?;
        }
        Ok(at)
    }

    fn open_again(&self, above: BorrowedFd<'_>) -> Result<Arc<OwnedFd>, FileError> {
        let opened = open_one(above, &self.name, DIRECTORY_FLAGS).map_err(|errno| match errno {
            Errno::NOTDIR | Errno::LOOP | Errno::NOENT => FileError::Moved,
            errno => FileError::io("open the directory again")(errno),
        })?;
        let stat = fs::fstat(&opened).map_err(FileError::io("look at the directory"))?;
        if identity(&stat) != self.identity {
            return Err(FileError::Moved);
        }
        let fd = Arc::new(opened);
        *self.slot.lock() = Some(Arc::clone(&fd));
        self.open.admit(&self.slot);
        Ok(fd)
    }

    /// Its name in the place above; of what the user named the path.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// For messages: the path by which it was found.
    pub(crate) fn path(&self) -> PathBuf {
        let mut names = vec![&self.name];
        let mut at = self;
        while let Some(above) = at.above.as_deref() {
            names.push(&above.name);
            at = above;
        }
        names.into_iter().rev().collect()
    }

    /// The place above and those above that, nearest first.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(self.above.as_deref(), |place| place.above.as_deref())
    }
}

impl Drop for Place {
    /// One after the other: a tree may be deeper than a stack.
    fn drop(&mut self) {
        let mut above = self.above.take();
        while let Some(mut place) = above.and_then(Arc::into_inner) {
            above = place.above.take();
        }
    }
}

/// A place's descriptor while it is open.
struct Slot {
    fd: Mutex<Option<Arc<OwnedFd>>>,
    /// Whether it was asked for since the budget last looked.
    was_used: AtomicBool,
}

impl Slot {
    fn of(fd: OwnedFd) -> Self {
        Self { fd: Mutex::new(Some(Arc::new(fd))), was_used: AtomicBool::new(false) }
    }

    fn fd(&self) -> Option<Arc<OwnedFd>> {
        let fd = self.lock().clone();
        // Relaxed: a hint which descriptor to close.
        self.was_used.store(fd.is_some(), Ordering::Relaxed);
        fd
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<OwnedFd>>> {
        self.fd.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The budget of descriptors for directories: so many are open at a time, those that were asked for last.
pub(crate) struct OpenPlaces {
    slots: Mutex<VecDeque<Weak<Slot>>>,
    most: usize,
}

impl OpenPlaces {
    /// A budget of `most` descriptors, and of one at least.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { slots: Mutex::default(), most: most.max(1) })
    }

    /// Counts `slot`, which is open, and closes the one that was not asked for since the longest time where they are too many.
    fn admit(&self, slot: &Arc<Slot>) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.push_back(Arc::downgrade(slot));
        while slots.len() > self.most {
            let Some(oldest) = slots.pop_front() else { return };
            let Some(open) = oldest.upgrade() else { continue };
            if Arc::ptr_eq(&open, slot) || open.was_used.swap(false, Ordering::Relaxed) {
                slots.push_back(oldest);
            } else {
                *open.lock() = None;
            }
        }
    }
}

fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// Opens `name` in a directory; [`Errno::LOOP`] where it is a link.
pub(crate) fn open_one(dir: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let is_link = || {
        let stat = fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    };
    match fs::openat(dir, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
        // A link where a directory is wanted is only called none.
        Err(Errno::NOTDIR) if is_link() => Err(Errno::LOOP),
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::input::source_file::READ_FLAGS;

    /// `tree/a/b/file`, and `secret/b/file` beside the tree; at most `most` descriptors.
    fn place(most: usize) -> (tempfile::TempDir, Arc<Place>) {
        let place = tempfile::tempdir().unwrap();
        for directory in ["tree/a/b", "secret/b"] {
            std::fs::create_dir_all(place.path().join(directory)).unwrap();
            std::fs::write(place.path().join(directory).join("file"), directory).unwrap();
        }
        let tree = place.path().join("tree");
        let fd = fs::open(&tree, DIRECTORY_FLAGS, Mode::empty()).unwrap();
        let root = Place::root(fd, &tree, &OpenPlaces::new(most)).unwrap();
        (place, root)
    }

    fn enter(place: &Arc<Place>, name: &str) -> Arc<Place> {
        place.enter(name.as_ref()).unwrap().0
    }

    #[test]
    fn what_lies_beneath_is_opened_again_after_its_descriptors_were_closed() {
        let (_place, root) = place(1);
        let a = enter(&root, "a");
        let b = enter(&a, "b");
        assert!(a.slot.fd().is_none(), "one descriptor is the budget");
        for _ in 0..3 {
            assert!(b.open("file".as_ref(), READ_FLAGS).is_ok());
            assert!(a.open("b".as_ref(), DIRECTORY_FLAGS).is_ok());
        }
        assert_eq!(b.path(), root.path().join("a/b"));
    }

    #[test]
    fn a_link_in_the_place_of_anything_leads_nowhere() {
        let (place, root) = place(8);
        symlink(place.path().join("secret"), place.path().join("tree/link")).unwrap();
        symlink("../../../secret/b/file", place.path().join("tree/a/b/link")).unwrap();
        let b = enter(&enter(&root, "a"), "b");
        assert!(matches!(b.open("link".as_ref(), READ_FLAGS), Err(FileError::Link)));
        assert!(matches!(root.enter("link".as_ref()), Err(FileError::Link)));
    }

    #[test]
    fn a_directory_that_took_the_place_of_one_that_was_closed_is_not_entered() {
        for is_link in [true, false] {
            let (place, root) = place(1);
            let a = enter(&root, "a");
            let b = enter(&a, "b");
            enter(&root, "a");
            std::fs::rename(place.path().join("tree/a"), place.path().join("tree/before")).unwrap();
            let secret = place.path().join("secret");
            if is_link {
                symlink(secret, place.path().join("tree/a")).unwrap();
            } else {
                std::fs::rename(secret, place.path().join("tree/a")).unwrap();
            }
            assert!(matches!(b.open("file".as_ref(), READ_FLAGS), Err(FileError::Moved)), "{is_link}");
        }
    }

    #[test]
    fn places_as_deep_as_no_stack_is_are_dropped() {
        let (_place, root) = place(1);
        let mut at = root;
        for _ in 0..200_000 {
            at = Arc::new(Place {
                above: Some(Arc::clone(&at)),
                name: "x".into(),
                identity: (0, 0),
                slot: Arc::new(Slot { fd: Mutex::default(), was_used: AtomicBool::new(false) }),
                open: Arc::clone(&at.open),
            });
        }
        drop(at);
    }
}
