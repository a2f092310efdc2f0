//! Names: which inputs there are, found lazily, and where the output of each goes.
//!
//! One file goes to the target itself (or into it, where it is a directory or ends in a slash); one directory
//! is mirrored by the target; several inputs go into the target under their own names. Names are kept byte by
//! byte. A link named as an input is followed, links inside a tree are reported, and whatever is found below a
//! directory is opened beneath it.

use std::collections::{HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, Stat};

use crate::error::FileError;
use crate::input::beneath::Root;
use crate::input::source_file::SourceFile;
use crate::output::is_draft;
use crate::output::{Attributes, OutDir, Trace};
use crate::report::Skip;
use crate::request::RequestError;
use crate::walk::descent::{Descent, Found};

/// One file to be worked on.
pub(crate) struct Item {
    pub(crate) source: PathBuf,
    /// The directory below which the walk found it; `None` where the user named the file itself.
    pub(crate) root: Option<Arc<Root>>,
    pub(crate) dir: Arc<OutDir>,
    pub(crate) name: OsString,
}

impl Item {
    /// Opens the source.
    pub(crate) fn open(&self) -> Result<SourceFile, FileError> {
        SourceFile::open(self.root.as_deref(), &self.source)
    }
}

/// What the walk met.
pub(crate) enum Met {
    File(Item),
    Skipped(PathBuf, Skip),
    Failed(PathBuf, FileError),
}

/// One input with its place in the output.
#[derive(Debug)]
struct Input {
    source: PathBuf,
    target: PathBuf,
    /// Whether the user named the target itself, not the directory that it goes into.
    target_is_named: bool,
}

/// All inputs, one entry after the other. Directories are made when the walk enters them and get their mode
/// and time when everything is done ([`Walk::finish`]).
pub(crate) struct Walk {
    inputs: VecDeque<Input>,
    tree: Option<Tree>,
    /// Directories made or entered, with what they are to look like at the end; parents first.
    entered: Vec<(Trace, Attributes)>,
    /// Parent directories of single files, so that each is opened once.
    parent: Option<Arc<OutDir>>,
}

/// A tree in the middle of being walked.
struct Tree {
    descent: Descent,
    target: PathBuf,
    /// The directory that the target goes into, where the user named that and not the target.
    parent: Option<Arc<OutDir>>,
    /// Output directories from the root to the current one; entry `i` is at depth `i`.
    dirs: Vec<Arc<OutDir>>,
}

impl Walk {
    /// Checks the inputs against each other and the target.
    pub(crate) fn new(sources: &[PathBuf], target: &Path) -> Result<Self, RequestError> {
        let inputs = inputs(sources, target)?;
        Ok(Self { inputs: inputs.into(), tree: None, entered: Vec::new(), parent: None })
    }

    /// The next thing met; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<Met> {
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

    /// Gives directories that were entered the mode and time of their sources, deepest first.
    pub(crate) fn finish(&mut self) -> Vec<(PathBuf, FileError)> {
        let finished =
            self.entered.drain(..).rev().map(|(dir, source)| (dir.path(), dir.set_attributes(&source)));
        finished.filter_map(|(path, result)| result.err().map(|error| (path, error))).collect()
    }

