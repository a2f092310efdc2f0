//! An unpacker: takes the bytes of an archive as they come and makes what they tell, below one directory and nowhere else.
//!
//! header -> names on the way, each entered by descriptor, no link is followed -> draft -> contents -> settlement. A member that cannot be made
//! is named, and the next one is.

use std::ffi::{CString, OsStr, OsString};
use std::io::IoSlice;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{FileType, Mode};

use super::member::{BLOCK_BYTES, Before, Kind, Member, Read, Text, padding};
use crate::error::{FileError, FormatError};
use crate::filter::Filter;
use crate::output::{
    Attributes, CompleteDraft, Draft, Origin, OutputDir, Outputs, Settlement, SyncErrors, write_sparse_at,
};
use crate::report::{Skip, Summary};
use crate::stream::Sink;

/// Longest text before a header. Assumed, not measured: 1 MiB, sixteen times the longest attribute.
const TEXT_BYTES_MAX: u64 = 1 << 20;

pub(super) struct Unpacker<'r> {
    outputs: &'r Arc<Outputs>,
    filter: &'r Filter,
    replace: bool,
    root: Arc<OutputDir>,
    /// Directories from the root to where the last member went, by their names.
    dirs: Vec<(OsString, Arc<OutputDir>)>,
    settlement: Settlement<'r>,
    /// The directories of what is in the settlement.
    unsettled: Vec<Arc<OutputDir>>,
    state: State,
    before: Before,
    zeros: u32,
    pub(super) summary: Summary,
}

enum State {
    /// Bytes of a header.
    Header(Vec<u8>),
    Text {
        kind: Text,
        bytes: u64,
        text: Vec<u8>,
    },
    /// Contents: what is left of them.
    Contents(Option<Box<File>>, u64, u64),
    Padding(u64),
    End,
}

/// A file that is being made.
struct File {
    member: Member,
    path: PathBuf,
    draft: Draft,
    offset: u64,
}

/// What gzip, zstd and xz begin with.
const COMPRESSED: [&[u8]; 3] = [b"\x1F\x8B", b"\x28\xB5\x2F\xFD", b"\xFD7zXZ\0"];

/// What is wrong with a block that is no header.
fn told(block: &[u8], error: FileError) -> FileError {
    match COMPRESSED.iter().any(|magic| block.starts_with(magic)) {
        true => {
            let what = "a compressed archive (without --tar it is decrypted for tar: -o - | tar xz)";
            FormatError::Unsupported(what.into()).into()
        }
        false => error,
    }
}

impl<'r> Unpacker<'r> {
    pub(super) fn new(
        root: Arc<OutputDir>,
        outputs: &'r Arc<Outputs>,
        errors: &'r SyncErrors,
        filter: &'r Filter,
        replace: bool,
    ) -> Self {
        Self {
            outputs,
            filter,
            replace,
            root,
            dirs: Vec::new(),
            unsettled: Vec::new(),
            settlement: Settlement::new(errors, None),
            state: State::Header(Vec::new()),
            before: Before::default(),
            zeros: 0,
            summary: Summary::default(),
        }
    }

