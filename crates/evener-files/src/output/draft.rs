//! Drafts: files that are being written under a temporary name in the directory of the final one.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::{Errno, pwritev};

use super::attributes::{Attributes, Birth, Xattrs, names};
use super::directory::OutputDir;
use super::register::Registered;
use crate::armor::Armor;
use crate::error::FileError;
use crate::input::place::open_one;
use crate::input::source_file::{READ_FLAGS, SourceFile, read_up_to};
use crate::record::{Row, Stamp};

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
    /// Names of the extended attributes that it gets.
    xattrs: Vec<CString>,
    /// What it has from the start, where nothing else is to come but its time.
    birth: Option<Birth>,
}

impl Draft {
    /// Makes a draft for `final_name`; `replace` says that what stands there may be replaced. Where its directory gives access
    /// lists, no other user may open it before its own is set.
    pub(crate) fn create(
        dir: &Arc<OutputDir>,
        final_name: &OsStr,
        mode: Mode,
        replace: bool,
    ) -> Result<Self, FileError> {
        let (temporary, file) = Registered::create(dir, OFlags::RDWR, mode)?;
        let (final_name, file) = (final_name.to_owned(), Arc::new(file));
        Ok(Self { temporary, final_name, replace, file, xattrs: Vec::new(), birth: None })
    }

    /// As [`Draft::create`] for what is made of `source`: with the mode that it is to have where nothing else is to come, else for its
    /// owner alone, until it has the owner and the access list of its source.
    pub(crate) fn create_for(
        dir: &Arc<OutputDir>,
        final_name: &OsStr,
        source: &SourceFile,
        replace: bool,
    ) -> Result<Self, FileError> {
        let (fd, stat) = source.origin();
        let xattrs = names(fd.as_fd(), dir.keep())?;
        let birth = Attributes::of(stat).birth(dir.keep(), dir.before()).filter(|_| xattrs.is_empty());
        let mode = birth.map_or(Mode::RUSR | Mode::WUSR, |birth| birth.mode);
        let draft = Self::create(dir, final_name, mode, replace)?;
        let birth = match birth {
            Some(birth) if dir.gives(&birth, &draft.file)? => Some(birth),
            _ => None,
        };
        Ok(Self { xattrs, birth, ..draft })
    }

    /// Sets the length of a file that was written with holes.
    pub(crate) fn set_len(&self, bytes: u64) -> Result<(), FileError> {
        fs::ftruncate(&self.file, bytes).map_err(FileError::io("set the length of the output"))
    }

    /// Completes the draft: gives it what is kept of its source, if it has one.
    pub(crate) fn complete(mut self, source: Option<&SourceFile>) -> Result<CompleteDraft, FileError> {
        if let Some(source) = source {
            let (fd, stat) = source.origin();
            let xattrs = std::mem::take(&mut self.xattrs);
            let dir = &self.temporary.dir;
            let (attributes, to) = (Attributes::of(stat), self.file.as_fd());
            match self.birth {
                Some(_) => attributes.set_time(to)?,
                None => attributes.give(to, (fd.as_fd(), xattrs), dir.keep(), dir.before())?,
            }
        }
        Ok(self.written())
    }
}

impl Draft {
    /// Of a draft in which nothing is written any more.
    fn written(self) -> CompleteDraft {
        let Self { temporary, final_name, replace, birth, file, .. } = self;
        let written = Arc::into_inner(file).map_or(Written::Closed(Ok(())), Written::Open);
        CompleteDraft { temporary, final_name, replace, birth, written }
    }

    /// As [`Draft::complete`], with what an archive tells of it.
    pub(crate) fn complete_told(
        self,
        attributes: &Attributes,
        xattrs: &Xattrs,
    ) -> Result<CompleteDraft, FileError> {
        let dir = &self.temporary.dir;
        attributes.give_told(self.file.as_fd(), xattrs, dir.keep(), dir.before())?;
        Ok(self.written())
    }
}

/// A draft that is written.
pub(crate) struct CompleteDraft {
    temporary: Registered,
    final_name: OsString,
    replace: bool,
    birth: Option<Birth>,
    written: Written,
}

/// What was written: some file systems tell only at the close, or at a sync by the same descriptor, that it is not there.
enum Written {
    Open(OwnedFd),
    /// And what the close told.
    Closed(Result<(), FileError>),
}

