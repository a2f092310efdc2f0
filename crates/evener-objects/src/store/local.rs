//! Directories as a store: names below them lead through no link, whatever changes the tree meanwhile, and an output gets its name when it is
//! whole and durable.
//!
//! An output is a file without a name (`O_TMPFILE`) until then, so that a process that dies leaves nothing. It is a draft with a name, which
//! listings leave out, where the file system has no such files, and for the moment in which it replaces what stands there: such a draft goes
//! with a try that fails, and stays only if the process dies. The mark is an extended attribute, beside the length and the time
//! of change that the output had then: a file can be written to and keep its attributes.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Seek as _};
use std::ops::Range;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use evener_fd::open_named;
use evener_fd::text::PathDisplay;
use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, XattrFlags};
use rustix::io::Errno;

use super::{Found, Listing, Making, Standing, Store, Unlisted, Upload};
use crate::outcome::{Failure, Kind};

/// The attribute that holds a mark.
const MARK: &str = "user.evener.mark";
/// Bytes that a mark may have.
const MARK_BYTES_MAX: usize = 256;
/// What names of drafts begin with.
const DRAFT: &str = ".evener-draft-";

const DRAFTED: OFlags = OFlags::RDWR.union(OFlags::CLOEXEC);
/// The umask takes from it.
const DRAFT_MODE: Mode = Mode::from_raw_mode(0o666);
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// A directory.
pub(super) struct Local {
    root: Arc<OwnedFd>,
}

impl Local {
    pub(super) fn open(path: &str, is_made: bool) -> Result<Self, Failure> {
        if is_made {
            std::fs::create_dir_all(path).map_err(|error| Failure::never(format_args!("{path}: {error}")))?;
        }
        let root = open_named(Path::new(path), DIRECTORY);
        let root = root.map_err(|error| Failure::never(format_args!("{path}: {error}")))?;
        Ok(Self { root: Arc::new(root) })
    }

    /// Opens what was found, if it is still the same.
    fn open_found(&self, found: &Found) -> Result<File, Failure> {
        let fd = beneath(&self.root, &found.name, READ)?;
        let stat = fs::fstat(&fd).map_err(of)?;
        match version(&stat) == found.version {
            true => Ok(File::from(fd)),
            false => Err(Failure::new(Kind::Changed, "it has changed since it was listed")),
        }
    }
}

/// Opens a name below a directory, through directories only.
fn beneath(root: &OwnedFd, name: &str, flags: OFlags) -> Result<OwnedFd, Failure> {
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    loop {
        match fs::openat2(root, if name.is_empty() { "." } else { name }, flags, Mode::empty(), how) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(Errno::LOOP) => {
                return Err(Failure::never("a symbolic link is on the way to it; it is not followed"));
            }
            opened => return opened.map_err(of),
        }
    }
}

/// What tells this state of a file from others.
fn version(stat: &Stat) -> String {
    let Stat { st_ino, st_size, st_mtime, st_mtime_nsec, st_ctime, st_ctime_nsec, .. } = *stat;
    format!("file {st_ino} {st_size} {st_mtime}.{st_mtime_nsec} {st_ctime}.{st_ctime_nsec}")
}

/// What a write to a file changes.
fn written_state(stat: &Stat) -> String {
    let Stat { st_size, st_mtime, st_mtime_nsec, .. } = *stat;
    format!("{st_size} {st_mtime}.{st_mtime_nsec}")
}

impl Store for Local {
    fn list(&self, after: &str) -> Listing {
        let mut found = Vec::new();
        walk(&self.root, "", after, &mut found);
        found.sort_unstable_by(|one, other| name_of(one).cmp(name_of(other)));
        Box::new(found.into_iter())
    }

