//! Where the report of a run may go: not in the place of anything that the run reads or makes.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::bail;
use evener_files::{Filter, Naming};

use crate::terminal::PathDisplay;

/// What a run reads or makes.
pub(super) enum Used {
    /// A file that it reads: an input, or a key.
    Read(PathBuf),
    /// A directory of which it reads every file that the filter takes.
    ReadAll(PathBuf),
    /// A file that it makes.
    Made(PathBuf),
    /// A directory in which it mirrors another.
    Mirror {
        /// Where it makes it.
        output: PathBuf,
        /// What it mirrors.
        source: PathBuf,
    },
    /// A directory into which it unpacks what it does not know yet.
    Unpacked(PathBuf),
}

/// Checks the place of a report.
///
/// # Errors
///
/// A sentence where it is something that is used, or lies among that: in an input the next run would find it.
pub(super) fn check(report: &Path, used: &[Used], filter: &Filter, naming: &Naming) -> anyhow::Result<()> {
    // A device or a pipe takes the place of nothing.
    if fs::metadata(report).is_ok_and(|found| !found.is_file()) {
        return Ok(());
    }
    let Ok(place) = place_of(report) else { return Ok(()) };
    let within = |path: &Path| place.strip_prefix(place_of(path).ok()?).ok().map(Path::to_owned);
    for used in used {
        let (path, does, is_among) = match used {
            Used::Read(path) => (path, "reads", false),
            Used::ReadAll(path) => {
                (path, "reads", within(path).is_some_and(|relative| !filter.leaves_out(&relative, false)))
            }
            Used::Made(path) => (path, "makes", false),
            Used::Mirror { output, source } => {
                let mirrors = |relative: PathBuf| {
                    let name = naming.source(relative.file_name()?)?;
                    Some(source.join(&relative).with_file_name(name).exists())
                };
                (output, "makes", within(output).and_then(mirrors) == Some(true))
            }
            Used::Unpacked(path) => (path, "makes", within(path).is_some()),
        };
        if is_same(report, &place, path) {
            bail!("the report would take the place of {}, which this run {does}", PathDisplay(path));
        }
        if is_among {
            let report = PathDisplay(report);
            bail!(
                "the report {report} would lie among the files of {}, which this run {does}",
                PathDisplay(path)
            );
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
