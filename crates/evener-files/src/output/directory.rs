//! Directories that output goes to: opened or made, and finished when the last thing in them is done.
//!
//! A directory is held by what is worked on in it and by the directories below it. When the last of them lets go of it, it
//! gets owner, mode and time of its source; a run that was stopped before leaves it as it is, so that the next one can go on.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{CString, OsStr};
use std::ops::Bound;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use evener_fd::Named;
use rustix::fs::{self, AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::attributes::{
    Attributes, Before, Birth, Xattrs, copy_xattrs, gives_acls, remove_acls, set_xattrs,
};
use super::leftovers::Locks;
use crate::error::FileError;
use crate::input::place::{DIRECTORY_FLAGS, OpenPlaces, Place};
use crate::input::source_file::{READ_FLAGS, SourceFile};
use crate::preservation::Keep;
use crate::record::{Spot, Stamp};

/// What all output directories of a run have in common.
pub(crate) struct Outputs {
    pub(crate) keep: Keep,
    open: Arc<OpenPlaces>,
    locks: Locks,
    /// Whether the run ends before everything is done.
    is_abandoned: AtomicBool,
    /// Sources that failed: directories above them are left as they are.
    undone: Mutex<BTreeSet<PathBuf>>,
    /// Directories that this run made, with their inodes, until they are recorded.
    made: Mutex<Vec<(Spot, u64)>>,
    /// Directories that could not be finished.
    failed: Mutex<Vec<(PathBuf, FileError)>>,
    /// What the user named as inputs: device and inode of each.
    inputs: OnceLock<Vec<(u64, u64)>>,
    /// Files with the keys of the run, and links that lead to them.
    keys: Vec<(u64, u64)>,
    /// Outputs that got or lost a name by this run, and the time of their inode before.
    renamed: Mutex<HashMap<(u64, u64), i64>>,
    /// Directories of an archive in which something is in work, by device and inode: one that is entered again is the same.
    told: Mutex<HashMap<(u64, u64), Weak<OutputDir>>>,
    /// Outputs that this run made, where it may replace what stands under a name: device and inode of each.
    finished: OnceLock<Mutex<HashSet<(u64, u64)>>>,
    /// Directories whose names were synced, by device and inode: up to which time of an inode, in ns.
    synced: Mutex<HashMap<(u64, u64), i64>>,
}

/// Whether what stands under a name in a directory makes way for a directory.
pub(crate) type MakesWay<'w> = &'w dyn Fn(Spot, &OsStr, &Stat) -> bool;

impl Outputs {
    pub(crate) fn new(keep: Keep, open: Arc<OpenPlaces>, key_files: &[PathBuf]) -> Arc<Self> {
        let looks =
            key_files.iter().flat_map(|file| [std::fs::metadata(file), std::fs::symlink_metadata(file)]);
        let keys = looks.flatten().map(|stat| (stat.dev(), stat.ino())).collect();
        let (locks, is_abandoned) = (Locks::default(), AtomicBool::new(false));
        let (undone, made, failed) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (inputs, finished, renamed) = (OnceLock::new(), OnceLock::new(), Mutex::default());
        let (told, synced) = (Mutex::default(), Mutex::default());
        Arc::new(Self {
            keep,
            open,
            locks,
            is_abandoned,
            undone,
            made,
            failed,
            inputs,
            keys,
            renamed,
            told,
            finished,
            synced,
        })
    }

    /// Keeps in mind what this run makes, so that it replaces nothing of that: two names may be one to the file system.
    pub(crate) fn keep_in_mind(&self) {
        self.finished.set(Mutex::default()).ok();
    }

    /// The outputs that this run made, while no other thread makes one; nothing where they are not kept in mind.
    pub(super) fn finished(&self) -> Option<MutexGuard<'_, HashSet<(u64, u64)>>> {
        Some(self.finished.get()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether this run made an output.
    pub(crate) fn has_made(&self, identity: (u64, u64)) -> bool {
        self.finished().is_some_and(|finished| finished.contains(&identity))
    }

    /// Keeps output out of what the user named as inputs.
    pub(crate) fn spare(&self, inputs: Vec<(u64, u64)>) {
        self.inputs.set(inputs).ok();
    }

    /// Whether a file or directory is one that the user named as an input.
    pub(crate) fn is_input(&self, identity: (u64, u64)) -> bool {
        self.inputs.get().is_some_and(|inputs| inputs.contains(&identity))
    }

    /// Whether a file is one with a key of the run.
    pub(crate) fn is_key(&self, identity: (u64, u64)) -> bool {
        self.keys.contains(&identity)
    }

    /// The directory of an archive that is in work.
    fn told(&self, identity: (u64, u64)) -> Option<Arc<OutputDir>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).get(&identity)?.upgrade()
    }

    /// Keeps in mind that a directory of an archive is in work; those that no longer are go once they are most.
    fn keep_told(&self, dir: &Arc<OutputDir>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() == told.capacity() {
            told.retain(|_, dir| dir.strong_count() > 0);
        }
        told.insert(dir.identity(), Arc::downgrade(dir));
    }

    /// Keeps in mind what a file is that is to get another name, or to lose one of several: the time of its inode will be another.
    pub(super) fn note_renaming(&self, stat: &Stat) {
        let mut renamed = self.renamed.lock().unwrap_or_else(PoisonError::into_inner);
        renamed.entry((stat.st_dev, stat.st_ino)).or_insert_with(|| Stamp::of(stat).changed_ns);
    }

    /// The time of the inode, in ns, of a file that got or lost a name by this run, before that.
    pub(crate) fn changed_before(&self, identity: (u64, u64)) -> Option<i64> {
        self.renamed.lock().unwrap_or_else(PoisonError::into_inner).get(&identity).copied()
    }

    /// Says that not everything will be done: directories are left as they are.
    pub(crate) fn abandon(&self) {
        // Relaxed: what it says becomes true before anything is dropped undone, by the same thread.
        self.is_abandoned.store(true, Ordering::Relaxed);
    }

    /// Says that the source `path` failed: directories above it are left as they are.
    pub(crate) fn leave_undone(&self, path: &Path) {
        let mut undone = self.undone.lock().unwrap_or_else(PoisonError::into_inner);
        undone.insert(path.to_owned());
    }

    /// Whether something at or below the source directory `path` failed.
    fn is_undone(&self, path: impl FnOnce() -> PathBuf) -> bool {
        let undone = self.undone.lock().unwrap_or_else(PoisonError::into_inner);
        if undone.is_empty() {
            return false;
        }
        // Paths are ordered by their names: what lies below one follows it.
        let path = path();
        undone
            .range::<Path, _>((Bound::Included(&*path), Bound::Unbounded))
            .next()
            .is_some_and(|undone| undone.starts_with(&path))
    }

    /// Directories that this run has made since this was asked last, and their inodes.
    pub(crate) fn take_made(&self) -> Vec<(Spot, u64)> {
        std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Directories that could not be finished, after all were let go of.
    pub(crate) fn failed(&self) -> Vec<(PathBuf, FileError)> {
        std::mem::take(&mut *self.failed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A directory that output goes to.
pub(crate) struct OutputDir {
    place: Arc<Place>,
    /// The directory that this one is in, which is finished after it.
    above: Option<Arc<Self>>,
    outputs: Arc<Outputs>,
    /// What it gets at the end; the user's own directories get nothing. An archive may tell of one once more.
    attributes: Mutex<Option<Attributes>>,
    /// Whether this run made it, so that nothing can stand in it already.
    pub(crate) is_new: bool,
    /// Where it is below the run's output.
    pub(crate) spot: Spot,
    /// The directory of which it is the counterpart.
    source: Option<Arc<Place>>,
    /// Whether what is made in it gets an access list from it.
    gives_acls: bool,
    /// What the first file that was made in it with all that it is to get had, too.
    birth: OnceLock<Birth>,
}

/// A source directory, of which an output directory is the counterpart.
#[derive(Clone, Copy)]
pub(crate) struct SourceDir<'a> {
    pub(crate) place: &'a Arc<Place>,
    pub(crate) stat: &'a Stat,
}

impl OutputDir {
    /// Opens a directory that the user named, making it where it does not exist; links are followed that are his own or root's.
    /// Removes drafts of killed runs, and says by a lock that this run lives.
    pub(crate) fn open(
        path: &Path,
        outputs: &Arc<Outputs>,
        source: Option<SourceDir<'_>>,
    ) -> Result<Arc<Self>, FileError> {
        let mode = source.as_ref().map_or(Mode::from_raw_mode(0o777), |source| mode_while_made(source));
        let named = Named::find(path).map_err(FileError::io("open the directory"))?;
        let made = fs::mkdirat(named.dir(), named.name(), mode);
        let place = || {
            let opened = named.open(DIRECTORY_FLAGS, Mode::empty());
            let fd = opened.map_err(FileError::io("open the directory"))?;
            let place = Place::root(fd, path, &outputs.open);
            let place = place.map_err(FileError::io("look at the directory"))?;
            outputs.locks.hold(&place)?;
            Ok(place)
        };
        Self::made(made, place, None, outputs, source)
    }

    /// As [`OutputDir::open`] of a directory that has no counterpart, at `spot`.
    pub(crate) fn open_at(spot: Spot, path: &Path, outputs: &Arc<Outputs>) -> Result<Arc<Self>, FileError> {
        let mut dir = Self::open(path, outputs, None)?;
        Arc::get_mut(&mut dir).expect("nobody else has it yet").spot = spot;
        Ok(dir)
    }

    /// As [`OutputDir::open`] for a directory in this one. What else stands under `name`, a link too, makes way or is an error.
    pub(crate) fn open_in(
        self: &Arc<Self>,
        name: &OsStr,
        source: SourceDir<'_>,
        makes_way: MakesWay<'_>,
    ) -> Result<Arc<Self>, FileError> {
        let open = || {
            let made = fs::mkdirat(&*self.place.fd()?, name, mode_while_made(&source));
            let place = || self.place.enter(name).map(|(place, _)| place);
            Self::made(made, place, Some(self), &self.outputs, Some(source))
        };
        match open() {
            Err(FileError::NoDirectory) if self.is_cleared(name, makes_way)? => open(),
            opened => opened,
        }
    }

    /// Removes what stands under `name` and is no directory, where it makes way.
    fn is_cleared(&self, name: &OsStr, makes_way: MakesWay<'_>) -> Result<bool, FileError> {
        let Some(stat) = self.stat(name)? else { return Ok(true) };
        let identity = (stat.st_dev, stat.st_ino);
        let is_spared = self.outputs.is_input(identity) || self.outputs.is_key(identity);
        if is_spared || !makes_way(self.spot, name, &stat) {
            return Ok(false);
        }
        if stat.st_nlink > 1 {
            self.outputs.note_renaming(&stat);
        }
        // Fails of a directory.
        let removed = fs::unlinkat(&*self.fd()?, name, AtFlags::empty());
        removed.map(|()| true).map_err(FileError::io("replace the output"))
    }

    /// As [`OutputDir::open_in`] of a directory that an archive tells of, or only names on the way to something else.
    pub(crate) fn open_told(
        self: &Arc<Self>,
        name: &OsStr,
        told: Option<(Attributes, &Xattrs)>,
    ) -> Result<Arc<Self>, FileError> {
        let mode = told.as_ref().map_or(Mode::from_raw_mode(0o777), |(attributes, _)| attributes.mode());
        let made = fs::mkdirat(&*self.place.fd()?, name, mode | Mode::RWXU);
        let place = || self.place.enter(name).map(|(place, _)| place);
        let mut dir = Self::made(made, place, Some(self), &self.outputs, None)?;
        let fd = dir.fd()?;
        if let Some(in_work) = self.outputs.told(dir.identity()) {
            // It has what it needs while something is made in it, and gets what was told of it when that is over.
            if let Some((attributes, xattrs)) = told {
                set_xattrs(fd.as_fd(), xattrs, self.keep())?;
                give_owner_access(&fd)?;
                *in_work.attributes.lock().unwrap_or_else(PoisonError::into_inner) = Some(attributes);
            }
            return Ok(in_work);
        }
        let as_it_stands = fs::fstat(&*fd).map_err(FileError::io("look at the directory"))?;
        let is_new = dir.is_new;
        let attributes = match told {
            Some((attributes, xattrs)) => {
                if is_new && self.gives_acls {
                    remove_acls(fd.as_fd())?;
                }
                give_owner_access(&fd)?;
                set_xattrs(fd.as_fd(), xattrs, self.keep())?;
                Some(attributes)
            }
            // What was finished before stays as it is.
            None if !is_new => Some(Attributes::of(&as_it_stands)),
            None => None,
        };
        give_owner_access(&fd)?;
        let dir_once = Arc::get_mut(&mut dir).expect("nobody else has it yet");
        dir_once.attributes = Mutex::new(attributes);
        // It has no counterpart but what the archive tells of it.
        dir_once.source = Some(Arc::clone(&dir_once.place));
        dir_once.gives_acls = gives_acls(&*fd);
        self.outputs.keep_told(&dir);
        Ok(dir)
    }

    /// `made` says whether the directory was made. It has owner access then, while the run lasts; the final mode is
    /// set at the end.
    fn made(
        made: Result<(), Errno>,
        open: impl FnOnce() -> Result<Arc<Place>, FileError>,
        above: Option<&Arc<Self>>,
        outputs: &Arc<Outputs>,
        source: Option<SourceDir<'_>>,
    ) -> Result<Arc<Self>, FileError> {
        let is_new = match made {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(FileError::io("make the directory")(errno)),
        };
        let place = open().map_err(|error| match error {
            FileError::Link => FileError::NoDirectory,
            FileError::Io(error) if error.answer().kind() == std::io::ErrorKind::NotADirectory => {
                FileError::NoDirectory
            }
            error => error,
        })?;
        if outputs.is_input(place.identity) && above.is_some() {
            return Err(FileError::InputInOutput);
        }
        if !is_new {
            outputs.locks.remove_stale_drafts(&place);
        }
        let fd = place.fd()?;
        let source_place = source.as_ref().map(|source| Arc::clone(source.place));
        let attributes = Mutex::new(source.as_ref().map(|source| Attributes::of(source.stat)));
        if let Some(source) = source {
            let before = if is_new { before(above) } else { Before::Anything };
            // Attributes are set by who may write, and an access list may take that right away.
            give_owner_access(&fd)?;
            copy_xattrs(source.place.fd()?.as_fd(), fd.as_fd(), &outputs.keep, before)?;
            give_owner_access(&fd)?;
        }
        let gives_acls = gives_acls(&*fd);
        let spot = above.map_or_else(Spot::default, |above| above.spot.join(place.name()));
        let (above, outputs) = (above.cloned(), Arc::clone(outputs));
        if is_new && source_place.is_some() {
            let mut made = outputs.made.lock().unwrap_or_else(PoisonError::into_inner);
            made.push((spot, place.identity.1));
        }
        Ok(Arc::new(Self {
            place,
            above,
            outputs,
            attributes,
            is_new,
            spot,
            source: source_place,
            gives_acls,
            birth: OnceLock::new(),
        }))
    }

    /// The directory itself.
    pub(crate) fn fd(&self) -> Result<Arc<OwnedFd>, FileError> {
        self.place.fd()
    }

    pub(crate) fn identity(&self) -> (u64, u64) {
        self.place.identity
    }

    /// Makes the names in it last; where a file system has no sync of directories, they are as durable as it makes them.
    pub(crate) fn sync(&self) -> Result<(), FileError> {
        match fs::fsync(&*self.fd()?) {
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(()),
            synced => synced.map_err(FileError::io("sync the directory")),
        }
    }

    /// Makes a name in it last whose file changed at `changed_ns` and not since, by one sync for all names that are as old: a file that gets
    /// a name changes by it.
    pub(crate) fn sync_names_until(&self, changed_ns: i64) -> Result<(), FileError> {
        let synced = || self.outputs.synced.lock().unwrap_or_else(PoisonError::into_inner);
        if synced().get(&self.identity()).is_some_and(|until_ns| changed_ns <= *until_ns) {
            return Ok(());
        }
        let before = fs::fstat(&*self.fd()?).map_err(FileError::io("look at the directory"))?;
        let until_ns = Stamp::settled_ns().max(Stamp::of(&before).changed_ns).max(changed_ns);
        self.sync()?;
        let mut synced = synced();
        let known_ns = synced.entry(self.identity()).or_insert(until_ns);
        *known_ns = until_ns.max(*known_ns);
        Ok(())
    }

    /// What is new in it may have an access list from it.
    pub(super) fn before(&self) -> Before {
        if self.gives_acls { Before::AclOfDirectory } else { Before::Nothing }
    }

    /// Whether a new file in it has what it was made with. Of those that are alike the first is looked at.
    pub(super) fn gives(&self, birth: &Birth, file: &OwnedFd) -> Result<bool, FileError> {
        if self.birth.get() == Some(birth) {
            return Ok(true);
        }
        let is_given = birth.is_of(&fs::fstat(file).map_err(FileError::io("look at the output"))?);
        if is_given {
            self.birth.set(*birth).ok();
        }
        Ok(is_given)
    }

    /// What all output directories of the run have in common.
    pub(super) fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    pub(crate) fn keep(&self) -> &Keep {
        &self.outputs.keep
    }

    /// What stands under `name`, if anything.
    pub(crate) fn stat(&self, name: &OsStr) -> Result<Option<Stat>, FileError> {
        match fs::statat(&*self.fd()?, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(FileError::io("look at the output")(errno)),
        }
    }

    /// Where the symbolic link `name` points; `None` where none stands there.
    pub(crate) fn link_target(&self, name: &OsStr) -> Result<Option<CString>, FileError> {
        match fs::readlinkat(&*self.fd()?, name, Vec::new()) {
            Ok(target) => Ok(Some(target)),
            Err(Errno::INVAL | Errno::NOENT) => Ok(None),
            Err(errno) => Err(FileError::io("look at the output")(errno)),
        }
    }

    /// Opens the symbolic link that stands under `name`, for a look at it.
    pub(crate) fn open_link(&self, name: &OsStr) -> Result<OwnedFd, FileError> {
        self.place.open_link(name)
    }

    /// Opens the regular file that stands under `name` for reading.
    pub(crate) fn open_file(&self, name: &OsStr) -> Result<SourceFile, FileError> {
        let fd = fs::openat(&*self.fd()?, name, READ_FLAGS | OFlags::NOFOLLOW, Mode::empty());
        let fd = fd.map_err(FileError::io("open the output"))?;
        let stat = fs::fstat(&fd).map_err(FileError::io("look at the output"))?;
        Ok(SourceFile::new(fd, stat))
    }

    /// For messages: the path by which it was found.
    pub(crate) fn path(&self) -> PathBuf {
        self.place.path()
    }

    /// Whether something below its counterpart failed: the same command is to do that later.
    fn is_undone(&self) -> bool {
        self.source.as_ref().is_some_and(|source| self.outputs.is_undone(|| source.path()))
    }

    /// Gives the directory owner, mode and time of its source, once.
    fn finish(&mut self) {
        let attributes = self.attributes.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let Some(attributes) = attributes else { return };
        if self.outputs.is_abandoned.load(Ordering::Relaxed) || std::thread::panicking() || self.is_undone() {
            return;
        }
        let finished = self.fd().map_err(|error| match error {
            FileError::Moved => FileError::OtherDirectory,
            error => error,
        });
        let finished = finished.and_then(|fd| {
            let is_own = attributes.set_owner(fd.as_fd(), &self.outputs.keep)?;
            attributes.set_mode_and_time(fd.as_fd(), is_own)
        });
        if let Err(error) = finished {
            let mut failed = self.outputs.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.push((self.place.path(), error));
        }
    }
}

impl Drop for OutputDir {
    /// Finishes it, then those above that nothing else holds, one after the other: a tree may be deeper than a stack.
    fn drop(&mut self) {
        self.finish();
        let mut above = self.above.take();
        while let Some(mut dir) = above.and_then(Arc::into_inner) {
            dir.finish();
            above = dir.above.take();
        }
    }
}

/// What a new directory may have; of the one above a directory that the user named nothing is known.
fn before(above: Option<&Arc<OutputDir>>) -> Before {
    above.map_or(Before::AclOfDirectory, |above| above.before())
}

/// The mode with which a directory is made: its owner works in it, whatever its source says.
fn mode_while_made(source: &SourceDir<'_>) -> Mode {
    Attributes::of(source.stat).mode() | Mode::RWXU
}

/// Lets the owner work in a directory that an earlier run, or an access list, gave the mode of a source that is read-only.
pub(crate) fn give_owner_access(dir: &OwnedFd) -> Result<(), FileError> {
    let stat = fs::fstat(dir).map_err(FileError::io("look at the directory"))?;
    let (mode, all) = (Mode::from_raw_mode(stat.st_mode), Mode::RWXU);
    if mode.contains(all) || stat.st_uid != rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    fs::fchmod(dir, mode | all).map_err(FileError::io("set the mode of the directory"))
}

/// Gives a directory back the mode that it had `before`, and the time where that `is_kept`.
pub(crate) fn give_back(dir: &OwnedFd, before: &Stat, is_kept: bool) -> Result<(), FileError> {
    let now = fs::fstat(dir).map_err(FileError::io("look at the directory"))?;
    if now.st_mode != before.st_mode {
        let mode = Mode::from_raw_mode(before.st_mode & 0o7777);
        fs::fchmod(dir, mode).map_err(FileError::io("set the mode of the directory"))?;
    }
    if is_kept { Attributes::of(before).set_time(dir.as_fd()) } else { Ok(()) }
}
