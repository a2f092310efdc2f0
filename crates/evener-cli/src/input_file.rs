//! Files that a user names and that are read whole: none of them without end, and none that waits at a pipe.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Of a configuration, a scenario or a report.
pub(crate) const TEXT_BYTES_MAX: u64 = 64 << 20;
/// More than a program or library has.
pub(crate) const PROGRAM_BYTES_MAX: u64 = 4 << 30;

/// A regular file's bytes. Nothing is taken out of a pipe that another program is to read, nor waited for at one.
///
/// # Errors
///
/// It cannot be read, is no regular file, or has more than `bytes_max`.
pub(crate) fn regular(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    bytes(opened_regular(path)?, bytes_max)
}

fn opened_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    }
}

/// Whether a file is an ELF file, by how it begins.
pub(crate) fn is_elf(path: &Path) -> bool {
    let mut begins = [0; 4];
    let read = opened_regular(path).and_then(|mut file| file.read_exact(&mut begins));
    read.is_ok() && begins == *b"\x7fELF"
}

/// The text of a file or pipe.
///
/// # Errors
///
/// It cannot be read, has more than [`TEXT_BYTES_MAX`], or is no UTF-8.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    let bytes = bytes(File::open(path)?, TEXT_BYTES_MAX)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn bytes(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let reason = format!("it has more than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(bytes)
}
