//! What a walk met: a file to be worked on, with its place in the output, or the reason for none.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{self, OFlags, Stat};

use crate::error::FileError;
use crate::input::beneath::Root;
use crate::input::source_file::SourceFile;
use crate::output::OutputDir;
use crate::report::Skip;

/// One file to be worked on.
#[derive(Clone)]
pub(crate) struct Item {
    pub(crate) source: PathBuf,
    /// The directory below which the walk found it; `None` where the user named the file itself.
    pub(crate) root: Option<Arc<Root>>,
    pub(crate) dir: Arc<OutputDir>,
    pub(crate) name: OsString,
}

impl Item {
    /// Opens the source.
    pub(crate) fn open(&self) -> Result<SourceFile, FileError> {
        SourceFile::open(self.root.as_deref(), &self.source)
    }

    /// What the file system says of the source, which is not opened; `None` where it cannot be looked at.
    pub(crate) fn look(&self) -> Option<Stat> {
        match &self.root {
            Some(root) => {
                root.open_found(&self.source, OFlags::PATH | OFlags::CLOEXEC).ok().map(|(_, stat)| stat)
            }
            None => fs::stat(&self.source).ok(),
        }
    }
}

/// What the walk met.
pub(crate) enum Entry {
    File(Item),
    Skipped(PathBuf, Skip),
    Failed(PathBuf, FileError),
}
