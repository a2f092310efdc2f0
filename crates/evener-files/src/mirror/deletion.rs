//! Outputs that have lost their source: those that the record shows to be Evener's own, as it made them, go; nothing else does.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::side::Pair;
use crate::error::FileError;
use crate::filter::Filter;
use crate::record::{Record, Spot, Stamp};

/// What is deleted, and by what.
struct Deletion<'a> {
    record: &'a Record,
    filter: &'a Filter,
    /// Whether it is named only.
    is_rehearsal: bool,
    output: &'a Path,
    deleted: Vec<PathBuf>,
}

/// Deletes what stands in `output` and comes from nothing in `source` any more; returns what that was. Nothing is deleted behind an error.
pub(crate) fn delete(
    (source, output, spot): &(PathBuf, PathBuf, Spot),
    record: &Record,
    filter: &Filter,
    is_rehearsal: bool,
) -> (Vec<PathBuf>, Result<(), (PathBuf, FileError)>) {
    let mut deletion = Deletion { record, filter, is_rehearsal, output, deleted: Vec::new() };
    let named = |error| (output.clone(), error);
    let done =
        Pair::open(source, output, *spot).map_err(named).and_then(|pair| match pair.source.is_there() {
            true => deletion.run(&pair).map(drop),
            // Gone, or not mounted: that is no reason to delete all that was made of it.
            false => Ok(()),
        });
    (deletion.deleted, done)
}

impl Deletion<'_> {
    /// Deletes in one directory; whether nothing is left in it, and something was there.
    fn run(&mut self, pair: &Pair) -> Result<bool, (PathBuf, FileError)> {
        let at = |name: &OsStr| self.output.join(&pair.relative).join(name);
        let entries = pair.output.entries().map_err(|error| (at(OsStr::new("")), error))?;
        let mut is_empty = !entries.is_empty();
        for (name, kind) in entries {
            let path = self.output.join(&pair.relative).join(&name);
            let gone = match kind {
                _ if self.filter.leaves_out(&pair.relative.join(&name), kind == FileType::Directory) => false,
                FileType::Directory => self.directory(pair, &name, &path)?,
                FileType::RegularFile => self.file(pair, &name, &path).map_err(|error| (path, error))?,
                _ => false,
            };
            is_empty &= gone;
        }
        Ok(is_empty)
    }

    fn directory(&mut self, pair: &Pair, name: &OsStr, path: &Path) -> Result<bool, (PathBuf, FileError)> {
        let failed = |error| (path.to_owned(), error);
        let inner = pair.enter(name).map_err(failed)?;
        let is_empty = self.run(&inner)?;
        if !is_empty || inner.source.is_there() || pair.source.stat(name).map_err(failed)?.is_some() {
            return Ok(false);
        }
        if !self.is_rehearsal {
            pair.output.remove(name, true).map_err(failed)?;
        }
        self.deleted.push(path.to_owned());
        Ok(true)
    }

    fn file(&mut self, pair: &Pair, name: &OsStr, path: &Path) -> Result<bool, FileError> {
        let Some(known) = self.record.find(self.record.spot(pair.spot, name)) else { return Ok(false) };
        let Some(stat) = pair.output.stat(name)? else { return Ok(true) };
        let is_ours = self.record.is_same(&known.row.output, &Stamp::of(&stat));
        if !is_ours || pair.source.stat(name)?.is_some() {
            return Ok(false);
        }
        if !self.is_rehearsal {
            pair.output.remove(name, false)?;
        }
        self.deleted.push(path.to_owned());
        Ok(true)
    }
}