impl CompleteDraft {
    /// Makes a symbolic link with what is kept of its source.
    pub(crate) fn link(
        dir: &Arc<OutputDir>,
        final_name: &OsStr,
        target: &CStr,
        attributes: &Attributes,
        replace: bool,
    ) -> Result<Self, FileError> {
        let (temporary, ()) = Registered::make(dir, |fd, name| {
            fs::symlinkat(target, fd, name).map_err(FileError::io("make the link"))
        })?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = fs::openat(&*dir.fd()?, temporary.name(), flags, Mode::empty());
        let made = made.map_err(FileError::io("open the link"))?;
        let stat = fs::fstat(&made).map_err(FileError::io("look at the link"))?;
        // By descriptor, and after a look: another user who may write there could have put another file in its place.
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            return Err(FileError::Moved);
        }
        attributes.give_link(made.as_fd(), dir.keep())?;
        Ok(Self::of_link(temporary, final_name, replace))
    }

    /// Of a link, into which nothing is written.
    fn of_link(temporary: Registered, final_name: &OsStr, replace: bool) -> Self {
        let written = Written::Closed(Ok(()));
        Self { temporary, final_name: final_name.to_owned(), replace, birth: None, written }
    }

    /// Makes `final_name` another name of the file with the device and inode `file`, which stands under `other_name` in `other`.
    pub(crate) fn another_name(
        dir: &Arc<OutputDir>,
        final_name: &OsStr,
        (other, other_name, file): (&OutputDir, &OsStr, (u64, u64)),
        replace: bool,
    ) -> Result<Self, FileError> {
        let from = other.fd()?;
        if let Some(stat) = other.stat(other_name)? {
            dir.outputs().note_renaming(&stat);
        }
        let (temporary, ()) = Registered::make(dir, |fd, name| {
            let linked = fs::linkat(&*from, other_name, fd, name, AtFlags::empty());
            linked.map_err(FileError::io("link the output (--no-hard-links makes a file of each name)"))
        })?;
        // Another user who may write in `other` could have put another file under that name.
        let stat = dir.stat(temporary.name())?;
        if stat.map(|stat| (stat.st_dev, stat.st_ino)) != Some(file) {
            return Err(FileError::OtherOutput);
        }
        Ok(Self::of_link(temporary, final_name, replace))
    }

    /// Its directory.
    pub(crate) const fn dir(&self) -> &Arc<OutputDir> {
        &self.temporary.dir
    }

    /// Its directory and its name there.
    pub(super) fn place(&self) -> (&Arc<OutputDir>, &OsStr) {
        (&self.temporary.dir, self.temporary.name())
    }

    /// What is said of it in a record before it has its name: the time of its inode is another then.
    pub(super) fn promised(&self, row: Row) -> Option<Row> {
        let stat = self.temporary.dir.stat(self.temporary.name()).ok()??;
        Some(Row { output: Stamp::of(&stat), ..row }.as_promise())
    }

    /// The device that it is on.
    pub(super) fn device(&self) -> u64 {
        self.temporary.dir.identity().0
    }

    /// Closes it. What that told is an error where it would get its name.
    pub(super) fn close(&mut self) {
        self.written = match std::mem::replace(&mut self.written, Written::Closed(Ok(()))) {
            Written::Open(file) => {
                Written::Closed(evener_fd::close(file).map_err(FileError::io("write the output")))
            }
            closed @ Written::Closed(_) => closed,
        };
    }

    /// What the close told.
    pub(super) fn closed(&self) -> Result<(), FileError> {
        match &self.written {
            Written::Closed(told) => told.clone(),
            Written::Open(_) => Ok(()),
        }
    }

    /// Makes a file durable by itself, and closes it; a link is durable with its directory.
    pub(super) fn sync(&mut self) -> Result<(), FileError> {
        if let Written::Open(file) = &self.written {
            fs::fsync(file).map_err(FileError::io("sync the output"))?;
            self.close();
            return self.closed();
        }
        let dir = self.temporary.dir.fd()?;
        let synced = match open_one(dir.as_fd(), self.temporary.name(), READ_FLAGS) {
            Ok(file) => fs::fsync(file),
            Err(Errno::LOOP) => Ok(()),
            // Its mode, which is its source's, lets others read it and not its owner.
            Err(Errno::ACCESS) => fs::syncfs(&*dir),
            Err(errno) => Err(errno),
        };
        synced.map_err(FileError::io("sync the output"))
    }

    /// Gives it its final name, without replacing unless the options say so; where the file system cannot do that, looks first. Returns
    /// what it is under that name.
    pub(super) fn rename(mut self) -> Result<Option<Stat>, FileError> {
        self.close();
        self.closed()?;
        let of_run = Arc::clone(&self.temporary.dir);
        let mut finished = of_run.outputs().finished();
        let temporary = &mut self.temporary;
        let standing = if self.replace { temporary.dir.stat(&self.final_name)? } else { None };
        if let Some(stat) = standing {
            let identity = (stat.st_dev, stat.st_ino);
            // One that has several names is linked to them, and may be met under each.
            let is_of_run = finished.as_ref().is_some_and(|finished| finished.contains(&identity));
            if is_of_run && stat.st_nlink == 1 {
                return Err(FileError::SameName);
            }
            if of_run.outputs().is_key(identity) {
                return Err(FileError::KeyInOutput);
            }
            if stat.st_nlink > 1 {
                of_run.outputs().note_renaming(&stat);
            }
        }
        let (dir, name) = (temporary.dir.fd()?, temporary.name());
        let dir = &*dir;
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
        let stat = temporary.dir.stat(&self.final_name).unwrap_or(None);
        if let Some((finished, stat)) = finished.as_mut().zip(stat) {
            finished.insert((stat.st_dev, stat.st_ino));
        }
        match (self.birth, stat) {
            // Its directory's owner may give new files another group at any time.
            (Some(birth), Some(stat)) if !birth.is_of(&stat) => Err(FileError::OtherOwner),
            _ => Ok(stat),
        }
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

/// As [`write_at`] into a file that holds nothing there yet: runs of zeros are left as holes. Returns whether there were any; the
/// file's length is then to be set by [`Draft::set_len`].
pub(crate) fn write_sparse_at(
    fd: &OwnedFd,
    parts: &[IoSlice<'_>],
    mut offset: u64,
) -> Result<bool, FileError> {
    let (mut data, mut data_at) = (Vec::new(), offset);
    let (mut in_hole, mut has_holes) = (true, false);
    for part in parts {
        let (mut begin, mut end) = (0, 0);
        while end < part.len() {
            let to_boundary = HOLE_BYTES - usize::try_from(offset % HOLE_BYTES as u64).unwrap_or(0);
            let piece = &part[end..part.len().min(end + to_boundary)];
            // Of a short one between data nothing is gained.
            in_hole = (in_hole || piece.len() >= HOLE_BYTES_MIN) && *piece == ZEROS[..piece.len()];
            if in_hole {
                has_holes = true;
                data.push(IoSlice::new(&part[begin..end]));
                write_at(fd, &mut data, data_at)?;
                data.clear();
                begin = end + piece.len();
                data_at = offset + piece.len() as u64;
            }
            end += piece.len();
            offset += piece.len() as u64;
        }
        data.push(IoSlice::new(&part[begin..]));
    }
    write_at(fd, &mut data, data_at)?;
    Ok(has_holes)
}

/// Holes are looked for by the block of a file system.
const HOLE_BYTES: usize = 4_096;
/// The shortest piece of a block that begins a hole. Assumed, not measured: 512, below which a write costs less than two.
const HOLE_BYTES_MIN: usize = 512;
static ZEROS: [u8; HOLE_BYTES] = [0; HOLE_BYTES];

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};

    use super::super::directory::Outputs;
    use super::*;
    use crate::input::place::OpenPlaces;
    use crate::preservation::Keep;

    /// Text with zeros in it: lengths of what is zero and what is not, in turn.
    fn text(lengths: &[usize]) -> Vec<u8> {
        lengths.iter().zip([0, 7].into_iter().cycle()).flat_map(|(len, byte)| vec![byte; *len]).collect()
    }

    #[test]
    fn an_output_gets_owner_and_mode_of_its_source_whatever_group_its_directory_gives_or_is_no_success() {
        if !super::super::attributes::is_root() {
            eprintln!("skipped: root is missing");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let (source, out) = (place.path().join("source"), place.path().join("out"));
        let source_file = std::fs::File::create(&source).unwrap();
        fs::fchmod(&source_file, Mode::from_raw_mode(0o644)).unwrap();
        let outputs = Outputs::new(Keep::default(), OpenPlaces::new(8), &[]);
        let dir = OutputDir::open(&out, &outputs, None).unwrap();
        let give_another_group = || {
            std::os::unix::fs::chown(&out, None, Some(7)).unwrap();
            std::fs::set_permissions(&out, std::fs::Permissions::from_mode(0o2755)).unwrap();
        };
        let make = |name: &str, dir: &Arc<OutputDir>, meanwhile: &dyn Fn()| {
            let source = SourceFile::open_named(&source).unwrap();
            meanwhile();
            let draft = Draft::create_for(dir, name.as_ref(), &source, false).unwrap();
            draft.complete(Some(&source)).unwrap().rename()
        };
        for name in ["first", "second"] {
            assert!(make(name, &dir, &|| ()).is_ok());
        }
        assert!(matches!(make("third", &dir, &give_another_group), Err(FileError::OtherOwner)));
        // Entered as it is now, it is known to give it.
        let dir = OutputDir::open(&out, &outputs, None).unwrap();
        for name in ["fourth", "fifth"] {
            assert!(make(name, &dir, &|| ()).is_ok());
        }
        for name in ["first", "second", "fourth", "fifth"] {
            let made = std::fs::metadata(out.join(name)).unwrap();
            assert_eq!((made.uid(), made.gid(), made.mode() & 0o7777), (0, 0, 0o644), "{name}");
        }
    }

    #[test]
    fn of_two_outputs_to_which_a_file_system_gives_one_name_none_takes_the_place_of_the_other() {
        let place = tempfile::tempdir().unwrap();
        let outputs = Outputs::new(Keep::default(), OpenPlaces::new(8), &[]);
        outputs.keep_in_mind();
        let dir = OutputDir::open(place.path(), &outputs, None).unwrap();
        std::fs::write(place.path().join("name"), "of an earlier run").unwrap();
        let make = |text: &str| {
            let draft = Draft::create(&dir, "name".as_ref(), Mode::RUSR | Mode::WUSR, true).unwrap();
            write_at(&draft.file, &mut [IoSlice::new(text.as_bytes())], 0).unwrap();
            draft.complete(None).unwrap().rename()
        };
        assert!(make("of A").is_ok());
        assert!(matches!(make("of a"), Err(FileError::SameName)));
        assert_eq!(std::fs::read(place.path().join("name")).unwrap(), b"of A");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn what_is_read_is_what_was_written_however_it_was_cut_and_wherever_zeros_are() {
        let shapes: [&[usize]; 6] = [
            &[1 << 20],
            &[0, 1 << 20],
            &[0, 1, 1 << 20, 1],
            &[5_000, 3, 9_000, 4_096, 4_096, 4_096, 16, 16],
            &[511, 1, 512, 1, 513, 8_192, 20_000],
            &[],
        ];
        for lengths in shapes {
            let whole = text(lengths);
            for cut in [4_080, 4_096, 65_536, 100_000] {
                let file = tempfile::tempfile().unwrap();
                let fd = OwnedFd::from(file.try_clone().unwrap());
                let mut at = 0;
                // Two parts a call, as spans have several segments.
                for span in whole.chunks(2 * cut) {
                    let parts: Vec<_> = span.chunks(cut).map(IoSlice::new).collect();
                    write_sparse_at(&fd, &parts, at).unwrap();
                    at += span.len() as u64;
                }
                file.set_len(whole.len() as u64).unwrap();
                let mut read = vec![1; whole.len()];
                file.read_exact_at(&mut read, 0).unwrap();
                assert!(read == whole, "{lengths:?} cut by {cut}");
                let holes = lengths.iter().step_by(2).any(|len| *len > 64 << 10);
                if holes {
                    let blocks = file.metadata().unwrap().blocks();
                    assert!(blocks * 512 < whole.len() as u64 / 2, "{blocks} blocks, cut by {cut}");
                }
            }
        }
    }
}
