//! Drafts: files that are being written under a temporary name in the directory of the final one.

use std::ffi::{OsStr, OsString};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{self, Mode, OFlags, RenameFlags, Stat};
use rustix::io::{Errno, pwritev};

use super::attributes::{Attributes, umask};
use super::directory::OutputDir;
use super::register::Registered;
use crate::armor::Armor;
use crate::error::FileError;
use crate::input::source_file::read_up_to;

/// A file without a name in `dir`, for reading and writing.
pub(crate) fn unnamed_file(dir: &Arc<OutputDir>) -> Result<OwnedFd, FileError> {
    // Named for a moment only: O_TMPFILE would do, but not every file system has it.
    let (_named, file) = Registered::create(dir, OFlags::RDWR, Mode::RUSR | Mode::WUSR)?;
    Ok(file)
}

/// A file that is being written under a temporary name. Dropped, it is removed.
pub(crate) struct Draft {
    temporary: Registered,
    final_name: OsString,
    replace: bool,
    pub(crate) file: Arc<OwnedFd>,
}

impl Draft {
    /// Makes a draft for `final_name`; `replace` says that what stands there may be replaced.
    pub(crate) fn create(
        dir: &Arc<OutputDir>,
        final_name: &OsStr,
        mode: Mode,
        replace: bool,
    ) -> Result<Self, FileError> {
        let (temporary, file) = Registered::create(dir, OFlags::RDWR, mode)?;
        Ok(Self { temporary, final_name: final_name.to_owned(), replace, file: Arc::new(file) })
    }

    /// Closes the draft, after giving it the time and, where the umask took away from them, the permissions
    /// of the source, if it has one.
    pub(crate) fn complete(self, source: Option<&Stat>) -> Result<CompleteDraft, FileError> {
        if let Some(source) = source {
            self.set_attributes(source)?;
        }
        Ok(CompleteDraft { temporary: self.temporary, final_name: self.final_name, replace: self.replace })
    }

    fn set_attributes(&self, source: &Stat) -> Result<(), FileError> {
        let wanted = Attributes::of(source);
        if wanted.mode.intersects(umask()) {
            fs::fchmod(&self.file, wanted.mode).map_err(FileError::io("set the mode of the output"))?;
        }
        fs::futimens(&self.file, &wanted.times()).map_err(FileError::io("set the time of the output"))
    }
}

/// A draft that is written and closed.
pub(crate) struct CompleteDraft {
    temporary: Registered,
    final_name: OsString,
    replace: bool,
}

impl CompleteDraft {
    /// Its directory and its name there.
    pub(super) fn place(&self) -> (&Arc<OutputDir>, &OsStr) {
        (&self.temporary.dir, self.temporary.name())
    }

    /// Gives it its final name, without replacing unless the options say so; where the file system cannot do that, looks first. Returns
    /// what it is under that name.
    pub(super) fn rename(mut self) -> Result<Option<Stat>, FileError> {
        let temporary = &mut self.temporary;
        let (dir, name) = (&temporary.dir.fd, temporary.name());
        let flags = if self.replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        let renamed = match fs::renameat_with(dir, name, dir, &self.final_name, flags) {
            Err(Errno::EXIST) => Err(FileError::Exists),
            Err(Errno::INVAL | Errno::NOSYS) if !self.replace => {
                match temporary.dir.stat(&self.final_name)? {
                    Some(_) => Err(FileError::Exists),
                    None => fs::renameat(dir, name, dir, &self.final_name)
                        .map_err(FileError::io("rename the output")),
                }
            }
            renamed => renamed.map_err(FileError::io("rename the output")),
        };
        temporary.renamed = renamed.is_ok();
        renamed?;
        // What cannot be looked at is not recorded, and is there nevertheless.
        Ok(temporary.dir.stat(&self.final_name).unwrap_or(None))
    }
}

/// Writes into a draft the text form of what stands in another.
pub(crate) fn write_text(armor: Armor, binary: &Draft, text: &Draft) -> Result<(), FileError> {
    let (mut encoder, mut part, mut lines) = (armor.encoder(), vec![0; TEXT_PART_BYTES], Vec::new());
    let (mut from, mut to) = (0, 0);
    loop {
        let came = read_up_to(&binary.file, &mut [IoSliceMut::new(&mut part)], from);
        let came = came.map_err(FileError::io("read the output"))?;
        lines.clear();
        encoder.push(&part[..came], &mut lines);
        let is_last = came < part.len();
        if is_last {
            std::mem::replace(&mut encoder, armor.encoder()).finish(&mut lines);
        }
        write_at(&text.file, &mut [IoSlice::new(&lines)], to)?;
        (from, to) = (from + came as u64, to + lines.len() as u64);
        if is_last {
            return Ok(());
        }
    }
}

/// Bytes that become text at a time. Assumed, not measured: 1 MiB.
const TEXT_PART_BYTES: usize = 1 << 20;

/// Most parts in one system call (`UIO_MAXIOV`).
pub(crate) const PARTS_MAX: usize = 1_024;

/// Writes all `parts` from `offset` on.
pub(crate) fn write_at(
    fd: &OwnedFd,
    mut parts: &mut [IoSlice<'_>],
    mut offset: u64,
) -> Result<(), FileError> {
    while parts.iter().any(|part| !part.is_empty()) {
        let most = parts.len().min(PARTS_MAX);
        let went = match pwritev(fd, &parts[..most], offset) {
            Err(Errno::INTR) => continue,
            Ok(0) => return Err(FileError::io("write the output")(Errno::NOSPC)),
            went => went.map_err(FileError::io("write the output"))?,
        };
        offset += went as u64;
        IoSlice::advance_slices(&mut parts, went);
    }
    Ok(())
}
