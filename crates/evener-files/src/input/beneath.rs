//! Paths beneath a directory are opened without following a link anywhere below it, even where another process changes the
//! tree meanwhile.
//!
//! `openat2` walks the whole path at once; where the kernel has none, or a sandbox forbids it, each component is
//! opened by itself.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::error::FileError;

/// For opening a directory to list it or to work in it.
pub(crate) const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A directory that the user named as input. Whatever is read below it is opened through it.
pub(crate) struct Root {
    pub(crate) fd: OwnedFd,
    path: PathBuf,
}

impl Root {
    /// Opens `path`; links on the way and in its place are followed.
    pub(crate) fn open(path: &Path) -> Result<Self, FileError> {
        let fd = fs::open(path, DIRECTORY_FLAGS, Mode::empty()).map_err(FileError::io("read"))?;
        Ok(Self { fd, path: path.to_owned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens what the walk found at `path`, with what it is.
    pub(crate) fn open_found(&self, path: &Path, flags: OFlags) -> Result<(OwnedFd, Stat), FileError> {
        let relative = path.strip_prefix(&self.path).expect("the walk finds what lies below its root");
        let opened = open_beneath(self.fd.as_fd(), relative, flags).and_then(|fd| {
            let stat = fs::fstat(&fd)?;
            Ok((fd, stat))
        });
        opened.map_err(
            |errno| if errno == Errno::LOOP { FileError::Link } else { FileError::io("read")(errno) },
        )
    }
}

/// Opens `path` below `root`. [`Errno::LOOP`] where any component is a symbolic link, [`Errno::XDEV`] where the path
/// leads up.
pub(crate) fn open_beneath(root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match fs::openat2(root, path, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS | Errno::PERM) => by_component(root, path, flags),
        opened => opened,
    }
}

fn by_component(root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut components = path.components().peekable();
    let mut reached: Option<OwnedFd> = None;
    while let Some(component) = components.next() {
        let name = match component {
            Component::Normal(name) => name,
            Component::CurDir => OsStr::new("."),
            _ => return Err(Errno::XDEV),
        };
        let on_the_way = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let flags = if components.peek().is_some() { on_the_way } else { flags };
        let at = reached.as_ref().map_or(root, AsFd::as_fd);
        reached = Some(open_one(at, name, flags)?);
    }
    reached.ok_or(Errno::NOENT)
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

    type Open = fn(BorrowedFd<'_>, &Path, OFlags) -> Result<OwnedFd, Errno>;

    /// `tree/a/b/file`, and `secret/file` beside the tree.
    fn place() -> (tempfile::TempDir, Root) {
        let place = tempfile::tempdir().unwrap();
        for directory in ["tree/a/b", "secret/b"] {
            std::fs::create_dir_all(place.path().join(directory)).unwrap();
            std::fs::write(place.path().join(directory).join("file"), directory).unwrap();
        }
        let root = Root::open(&place.path().join("tree")).unwrap();
        (place, root)
    }

    /// The kernel's walk and our own.
    const WAYS: [Open; 2] = [open_beneath, by_component];

    #[test]
    fn what_lies_beneath_is_opened_whole_or_by_component() {
        let (_place, root) = place();
        for open in WAYS {
            assert!(open(root.fd.as_fd(), Path::new("a/b/file"), READ_FLAGS).is_ok());
            assert!(open(root.fd.as_fd(), Path::new("a/b"), DIRECTORY_FLAGS).is_ok());
            assert!(open(root.fd.as_fd(), Path::new("."), DIRECTORY_FLAGS).is_ok());
        }
    }

    #[test]
    fn a_link_in_any_place_of_a_path_ends_it_whole_or_by_component() {
        let (place, root) = place();
        symlink(place.path().join("secret"), place.path().join("tree/link")).unwrap();
        symlink("../../../secret/b/file", place.path().join("tree/a/b/link")).unwrap();
        symlink("b", place.path().join("tree/a/within")).unwrap();
        for open in WAYS {
            for path in ["link/b/file", "a/b/link", "a/within/file"] {
                let opened = open(root.fd.as_fd(), Path::new(path), READ_FLAGS);
                assert_eq!(opened.err(), Some(Errno::LOOP), "{path}");
            }
            for path in ["link", "link/b", "a/within"] {
                let opened = open(root.fd.as_fd(), Path::new(path), DIRECTORY_FLAGS);
                assert_eq!(opened.err(), Some(Errno::LOOP), "{path}");
            }
        }
    }

    #[test]
    fn a_path_that_leads_out_of_the_root_is_refused_whole_or_by_component() {
        let (place, root) = place();
        for open in WAYS {
            for path in [Path::new("../secret/b/file"), Path::new("a/../../secret/b/file"), place.path()] {
                assert_eq!(open(root.fd.as_fd(), path, OFlags::RDONLY).err(), Some(Errno::XDEV), "{path:?}");
            }
        }
    }
}
