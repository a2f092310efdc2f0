//! What a walk met: a file or link to be worked on, with its place in the output, or the reason for none.

use std::ffi::{CString, OsStr, OsString};
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
    pub(crate) what: What,
    pub(crate) dir: Arc<OutputDir>,
    /// Its name in the output.
    pub(crate) name: OsString,
    /// Where a walk found it, its name in its own directory, if that is another.
    pub(crate) source_name: Option<OsString>,
}

/// What is to be worked on.
#[derive(Clone)]
pub(crate) enum What {
    /// A file that the user named by its path.
    Named(PathBuf),
    /// A file that the walk found in a directory.
    Found(Arc<Place>),
    /// A symbolic link that the walk found, with where it points and what it is.
    Link(Arc<Place>, CString, Box<Stat>),
}

impl Item {
    /// The path of the source: for messages, but where the user named it.
    pub(crate) fn source(&self) -> PathBuf {
        match &self.what {
            What::Named(path) => path.clone(),
            What::Found(place) | What::Link(place, ..) => place.path().join(self.source_name()),
        }
    }

    /// Its name in its own directory.
    pub(crate) fn source_name(&self) -> &OsStr {
        self.source_name.as_deref().unwrap_or(&self.name)
    }

    /// Opens the source, a file.
    pub(crate) fn open(&self) -> Result<SourceFile, FileError> {
        match &self.what {
            What::Named(path) => SourceFile::open_named(path),
            What::Found(place) => SourceFile::open(place, self.source_name()),
            What::Link(..) => Err(FileError::Link),
        }
    }

    /// What the file system says of the source, which is not opened; `None` where it cannot be looked at.
    pub(crate) fn look(&self) -> Option<Stat> {
        match &self.what {
            What::Named(path) => fs::stat(path).ok(),
            What::Found(place) => {
                fs::statat(&*place.fd().ok()?, self.source_name(), AtFlags::SYMLINK_NOFOLLOW).ok()
            }
            What::Link(.., stat) => Some(**stat),
        }
    }
}

/// What the walk met.
pub(crate) enum Entry {
    File(Item),
    Skipped(PathBuf, Skip),
    Failed(PathBuf, FileError),
}
