//! Where the report of a run may go: not in the place of anything that the run reads or makes.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::bail;
use evener_files::Filter;

use crate::terminal::PathDisplay;

/// What a run reads or makes.
pub(super) enum Used {
    /// A file that it reads: an input, or a key.
    Read(PathBuf),
    /// A directory of which it reads every file that the filter takes.
    ReadAll(PathBuf),
    /// A file that it makes.
    Made(PathBuf),
    /// A directory that it makes, or mirrors another in.
    MadeAll(PathBuf),
}

/// Checks the place of a report.
///
/// # Errors
///
/// A sentence where it is something that is used, or lies in a directory of that: of an input the next run would find it there.
pub(super) fn check(report: &Path, used: &[Used], filter: &Filter) -> anyhow::Result<()> {
    // A device or a pipe takes the place of nothing.
    if fs::metadata(report).is_ok_and(|found| !found.is_file()) {
        return Ok(());
    }
    let Ok(place) = place_of(report) else { return Ok(()) };
    for used in used {
        let (path, does, is_whole) = match used {
            Used::Read(path) => (path, "reads", false),
            Used::ReadAll(path) => (path, "reads", true),
            Used::Made(path) => (path, "makes", false),
            Used::MadeAll(path) => (path, "makes", true),
        };
        if is_same(report, &place, path) {
            bail!("the report would take the place of {}, which this run {does}", PathDisplay(path));
        }
        let Some(relative) =
            place_of(path).ok().and_then(|path| place.strip_prefix(path).ok().map(Path::to_owned))
        else {
            continue;
        };
        if is_whole && !filter.leaves_out(&relative, false) {
            let report = PathDisplay(report);
            bail!("the report {report} would lie in {}, whose files this run {does}", PathDisplay(path));
        }
    }
    Ok(())
}

fn is_same(report: &Path, place: &Path, other: &Path) -> bool {
    match (fs::metadata(report), fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => place_of(other).is_ok_and(|other| other == place),
    }
}

/// Where a file lies, or will: links are followed as far as there is anything.
fn place_of(file: &Path) -> io::Result<PathBuf> {
    let mut file = std::path::absolute(file)?;
    let mut behind: Vec<OsString> = Vec::new();
    // As many links as Linux follows.
    for _ in 0..40 {
        if let Ok(found) = fs::canonicalize(&file) {
            return Ok(behind.iter().rev().fold(found, |place, name| place.join(name)));
        }
        let parent = file.parent().map_or_else(PathBuf::new, Path::to_owned);
        match fs::read_link(&file) {
            Ok(target) => file = parent.join(target),
            Err(_) => {
                behind.extend(file.file_name().map(ToOwned::to_owned));
                file = parent;
            }
        }
    }
    Err(io::ErrorKind::NotFound.into())
}
