//! Where output comes to be: drafts under temporary names in the directory of the final one, and a settlement
//! that makes a batch of them durable with one sync, then renames them, then syncs the names.
//!
//! A crash at any moment leaves under a final name either what was there before or the whole new file. A run
//! holds a lock on every directory in which it may have drafts, which the kernel drops with the process. So whoever
//! enters a directory and finds no such lock may remove the drafts in it: who wrote them was killed.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{self, AtFlags, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use crate::error::FileError;
use crate::input::beneath::{DIRECTORY_FLAGS, open_beneath, open_one};
use crate::input::source_file::{READ_FLAGS, SourceFile};
use crate::output::leftovers::{draft_name, lock, remove_stale_drafts};

/// Drafts that are settled together at most. See `docs/results/files.md` for the choice.
const BATCH_FILES: usize = 4_096;

/// Bytes of drafts that are settled together at most, so that a killed run loses little.
const BATCH_BYTES: u64 = 1 << 30;

/// A directory that output goes to.
pub(crate) struct OutDir {
    /// Locked for sharing, so that no other run takes our drafts for those of a killed one.
    fd: OwnedFd,
    /// For messages.
    pub(crate) path: PathBuf,
    /// Whether this run made it, so that nothing can stand in it already.
    pub(crate) is_new: bool,
    device: u64,
    inode: u64,
}

impl OutDir {
    /// Opens a directory that the user named, making it (with `mode`) where it does not exist; links are followed.
    /// Removes drafts of killed runs.
    pub(crate) fn open(path: &Path, mode: Mode) -> Result<Arc<Self>, FileError> {
        let made = fs::mkdir(path, mode | Mode::RWXU);
        let open = || fs::open(path, DIRECTORY_FLAGS, Mode::empty());
        Self::made(made, open, path.to_owned())
    }

    /// As [`OutDir::open`] for a directory in this one. What else stands under `name`, a link too, is an error.
    pub(crate) fn open_in(&self, name: &OsStr, mode: Mode) -> Result<Arc<Self>, FileError> {
        let made = fs::mkdirat(&self.fd, name, mode | Mode::RWXU);
        let open = || fs::openat(&self.fd, name, DIRECTORY_FLAGS | OFlags::NOFOLLOW, Mode::empty());
        Self::made(made, open, self.path.join(name))
    }

    /// `made` says whether the directory was made. It has owner access then, while the run lasts; the final mode is
    /// set at the end.
    fn made(
        made: Result<(), Errno>,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
        path: PathBuf,
    ) -> Result<Arc<Self>, FileError> {
        let is_new = match made {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(FileError::io("make the directory")(errno)),
        };
        let fd = open().map_err(|errno| match errno {
            Errno::NOTDIR | Errno::LOOP => FileError::NoDirectory,
            errno => FileError::io("open the directory")(errno),
        })?;
        if !is_new {
            remove_stale_drafts(&fd);
        }
        lock(&fd);
        let Stat { st_dev: device, st_ino: inode, .. } =
            fs::fstat(&fd).map_err(FileError::io("look at the directory"))?;
        Ok(Arc::new(Self { fd, path, is_new, device, inode }))
    }

    /// Lets the owner work in a directory that an earlier run gave the mode of a source that nobody may write to.
    pub(crate) fn give_owner_access(&self) -> Result<(), FileError> {
        let stat = fs::fstat(&self.fd).map_err(FileError::io("look at the directory"))?;
        let (mode, all) = (Mode::from_raw_mode(stat.st_mode), Mode::RWXU);
        if self.is_new || mode.contains(all) || stat.st_uid != rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        fs::fchmod(&self.fd, mode | all).map_err(FileError::io("set the mode of the directory"))
    }

    /// What is needed to find the directory again below `base`, and to know it.
    pub(crate) fn trace(&self, base: &Arc<Self>) -> Trace {
        let relative = self.path.strip_prefix(&base.path).expect("it was made below the base").to_owned();
        Trace { base: Arc::clone(base), relative, device: self.device, inode: self.inode }
    }

    /// What stands under `name`, if anything.
    pub(crate) fn stat(&self, name: &OsStr) -> Result<Option<Stat>, FileError> {
        match fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(FileError::io("look at the output")(errno)),
        }
    }

    /// Opens the regular file that stands under `name` for reading.
    pub(crate) fn open_file(&self, name: &OsStr) -> Result<SourceFile, FileError> {
        let fd = fs::openat(&self.fd, name, READ_FLAGS | OFlags::NOFOLLOW, Mode::empty());
        let fd = fd.map_err(FileError::io("open the output"))?;
        let stat = fs::fstat(&fd).map_err(FileError::io("look at the output"))?;
        Ok(SourceFile { fd, stat, named: None })
    }
}

