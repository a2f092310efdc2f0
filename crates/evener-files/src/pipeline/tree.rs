//! Names: which inputs there are, found lazily, and where the output of each goes.
//!
//! One file goes to the target itself (or into it, where it is a directory or ends in a slash); one directory
//! is mirrored by the target; several inputs go into the target under their own names. Names are kept byte by
//! byte. A link named as an input is followed, links inside a tree are reported.

use std::collections::{HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, Stat};
use walkdir::{DirEntry, WalkDir};

use super::place::{OutDir, mode_of, mtime_of};
use super::process::RequestError;
use super::progress::{FileError, Skip};
use super::stale::is_draft;

/// One file to be worked on.
pub(super) struct Item {
    pub(super) source: PathBuf,
    pub(super) dir: Arc<OutDir>,
    pub(super) name: OsString,
}

/// What the walk met.
pub(super) enum Met {
    File(Item),
    Skipped(PathBuf, Skip),
    Failed(PathBuf, FileError),
}

/// One input with its place in the output.
#[derive(Debug)]
struct Root {
    source: PathBuf,
    target: PathBuf,
}

/// All inputs, one entry after the other. Directories are made when the walk enters them and get their mode
/// and time when everything is done ([`Walk::finish`]).
pub(super) struct Walk {
    roots: VecDeque<Root>,
    tree: Option<Tree>,
    /// Directories made or entered, with what they are to look like at the end; parents first.
    entered: Vec<(PathBuf, Stat)>,
    /// Parent directories of single files, so that each is opened once.
    parent: Option<Arc<OutDir>>,
}

/// A tree in the middle of being walked.
struct Tree {
    source: PathBuf,
    target: PathBuf,
    entries: walkdir::IntoIter,
    /// Output directories from the root to the current one; entry `i` is at depth `i`.
    dirs: Vec<Arc<OutDir>>,
}

impl Walk {
    /// Checks the inputs against each other and the target.
    pub(super) fn new(sources: &[PathBuf], target: &Path) -> Result<Self, RequestError> {
        let roots = roots(sources, target)?;
        Ok(Self { roots: roots.into(), tree: None, entered: Vec::new(), parent: None })
    }

    /// The next thing met; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Met> {
        loop {
            if let Some(tree) = &mut self.tree {
                match tree.entries.next() {
                    Some(entry) => match self.enter(entry) {
                        Some(met) => return Some(met),
                        None => continue,
                    },
                    None => self.tree = None,
                }
            }
            let root = self.roots.pop_front()?;
            if !root.source.is_dir() {
                return Some(self.single(root));
            }
            // Several inputs go into a directory that may not be there yet.
            if let Some(Err(error)) = root.target.parent().map(|parent| self.parent_dir(parent)) {
                return Some(Met::Failed(root.source, error));
            }
            self.tree = Some(Tree::new(root));
        }
    }

    /// Gives directories that were entered the mode and time of their sources, deepest first.
    pub(super) fn finish(&mut self) -> Vec<(PathBuf, FileError)> {
        let dressed = self.entered.drain(..).rev().map(|(path, stat)| {
            let result = dress_directory(&path, &stat);
            (path, result)
        });
        dressed.filter_map(|(path, result)| result.err().map(|error| (path, error))).collect()
    }

    fn single(&mut self, root: Root) -> Met {
        let (Some(parent), Some(name)) = (root.target.parent(), root.target.file_name()) else {
            return Met::Failed(root.source, FileError::Exists);
        };
        match self.parent_dir(parent) {
            Ok(dir) => self.named_file(root.source, dir, name.to_owned()),
            Err(error) => Met::Failed(root.source, error),
        }
    }

    fn named_file(&self, source: PathBuf, dir: Arc<OutDir>, name: OsString) -> Met {
        match fs::metadata(&source) {
            Ok(metadata) if metadata.is_file() => Met::File(Item { source, dir, name }),
            Ok(_) => Met::Failed(source, FileError::NoLength),
            Err(error) => Met::Failed(source, FileError::Io { doing: "read", error }),
        }
    }

    fn parent_dir(&mut self, path: &Path) -> Result<Arc<OutDir>, FileError> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match &self.parent {
            Some(dir) if dir.path == path => Ok(Arc::clone(dir)),
            _ => {
                let dir = OutDir::open(path, Mode::from_raw_mode(0o777))?;
                Ok(Arc::clone(self.parent.insert(dir)))
            }
        }
    }

    /// Turns an entry of the tree into something met, or nothing (a directory).
    fn enter(&mut self, entry: walkdir::Result<DirEntry>) -> Option<Met> {
        let tree = self.tree.as_mut().expect("entries come from a tree");
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => return Some(failed_entry(error, &tree.source)),
        };
        let kind = entry.file_type();
        if kind.is_dir() || entry.depth() == 0 {
            let (path, result) = tree.enter_directory(&entry);
            return match result {
                Ok(made) => {
                    self.entered.push(made);
                    None
                }
                Err(error) => Some(Met::Failed(path, error)),
            };
        }
        let source = entry.path().to_owned();
        if kind.is_symlink() {
            Some(Met::Skipped(source, Skip::Symlink))
        } else if !kind.is_file() {
            Some(Met::Skipped(source, Skip::Special))
        } else if is_draft(entry.file_name()) {
            Some(Met::Skipped(source, Skip::Draft))
        } else {
            let dir = Arc::clone(&tree.dirs[entry.depth() - 1]);
            Some(Met::File(Item { source, dir, name: entry.file_name().to_owned() }))
        }
    }
}