    fn read(&self, found: &Found, range: Range<u64>) -> Result<Bytes, Failure> {
        let file = self.open_found(found)?;
        let bytes = usize::try_from(range.end - range.start).map_err(Failure::never)?;
        let mut part = vec![0; bytes];
        match file.read_exact_at(&mut part, range.start) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Err(Failure::new(Kind::Changed, "it ended while it was read"));
            }
            Err(error) => return Err(of_io(&error)),
        }
        // What was written to it while it was read shows here.
        let now = fs::fstat(&file).map_err(of)?;
        match version(&now) == found.version {
            true => Ok(part.into()),
            false => Err(Failure::new(Kind::Changed, "it was changed while it was read")),
        }
    }

    fn standing(&self, name: &str) -> Result<Option<Standing>, Failure> {
        let fd = match beneath(&self.root, name, READ) {
            Ok(fd) => fd,
            Err(failure) if failure.kind == Kind::Absent => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let mut mark = [0; MARK_BYTES_MAX];
        let mark = match fs::fgetxattr(&fd, MARK, &mut mark) {
            Ok(bytes) => std::str::from_utf8(&mark[..bytes]).ok(),
            Err(_) => None,
        };
        let Some(mark) = mark else { return Ok(Some(Standing { mark: None, is_changed: false })) };
        let (mark, state) = mark.split_once(' ').map_or((mark, None), |(mark, state)| (mark, Some(state)));
        // Of outputs of earlier versions the mark is all that is known.
        let now = written_state(&fs::fstat(&fd).map_err(of)?);
        let is_changed = state.is_some_and(|state| state != now);
        Ok(Some(Standing { mark: Some(mark.to_owned()), is_changed }))
    }

    fn put(&self, making: &Making, output: Bytes) -> Result<(), Failure> {
        let draft = self.draft(making)?;
        draft.part(0, 0, output)?;
        draft.complete()
    }

    fn begin(&self, making: &Making) -> Result<Arc<dyn Upload>, Failure> {
        Ok(Arc::new(self.draft(making)?))
    }
}

/// Adds the files below a directory whose names are greater than `after`; what cannot be read is among them as a failure, and so is a directory
/// that cannot be, if such names may lie below it.
fn walk(root: &OwnedFd, folder: &str, after: &str, found: &mut Vec<Result<Found, Unlisted>>) {
    let unlisted = |name: &str, failure: Failure| Err(Unlisted { name: Some(name.to_owned()), failure });
    let entries = beneath(root, folder, DIRECTORY).and_then(|fd| Dir::read_from(&fd).map_err(of));
    let entries = match entries {
        Ok(entries) => entries,
        Err(failure) => return found.push(unlisted(folder, failure)),
    };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(errno) => return found.push(unlisted(folder, of(errno))),
        };
        let below = |own: &str| if folder.is_empty() { own.to_owned() } else { format!("{folder}/{own}") };
        let Ok(own) = entry.file_name().to_str() else {
            let own = OsStr::from_bytes(entry.file_name().to_bytes());
            let name = below(&PathDisplay(Path::new(own)).to_string());
            if name.as_str() > after {
                found.push(unlisted(&name, Failure::never("its name is no text")));
            }
            continue;
        };
        if matches!(own, "." | "..") || own.starts_with(DRAFT) {
            continue;
        }
        let name = below(own);
        // Names below it, if it is a directory, begin with its own and a slash; none is greater if the greatest of these is not.
        let is_past = format!("{name}0").as_str() <= after;
        match seen(root, &name) {
            _ if is_past => {}
            Ok((FileType::Directory, _)) => walk(root, &name, after, found),
            // It has gone since.
            Err(failure) if failure.kind == Kind::Absent => {}
            Err(failure) => found.push(unlisted(&name, failure)),
            _ if name.as_str() <= after => {}
            Ok((FileType::RegularFile, stat)) => {
                let bytes = u64::try_from(stat.st_size).unwrap_or(0);
                found.push(Ok(Found { name, bytes, version: version(&stat) }));
            }
            Ok(_) => {
                found.push(unlisted(
                    &name,
                    Failure::never("neither file nor directory; links are not followed"),
                ));
            }
        }
    }
}

fn name_of(found: &Result<Found, Unlisted>) -> &str {
    match found {
        Ok(found) => &found.name,
        Err(unlisted) => unlisted.name.as_deref().unwrap_or_default(),
    }
}

fn seen(root: &OwnedFd, name: &str) -> Result<(FileType, Stat), Failure> {
    let (folder, own) = name.rsplit_once('/').unwrap_or(("", name));
    let folder = beneath(root, folder, DIRECTORY)?;
    let stat = fs::statat(&folder, own, AtFlags::SYMLINK_NOFOLLOW).map_err(of)?;
    Ok((FileType::from_raw_mode(stat.st_mode), stat))
}