    /// Takes some of `part`; returns the rest.
    fn take<'p>(&mut self, part: &'p [u8]) -> Result<&'p [u8], FileError> {
        match &mut self.state {
            State::Header(block) => {
                let (now, rest) = part.split_at(part.len().min(BLOCK_BYTES - block.len()));
                block.extend_from_slice(now);
                if let Ok(block) = <[u8; BLOCK_BYTES]>::try_from(block.as_slice()) {
                    self.state = self.header(&block)?;
                }
                Ok(rest)
            }
            State::Text { kind, bytes, text } => {
                let wanted = usize::try_from(*bytes).unwrap_or(usize::MAX) - text.len();
                let (now, rest) = part.split_at(part.len().min(wanted));
                text.extend_from_slice(now);
                if text.len() as u64 == *bytes {
                    self.before.add(*kind, text)?;
                    self.state = State::Padding(padding(*bytes));
                }
                Ok(rest)
            }
            State::Contents(file, left, behind) => {
                let (now, rest) = part.split_at(part.len().min(usize::try_from(*left).unwrap_or(usize::MAX)));
                *left -= now.len() as u64;
                let written = match file {
                    Some(open) => {
                        write_sparse_at(&open.draft.file, &[IoSlice::new(now)], open.offset).map(|_| {
                            open.offset += now.len() as u64;
                        })
                    }
                    None => Ok(()),
                };
                let failed = written.err().and_then(|error| Some((file.take()?.path, error)));
                if *left == 0 {
                    let (file, behind) = (file.take(), *behind);
                    self.state = State::Padding(behind);
                    file.into_iter().for_each(|file| self.complete(*file));
                }
                match failed {
                    Some((_, error)) if error.stops_the_run() => Err(error),
                    Some((path, error)) => {
                        self.failed(path, error);
                        Ok(rest)
                    }
                    None => Ok(rest),
                }
            }
            State::Padding(left) => {
                let (now, rest) = part.split_at(part.len().min(usize::try_from(*left).unwrap_or(usize::MAX)));
                *left -= now.len() as u64;
                if *left == 0 {
                    self.state = State::Header(Vec::with_capacity(BLOCK_BYTES));
                }
                Ok(rest)
            }
            // Zeros up to the end of a record.
            State::End => Ok(&[]),
        }
    }

    fn header(&mut self, block: &[u8; BLOCK_BYTES]) -> Result<State, FileError> {
        match self.before.read(block).map_err(|error| told(block, error.into()))? {
            Read::Zeros => {
                self.zeros += 1;
                Ok(if self.zeros == 2 { State::End } else { State::Header(Vec::new()) })
            }
            Read::Text(_, bytes) if bytes > TEXT_BYTES_MAX => {
                Err(FormatError::Unsupported("an archive with names longer than 1 MiB".into()).into())
            }
            Read::Text(kind, bytes) => Ok(State::Text { kind, bytes, text: Vec::new() }),
            Read::Member(member) => Ok(self.member(member)),
        }
    }

    /// Begins a member; what is to be done with its contents.
    fn member(&mut self, member: Member) -> State {
        let (bytes, kind) = (member.bytes, member.kind);
        let path = PathBuf::from(OsString::from_vec(member.path.clone()));
        let refusal = self.before.refusal.take();
        let name = member.path.clone();
        let made = match names(&name) {
            Some(names)
                if self.filter.leaves_out(&names.iter().collect::<PathBuf>(), kind == Kind::Directory) =>
            {
                Ok(None)
            }
            Some(names) => {
                self.summary.found += u64::from(kind != Kind::Directory);
                match refusal {
                    Some(what) => Err(FormatError::Unsupported(what.into()).into()),
                    None => self.make(member, &path, &names),
                }
            }
            None => {
                self.summary.found += 1;
                Err(FileError::OutOfTree)
            }
        };
        let file = made.unwrap_or_else(|error| {
            self.summary.found += u64::from(kind == Kind::Directory);
            self.failed(path, error);
            None
        });
        State::Contents(file, bytes, padding(bytes))
    }

    fn make(
        &mut self,
        member: Member,
        path: &std::path::Path,
        names: &[&OsStr],
    ) -> Result<Option<Box<File>>, FileError> {
        // The directory that everything goes into is the user's own.
        let Some((name, above)) = names.split_last() else { return Ok(None) };
        let dir = self.enter(above)?;
        let attributes = Attributes::told(member.mode, member.owner, member.time);
        let keep = self.outputs.keep;
        match member.kind {
            Kind::Directory => {
                let dir = dir.open_told(name, Some((attributes, &member.xattrs)))?;
                self.dirs.push(((*name).to_owned(), dir));
            }
            Kind::File => {
                self.check_free(&dir, name)?;
                let draft = Draft::create(&dir, name, Mode::RUSR | Mode::WUSR, self.replace)?;
                let path = path.to_owned();
                return Ok(Some(Box::new(File { member, path, draft, offset: 0 })));
            }
            Kind::SymbolicLink if !keep.links => self.skipped(path, Skip::Symlink),
            Kind::SymbolicLink => {
                self.check_free(&dir, name)?;
                let target = CString::new(member.target).map_err(|_| FileError::OutOfTree)?;
                if !keep.takes_link(&target, member.owner.0, above.len()) {
                    return Err(FileError::ForeignLink);
                }
                let draft = CompleteDraft::link(&dir, name, &target, &attributes, self.replace)?;
                self.add(draft, path, 0);
            }
            Kind::HardLink => {
                self.check_free(&dir, name)?;
                let draft = self.another_name(&dir, name, &member.target)?;
                self.add(draft, path, 0);
            }
            Kind::Special if keep.specials => return Err(FileError::Special),
            Kind::Special => self.skipped(path, Skip::Special),
        }
        Ok(None)
    }

    fn another_name(
        &mut self,
        dir: &Arc<OutputDir>,
        name: &OsStr,
        target: &[u8],
    ) -> Result<CompleteDraft, FileError> {
        // It may still wait for its name.
        self.settle();
        let names = names(target).ok_or(FileError::OutOfTree)?;
        let (other, above) = names.split_last().ok_or(FileError::OutOfTree)?;
        let mut place = Arc::clone(&self.root);
        for name in above {
            place = place.open_told(name, None)?;
        }
        let stat = place.stat(other)?;
        let is_file =
            |stat: &rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let stat = stat.filter(is_file).ok_or_else(|| FileError::OtherName(names.iter().collect()))?;
        let file = (&*place, *other, (stat.st_dev, stat.st_ino));
        CompleteDraft::another_name(dir, name, file, self.replace)
    }

    fn check_free(&self, dir: &OutputDir, name: &OsStr) -> Result<(), FileError> {
        match dir.stat(name)? {
            Some(_) if !self.replace => Err(FileError::Exists),
            _ => Ok(()),
        }
    }

    /// The directory of a member: those that the last one had, too, are entered already.
    fn enter(&mut self, names: &[&OsStr]) -> Result<Arc<OutputDir>, FileError> {
        let common = self.dirs.iter().zip(names).take_while(|((one, _), other)| one == *other).count();
        self.dirs.truncate(common);
        for name in &names[common..] {
            let above = self.dirs.last().map_or(&self.root, |(_, dir)| dir);
            let dir = above.open_told(name, None)?;
            self.dirs.push(((*name).to_owned(), dir));
        }
        Ok(Arc::clone(self.dirs.last().map_or(&self.root, |(_, dir)| dir)))
    }

    fn complete(&mut self, File { member, path, draft, .. }: File) {
        let attributes = Attributes::told(member.mode, member.owner, member.time);
        let complete =
            draft.set_len(member.bytes).and_then(|()| draft.complete_told(&attributes, &member.xattrs));
        match complete {
            Ok(draft) => self.add(draft, &path, member.bytes),
            Err(error) => self.failed(path, error),
        }
    }

    fn add(&mut self, draft: CompleteDraft, path: &std::path::Path, bytes: u64) {
        // Not let go of before a failure is noted: the directory would be finished.
        self.unsettled.push(Arc::clone(draft.dir()));
        let origin = Origin { path: path.to_owned(), bytes_in: bytes, bytes_out: bytes, ..Origin::default() };
        self.settlement.add(draft, origin);
        if self.settlement.is_due() {
            self.settle();
        }
    }

    fn settle(&mut self) {
        for (Origin { path, bytes_in, bytes_out, .. }, result) in self.settlement.settle() {
            match result {
                Ok(()) => self.summary.record(path, (bytes_in, bytes_out), Ok(())),
                Err(error) => self.failed(path, error),
            }
        }
        self.unsettled.clear();
    }

    fn skipped(&mut self, path: &std::path::Path, why: Skip) {
        self.summary.skipped.push((path.to_owned(), why));
    }

    fn failed(&mut self, path: PathBuf, error: FileError) {
        self.outputs.leave_undone(&self.root.path().join(&path));
        self.summary.failed.push((path, error));
    }

    /// Ends it: what is complete gets its name; where the archive ended as it should, directories get what is told of them.
    pub(super) fn end(mut self, is_whole: bool, is_cancelled: bool) -> Summary {
        if !is_whole {
            self.outputs.abandon();
        }
        if let State::Contents(Some(file), ..) = std::mem::replace(&mut self.state, State::End) {
            self.failed(file.path.clone(), FileError::Stopped);
        }
        if is_cancelled {
            for (Origin { path, .. }, result) in self.settlement.give_up() {
                self.summary.record(path, (0, 0), result);
            }
        }
        self.settle();
        let Self { dirs, root, mut summary, outputs, settlement, unsettled, .. } = self;
        drop((dirs, root, settlement, unsettled));
        summary.failed.extend(outputs.failed());
        summary
    }
}

