//! A file in which a measurement is kept beside what is printed: opened before anything is measured, which may take minutes, and written at the end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::output::PathDisplay;

/// One that can be written. What stands there stays until then; of one that was made for this nothing is left unless it is written.
pub(crate) struct ResultsFile {
    path: PathBuf,
    file: File,
    is_new: bool,
}

impl ResultsFile {
    /// The one that is asked for.
    ///
    /// # Errors
    ///
    /// Why it cannot be written.
    pub(crate) fn open(path: Option<&PathBuf>) -> anyhow::Result<Option<Self>> {
        path.map(|path| opened(path).with_context(|| cannot_write(path))).transpose()
    }

    /// # Errors
    ///
    /// Why not all of it is there.
    pub(crate) fn write(self, text: &str) -> anyhow::Result<()> {
        self.written_by(|this| {
            // A terminal or a pipe has no length.
            if this.file.metadata()?.is_file() {
                this.file.set_len(0)?;
            }
            this.file.write_all(text.as_bytes())?;
            Ok(evener_fd::close(this.file.try_clone()?.into())?)
        })
    }

    /// Written by who takes a path.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub(crate) fn write_at(self, write: impl FnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<()> {
        self.written_by(|this| write(&this.path))
    }

    fn written_by(mut self, write: impl FnOnce(&mut Self) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let written = write(&mut self);
        self.is_new = self.is_new && written.is_err();
        written.with_context(|| cannot_write(&self.path))
    }
}

impl Drop for ResultsFile {
    fn drop(&mut self) {
        if self.is_new {
            fs::remove_file(&self.path).ok();
        }
    }
}

fn opened(path: &Path) -> io::Result<ResultsFile> {
    let open = |is_new| OpenOptions::new().write(true).create_new(is_new).open(path);
    let (file, is_new) = match open(true) {
        Ok(file) => (file, true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (open(false)?, false),
        Err(error) => return Err(error),
    };
    Ok(ResultsFile { path: path.to_owned(), file, is_new })
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", PathDisplay(path))
}
