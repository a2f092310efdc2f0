//! Placement: where the output of each input goes, and which inputs cannot go together.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::request::RequestError;

/// One input with its place in the output.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) source: PathBuf,
    pub(super) target: PathBuf,
    /// Whether the user named the target itself, not the directory that it goes into.
    pub(super) target_is_named: bool,
}

/// Gives each input its place in the output.
pub(super) fn inputs(sources: &[PathBuf], target: &Path) -> Result<Vec<Input>, RequestError> {
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

/// Device and inode of each input that is there: no output of the run may go into one, or replace one.
pub(crate) fn identities(sources: &[PathBuf]) -> Vec<(u64, u64)> {
    let identity = |source: &PathBuf| fs::metadata(source).map(|stat| (stat.dev(), stat.ino())).ok();
    sources.iter().filter_map(identity).collect()
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

/// Inputs with the names that they have beside each other; refuses those of one name, and `target` inside one.
pub(crate) fn named_inputs(
    sources: &[PathBuf],
    target: &Path,
) -> Result<Vec<(PathBuf, OsString)>, RequestError> {
    let mut taken = HashSet::new();
    let mut named = Vec::with_capacity(sources.len());
    for source in sources {
        check(source, target)?;
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
