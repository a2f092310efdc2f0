//! A packer: what is found below the inputs, as the bytes of an archive, one member after the other. Nothing of it is ever whole in memory.

use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSliceMut, Read};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{self, FileType, Stat};

use super::member::{BLOCK_BYTES, Kind, Member, padding};
use crate::error::FileError;
use crate::filter::Filter;
use crate::input::place::{OpenPlaces, Place};
use crate::input::source_file::SourceFile;
use crate::output::{is_own_name, kept_xattrs};
use crate::preservation::Keep;
use crate::report::{Skip, Summary};
use crate::walk::{Descent, Found, Identity};

/// Bytes to which an archive is filled with zeros, as by every tar.
const RECORD_BYTES: u64 = 10_240;

pub(super) struct Packer {
    inputs: VecDeque<(PathBuf, OsString)>,
    tree: Option<Tree>,
    filter: Filter,
    keep: Keep,
    open: Arc<OpenPlaces>,
    /// Headers and zeros that are next, and how many of them are gone.
    pending: Vec<u8>,
    taken: usize,
    /// The file whose contents are next.
    file: Option<OpenFile>,
    /// Members that have several names, by what they are.
    names: HashMap<Identity, Vec<u8>>,
    /// Bytes of the archive so far.
    bytes: u64,
    is_ended: bool,
    packed: Arc<Packed>,
}

/// What was packed, and why it could not go on.
#[derive(Default)]
pub(super) struct Packed {
    pub(super) summary: Mutex<Summary>,
    pub(super) fatal: Mutex<Option<(PathBuf, FileError)>>,
}

struct Tree {
    descent: Descent,
    source: PathBuf,
    /// Its name in the archive.
    name: OsString,
}

struct OpenFile {
    path: PathBuf,
    source: SourceFile,
    offset: u64,
}

impl Packer {
    /// Of inputs with their names in the archive.
    pub(super) fn new(
        inputs: Vec<(PathBuf, OsString)>,
        filter: &Filter,
        keep: Keep,
        open: &Arc<OpenPlaces>,
        packed: &Arc<Packed>,
    ) -> Self {
        Self {
            inputs: inputs.into(),
            tree: None,
            filter: filter.clone(),
            keep,
            open: Arc::clone(open),
            pending: Vec::new(),
            taken: 0,
            file: None,
            names: HashMap::new(),
            bytes: 0,
            is_ended: false,
            packed: Arc::clone(packed),
        }
    }

    /// Puts the next headers into `pending`, or the end.
    fn advance(&mut self) {
        self.pending.clear();
        self.taken = 0;
        while self.pending.is_empty() {
            if let Some(tree) = &mut self.tree {
                match tree.descent.next() {
                    Some(found) => self.meet(found),
                    None => self.tree = None,
                }
                continue;
            }
            match self.inputs.pop_front() {
                Some((path, name)) => self.begin(&path, name),
                None => return self.end(),
            }
        }
    }

    fn end(&mut self) {
        self.is_ended = true;
        let bytes = self.bytes + 2 * BLOCK_BYTES as u64;
        let whole = bytes.next_multiple_of(RECORD_BYTES);
        self.pending.resize(usize::try_from(whole - self.bytes).unwrap_or(0), 0);
    }

    fn begin(&mut self, path: &Path, name: OsString) {
        if path.is_dir() {
            match Descent::new(path, &self.open) {
                Ok(descent) => self.tree = Some(Tree { descent, source: path.to_owned(), name }),
                Err(error) => self.failed(path.to_owned(), error),
            }
            return;
        }
        self.found();
        let packed =
            SourceFile::open_named(path).and_then(|source| self.pack(path, name.as_bytes().to_vec(), source));
        if let Err(error) = packed {
            self.failed(path.to_owned(), error);
        }
    }

    fn meet(&mut self, found: Found) {
        let tree = self.tree.as_ref().expect("it was found in a tree");
        let (path, is_directory) = match &found {
            Found::Directory { place, .. } => (place.path(), true),
            Found::Other { name, .. } => (tree.descent.path().join(name), false),
            Found::Failed(path, _) => (path.clone(), false),
        };
        let below = path.strip_prefix(&tree.source).expect("it was found below").to_owned();
        if below != Path::new("") && self.filter.leaves_out_met(&below, is_directory) {
            if let (true, Some(tree)) = (is_directory, &mut self.tree) {
                tree.descent.skip();
            }
            return;
        }
        let member = Path::new(&tree.name).join(&below).into_os_string().into_vec();
        // What is joined to nothing ends in a slash.
        let member = member.strip_suffix(b"/").unwrap_or(&member).to_vec();
        let packed = match found {
            Found::Failed(_, error) => {
                self.found();
                Err(error)
            }
            Found::Directory { place, stat, .. } => self.directory(&place, member, &stat),
            Found::Other { place, name, depth, kind } => {
                self.found();
                self.other(&path, (&place, &name), member, depth, kind)
            }
        };
        if let Err(error) = packed {
            self.failed(path, error);
        }
    }

    fn directory(&mut self, place: &Place, path: Vec<u8>, stat: &Stat) -> Result<(), FileError> {
        let xattrs = kept_xattrs(place.fd()?.as_fd(), &self.keep)?;
        Member { xattrs, ..self.member(path, Kind::Directory, stat) }.write(&mut self.pending);
        Ok(())
    }

