//! A walk through all inputs, lazily: each directory of the output is made when the walk enters it, and finished when the last
//! thing in it is done.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{self, AtFlags, FileType};
use rustix::io::Errno;

use super::descent::{Descent, Found};
use super::item::{Entry, Item, What};
use super::placement::{Input, identities, inputs};
use crate::error::FileError;
use crate::filter::Filter;
use crate::input::place::{OpenPlaces, Place};
use crate::naming::Naming;
use crate::output::{MakesWay, OutputDir, Outputs, SourceDir, is_own_name};
use crate::preservation::Keep;
use crate::record::Spot;
use crate::report::Skip;
use crate::request::RequestError;

/// All inputs, one entry after the other.
pub(crate) struct Walk {
    inputs: VecDeque<Input>,
    is_tree: bool,
    filter: Filter,
    naming: Naming,
    tree: Option<Tree>,
    /// Parent directories of single files, so that each is opened once.
    parent: Option<(PathBuf, Arc<OutputDir>)>,
    outputs: Arc<Outputs>,
    open: Arc<OpenPlaces>,
}

/// A tree in the middle of being walked.
struct Tree {
    descent: Descent,
    source: PathBuf,
    target: PathBuf,
    /// The directory that the target goes into, where the user named that and not the target.
    parent: Option<Arc<OutputDir>>,
    /// Output directories from the root to the current one; entry `i` is at depth `i`.
    dirs: Vec<Arc<OutputDir>>,
}

impl Walk {
    /// Checks the inputs against each other and the target.
    pub(crate) fn new(
        sources: &[PathBuf],
        target: Option<&Path>,
        (filter, naming): (&Filter, &Naming),
        outputs: &Arc<Outputs>,
        open: &Arc<OpenPlaces>,
    ) -> Result<Self, RequestError> {
        let inputs = inputs(sources, target, naming)?;
        let is_tree =
            target.is_some() && (sources.len() > 1 || sources.first().is_some_and(|source| source.is_dir()));
        outputs.spare(identities(sources));
        let (filter, naming) = (filter.clone(), naming.clone());
        let (outputs, open) = (Arc::clone(outputs), Arc::clone(open));
        Ok(Self { inputs: inputs.into(), is_tree, filter, naming, tree: None, parent: None, outputs, open })
    }

    /// Whether everything goes into the target as a directory: there are several inputs, or the one there is is a directory.
    pub(crate) fn is_tree(&self) -> bool {
        self.is_tree
    }