/// A directory of the output that is closed meanwhile: runs enter more of them than can be open at a time.
pub(crate) struct Trace {
    base: Arc<OutDir>,
    relative: PathBuf,
    device: u64,
    inode: u64,
}

impl Trace {
    /// For messages.
    pub(crate) fn path(&self) -> PathBuf {
        self.base.path.join(&self.relative)
    }

    /// Gives the directory the mode and time of its source.
    pub(crate) fn dress(&self, source: &Dress) -> Result<(), FileError> {
        let dir = self.reopen()?;
        fs::fchmod(&dir, source.mode).map_err(FileError::io("set the mode of the directory"))?;
        fs::futimens(&dir, &source.times()).map_err(FileError::io("set the time of the directory"))
    }

    /// The directory itself; whatever else stands in its place by now is an error.
    fn reopen(&self) -> Result<OwnedFd, FileError> {
        let opened = open_beneath(self.base.fd.as_fd(), &self.relative, DIRECTORY_FLAGS);
        let dir = opened.map_err(|errno| match errno {
            Errno::NOTDIR | Errno::LOOP | Errno::NOENT => FileError::OtherDirectory,
            errno => FileError::io("open the directory")(errno),
        })?;
        let stat = fs::fstat(&dir).map_err(FileError::io("look at the directory"))?;
        let is_same = (stat.st_dev, stat.st_ino) == (self.device, self.inode);
        if is_same { Ok(dir) } else { Err(FileError::OtherDirectory) }
    }
}

/// What of a source its output gets.
#[derive(Clone, Copy)]
pub(crate) struct Dress {
    pub(crate) mode: Mode,
    time: Timespec,
}

impl Dress {
    pub(crate) fn of(source: &Stat) -> Self {
        Self { mode: mode_of(source), time: mtime_of(source) }
    }

    fn times(&self) -> Timestamps {
        let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        Timestamps { last_access, last_modification: self.time }
    }
}

/// A temporary name in a directory; the file is removed unless it was renamed.
struct Temporary {
    dir: Arc<OutDir>,
    name: OsString,
    renamed: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // Nothing can be done about a draft that cannot be removed; the next run tries again.
            fs::unlinkat(&self.dir.fd, &self.name, AtFlags::empty()).ok();
        }
    }
}

/// A file without a name in `dir`, for reading and writing.
pub(crate) fn nameless(dir: &Arc<OutDir>) -> Result<OwnedFd, FileError> {
    let name = draft_name()?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = fs::openat(&dir.fd, &name, flags, mode).map_err(FileError::io("create the output"))?;
    // Named for a moment only: O_TMPFILE would do, but not every file system has it.
    fs::unlinkat(&dir.fd, &name, AtFlags::empty()).map_err(FileError::io("create the output"))?;
    Ok(file)
}

/// A file that is being written under a temporary name. Dropped, it is removed.
pub(crate) struct Draft {
    temporary: Temporary,
    final_name: OsString,
    replace: bool,
    pub(crate) file: Arc<OwnedFd>,
}

impl Draft {
    /// Makes a draft for `final_name`; `replace` says that what stands there may be replaced.
    pub(crate) fn create(
        dir: &Arc<OutDir>,
        final_name: &OsStr,
        mode: Mode,
        replace: bool,
    ) -> Result<Self, FileError> {
        let name = draft_name()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = fs::openat(&dir.fd, &name, flags, mode).map_err(FileError::io("create the output"))?;
        let temporary = Temporary { dir: Arc::clone(dir), name, renamed: false };
        Ok(Self { temporary, final_name: final_name.to_owned(), replace, file: Arc::new(file) })
    }

    /// Closes the draft, after giving it the time and, where the umask took away from them, the permissions
    /// of the source, if it has one.
    pub(crate) fn complete(self, source: Option<&Stat>) -> Result<Complete, FileError> {
        if let Some(source) = source {
            self.dress(source)?;
        }
        Ok(Complete { temporary: self.temporary, final_name: self.final_name, replace: self.replace })
    }

    fn dress(&self, source: &Stat) -> Result<(), FileError> {
        let wanted = Dress::of(source);
        if wanted.mode.intersects(umask()) {
            fs::fchmod(&self.file, wanted.mode).map_err(FileError::io("set the mode of the output"))?;
        }
        fs::futimens(&self.file, &wanted.times()).map_err(FileError::io("set the time of the output"))
    }
}

