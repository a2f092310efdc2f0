//! Files of a system, below its root or one that was planted.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

/// Where the system's files begin.
#[derive(Clone, Debug)]
pub(crate) struct SystemRoot(PathBuf);

impl SystemRoot {
    pub(crate) fn new(root: &Path) -> Self {
        Self(root.to_owned())
    }

    /// Where a file lies, named as the system names it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name.trim_start_matches('/'))
    }

    /// A file's text; none where it cannot be read.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        fs::read(self.path(name)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(super) fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    pub(super) fn about(&self, name: &str) -> Option<Metadata> {
        fs::metadata(self.path(name)).ok()
    }

    /// Names of a folder, sorted; none where there is no such folder.
    pub(super) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().filter_map(Result::ok);
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The last name of what a link leads to.
    pub(super) fn target(&self, link: &str) -> Option<String> {
        let path = fs::read_link(self.path(link)).ok()?;
        Some(path.file_name()?.to_string_lossy().into_owned())
    }
}
