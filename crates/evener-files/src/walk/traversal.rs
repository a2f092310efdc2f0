//! A walk through all inputs, lazily: each directory of the output is made when the walk enters it, and gets mode and time when
//! everything is done.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, Stat};

use super::descent::{Descent, Found};
use super::item::{Entry, Item};
use super::placement::{Input, inputs};
use crate::error::FileError;
use crate::filter::Filter;
use crate::input::beneath::Root;

use crate::output::{Attributes, DirTrace, OutputDir, is_draft};
use crate::record::is_record;
use crate::report::Skip;
use crate::request::RequestError;

/// All inputs, one entry after the other. Directories are made when the walk enters them and get their mode
/// and time when everything is done ([`Walk::finish`]).
pub(crate) struct Walk {
    inputs: VecDeque<Input>,
    is_tree: bool,
    filter: Filter,
    tree: Option<Tree>,
    /// Sources of directories made or entered, with what these are to look like at the end; parents first.
    entered: Vec<(PathBuf, DirTrace, Attributes)>,
    /// Parent directories of single files, so that each is opened once.
    parent: Option<Arc<OutputDir>>,
}

/// A tree in the middle of being walked.
struct Tree {
    descent: Descent,
    target: PathBuf,
    /// The directory that the target goes into, where the user named that and not the target.
    parent: Option<Arc<OutputDir>>,
    /// Output directories from the root to the current one; entry `i` is at depth `i`.
    dirs: Vec<Arc<OutputDir>>,
}

impl Walk {
    /// Checks the inputs against each other and the target.
    pub(crate) fn new(sources: &[PathBuf], target: &Path, filter: &Filter) -> Result<Self, RequestError> {
        let inputs = inputs(sources, target)?;
        let is_tree = sources.len() > 1 || sources.first().is_some_and(|source| source.is_dir());
        let filter = filter.clone();
        Ok(Self { inputs: inputs.into(), is_tree, filter, tree: None, entered: Vec::new(), parent: None })
    }

    /// Whether everything goes into the target as a directory: there are several inputs, or the one there is is a directory.
    pub(crate) fn is_tree(&self) -> bool {
        self.is_tree
    }

