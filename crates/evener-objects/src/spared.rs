//! What no file of a run takes the place of, whatever is forced: its keys and its plan, known as they were opened, so that each of their names is; and,
//! for a plan or a report, what lies in a directory of objects.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;

use evener_fd::Named;
use rustix::fs::{self, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// A file, whatever its name: its device and its number there.
type FileId = (u64, u64);

/// What is spared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spared {
    files: Vec<(FileId, &'static str)>,
    directories: Vec<FileId>,
}

impl Spared {
    /// Spares what was read from an open file. A pipe or device is no file whose place could be taken.
    pub(crate) fn add(&mut self, file: impl AsFd, what: &'static str) {
        if let Some(stat) = fs::fstat(file).ok().filter(is_file) {
            self.files.push((id(&stat), what));
        }
    }

    /// Spares all that lies below places, where these are directories.
    pub(crate) fn add_places(&mut self, places: [&str; 2]) {
        let directories = places.map(|place| std::fs::metadata(place.strip_prefix("file://")?).ok());
        self.directories.extend(directories.iter().flatten().map(|found| (found.dev(), found.ino())));
    }

    /// What a file is that is spared.
    pub(crate) fn what(&self, stat: &Stat) -> Option<&'static str> {
        self.files.iter().find(|(file, _)| *file == id(stat)).map(|(_, what)| *what)
    }

    /// Whether a name lies below a directory of objects.
    pub(crate) fn has_below(&self, named: &Named) -> bool {
        !self.directories.is_empty() && self.is_at_or_above(named.dir()).unwrap_or(false)
    }

    /// Goes up from a directory.
    fn is_at_or_above(&self, directory: &OwnedFd) -> Result<bool, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut here = fs::openat(directory, ".", flags, Mode::empty())?;
        let mut own = id(&fs::fstat(&here)?);
        loop {
            if self.directories.contains(&own) {
                return Ok(true);
            }
            here = fs::openat(&here, "..", flags, Mode::empty())?;
            let above = id(&fs::fstat(&here)?);
            if above == own {
                return Ok(false);
            }
            own = above;
        }
    }
}

pub(crate) fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

const fn id(stat: &Stat) -> FileId {
    (stat.st_dev, stat.st_ino)
}

/// What stands under a name, itself.
///
/// # Errors
///
/// What the system answers; where nothing stands there it is no error.
pub(crate) fn standing(named: &Named) -> std::io::Result<Option<Stat>> {
    // By way of a link of the kernel's own, where it is one: what it leads to is meant.
    match named.open(OFlags::PATH, Mode::empty()) {
        Ok(found) => Ok(Some(fs::fstat(found)?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