/// An output on its way to its name.
struct Draft {
    file: File,
    folder: OwnedFd,
    making: Making,
    /// The name that it has until then, where the file system has no files without one.
    draft_name: Option<String>,
}

impl Drop for Draft {
    fn drop(&mut self) {
        // The name is gone where the output has got its own.
        if let Some(draft) = &self.draft_name {
            fs::unlinkat(&self.folder, draft, AtFlags::empty()).ok();
        }
    }
}

impl Local {
    fn draft(&self, making: &Making) -> Result<Draft, Failure> {
        let (folder, _) = making.name.rsplit_once('/').unwrap_or(("", &making.name));
        let folder = self.made_folder(folder)?;
        match fs::openat(&folder, ".", DRAFTED | OFlags::TMPFILE, DRAFT_MODE) {
            Ok(fd) => Ok(Draft { file: File::from(fd), folder, making: making.clone(), draft_name: None }),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => named_draft(folder, making),
            Err(errno) => Err(of(errno)),
        }
    }

    /// The directory `folder`, made with those above it where there is none.
    fn made_folder(&self, folder: &str) -> Result<OwnedFd, Failure> {
        match beneath(&self.root, folder, DIRECTORY) {
            Err(failure) if failure.kind == Kind::Absent => {}
            opened => return opened,
        }
        let (above, own) = folder.rsplit_once('/').unwrap_or(("", folder));
        let above = self.made_folder(above)?;
        match fs::mkdirat(&above, own, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(of(errno)),
        }
        fs::fsync(&above).map_err(of)?;
        beneath(&self.root, folder, DIRECTORY)
    }
}

/// A draft where the file system has no files without names.
fn named_draft(folder: OwnedFd, making: &Making) -> Result<Draft, Failure> {
    let (name, file) = new_draft(&folder)?;
    Ok(Draft { file, folder, making: making.clone(), draft_name: Some(name) })
}

fn new_draft(folder: &OwnedFd) -> Result<(String, File), Failure> {
    let name = random_name()?;
    let flags = DRAFTED | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let fd = fs::openat(folder, &name, flags, DRAFT_MODE).map_err(of)?;
    Ok((name, File::from(fd)))
}

impl Upload for Draft {
    fn part(&self, _: usize, place: u64, bytes: Bytes) -> Result<(), Failure> {
        self.file.write_all_at(&bytes, place).map_err(|error| of_io(&error))
    }

    fn complete(&self) -> Result<(), Failure> {
        self.settle(&self.file)?;
        let own = self.making.name.rsplit('/').next().unwrap_or_default();
        match (&self.draft_name, self.making.replaces) {
            (Some(draft), replaces) => self.rename(draft, own, replaces)?,
            (None, replaces) => {
                let name = if replaces { random_name()? } else { own.to_owned() };
                match self.link(&name) {
                    Ok(()) if replaces => self.rename_or_remove(&name, own)?,
                    Ok(()) => {}
                    Err(errno) if has_no_links(errno) => self.rename_or_remove(&self.copy()?, own)?,
                    Err(errno) => return Err(of(errno)),
                }
            }
        }
        fs::fsync(&self.folder).map_err(of)
    }

    // A draft goes when it is dropped.
    fn abort(&self) {}
}

impl Draft {
    /// Gives a file that is whole its mark, and has it on the disk.
    fn settle(&self, file: &File) -> Result<(), Failure> {
        let state = written_state(&fs::fstat(file).map_err(of)?);
        let mark = format!("{} {state}", self.making.mark);
        // Where the file system has no attributes, the output is taken for another program's later.
        fs::fsetxattr(file, MARK, mark.as_bytes(), XattrFlags::empty()).ok();
        file.sync_all().map_err(|error| of_io(&error))
    }

    /// Gives the file without a name one.
    fn link(&self, own: &str) -> Result<(), Errno> {
        let file = format!("/proc/self/fd/{}", self.file.as_fd().as_raw_fd());
        let flags = AtFlags::SYMLINK_FOLLOW;
        fs::linkat(fs::CWD, OsStr::new(&file), &self.folder, own, flags)
    }