    /// The next thing met; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<Entry> {
        loop {
            if let Some(tree) = &mut self.tree {
                match tree.descent.next() {
                    Some(found) => match self.meet(found) {
                        Some(met) => return Some(met),
                        None => continue,
                    },
                    None => self.tree = None,
                }
            }
            let input = self.inputs.pop_front()?;
            if let Some(met) = self.begin(input) {
                return Some(met);
            }
        }
    }

    /// Gives directories that were entered the mode and time of their sources, deepest first; but not where something below failed, which the
    /// same command is to do later, and can in a directory that is not read-only yet.
    pub(crate) fn finish(&mut self, failed: &[(PathBuf, FileError)]) -> Vec<(PathBuf, FileError)> {
        let unfinished: HashSet<&Path> = failed.iter().flat_map(|(path, _)| path.ancestors()).collect();
        let entered = self.entered.drain(..).rev();
        let done = entered.filter(|(source, ..)| !unfinished.contains(source.as_path()));
        let finished = done.map(|(_, dir, source)| (dir.path(), dir.set_attributes(&source)));
        finished.filter_map(|(path, result)| result.err().map(|error| (path, error))).collect()
    }

    /// Begins an input: a single file is met at once, a tree entry by entry.
    fn begin(&mut self, input: Input) -> Option<Entry> {
        // Tells files from directories only: what is read is what stands there when it is opened.
        let kind = match rustix::fs::stat(&input.source) {
            Ok(stat) => FileType::from_raw_mode(stat.st_mode),
            Err(errno) => return Some(Entry::Failed(input.source, FileError::io("read")(errno))),
        };
        let begun = match kind {
            FileType::Directory => self.tree(&input).map(|tree| {
                self.tree = Some(tree);
                None
            }),
            FileType::RegularFile => self.single(&input).map(Some),
            _ => Err(FileError::NoLength),
        };
        match begun {
            Ok(item) => item.map(Entry::File),
            Err(error) => Some(Entry::Failed(input.source, error)),
        }
    }

    fn single(&mut self, input: &Input) -> Result<Item, FileError> {
        let (Some(parent), Some(name)) = (input.target.parent(), input.target.file_name()) else {
            return Err(FileError::Exists);
        };
        let dir = self.parent_dir(parent)?;
        Ok(Item { source: input.source.clone(), root: None, dir, name: name.to_owned() })
    }

    fn tree(&mut self, input: &Input) -> Result<Tree, FileError> {
        // Several inputs go into a directory that may not be there yet.
        let parent = input.target.parent().map(|parent| self.parent_dir(parent)).transpose()?;
        let parent = parent.filter(|_| !input.target_is_named);
        let descent = Descent::new(Root::open(&input.source)?);
        Ok(Tree { descent, target: input.target.clone(), parent, dirs: Vec::new() })
    }

    fn parent_dir(&mut self, path: &Path) -> Result<Arc<OutputDir>, FileError> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match &self.parent {
            Some(dir) if dir.path == path => Ok(Arc::clone(dir)),
            _ => {
                let dir = OutputDir::open(path, Mode::from_raw_mode(0o777))?;
                Ok(Arc::clone(self.parent.insert(dir)))
            }
        }
    }

    /// Turns what was found in the tree into something met, or nothing (a directory).
    fn meet(&mut self, found: Found) -> Option<Entry> {
        let tree = self.tree.as_mut().expect("it was found in a tree");
        let (source, name, depth, kind) = match found {
            Found::Failed(path, error) => return Some(Entry::Failed(path, error)),
            Found::Directory { path, depth: 1.., .. } if tree.leaves_out(&self.filter, &path, true) => {
                tree.descent.skip();
                return None;
            }
            Found::Other { path, .. } if tree.leaves_out(&self.filter, &path, false) => return None,
            Found::Directory { path, name, depth, stat } => {
                return match tree.enter(&name, depth, &stat) {
                    Ok(dir) => {
                        self.entered.push((path, dir, Attributes::of(&stat)));
                        None
                    }
                    Err(error) => Some(Entry::Failed(path, error)),
                };
            }
            Found::Other { path, name, depth, kind } => (path, name, depth, kind),
        };
        Some(match kind {
            FileType::Symlink => Entry::Skipped(source, Skip::Symlink),
            FileType::RegularFile if is_draft(&name) || is_record(&name) => {
                Entry::Skipped(source, Skip::Draft)
            }
            FileType::RegularFile => {
                let (dir, root) = (Arc::clone(&tree.dirs[depth - 1]), Arc::clone(&tree.descent.root));
                Entry::File(Item { source, root: Some(root), dir, name })
            }
            _ => Entry::Skipped(source, Skip::Special),
        })
    }
}

impl Tree {
    fn leaves_out(&self, filter: &Filter, path: &Path, is_directory: bool) -> bool {
        let relative = path.strip_prefix(self.descent.root.path()).expect("it was found below");
        filter.leaves_out(relative, is_directory)
    }

    /// Makes the output directory for a directory of the tree. Where that fails, the directory is left out.
    fn enter(&mut self, name: &OsStr, depth: usize, source: &Stat) -> Result<DirTrace, FileError> {
        self.dirs.truncate(depth);
        let opened = self.open(name, Attributes::of(source).mode).and_then(|dir| {
            dir.give_owner_access()?;
            Ok(dir)
        });
        match opened {
            Ok(dir) => {
                self.dirs.push(dir);
                let base = self.parent.as_ref().unwrap_or(&self.dirs[0]);
                Ok(self.dirs[depth].trace(base))
            }
            Err(error) => {
                self.descent.skip();
                Err(error)
            }
        }
    }

    fn open(&self, name: &OsStr, mode: Mode) -> Result<Arc<OutputDir>, FileError> {
        match (self.dirs.last(), &self.parent) {
            (Some(above), _) => above.open_in(name, mode),
            (None, Some(parent)) => {
                let name = self.target.file_name().ok_or(FileError::Exists)?;
                parent.open_in(name, mode)
            }
            (None, None) => OutputDir::open(&self.target, mode),
        }
    }
}
