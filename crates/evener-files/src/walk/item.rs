//! What a walk met: a file or link to be worked on, with its place in the output, or the reason for none.

use std::ffi::{CString, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{self, AtFlags, Stat};

use crate::error::FileError;
use crate::input::place::Place;
use crate::input::source_file::SourceFile;
use crate::output::OutputDir;
use crate::report::Skip;

/// One file or link to be worked on.
#[derive(Clone)]
pub(crate) struct Item {
    /// For messages, but where the user named the file itself.
    pub(crate) source: PathBuf,
    pub(crate) what: What,
    pub(crate) dir: Arc<OutputDir>,
    /// Its name in the output and, where a walk found it, in its own directory.
    pub(crate) name: OsString,
}

/// What is to be worked on.
#[derive(Clone)]
pub(crate) enum What {
    /// A file that the user named.
    Named,
    /// A file that the walk found in a directory.
    Found(Arc<Place>),
    /// A symbolic link that the walk found, with where it points and what it is.
    Link(CString, Box<Stat>),
}

impl Item {
    /// Opens the source, a file.
    pub(crate) fn open(&self) -> Result<SourceFile, FileError> {
        match &self.what {
            What::Named => SourceFile::open_named(&self.source),
            What::Found(place) => SourceFile::open(place, &self.name),
            What::Link(..) => Err(FileError::Link),
        }
    }

    /// What the file system says of the source, which is not opened; `None` where it cannot be looked at.
    pub(crate) fn look(&self) -> Option<Stat> {
        match &self.what {
            What::Named => fs::stat(&self.source).ok(),
            What::Found(place) => fs::statat(&*place.fd().ok()?, &self.name, AtFlags::SYMLINK_NOFOLLOW).ok(),
            What::Link(_, stat) => Some(**stat),
        }
    }
}

/// What the walk met.
pub(crate) enum Entry {
    File(Item),
    Skipped(PathBuf, Skip),
    Failed(PathBuf, FileError),
}
