//! An arbiter of a test's own: a private folder, and a segment that is removed at the end.

use std::path::Path;

use evener_arbiter::{Arbiter, Options};
use evener_fd::Directories;

use crate::folder::{Folder, allow};

/// Where one test's processes share modules.
#[derive(Debug)]
pub struct ArbiterFolder(Folder);

impl ArbiterFolder {
    /// A new one, in which no segment is yet.
    #[must_use]
    pub fn new() -> Self {
        let folder = Folder::temporary();
        allow(folder.path(), 0o700);
        Self(folder)
    }

    /// What [`evener_arbiter::DIRECTORY_VARIABLE`] is set to for a program of the test.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// How to attach.
    #[must_use]
    pub fn options(&self) -> Options {
        options_in(self.path())
    }

    /// Attaches, as one more process would.
    #[must_use]
    pub fn attach(&self) -> Arbiter {
        attach_in(self.path())
    }
}

/// Attaches what a test's folder has, in another of its processes.
#[must_use]
pub fn attach_in(folder: &Path) -> Arbiter {
    Arbiter::attach(&options_in(folder)).unwrap()
}

fn options_in(folder: &Path) -> Options {
    Options { directories: Directories::only(folder.to_owned()), ..Options::default() }
}

impl Default for ArbiterFolder {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ArbiterFolder {
    fn drop(&mut self) {
        // System V memory outlives the process that made it.
        _ = Arbiter::remove(&self.options());
    }
}
