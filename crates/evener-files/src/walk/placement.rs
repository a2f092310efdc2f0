//! Placement: where the output of each input goes, and which inputs cannot go together.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::error::FileError;
use crate::naming::Naming;
use crate::request::RequestError;

/// One input with its place in the output.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) source: PathBuf,
    /// Where its output goes; an error where it has no name.
    pub(crate) target: Result<PathBuf, FileError>,
    /// Whether the user named the target itself, not the directory that it goes into.
    pub(crate) target_is_named: bool,
}

/// Each input, and where a run would put its output: at or below `target`, or beside it where there is none. Nothing where a run would be refused.
#[must_use]
pub fn outputs(sources: &[PathBuf], target: Option<&Path>, naming: &Naming) -> Vec<(PathBuf, PathBuf)> {
    let inputs = inputs(sources, target, naming).unwrap_or_default().into_iter();
    inputs.filter_map(|input| Some((input.source, input.target.ok()?))).collect()
}

/// Gives each input its place in the output: at or below `target`, or beside it where there is none.
pub(crate) fn inputs(
    sources: &[PathBuf],
    target: Option<&Path>,
    naming: &Naming,
) -> Result<Vec<Input>, RequestError> {
    let Some(target) = target else {
        let inputs = sources.iter().map(|source| beside(source, naming)).collect::<Result<Vec<_>, _>>()?;
        return all_different(inputs);
    };
    let [only] = sources else {
        let inputs = sources
            .iter()
            .map(|source| into_target(source, target, naming))
            .collect::<Result<Vec<_>, _>>()?;
        return all_different(inputs);
    };
    let is_directory = check(only, target)?;
    let ends_in_slash = target.as_os_str().as_bytes().ends_with(b"/");
    if !is_directory && (ends_in_slash || target.is_dir()) {
        return Ok(vec![into_target(only, target, naming)?]);
    }
    Ok(vec![Input { source: only.clone(), target: Ok(target.to_owned()), target_is_named: true }])
}

/// The place of the output beside its file.
fn beside(source: &Path, naming: &Naming) -> Result<Input, RequestError> {
    if source.is_dir() {
        return Err(RequestError::NoOutput(source.to_owned()));
    }
    let name = source.file_name().ok_or_else(|| RequestError::NoName(source.to_owned()))?;
    let target = naming.beside(name).map(|name| source.with_file_name(name));
    if let Ok(target) = &target {
        refuse_stdout(target)?;
    }
    Ok(Input { source: source.to_owned(), target, target_is_named: true })
}

/// Refuses what the shell has made by `>`: it would be taken for an output that stands there, or lose its name.
fn refuse_stdout(target: &Path) -> Result<(), RequestError> {
    let Ok(stdout) = rustix::fs::fstat(rustix::stdio::stdout()) else { return Ok(()) };
    let is_it =
        |stat: fs::Metadata| stat.is_file() && (stat.dev(), stat.ino()) == (stdout.st_dev, stdout.st_ino);
    match fs::symlink_metadata(target).is_ok_and(is_it) {
        true => Err(RequestError::IsStdout(target.to_owned())),
        false => Ok(()),
    }
}

/// Device and inode of each input that is there: no output of the run may go into one, or replace one.
pub(crate) fn identities(sources: &[PathBuf]) -> Vec<(u64, u64)> {
    let identity = |source: &PathBuf| fs::metadata(source).map(|stat| (stat.dev(), stat.ino())).ok();
    sources.iter().filter_map(identity).collect()
}

/// Refuses inputs of which one would overwrite the other.
fn all_different(inputs: Vec<Input>) -> Result<Vec<Input>, RequestError> {
    let mut taken = HashSet::new();
    let mut targets = inputs.iter().filter_map(|input| input.target.as_ref().ok());
    match targets.find(|target| !taken.insert(std::path::absolute(target).ok())) {
        Some(twice) => Err(RequestError::SameOutput(twice.clone())),
        None => Ok(inputs),
    }
}

fn into_target(source: &Path, target: &Path, naming: &Naming) -> Result<Input, RequestError> {
    let keeps_name = check(source, target)?;
    let name = own_name(source).ok_or_else(|| RequestError::NoName(source.to_owned()))?;
    let target = match keeps_name {
        true => Ok(target.join(name)),
        false => naming.output(&name).map(|name| target.join(name)),
    };
    Ok(Input { source: source.to_owned(), target, target_is_named: false })
}

/// Inputs with the names that they have beside each other; refuses those of one name, and one that `target` lies in, where that is a file.
pub(crate) fn named_inputs(
    sources: &[PathBuf],
    target: Option<&Path>,
) -> Result<Vec<(PathBuf, OsString)>, RequestError> {
    let mut taken = HashSet::new();
    let mut named = Vec::with_capacity(sources.len());
    for source in sources {
        target.map(|target| check(source, target)).transpose()?;
        let name = own_name(source).ok_or_else(|| RequestError::NoName(source.clone()))?;
        if !taken.insert(name.clone()) {
            return Err(RequestError::SameOutput(name.into()));
        }
        named.push((source.clone(), name));
    }
    Ok(named)
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