impl Sink for Unpacker<'_> {
    fn write(&mut self, mut part: &[u8]) -> Result<(), FileError> {
        loop {
            // What has no bytes is over before any come.
            match &mut self.state {
                State::Contents(file, 0, behind) => {
                    let (file, behind) = (file.take(), *behind);
                    self.state = State::Padding(behind);
                    file.into_iter().for_each(|file| self.complete(*file));
                    continue;
                }
                State::Padding(0) => {
                    self.state = State::Header(Vec::with_capacity(BLOCK_BYTES));
                    continue;
                }
                _ => {}
            }
            if part.is_empty() {
                return Ok(());
            }
            part = self.take(part)?;
        }
    }

    fn finish(&mut self) -> Result<(), FileError> {
        match &self.state {
            State::End => Ok(()),
            // Some write no end, or half of it; that nothing was cut off the format itself shows.
            State::Header(block) if block.is_empty() => Ok(()),
            state => {
                let cut = FormatError::Header { format: "tar", fact: "it ends inside a member" }.into();
                Err(if let State::Header(block) = state { told(block, cut) } else { cut })
            }
        }
    }
}

/// The names of a path in an archive; `None` where it leads out of the directory.
fn names(path: &[u8]) -> Option<Vec<&OsStr>> {
    let is_absolute = path.starts_with(b"/");
    let names: Vec<_> =
        path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
    let is_out = is_absolute || names.contains(&b"..".as_slice()) || path.contains(&0);
    (!is_out).then(|| names.into_iter().map(OsStr::from_bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_out() {
        let joined = |path: &[u8]| names(path).map(|names| names.iter().collect::<PathBuf>());
        for (path, expected) in [("a/b", "a/b"), ("./a//b/", "a/b"), (".", ""), ("a/.../b", "a/.../b")] {
            assert_eq!(joined(path.as_bytes()), Some(PathBuf::from(expected)), "{path}");
        }
        for path in ["/etc/passwd", "../a", "a/../../b", "a/..", "a\0b"] {
            assert_eq!(joined(path.as_bytes()), None, "{path:?}");
        }
    }
}