    /// Gives the draft `draft` the name of the output.
    fn rename(&self, draft: &str, own: &str, replaces: bool) -> Result<(), Failure> {
        let folder = &self.folder;
        if replaces {
            return fs::renameat(folder, draft, folder, own).map_err(of);
        }
        match fs::linkat(folder, draft, folder, own, AtFlags::empty()) {
            Ok(()) => fs::unlinkat(folder, draft, AtFlags::empty()).map_err(of),
            Err(errno) if has_no_links(errno) => {
                let renamed = fs::renameat_with(folder, draft, folder, own, RenameFlags::NOREPLACE);
                renamed.map_err(|errno| match errno {
                    Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP => Failure::never(
                        "its file system has neither hard links nor a rename that replaces nothing, so no output gets its name there",
                    ),
                    _ => of(errno),
                })
            }
            Err(errno) => Err(of(errno)),
        }
    }

    /// The same for a draft that got its name for this alone.
    fn rename_or_remove(&self, draft: &str, own: &str) -> Result<(), Failure> {
        self.rename(draft, own, self.making.replaces).inspect_err(|_| {
            fs::unlinkat(&self.folder, draft, AtFlags::empty()).ok();
        })
    }

    /// A draft with a name that has all that the file without one has; its name.
    fn copy(&self) -> Result<String, Failure> {
        let (name, file) = new_draft(&self.folder)?;
        let copied = (&self.file).rewind().and_then(|()| std::io::copy(&mut &self.file, &mut &file));
        let settled = copied.map_err(|error| of_io(&error)).and_then(|_| self.settle(&file));
        if settled.is_err() {
            fs::unlinkat(&self.folder, &name, AtFlags::empty()).ok();
        }
        settled.map(|()| name)
    }
}

/// Whether a file system refuses a hard link because it has none.
const fn has_no_links(errno: Errno) -> bool {
    matches!(errno, Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM)
}

fn random_name() -> Result<String, Failure> {
    let mut random = [0; 8];
    getrandom::getrandom(&mut random).map_err(Failure::never)?;
    Ok(format!("{DRAFT}{:016x}", u64::from_ne_bytes(random)))
}

fn of(errno: Errno) -> Failure {
    of_io(&errno.into())
}

/// What an error of the system's means for the object.
fn of_io(error: &std::io::Error) -> Failure {
    let kind = match error.kind() {
        ErrorKind::NotFound => Kind::Absent,
        ErrorKind::AlreadyExists => Kind::Exists,
        ErrorKind::PermissionDenied
        | ErrorKind::ReadOnlyFilesystem
        | ErrorKind::NotADirectory
        | ErrorKind::IsADirectory
        | ErrorKind::InvalidInput
        | ErrorKind::Unsupported => Kind::Never,
        // Its kind has no name before Rust 1.87.
        _ if error.raw_os_error() == Some(Errno::NAMETOOLONG.raw_os_error()) => Kind::Never,
        // A full disk may be emptied, a server of files may come back.
        _ => Kind::Transient,
    };
    Failure::new(kind, error)
}

#[cfg(test)]
mod tests {
    use evener_testing::Folder;

    use super::*;

    /// Names in a directory.
    fn names(folder: &Path) -> Vec<String> {
        std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_try_that_fails_leaves_no_draft_with_or_without_a_name() {
        let folder = Folder::temporary();
        std::fs::create_dir(folder.join("output")).unwrap();
        let local = Local::open(folder.path().to_str().unwrap(), false).unwrap();
        for replaces in [true, false] {
            let making = Making { name: "output".to_owned(), mark: "mark".to_owned(), replaces };
            // No file takes the place of a directory.
            local.put(&making, Bytes::from_static(b"sealed")).unwrap_err();
            let draft = named_draft(local.made_folder("").unwrap(), &making).unwrap();
            assert_eq!(names(folder.path()).len(), 2);
            draft.part(0, 0, Bytes::from_static(b"sealed")).unwrap();
            draft.complete().unwrap_err();
            drop(draft);
            assert_eq!(names(folder.path()), ["output"]);
            // One that goes well leaves its output alone.
            let making = Making { name: format!("other-{replaces}"), ..making };
            let draft = named_draft(local.made_folder("").unwrap(), &making).unwrap();
            draft.complete().unwrap();
            drop(draft);
            assert_eq!(names(folder.path()).len(), 2);
            assert_eq!(local.standing(&making.name).unwrap().unwrap().mark.as_deref(), Some("mark"));
            std::fs::remove_file(folder.join(&making.name)).unwrap();
        }
    }
}
