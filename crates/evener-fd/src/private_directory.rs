//! The directories in which processes of one user meet: files of statistics, the arbiter's anchor.
//!
//! A writer takes the first of [`Directories::of`] that it may use, made where it is missing. A reader, and a writer that is to meet
//! others: all of them that exist, for processes that began before the user's session did know fewer.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::{env, io};

use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

/// Where to look for the directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directories {
    /// Nowhere else, where it is given.
    given: Option<Vec<PathBuf>>,
    /// The user's directory for files of this session.
    runtime: Option<PathBuf>,
}

impl Directories {
    /// Takes them from the variable of this name and `XDG_RUNTIME_DIR`.
    #[must_use]
    pub fn from_environment(variable: &str) -> Self {
        // As the XDG base directory specification has it: a relative path counts as unset.
        let set = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        Self { given: set(variable).map(|path| vec![path]), runtime: set("XDG_RUNTIME_DIR") }
    }

    /// `directory` and no other.
    #[must_use]
    pub fn only(directory: PathBuf) -> Self {
        Self::these(vec![directory])
    }

    /// These and no others, in the order of preference.
    #[must_use]
    pub const fn these(directories: Vec<PathBuf>) -> Self {
        Self { given: Some(directories), runtime: None }
    }

    /// Whether files can be kept there for user `uid`. Makes the directory where it is missing.
    #[must_use]
    pub fn is_usable(&self, uid: u32) -> bool {
        self.open_or_make(uid).is_ok()
    }

    /// The directories of user `uid` in the order of preference. Without those of the environment
    /// ([`Directories::default`]) for a process that must not believe it.
    #[must_use]
    pub fn of(&self, uid: u32) -> Vec<PathBuf> {
        if let Some(given) = &self.given {
            return given.clone();
        }
        let runtime = self.runtime.iter().map(|runtime| runtime.join("evener"));
        let mut all: Vec<PathBuf> = runtime.collect();
        let usual = PathBuf::from(format!("/run/user/{uid}/evener"));
        if !all.contains(&usual) {
            all.push(usual);
        }
        all.push(PathBuf::from(format!("/tmp/evener-{uid}")));
        all
    }

    /// Opens the first directory that is private to user `uid`, and makes it where it is missing.
    ///
    /// Each directory is first met with an `openat`, and nothing follows one that is refused: sshd's sandbox answers that call
    /// with an error, and others, such as `mkdirat`, with death.
    ///
    /// # Errors
    ///
    /// Why none will do: of the last that was looked at.
    pub fn open_or_make(&self, uid: u32) -> Result<OwnedFd, Unusable> {
        self.find_or_make(uid).map(|(directory, _)| directory)
    }

    /// The same, and its path.
    ///
    /// # Errors
    ///
    /// Why none will do: of the last that was looked at.
    pub fn find_or_make(&self, uid: u32) -> Result<(OwnedFd, PathBuf), Unusable> {
        let mut last = Unusable::Missing;
        for path in self.of(uid) {
            let opened = match open_private(&path, uid) {
                Err(Unusable::Missing) if stands_in_a_directory(&path) => {
                    fs::mkdir(&path, Mode::RWXU).ok();
                    open_private(&path, uid)
                }
                other => other,
            };
            match opened {
                Ok(directory) => return Ok((directory, path)),
                Err(refused @ Unusable::Refused(_)) => return Err(refused),
                Err(reason) => last = reason,
            }
        }
        Err(last)
    }
}

/// Why a directory is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// It, or the one that it would stand in, is not there.
    Missing,
    /// It is another user's, open to others, or no directory.
    NotPrivate,
    /// The system refused.
    Refused(Errno),
}

impl From<Unusable> for io::Error {
    fn from(reason: Unusable) -> Self {
        match reason {
            Unusable::Missing => io::ErrorKind::NotFound.into(),
            Unusable::NotPrivate => io::ErrorKind::PermissionDenied.into(),
            Unusable::Refused(errno) => errno.into(),
        }
    }
}

/// Opens the directory at `path` where it is private to user `uid`.
///
/// # Errors
///
/// Where it is not there or not private.
pub fn open_private(path: &Path, uid: u32) -> Result<OwnedFd, Unusable> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::NOENT => Unusable::Missing,
        Errno::NOTDIR | Errno::LOOP => Unusable::NotPrivate,
        // A directory that another user keeps private; the session's, after a change of user, is one.
        Errno::ACCESS => Unusable::NotPrivate,
        other => Unusable::Refused(other),
    })?;
    let metadata = fs::fstat(&directory).map_err(Unusable::Refused)?;
    let is_private = metadata.st_uid == uid && metadata.st_mode & 0o077 == 0;
    if is_private { Ok(directory) } else { Err(Unusable::NotPrivate) }
}

fn stands_in_a_directory(path: &Path) -> bool {
    path.parent().is_some_and(Path::is_dir)
}
