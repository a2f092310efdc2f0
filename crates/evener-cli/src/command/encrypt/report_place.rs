//! Where the report of a run may go: not in the place of anything that the run reads or makes.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::bail;

use crate::terminal::PathDisplay;

/// Checks the place of a report against `inputs` and key files, which are read, and `outputs`, which are made, or will be.
///
/// # Errors
///
/// A sentence where it is one of them, or lies in one that is a directory: the next run would find it there.
pub(super) fn check<'p>(
    report: &Path,
    inputs: impl IntoIterator<Item = &'p Path>,
    outputs: impl IntoIterator<Item = &'p Path>,
) -> anyhow::Result<()> {
    // A device or a pipe takes the place of nothing.
    if fs::metadata(report).is_ok_and(|found| !found.is_file()) {
        return Ok(());
    }
    let read = inputs.into_iter().map(|path| (path, "reads"));
    for (path, does) in read.chain(outputs.into_iter().map(|path| (path, "makes"))) {
        if is_same(report, path) {
            bail!("the report would take the place of {}, which this run {does}", PathDisplay(path));
        }
        if path.is_dir() && lies_in(report, path) {
            let report = PathDisplay(report);
            bail!("the report {report} would lie in {}, whose files this run {does}", PathDisplay(path));
        }
    }
    Ok(())
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => real(one).ok().zip(real(other).ok()).is_some_and(|(one, other)| one == other),
    }
}

fn lies_in(file: &Path, directory: &Path) -> bool {
    real(file).ok().zip(fs::canonicalize(directory).ok()).is_some_and(|(file, dir)| file.starts_with(dir))
}

/// Where a file lies, or will.
fn real(file: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(file).or_else(|_| {
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = fs::canonicalize(parent.unwrap_or_else(|| Path::new(".")))?;
        Ok(parent.join(file.file_name().unwrap_or_default()))
    })
}