impl Tree {
    fn new(root: Root) -> Self {
        let entries = WalkDir::new(&root.source).follow_links(false).follow_root_links(true).into_iter();
        Self { source: root.source, target: root.target, entries, dirs: Vec::new() }
    }

    /// Makes the output directory for a directory of the tree. Where that fails, the directory is left out.
    fn enter_directory(&mut self, entry: &DirEntry) -> (PathBuf, Result<(PathBuf, Stat), FileError>) {
        let source = entry.path().to_owned();
        self.dirs.truncate(entry.depth());
        let made = rustix::fs::stat(&source).map_err(FileError::io("read")).and_then(|stat| {
            let path = match entry.depth() {
                0 => self.target.clone(),
                depth => self.dirs[depth - 1].path.join(entry.file_name()),
            };
            self.dirs.push(OutDir::open(&path, mode_of(&stat))?);
            Ok((path, stat))
        });
        if made.is_err() {
            self.entries.skip_current_dir();
        }
        (source, made)
    }
}

fn failed_entry(error: walkdir::Error, root: &Path) -> Met {
    let path = error.path().unwrap_or(root).to_owned();
    let error = error.into_io_error().unwrap_or_else(|| std::io::Error::other("a loop of links"));
    Met::Failed(path, FileError::Io { doing: "read", error })
}

fn dress_directory(path: &Path, source: &Stat) -> Result<(), FileError> {
    use rustix::fs::{CWD, Timespec, Timestamps, UTIME_OMIT};
    rustix::fs::chmod(path, mode_of(source)).map_err(FileError::io("set the mode of the directory"))?;
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let times = Timestamps { last_access, last_modification: mtime_of(source) };
    rustix::fs::utimensat(CWD, path, &times, rustix::fs::AtFlags::empty())
        .map_err(FileError::io("set the time of the directory"))
}

/// Gives each input its place in the output.
fn roots(sources: &[PathBuf], target: &Path) -> Result<Vec<Root>, RequestError> {
    let [only] = sources else {
        let roots =
            sources.iter().map(|source| into_target(source, target)).collect::<Result<Vec<_>, _>>()?;
        return all_different(roots);
    };
    let is_directory = check(only, target)?;
    let ends_in_slash = target.as_os_str().as_bytes().ends_with(b"/");
    if !is_directory && (ends_in_slash || target.is_dir()) {
        return Ok(vec![into_target(only, target)?]);
    }
    Ok(vec![Root { source: only.clone(), target: target.to_owned() }])
}

/// Refuses inputs of which one would overwrite the other.
fn all_different(roots: Vec<Root>) -> Result<Vec<Root>, RequestError> {
    let mut taken = HashSet::new();
    match roots.iter().find(|root| !taken.insert(&root.target)) {
        Some(twice) => Err(RequestError::SameOutput(twice.target.clone())),
        None => Ok(roots),
    }
}

fn into_target(source: &Path, target: &Path) -> Result<Root, RequestError> {
    check(source, target)?;
    let name = own_name(source).ok_or_else(|| RequestError::NoName(source.to_owned()))?;
    Ok(Root { source: source.to_owned(), target: target.join(name) })
}

/// The last part of a path, also of `dir/` and `..`.
fn own_name(source: &Path) -> Option<OsString> {
    let name = source.file_name().map(OsStr::to_owned);
    name.or_else(|| fs::canonicalize(source).ok()?.file_name().map(OsStr::to_owned))
}

/// Whether `source` is a directory; refuses a target inside it. What cannot be read is found out by the walk.
fn check(source: &Path, target: &Path) -> Result<bool, RequestError> {
    let Ok(real_source) = fs::canonicalize(source) else { return Ok(false) };
    let is_directory = real_source.is_dir();
    if is_directory && real(target).starts_with(real_source) {
        return Err(RequestError::InsideInput { input: source.to_owned(), target: target.to_owned() });
    }
    Ok(is_directory)
}

/// The path with links resolved as far as it exists.
fn real(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for known in absolute.ancestors() {
        if let Ok(start) = fs::canonicalize(known) {
            return match absolute.strip_prefix(known) {
                Ok(rest) => start.join(rest),
                Err(_) => start,
            };
        }
    }
    absolute
}

/// All regular files at or below `source`, for adding up.
pub(super) fn files_below(source: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    let entries = WalkDir::new(source).follow_links(false).follow_root_links(true).into_iter();
    entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_file())
}