    /// Begins an input: a single file is met at once, a tree entry by entry.
    fn begin(&mut self, input: Input) -> Option<Met> {
        // Tells files from directories only: what is read is what stands there when it is opened.
        let kind = match rustix::fs::stat(&input.source) {
            Ok(stat) => FileType::from_raw_mode(stat.st_mode),
            Err(errno) => return Some(Met::Failed(input.source, FileError::io("read")(errno))),
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
            Ok(item) => item.map(Met::File),
            Err(error) => Some(Met::Failed(input.source, error)),
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

    /// Turns what was found in the tree into something met, or nothing (a directory).
    fn meet(&mut self, found: Found) -> Option<Met> {
        let tree = self.tree.as_mut().expect("it was found in a tree");
        let (source, name, depth, kind) = match found {
            Found::Failed(path, error) => return Some(Met::Failed(path, error)),
            Found::Directory { path, name, depth, stat } => {
                return match tree.enter(&name, depth, &stat) {
                    Ok(dir) => {
                        self.entered.push((dir, Attributes::of(&stat)));
                        None
                    }
                    Err(error) => Some(Met::Failed(path, error)),
                };
            }
            Found::Other { path, name, depth, kind } => (path, name, depth, kind),
        };
        Some(match kind {
            FileType::Symlink => Met::Skipped(source, Skip::Symlink),
            FileType::RegularFile if is_draft(&name) => Met::Skipped(source, Skip::Draft),
            FileType::RegularFile => {
                let (dir, root) = (Arc::clone(&tree.dirs[depth - 1]), Arc::clone(&tree.descent.root));
                Met::File(Item { source, root: Some(root), dir, name })
            }
            _ => Met::Skipped(source, Skip::Special),
        })
    }
}

impl Tree {
    /// Makes the output directory for a directory of the tree. Where that fails, the directory is left out.
    fn enter(&mut self, name: &OsStr, depth: usize, source: &Stat) -> Result<Trace, FileError> {
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

    fn open(&self, name: &OsStr, mode: Mode) -> Result<Arc<OutDir>, FileError> {
        match (self.dirs.last(), &self.parent) {
            (Some(above), _) => above.open_in(name, mode),
            (None, Some(parent)) => {
                let name = self.target.file_name().ok_or(FileError::Exists)?;
                parent.open_in(name, mode)
            }
            (None, None) => OutDir::open(&self.target, mode),
        }
    }
}

/// Gives each input its place in the output.
fn inputs(sources: &[PathBuf], target: &Path) -> Result<Vec<Input>, RequestError> {
    let [only] = sources else {
        let inputs =
            sources.iter().map(|source| into_target(source, target)).collect::<Result<Vec<_>, _>>()?;
        return all_different(inputs);
    };
    let is_directory = check(only, target)?;
    let ends_in_slash = target.as_os_str().as_bytes().ends_with(b"/");
    if !is_directory && (ends_in_slash || target.is_dir()) {
        return Ok(vec![into_target(only, target)?]);
    }
    Ok(vec![Input { source: only.clone(), target: target.to_owned(), target_is_named: true }])
}

/// Refuses inputs of which one would overwrite the other.
fn all_different(inputs: Vec<Input>) -> Result<Vec<Input>, RequestError> {
    let mut taken = HashSet::new();
    match inputs.iter().find(|input| !taken.insert(&input.target)) {
        Some(twice) => Err(RequestError::SameOutput(twice.target.clone())),
        None => Ok(inputs),
    }
}

fn into_target(source: &Path, target: &Path) -> Result<Input, RequestError> {
    check(source, target)?;
    let name = own_name(source).ok_or_else(|| RequestError::NoName(source.to_owned()))?;
    Ok(Input { source: source.to_owned(), target: target.join(name), target_is_named: false })
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

/// Adds up the lengths of all regular files at or below `source`, as far as they can be looked at, until `is_enough`.
pub(crate) fn bytes_below(source: &Path, is_enough: impl Fn() -> bool) -> u64 {
    let Ok(root) = Root::open(source) else {
        return fs::metadata(source).map_or(0, |metadata| metadata.len());
    };
    let mut descent = Descent::new(root);
    let mut total = 0;
    while let Some(found) = descent.next().filter(|_| !is_enough()) {
        if let Found::Other { path, name, kind: FileType::RegularFile, .. } = found {
            total += descent.bytes_of(&path, &name);
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    /// `in/a/file`, `in/b/file`, and beside them `secret/file`, which is longer.
    fn place() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        for (directory, text) in [("in/a", "mine"), ("in/b", "mine"), ("secret", "not for everybody")] {
            fs::create_dir_all(place.path().join(directory)).unwrap();
            fs::write(place.path().join(directory).join("file"), text).unwrap();
        }
        place
    }

    fn walk(place: &tempfile::TempDir) -> Walk {
        Walk::new(&[place.path().join("in")], &place.path().join("out")).unwrap()
    }

    fn next_file(walk: &mut Walk) -> Item {
        match walk.next() {
            Some(Met::File(item)) => item,
            _ => unreachable!("the next thing is a file"),
        }
    }

    fn replace_by_link(path: &Path, target: &Path) {
        fs::rename(path, path.with_extension("before")).unwrap();
        symlink(target, path).unwrap();
    }

    #[test]
    fn a_file_that_became_a_link_since_the_walk_saw_it_is_not_followed() {
        let place = place();
        let item = next_file(&mut walk(&place));
        assert_eq!(item.open().unwrap().len(), 4);
        replace_by_link(&item.source, &place.path().join("secret/file"));
        assert!(matches!(item.open(), Err(FileError::Link)));
    }

    #[test]
    fn a_directory_that_became_a_link_since_the_walk_saw_its_files_leads_nowhere() {
        let place = place();
        let item = next_file(&mut walk(&place));
        replace_by_link(item.source.parent().unwrap(), &place.path().join("secret"));
        assert!(matches!(item.open(), Err(FileError::Link)));
    }

    #[test]
    fn a_directory_that_becomes_a_link_before_it_is_entered_is_an_error_and_not_listed() {
        let place = place();
        let mut walk = walk(&place);
        let first = next_file(&mut walk).source;
        let second = place.path().join(if first.ends_with("a/file") { "in/b" } else { "in/a" });
        replace_by_link(&second, &place.path().join("secret"));
        match walk.next() {
            Some(Met::Failed(path, FileError::Link)) => assert_eq!(path, second),
            _ => unreachable!("the link is an error"),
        }
        assert!(!place.path().join("out").join(second.file_name().unwrap()).exists());
    }

    #[test]
    fn a_link_that_the_user_named_is_followed_to_its_file() {
        let place = place();
        let link = place.path().join("link");
        symlink("secret/file", &link).unwrap();
        let item = next_file(&mut Walk::new(&[link], &place.path().join("out")).unwrap());
        assert_eq!(item.open().unwrap().len(), 17);
    }

    /// Mode and time in seconds.
    fn look(path: &Path) -> (u32, i64) {
        let metadata = fs::metadata(path).unwrap();
        (metadata.mode() & 0o7777, metadata.mtime())
    }

    #[test]
    fn an_output_directory_that_something_else_replaced_is_an_error_and_what_replaced_it_keeps_mode_and_time()
    {
        for is_link in [true, false] {
            let place = place();
            let (entered, victim) = (place.path().join("out/a"), place.path().join("secret"));
            fs::set_permissions(place.path().join("in/a"), fs::Permissions::from_mode(0o751)).unwrap();
            let mut walk = walk(&place);
            while walk.next().is_some() {}
            fs::set_permissions(&victim, fs::Permissions::from_mode(0o700)).unwrap();
            fs::File::open(&victim).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
            fs::rename(&entered, place.path().join("out/away")).unwrap();
            if is_link {
                symlink(&victim, &entered).unwrap();
            } else {
                fs::rename(&victim, &entered).unwrap();
            }
            let failed = walk.finish();
            assert!(
                matches!(&failed[..], [(path, FileError::OtherDirectory)] if *path == entered),
                "{failed:?}"
            );
            assert_eq!(look(&entered), (0o700, 0));
            assert_eq!(
                look(&place.path().join("out/b")),
                look(&place.path().join("in/b")),
                "the others are done"
            );
        }
    }
}