    fn other(
        &mut self,
        path: &Path,
        (place, name): (&Place, &OsStr),
        member: Vec<u8>,
        depth: usize,
        kind: FileType,
    ) -> Result<(), FileError> {
        match kind {
            FileType::Symlink if self.keep.links => self.link((place, name), member, depth - 1),
            FileType::Symlink => self.skipped(path, Skip::Symlink),
            FileType::RegularFile if is_own_name(name) => self.skipped(path, Skip::Draft),
            FileType::RegularFile => self.pack(path, member, SourceFile::open(place, name)?),
            _ if self.keep.specials => Err(FileError::Special),
            _ => self.skipped(path, Skip::Special),
        }
    }

    fn link(
        &mut self,
        (place, name): (&Place, &OsStr),
        path: Vec<u8>,
        above: usize,
    ) -> Result<(), FileError> {
        let link = place.open_link(name)?;
        let stat = fs::fstat(&link).map_err(FileError::io("read"))?;
        let target = fs::readlinkat(&link, c"", Vec::new()).map_err(FileError::io("read"))?;
        if !self.keep.takes_link(&target, stat.st_uid, above) {
            return Err(FileError::ForeignLink);
        }
        let member = self.member(path, Kind::SymbolicLink, &stat);
        Member { bytes: 0, target: target.into_bytes(), ..member }.write(&mut self.pending);
        self.done(0);
        Ok(())
    }

    /// A regular file: its contents follow, unless they are a member already under another name.
    fn pack(&mut self, path: &Path, name: Vec<u8>, source: SourceFile) -> Result<(), FileError> {
        let stat = source.stat;
        if let Some(identity) = source.names().filter(|_| self.keep.hard_links) {
            if let Some(first) = self.names.get(&identity) {
                let member =
                    Member { bytes: 0, target: first.clone(), ..self.member(name, Kind::HardLink, &stat) };
                member.write(&mut self.pending);
                self.done(0);
                return Ok(());
            }
            self.names.insert(identity, name.clone());
        }
        let xattrs = kept_xattrs(source.fd.as_fd(), &self.keep)?;
        let member = Member { bytes: source.len(), xattrs, ..self.member(name, Kind::File, &stat) };
        member.write(&mut self.pending);
        source.announce();
        self.file = Some(OpenFile { path: path.to_owned(), source, offset: 0 });
        Ok(())
    }

    fn member(&self, path: Vec<u8>, kind: Kind, stat: &Stat) -> Member {
        let owner = if self.keep.owners { (stat.st_uid, stat.st_gid) } else { (0, 0) };
        let time = (stat.st_mtime, u32::try_from(stat.st_mtime_nsec).unwrap_or(0));
        let mode = stat.st_mode & 0o7777;
        Member { path, kind, bytes: 0, target: Vec::new(), mode, owner, time, xattrs: Vec::new() }
    }

    /// Reads contents; a file that is no longer what its header says ends the archive, for what was written of it cannot be taken back.
    fn read_file(&mut self, space: &mut [u8]) -> Result<usize, (PathBuf, FileError)> {
        let Some(OpenFile { path, source, offset }) = &mut self.file else { return Ok(0) };
        let left = source.len() - *offset;
        if left == 0 {
            source.check_unchanged().map_err(|error| (path.clone(), error))?;
            let bytes = source.len();
            self.file = None;
            self.pending.clear();
            self.pending.resize(usize::try_from(padding(bytes)).unwrap_or(0), 0);
            self.taken = 0;
            self.done(bytes);
            return Ok(0);
        }
        let wanted = space.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = source.read(&mut [IoSliceMut::new(&mut space[..wanted])], *offset);
        read.map_err(|error| (path.clone(), error))?;
        *offset += wanted as u64;
        Ok(wanted)
    }

    fn with_summary(&self, change: impl FnOnce(&mut Summary)) {
        change(&mut self.packed.summary.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn found(&self) {
        self.with_summary(|summary| summary.found += 1);
    }

    fn done(&self, bytes: u64) {
        self.with_summary(|summary| summary.record(PathBuf::new(), (bytes, 0), Ok(())));
    }

    fn skipped(&self, path: &Path, why: Skip) -> Result<(), FileError> {
        self.with_summary(|summary| summary.skipped.push((path.to_owned(), why)));
        Ok(())
    }

    fn failed(&self, path: PathBuf, error: FileError) {
        self.with_summary(|summary| summary.failed.push((path, error)));
    }
}

impl Read for Packer {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.taken < self.pending.len() {
                let bytes = space.len().min(self.pending.len() - self.taken);
                space[..bytes].copy_from_slice(&self.pending[self.taken..self.taken + bytes]);
                self.taken += bytes;
                self.bytes += bytes as u64;
                return Ok(bytes);
            }
            if self.file.is_some() {
                match self.read_file(space) {
                    Ok(0) => continue,
                    Ok(bytes) => {
                        self.bytes += bytes as u64;
                        return Ok(bytes);
                    }
                    Err((path, error)) => {
                        let text = error.to_string();
                        *self.packed.fatal.lock().unwrap_or_else(PoisonError::into_inner) =
                            Some((path, error));
                        return Err(io::Error::other(text));
                    }
                }
            }
            if self.is_ended {
                return Ok(0);
            }
            self.advance();
        }
    }
}
