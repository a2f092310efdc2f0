//! Directories as a store: names below them lead through no link, whatever changes the tree meanwhile, and an output gets its name when it is
//! whole and durable.
//!
//! An output is a file without a name (`O_TMPFILE`) until then, so that a process that dies leaves nothing. It is a draft with a name, which
//! listings leave out, where the file system has no such files, and for the moment in which it replaces what stands there: such a draft is its
//! owner's alone and goes with a try that fails (`drafts.rs`). If the process dies it stays, for the next run that makes one there. The mark is an
//! extended attribute, beside the length and the time of change that the output had then: a file can be written to and keep its attributes.

mod drafts;

use std::ffi::OsStr;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use evener_fd::open_named;
use evener_fd::text::PathDisplay;
use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use self::drafts::{Drafts, is_draft};
use super::{Found, Listing, Making, Rules, Standing, Store, Unlisted, Upload};
use crate::outcome::{Failure, Kind};

/// The attribute that holds a mark.
const MARK: &str = "user.evener.mark";
/// Bytes that a mark may have.
const MARK_BYTES_MAX: usize = 256;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// A directory.
pub(super) struct Local {
    root: Arc<OwnedFd>,
    drafts: Arc<Drafts>,
}

impl Local {
    pub(super) fn open(path: &str, rules: Rules) -> Result<Self, Failure> {
        let root = open_named(Path::new(path), DIRECTORY);
        let root = root.map_err(|error| {
            let failure = of_io(&error);
            Failure { text: format!("{path}: {failure}"), ..failure }
        })?;
        Ok(Self { root: Arc::new(root), drafts: Arc::new(Drafts::new(rules)) })
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
            Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::RANGE) => None,
            Err(errno) => return Err(of(errno)),
        };
        let Some(mark) = mark else { return Ok(Some(Standing { mark: None, is_changed: false })) };
        let (mark, state) = mark.split_once(' ').map_or((mark, None), |(mark, state)| (mark, Some(state)));
        // Of outputs of earlier versions the mark is all that is known.
        let now = written_state(&fs::fstat(&fd).map_err(of)?);
        let is_changed = state.is_some_and(|state| state != now);
        Ok(Some(Standing { mark: Some(mark.to_owned()), is_changed }))
    }

    fn put(&self, making: &Making, output: Bytes) -> Result<(), Failure> {
        let draft = self.drafts.begin(self.folder_of(making)?, making)?;
        draft.part(0, 0, output)?;
        draft.complete()
    }

    fn begin(&self, making: &Making) -> Result<Arc<dyn Upload>, Failure> {
        Ok(Arc::new(self.drafts.begin(self.folder_of(making)?, making)?))
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
        if matches!(own, "." | "..") {
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
            Ok((FileType::RegularFile, _)) if is_draft(own) => {}
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

impl Local {
    /// The directory of an output.
    fn folder_of(&self, making: &Making) -> Result<OwnedFd, Failure> {
        self.made_folder(making.name.rsplit_once('/').map_or("", |(folder, _)| folder))
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