    /// The next thing met; `None` at the end.
    pub(crate) fn next(&mut self, makes_way: MakesWay<'_>) -> Option<Entry> {
        loop {
            if let Some(tree) = &mut self.tree {
                match tree.descent.next() {
                    Some(found) => match self.meet(found, makes_way) {
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

    /// Begins an input: a single file is met at once, a tree entry by entry.
    fn begin(&mut self, input: Input) -> Option<Entry> {
        // Tells files from directories only: what is read is what stands there when it is opened.
        let kind = match fs::stat(&input.source) {
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
        let target = input.target.as_ref().map_err(Clone::clone)?;
        let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
            return Err(FileError::Exists);
        };
        let dir = self.parent_dir(parent)?;
        let what = What::Named(input.source.clone());
        Ok(Item { what, dir, name: name.to_owned(), source_name: None })
    }

    fn tree(&mut self, input: &Input) -> Result<Tree, FileError> {
        // Several inputs go into a directory that may not be there yet.
        let target = input.target.as_ref().map_err(Clone::clone)?;
        let parent = target.parent().map(|parent| self.parent_dir(parent)).transpose()?;
        let parent = parent.filter(|_| !input.target_is_named);
        let descent = Descent::new(&input.source, &self.open)?;
        Ok(Tree { descent, source: input.source.clone(), target: target.clone(), parent, dirs: Vec::new() })
    }

    fn parent_dir(&mut self, path: &Path) -> Result<Arc<OutputDir>, FileError> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match &self.parent {
            Some((opened, dir)) if opened == path => Ok(Arc::clone(dir)),
            _ => {
                let spot = if self.is_tree { Spot::default() } else { Spot::of_single_outputs(path) };
                let dir = named(path, OutputDir::open_at(spot, path, &self.outputs))?;
                self.parent = Some((path.to_owned(), Arc::clone(&dir)));
                Ok(dir)
            }
        }
    }

    /// Turns what was found in the tree into something met, or nothing (a directory).
    fn meet(&mut self, found: Found, makes_way: MakesWay<'_>) -> Option<Entry> {
        let tree = self.tree.as_mut().expect("it was found in a tree");
        let (place, name, depth, kind) = match found {
            Found::Failed(path, error) => return Some(Entry::Failed(path, error)),
            Found::Directory { ref place, depth: 1.., .. }
                if !self.filter.takes_all() && tree.leaves_out(&self.filter, &place.path(), true) =>
            {
                tree.descent.skip();
                return None;
            }
            Found::Other { ref name, .. }
                if !self.filter.takes_all()
                    && tree.leaves_out(&self.filter, &tree.descent.path().join(name), false) =>
            {
                return None;
            }
            Found::Directory { place, name, depth, stat } => {
                let source = SourceDir { place: &place, stat: &stat };
                let above = place.ancestors().next();
                let free =
                    above.map_or(Ok(()), |above| tree.is_free(above, &name, &self.filter, &self.naming));
                let entered = match free {
                    Ok(()) => tree.enter((&name, depth), source, &self.outputs, makes_way),
                    taken => {
                        tree.descent.skip();
                        taken
                    }
                };
                return entered.err().map(|error| Entry::Failed(place.path(), error));
            }
            Found::Other { place, name, depth, kind } => (place, name, depth, kind),
        };
        let keep = &self.outputs.keep;
        let source = || place.path().join(&name);
        let (what, output) = match kind {
            FileType::Symlink if keep.links => {
                let free = tree.is_free(&place, &name, &self.filter, &self.naming);
                match free.and_then(|()| link(&place, &name, depth - 1, keep)) {
                    Ok(link) => (link, None),
                    Err(error) => return Some(Entry::Failed(source(), error)),
                }
            }
            FileType::Symlink => return Some(Entry::Skipped(source(), Skip::Symlink)),
            FileType::RegularFile if is_own_name(&name) => {
                return Some(Entry::Skipped(source(), Skip::Draft));
            }
            FileType::RegularFile => match self.naming.output(&name) {
                Ok(output) if is_own_name(&output) => return Some(Entry::Skipped(source(), Skip::Draft)),
                Ok(output) => {
                    let other = (*output != *name).then(|| output.into_owned());
                    (What::Found(place), other)
                }
                Err(error) => return Some(Entry::Failed(source(), error)),
            },
            _ if keep.specials => return Some(Entry::Failed(source(), FileError::Special)),
            _ => return Some(Entry::Skipped(source(), Skip::Special)),
        };
        let (name, source_name) = match output {
            Some(output) => (output, Some(name)),
            None => (name, None),
        };
        Some(Entry::File(Item { what, dir: Arc::clone(&tree.dirs[depth - 1]), name, source_name }))
    }
}

impl Tree {
    fn leaves_out(&self, filter: &Filter, path: &Path, is_directory: bool) -> bool {
        let relative = path.strip_prefix(&self.source).expect("it was found below");
        filter.leaves_out_met(relative, is_directory)
    }

    /// Whether a directory or link may keep its name: no file beside it has an output of that name.
    fn is_free(
        &self,
        above: &Place,
        name: &OsStr,
        filter: &Filter,
        naming: &Naming,
    ) -> Result<(), FileError> {
        let Some(rival) = naming.rival(name).filter(|rival| !is_own_name(rival)) else { return Ok(()) };
        let path = above.path().join(&rival);
        let stat = fs::statat(&*above.fd()?, &*rival, AtFlags::SYMLINK_NOFOLLOW);
        let is_file = stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        match is_file && !self.leaves_out(filter, &path, false) {
            true => Err(FileError::NameTaken(path)),
            false => Ok(()),
        }
    }

    /// Makes the output directory for a directory of the tree. Where that fails, the directory is left out.
    fn enter(
        &mut self,
        (name, depth): (&OsStr, usize),
        source: SourceDir<'_>,
        outputs: &Arc<Outputs>,
        makes_way: MakesWay<'_>,
    ) -> Result<(), FileError> {
        self.dirs.truncate(depth);
        let opened = self.open(name, source, outputs, makes_way);
        match opened {
            Ok(dir) => self.dirs.push(dir),
            Err(error) => {
                self.descent.skip();
                return Err(error);
            }
        }
        Ok(())
    }

    fn open(
        &self,
        name: &OsStr,
        source: SourceDir<'_>,
        outputs: &Arc<Outputs>,
        makes_way: MakesWay<'_>,
    ) -> Result<Arc<OutputDir>, FileError> {
        let bases = self.dirs.first().into_iter().chain(&self.parent);
        // By bind mounts, for one: the names were compared before.
        if bases.into_iter().any(|base| base.identity() == source.place.identity) {
            return Err(FileError::OutputInInput);
        }
        match (self.dirs.last(), &self.parent) {
            (Some(above), _) => above.open_in(name, source, makes_way),
            (None, Some(parent)) => {
                let name = self.target.file_name().ok_or(FileError::Exists)?;
                parent.open_in(name, source, makes_way)
            }
            (None, None) => named(&self.target, OutputDir::open(&self.target, outputs, Some(source))),
        }
    }
}

/// Names, in an error, the directory that the user named.
fn named(path: &Path, opened: Result<Arc<OutputDir>, FileError>) -> Result<Arc<OutputDir>, FileError> {
    let error = match opened {
        Err(FileError::NoDirectory) => FileError::io("enter it")(Errno::NOTDIR),
        Err(error @ FileError::Io(_)) => error,
        opened => return opened,
    };
    Err(FileError::NoPlace { path: path.to_owned(), error: Box::new(error) })
}

/// A symbolic link, `above` directories below the root of the tree: where it points, and what it is.
fn link(place: &Arc<Place>, name: &OsStr, above: usize, keep: &Keep) -> Result<What, FileError> {
    let link = place.open_link(name)?;
    let stat = fs::fstat(&link).map_err(FileError::io("read"))?;
    let target = fs::readlinkat(&link, c"", Vec::new()).map_err(FileError::io("read"))?;
    match keep.takes_link(&target, stat.st_uid, above) {
        true => Ok(What::Link(Arc::clone(place), target, Box::new(stat))),
        false => Err(FileError::ForeignLink),
    }
}
