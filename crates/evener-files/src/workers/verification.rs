//! A verification: every encrypted file is opened whole and nothing is written; with sources beside it, both are compared.
//!
//! inputs -> [`Queue`] (names, lazily) -> a thread: header -> body -> all segments ([`compare`]) -> verified, or failed with the reason.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use evener::{Caller, Cancel};
use evener_core::Job;
use evener_fd::{SystemError, open_named};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::Pool;
use super::armored_source::dearmored;
use super::proof::compare;
use super::worker::{Run, Worker};
use crate::error::FileError;
use crate::filter::Filter;
use crate::input::descriptors::Descriptors;
use crate::input::place::{OpenPlaces, Place};
use crate::input::source_file::{SourceFile, open_root};
use crate::naming::Naming;
use crate::output::{Outputs, is_own_name};
use crate::preservation::Keep;
use crate::random::fill_random;
use crate::record::Record;
use crate::report::{Progress, Skip, Summary};
use crate::request::{Request, Task};
use crate::segments::{FileWork, KeyTrial, slots};
use crate::walk::{Descent, Found};

/// A run that verifies.
pub(crate) struct Verification<'a> {
    run: Run<'a>,
    queue: Mutex<Queue>,
    summary: Mutex<Summary>,
}

/// An encrypted file, and the plaintext that it is compared with.
struct Pair {
    path: PathBuf,
    /// Where the walk found it; `None` where the user named it.
    found: Option<(Arc<Place>, OsString)>,
    plain: Option<Plain>,
}

/// The plaintext beside an encrypted file: below a tree that the user named, or named by him.
struct Plain {
    path: PathBuf,
    below: Option<(Arc<Place>, PathBuf)>,
}

impl Plain {
    fn open(&self) -> Result<SourceFile, FileError> {
        match &self.below {
            Some((root, relative)) => {
                let (place, name) = found_below(root, relative)?;
                SourceFile::open(&place, &name)
            }
            None => SourceFile::open_named(&self.path),
        }
    }
}

/// The directory below `root` in which the last name of a path lies, and that name; no link is followed.
fn found_below(root: &Arc<Place>, relative: &Path) -> Result<(Arc<Place>, OsString), FileError> {
    let mut place = Arc::clone(root);
    for name in relative.parent().into_iter().flat_map(Path::iter) {
        place = place.enter(name)?.0;
    }
    Ok((place, relative.file_name().unwrap_or_default().to_owned()))
}

/// Inputs that were not looked at yet, each with its other side.
struct Queue {
    inputs: VecDeque<(PathBuf, Option<PathBuf>)>,
    /// The tree that is walked, and those that come next: the plain side after the encrypted one.
    trees: VecDeque<Tree>,
    open: Arc<OpenPlaces>,
    taken: Taken,
}

/// What is compared of what is found.
#[derive(Clone)]
struct Taken {
    filter: Filter,
    naming: Naming,
    links: bool,
}

struct Tree {
    descent: Descent,
    source: PathBuf,
    other: Option<(Arc<Place>, PathBuf)>,
    /// Whether it is the plain side that is walked, for files that were never encrypted.
    is_plain_side: bool,
    taken: Taken,
}

