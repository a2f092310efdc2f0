//! A tree under a passphrase: sealed for an identity that is made for it and kept, under the passphrase, in the tree's output. So the
//! passphrase costs its second once.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use evener_fd::atomic_file;
use evener_files::age_keys::{
    Identities, Recipients, TREE_IDENTITY, WorkFactors, new_tree_identity, tree_identity,
};
use evener_files::{Naming, Source, Target, inspect};
use secrecy::SecretString;
use zeroize::Zeroizing;

use crate::key_files::read_public;
use crate::terminal::{PathDisplay, waiting};

/// What is said while scrypt is at work.
const DERIVING: &str = "deriving the passphrase's key";

/// Where a tree is to be made.
pub(super) struct Output {
    pub(super) target: Target,
    pub(super) naming: Naming,
    /// Whether it is one file.
    pub(super) is_archive: bool,
    /// Whether nothing is written.
    pub(super) is_rehearsal: bool,
}

/// The recipients of a run that makes a tree; `None` where it makes one file.
pub(super) fn recipients(
    passphrase: &SecretString,
    factors: WorkFactors,
    sources: &[Source],
    output: &Output,
) -> anyhow::Result<Option<Recipients>> {
    let (Target::Path(target), false) = (&output.target, output.is_archive) else { return Ok(None) };
    let directories: Vec<&Path> = paths(sources).filter(|path| path.is_dir()).collect();
    // What goes wrong here goes wrong in the run too, which names it better.
    let lies_inside = directories.iter().any(|directory| lies_inside(target, directory));
    if (sources.len() < 2 && directories.is_empty()) || lies_inside || sources.contains(&Source::Stdin) {
        return Ok(None);
    }
    let taken = output.naming.source(TREE_IDENTITY.as_ref());
    let taken = taken
        .as_deref()
        .into_iter()
        .flat_map(|name| directories.iter().map(move |directory| directory.join(name)));
    if let Some(taken) = taken
        .chain(directories.iter().map(|directory| directory.join(TREE_IDENTITY)))
        .find(|taken| taken.exists())
    {
        bail!("{} has the name that the new tree's own identity takes", PathDisplay(&taken));
    }
    let derived =
        waiting::said_while(DERIVING, |_| identity_in(passphrase, factors, target, output.is_rehearsal));
    let text = derived?;
    let mut recipients = Recipients::default();
    recipients.add_identity_file(text.as_bytes(), &mut |_| None)?;
    Ok(Some(recipients))
}

/// The identity of the tree in `target`: that which stands there, or a new one, which is written first.
fn identity_in(
    passphrase: &SecretString,
    factors: WorkFactors,
    target: &Path,
    is_rehearsal: bool,
) -> anyhow::Result<Zeroizing<String>> {
    let file = target.join(TREE_IDENTITY);
    let standing = || {
        tree_identity(passphrase, &read_public(&file)?, factors)
            .with_context(|| PathDisplay(&file).to_string())
    };
    match fs::metadata(&file) {
        Ok(_) => return standing(),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", PathDisplay(&file))),
    }
    let (text, sealed) = new_tree_identity(passphrase, factors)?;
    if is_rehearsal {
        return Ok(text);
    }
    let cannot_make = || format!("cannot make {}", PathDisplay(target));
    match fs::create_dir(target) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(error).with_context(cannot_make);
        }
        _ => {}
    }
    match atomic_file::make_durably(&file, &sealed, 0o600) {
        Ok(()) => Ok(text),
        // Another run was quicker: what stands there counts for both.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => standing(),
        Err(error) => Err(error).with_context(cannot_make),
    }
}

/// Adds the identities of trees that the inputs are or lie in; returns the files that keep them.
pub(super) fn add_identities(
    passphrase: &SecretString,
    factors: WorkFactors,
    sources: &[Source],
    identities: &mut Identities,
) -> anyhow::Result<Vec<PathBuf>> {
    waiting::said_while(DERIVING, |_| add_each(passphrase, factors, sources, identities))
}

/// The files that keep the identities of trees that are inputs: no identity opens them, a passphrase does.
pub(super) fn identity_files(sources: &[Source]) -> Vec<PathBuf> {
    let files = paths(sources).map(|path| path.join(TREE_IDENTITY));
    files.filter(|file| file.is_file() && is_of_passphrase(file)).collect()
}

fn is_of_passphrase(file: &Path) -> bool {
    let inspected = fs::File::open(file).ok().and_then(|file| inspect(file).ok());
    inspected.is_some_and(|inspection| inspection.stanza_types == ["scrypt"])
}

fn add_each(
    passphrase: &SecretString,
    factors: WorkFactors,
    sources: &[Source],
    identities: &mut Identities,
) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths(sources) {
        let file = path.join(TREE_IDENTITY);
        if file.is_file() {
            let text = tree_identity(passphrase, &read_public(&file)?, factors)
                .with_context(|| PathDisplay(&file).to_string())?;
            identities.add_file(text.as_bytes(), &mut |_| None)?;
            files.push(file);
        } else {
            add_from_above(passphrase, factors, path, identities);
        }
    }
    Ok(files)
}

/// Adds the identity of the tree that a path lies in. One that does not open is that of another tree.
fn add_from_above(passphrase: &SecretString, factors: WorkFactors, path: &Path, identities: &mut Identities) {
    let Ok(path) = fs::canonicalize(path) else { return };
    let file =
        path.ancestors().skip(1).map(|directory| directory.join(TREE_IDENTITY)).find(|file| file.is_file());
    let sealed = file.and_then(|file| read_public(&file).ok());
    if let Some(text) = sealed.and_then(|sealed| tree_identity(passphrase, &sealed, factors).ok()) {
        identities.add_file(text.as_bytes(), &mut |_| None).ok();
    }
}

fn paths(sources: &[Source]) -> impl Iterator<Item = &Path> {
    sources.iter().filter_map(|source| match source {
        Source::Path(path) => Some(path.as_path()),
        Source::Stdin => None,
    })
}

/// Whether an output, there or not, lies inside a directory or is it.
fn lies_inside(target: &Path, directory: &Path) -> bool {
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent =
        fs::canonicalize(target).or_else(|_| fs::canonicalize(parent.unwrap_or_else(|| Path::new("."))));
    match (parent, fs::canonicalize(directory)) {
        (Ok(parent), Ok(directory)) => parent.starts_with(directory),
        _ => true,
    }
}
