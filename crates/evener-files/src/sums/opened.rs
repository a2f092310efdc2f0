//! A file that is read from front to back.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use evener_startup::duplicate;
use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io::{Errno, read};

use super::inputs::What;
use crate::error::FileError;
use crate::input::source_file::READ_FLAGS;

/// A file, as it was opened.
pub(super) struct Opened {
    pub(super) file: OwnedFd,
    /// Its length where it is a regular file.
    pub(super) bytes: Option<u64>,
}

/// Opens a file; its path, and what came of it.
pub(super) fn open(what: What) -> (PathBuf, Result<Opened, FileError>) {
    match what {
        What::Stdin => {
            let opened = duplicate(0).map(|file| Opened { file, bytes: None });
            (PathBuf::from("-"), opened.map_err(FileError::io("read")))
        }
        What::Named(path) => {
            let opened = open_path(&path);
            (path, opened)
        }
        What::Found(place, name) => {
            let opened = place.open(&name, READ_FLAGS).and_then(looked_at);
            // What the walk saw was a regular file.
            let opened =
                opened.and_then(|it| if it.bytes.is_some() { Ok(it) } else { Err(FileError::Changed) });
            (place.path().join(name), opened)
        }
        What::Failed(path, error) => (path, Err(error)),
    }
}

/// Opens what a user named: through links, also those of other users, for nothing is written and nothing but a digest told.
fn open_path(path: &Path) -> Result<Opened, FileError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
    looked_at(fs::open(path, flags, Mode::empty()).map_err(FileError::io("read"))?)
}

fn looked_at(file: OwnedFd) -> Result<Opened, FileError> {
    let stat = fs::fstat(&file).map_err(FileError::io("read"))?;
    // What says that it is empty may be one of the kernel's own files, which say so whatever they hold.
    let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    Ok(Opened { file, bytes: is_regular.then(|| u64::try_from(stat.st_size).unwrap_or(0)) })
}

/// Reads until a place is full or the file ends, as it does where no more comes than is left by the length that is known; how much came.
pub(super) fn read_on(file: &OwnedFd, place: &mut [u8], left: u64) -> Result<usize, FileError> {
    let mut total = 0;
    while total < place.len() && (total == 0 || total as u64 != left) {
        match read(file, &mut place[total..]) {
            Ok(0) => break,
            Ok(came) => total += came,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(FileError::io("read")(errno)),
        }
    }
    Ok(total)
}