/// Whether a symbolic link points where what stands in the other tree does; `None` where nothing stands there.
fn is_same_link(
    (place, name): (&Place, &OsStr),
    root: &Arc<Place>,
    relative: &Path,
) -> Result<Option<bool>, FileError> {
    let target = |place: &Place, name: &OsStr| {
        let link = place.open_link(name)?;
        fs::readlinkat(&link, c"", Vec::new()).map_err(FileError::io("read"))
    };
    let other = found_below(root, relative).and_then(|(place, name)| target(&place, &name));
    match other {
        Ok(other) => Ok(Some(target(place, name)? == other)),
        // Another kind of thing stands there.
        Err(FileError::Changed | FileError::Link) => Ok(Some(false)),
        Err(FileError::Io(error)) if is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_absence(error: &SystemError) -> bool {
    matches!(error.answer().kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

enum Met {
    Pair(Pair),
    /// A link that points where its source does.
    Same(PathBuf),
    Skipped(PathBuf, Skip),
    Failed(PathBuf, FileError),
}

impl<'a> Verification<'a> {
    pub(crate) fn new(
        request: &'a Request,
        sources: &[PathBuf],
        against: Option<&Path>,
        plan: slots::Plan,
        progress: &'a Progress,
        record: &'a Record,
        cancel: &'a Cancel,
    ) -> Self {
        let naming = &request.options.naming;
        let other = |source: &PathBuf| match (against, sources.len()) {
            (Some(against), 1) => Some(against.to_owned()),
            (Some(against), _) => {
                let name = source.file_name().unwrap_or_default();
                // A file whose name has no suffix is compared with what has the same name, if that is there.
                let plain = naming.output(name).ok().filter(|_| !source.is_dir());
                Some(against.join(plain.as_deref().unwrap_or(name)))
            }
            (None, _) => None,
        };
        let inputs = sources.iter().map(|source| (source.clone(), other(source))).collect();
        let open = OpenPlaces::new(Descriptors::of_process(request.options.workers.max(1)).directories);
        let outputs = Outputs::new(Keep::default(), Arc::clone(&open), &[]);
        let run = Run::new(request, outputs, plan, progress, record, cancel);
        let (filter, links) = (request.options.filter.clone(), request.options.keep.links);
        let taken = Taken { filter, naming: naming.clone(), links };
        let queue = Queue { inputs, trees: VecDeque::new(), open, taken };
        Self { run, queue: Mutex::new(queue), summary: Mutex::default() }
    }

    pub(crate) fn finish(self) -> Summary {
        self.summary.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool for Verification<'_> {
    /// Verifies files until there are none.
    fn work<'m>(&self, caller: Caller<'_, 'm>, slots: Vec<Box<Job<'m>>>) {
        let mut worker = Worker::new(&self.run, caller, slots);
        while !self.run.is_stopped() {
            let met = self.queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            match met {
                None => break,
                Some(Met::Failed(path, FileError::NoSuffix(_)))
                    if self.run.request.options.left_out.contains(&path) => {}
                Some(Met::Failed(path, error)) => worker.failed(path, error),
                Some(Met::Same(path)) => {
                    worker.run.progress.add_file();
                    worker.summary.record(path, (0, 0), Ok(()));
                }
                Some(Met::Skipped(path, why)) => worker.summary.skipped.push((path, why)),
                Some(Met::Pair(pair)) if self.run.request.options.left_out.contains(&pair.path) => {}
                Some(Met::Pair(pair)) => {
                    let verified = verify(&mut worker, &pair);
                    if verified.is_ok() {
                        worker.run.progress.add_file();
                    }
                    let bytes = (verified.as_ref().copied().unwrap_or(0), 0);
                    worker.summary.record(pair.path, bytes, verified.map(drop));
                }
            }
        }
        let summary = worker.summary;
        self.summary.lock().unwrap_or_else(PoisonError::into_inner).absorb(summary);
    }
}

/// Opens all of a file; returns its length.
fn verify(worker: &mut Worker<'_, '_, '_>, pair: &Pair) -> Result<u64, FileError> {
    let cipher = match &pair.found {
        Some((place, name)) => SourceFile::open(place, name)?,
        None => SourceFile::open_named(&pair.path)?,
    };
    let bytes = cipher.len();
    let armor = match &worker.run.request.task {
        Task::Decrypt(opener) => opener.armor(),
        Task::Encrypt(_) => None,
    };
    let cipher = dearmored(armor, cipher, copy_of_text, || worker.run.is_stopped())?;
    let plain = match &pair.plain {
        Some(plain) => match plain.open() {
            Err(FileError::Io(error)) if is_absence(&error) => {
                return Err(FileError::NoCounterpart(plain.path.clone()));
            }
            plain => Some(plain?),
        },
        None => None,
    };
    let keys = &mut KeyTrial { caller: &mut worker.caller, slots: &mut worker.slots };
    let work = FileWork::open(worker.run.request, cipher, keys)?;
    if plain.is_none() && work.body.cut().tag_bytes() == 0 {
        return Err(FileError::unverifiable());
    }
    match compare(worker, &work.body, work.layout, plain.as_ref(), &work.source)? {
        true => Ok(bytes),
        false => {
            Err(FileError::Differs(pair.plain.as_ref().map_or_else(PathBuf::new, |plain| plain.path.clone())))
        }
    }
}

/// Where the binary form of a text goes, which is ciphertext: a file without a name among the temporary ones.
fn copy_of_text() -> Result<OwnedFd, FileError> {
    let dir = std::env::temp_dir();
    match open_named(&dir, OFlags::RDWR | OFlags::TMPFILE) {
        Err(error) if Errno::from_io_error(&error).is_some_and(|errno| NO_UNNAMED.contains(&errno)) => {
            unnamed_again(&dir)
        }
        opened => opened.map_err(FileError::io(COPYING)),
    }
}

const COPYING: &str = "copy an armored file into the directory for temporary files";

/// What is said of a file without a name by a file system, or a kernel, that has none.
const NO_UNNAMED: [Errno; 4] = [Errno::OPNOTSUPP, Errno::ISDIR, Errno::NOENT, Errno::INVAL];

/// A file in `dir` whose name is taken away at once.
fn unnamed_again(dir: &Path) -> Result<OwnedFd, FileError> {
    let mut number = [0; 8];
    fill_random(&mut number)?;
    let name = format!("evener-{:016x}", u64::from_ne_bytes(number));
    let dir = open_named(dir, OFlags::PATH | OFlags::DIRECTORY).map_err(FileError::io(COPYING))?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = fs::openat(&dir, &name, flags, Mode::RUSR | Mode::WUSR).map_err(FileError::io(COPYING))?;
    fs::unlinkat(&dir, &name, AtFlags::empty()).map_err(FileError::io(COPYING))?;
    Ok(file)
}

impl Queue {
    fn next(&mut self) -> Option<Met> {
        loop {
            while let Some(tree) = self.trees.front_mut() {
                match tree.next() {
                    Some(met) => return Some(met),
                    None => drop(self.trees.pop_front()),
                }
            }
            let (path, plain) = self.inputs.pop_front()?;
            if !path.is_dir() {
                let plain = plain.map(|path| Plain { path, below: None });
                return Some(Met::Pair(Pair { path, found: None, plain }));
            }
            match self.begin(&path, plain) {
                Ok(()) => {}
                Err(error) => return Some(Met::Failed(path, error)),
            }
        }
    }

    /// Begins a tree; of its plain side, too, comes what has no counterpart.
    fn begin(&mut self, path: &Path, plain: Option<PathBuf>) -> Result<(), FileError> {
        let root = |path: &Path| Ok::<_, FileError>((open_root(path, &self.open)?.0, path.to_owned()));
        let tree = |path: &Path, other, is_plain_side| {
            let descent = Descent::new(path, &self.open)?;
            let (source, taken) = (path.to_owned(), self.taken.clone());
            Ok::<_, FileError>(Tree { descent, source, other, is_plain_side, taken })
        };
        let plain_side = plain.as_deref().map(|plain| tree(plain, Some(root(path)?), true)).transpose()?;
        let sealed_side = tree(path, plain.as_deref().map(root).transpose()?, false)?;
        self.trees.push_back(sealed_side);
        self.trees.extend(plain_side);
        Ok(())
    }
}

impl Tree {
    /// Where the counterpart of what was found is in the other tree.
    fn counterpart(&self, path: &Path, kind: FileType) -> Result<PathBuf, FileError> {
        let relative = path.strip_prefix(&self.source).expect("it was found below");
        let name = relative.file_name().unwrap_or_default();
        if kind != FileType::RegularFile || self.other.is_none() {
            return Ok(relative.to_owned());
        }
        let name = match self.is_plain_side {
            true => self.taken.naming.source(name).unwrap_or(Cow::Borrowed(name)),
            false => self.taken.naming.output(name)?,
        };
        Ok(relative.with_file_name(name))
    }

    /// Whether the filter leaves out what was found, by the name of its source.
    fn leaves_out(&self, path: &Path, kind: FileType) -> bool {
        let Taken { filter, naming, .. } = &self.taken;
        let relative = path.strip_prefix(&self.source).expect("it was found below");
        let is_sealed = kind == FileType::RegularFile && !self.is_plain_side;
        let of_source = relative.file_name().filter(|_| is_sealed).and_then(|name| naming.output(name).ok());
        match of_source {
            Some(name) => filter.leaves_out_met(&relative.with_file_name(name), false),
            None => filter.leaves_out_met(relative, kind == FileType::Directory),
        }
    }

    fn next(&mut self) -> Option<Met> {
        loop {
            let (place, name, kind) = match self.descent.next()? {
                Found::Other { place, name, kind, .. } => (place, name, kind),
                Found::Failed(path, error) => return Some(Met::Failed(path, error)),
                Found::Directory { depth, .. } => {
                    if depth > 0 && self.leaves_out(self.descent.path(), FileType::Directory) {
                        self.descent.skip();
                    }
                    continue;
                }
            };
            let path = self.descent.path().join(&name);
            if self.leaves_out(&path, kind) {
                continue;
            }
            match kind {
                FileType::RegularFile if is_own_name(&name) => continue,
                FileType::RegularFile => {}
                FileType::Symlink if self.taken.links => {}
                FileType::Symlink => return Some(Met::Skipped(path, Skip::Symlink)),
                _ if self.is_plain_side => continue,
                _ => return Some(Met::Skipped(path, Skip::Special)),
            }
            let relative = match self.counterpart(&path, kind) {
                Ok(relative) => relative,
                Err(error) => return Some(Met::Failed(path, error)),
            };
            match &self.other {
                Some((sealed, of_sealed)) if self.is_plain_side => {
                    let flags = OFlags::PATH | OFlags::CLOEXEC;
                    let there =
                        found_below(sealed, &relative).and_then(|(place, name)| place.open(&name, flags));
                    if there.is_err() {
                        let other = of_sealed.join(&relative);
                        return Some(Met::Failed(path, FileError::NoCounterpart(other)));
                    }
                }
                None if kind == FileType::Symlink => return Some(Met::Skipped(path, Skip::LinkUnseen)),
                Some((root, of_plain)) if kind == FileType::Symlink => {
                    let plain = of_plain.join(&relative);
                    return Some(match is_same_link((&place, &name), root, &relative) {
                        Ok(Some(true)) => Met::Same(path),
                        Ok(Some(false)) => Met::Failed(path, FileError::Differs(plain)),
                        Ok(None) => Met::Failed(path, FileError::NoCounterpart(plain)),
                        Err(error) => Met::Failed(path, error),
                    });
                }
                plain => {
                    let plain = plain.as_ref().map(|(root, of_plain)| Plain {
                        path: of_plain.join(&relative),
                        below: Some((Arc::clone(root), relative)),
                    });
                    return Some(Met::Pair(Pair { path, found: Some((place, name)), plain }));
                }
            }
        }
    }
}