/// A draft that is written and closed.
pub(crate) struct Complete {
    temporary: Temporary,
    final_name: OsString,
    replace: bool,
}

/// What a complete draft was made from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// The source.
    pub(crate) path: PathBuf,
    /// Its length, and that of the output, in bytes.
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

/// Drafts that are complete and wait to be settled.
#[derive(Default)]
pub(crate) struct Settlement {
    drafts: Vec<(Complete, Origin)>,
    bytes: u64,
}

/// How a draft ended.
pub(crate) type Settled = (Origin, Result<(), FileError>);

impl Settlement {
    /// Adds a complete draft.
    pub(crate) fn add(&mut self, draft: Complete, origin: Origin) {
        self.bytes += origin.bytes_out;
        self.drafts.push((draft, origin));
    }

    /// Whether it is time to settle.
    pub(crate) fn is_due(&self) -> bool {
        self.drafts.len() >= BATCH_FILES || self.bytes >= BATCH_BYTES
    }

    /// Syncs what was written, renames every draft to its final name, and syncs the names.
    pub(crate) fn settle(&mut self) -> Vec<Settled> {
        let drafts = std::mem::take(&mut self.drafts);
        self.bytes = 0;
        if let Err(errno) = sync(&drafts) {
            let error = |(_, origin)| (origin, Err(FileError::io("sync the output")(errno)));
            return drafts.into_iter().map(error).collect();
        }
        let dirs: HashMap<u64, Arc<OutDir>> = drafts
            .iter()
            .map(|(draft, _)| (draft.temporary.dir.device, Arc::clone(&draft.temporary.dir)))
            .collect();
        let is_one = drafts.len() == 1;
        let settled: Vec<_> = drafts.into_iter().map(|(draft, origin)| (origin, rename(draft))).collect();
        // The names themselves: one directory, or all of them at once, which costs less than each by itself.
        let synced =
            dirs.values().try_for_each(|dir| if is_one { fs::fsync(&dir.fd) } else { fs::syncfs(&dir.fd) });
        match synced {
            Ok(()) => settled,
            Err(errno) => {
                let failed = |(origin, renamed): Settled| {
                    (origin, renamed.and_then(|()| Err(FileError::io("sync the directory")(errno))))
                };
                settled.into_iter().map(failed).collect()
            }
        }
    }
}

/// One `syncfs` per file system, or one `fsync` where there is a single draft.
fn sync(drafts: &[(Complete, Origin)]) -> Result<(), Errno> {
    if let [(Complete { temporary: Temporary { dir, name, .. }, .. }, _)] = drafts {
        return fs::fsync(open_one(dir.fd.as_fd(), name, READ_FLAGS)?);
    }
    let mut devices = HashSet::new();
    for (draft, _) in drafts {
        let dir = &draft.temporary.dir;
        if devices.insert(dir.device) {
            fs::syncfs(&dir.fd)?;
        }
    }
    Ok(())
}

/// Renames without replacing, unless asked to; where the file system cannot do that, looks first.
fn rename(mut draft: Complete) -> Result<(), FileError> {
    let temporary = &mut draft.temporary;
    let dir = &temporary.dir.fd;
    let flags = if draft.replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    let renamed = match fs::renameat_with(dir, &temporary.name, dir, &draft.final_name, flags) {
        Err(Errno::EXIST) => Err(FileError::Exists),
        Err(Errno::INVAL | Errno::NOSYS) if !draft.replace => match temporary.dir.stat(&draft.final_name)? {
            Some(_) => Err(FileError::Exists),
            None => fs::renameat(dir, &temporary.name, dir, &draft.final_name)
                .map_err(FileError::io("rename the output")),
        },
        renamed => renamed.map_err(FileError::io("rename the output")),
    };
    temporary.renamed = renamed.is_ok();
    renamed
}

/// The permission bits of a file.
pub(crate) fn mode_of(stat: &Stat) -> Mode {
    Mode::from_raw_mode(stat.st_mode & 0o777)
}

/// The time of a file's last change.
pub(crate) fn mtime_of(stat: &Stat) -> Timespec {
    Timespec { tv_sec: stat.st_mtime, tv_nsec: i64::try_from(stat.st_mtime_nsec).unwrap_or(0) }
}

/// Bits that the process takes away from the mode of new files; read once, without changing it.
fn umask() -> Mode {
    use std::sync::OnceLock;
    static UMASK: OnceLock<Mode> = OnceLock::new();
    *UMASK.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        let bits = line.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok());
        // Unknown: set the mode always.
        Mode::from_raw_mode(bits.unwrap_or(0o777))
    })
}
