//! Outputs that have lost their source: those that the record shows to be Evener's own, as it made them, go; nothing else does.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Stat};

use super::side::Pair;
use crate::error::FileError;
use crate::filter::Filter;
use crate::input::place::OpenPlaces;
use crate::record::{Record, Spot, Stamp};

/// How outputs are deleted.
pub(crate) struct Deletion<'a> {
    pub(crate) record: &'a Record,
    pub(crate) filter: &'a Filter,
    /// Whether they are named only.
    pub(crate) is_rehearsal: bool,
    pub(crate) open: &'a Arc<OpenPlaces>,
}

/// The deletion in one tree.
struct Run<'a> {
    by: &'a Deletion<'a>,
    output: &'a Path,
    deleted: Vec<PathBuf>,
    /// Outputs of which a name was taken away here, so that the time of their inode is another.
    touched: HashSet<(u64, u64)>,
}

impl Deletion<'_> {
    /// Deletes what stands in `output` and comes from nothing in `source` any more; returns what that was. Nothing is deleted behind an
    /// error.
    pub(crate) fn run(
        &self,
        (source, output, spot): &(PathBuf, PathBuf, Spot),
    ) -> (Vec<PathBuf>, Result<(), (PathBuf, FileError)>) {
        let mut run = Run { by: self, output, deleted: Vec::new(), touched: HashSet::new() };
        let pair = Pair::open(source, output, *spot, self.open).map_err(|error| (output.clone(), error));
        let done = pair.and_then(|pair| match pair.source.is_there() {
            true => run.directory(&pair).map(drop),
            // Gone, or not mounted: that is no reason to delete all that was made of it.
            false => Ok(()),
        });
        (run.deleted, done)
    }
}

impl Run<'_> {
    /// Deletes in one directory; whether nothing is left in it, and something was there.
    fn directory(&mut self, pair: &Pair) -> Result<bool, (PathBuf, FileError)> {
        let at = |name: &OsStr| self.output.join(&pair.relative).join(name);
        let entries = pair.output.entries().map_err(|error| (at(OsStr::new("")), error))?;
        let mut is_empty = !entries.is_empty();
        for (name, kind) in entries {
            let path = self.output.join(&pair.relative).join(&name);
            let gone = match kind {
                _ if self.by.filter.leaves_out(&pair.relative.join(&name), kind == FileType::Directory) => {
                    false
                }
                FileType::Directory => self.subdirectory(pair, &name, &path)?,
                FileType::RegularFile | FileType::Symlink => {
                    self.entry(pair, &name, &path).map_err(|error| (path, error))?
                }
                _ => false,
            };
            is_empty &= gone;
        }
        Ok(is_empty)
    }

    fn subdirectory(&mut self, pair: &Pair, name: &OsStr, path: &Path) -> Result<bool, (PathBuf, FileError)> {
        let failed = |error| (path.to_owned(), error);
        let inner = pair.enter(name).map_err(failed)?;
        let is_empty = self.directory(&inner)?;
        if !is_empty || inner.source.is_there() || pair.source.stat(name).map_err(failed)?.is_some() {
            return Ok(false);
        }
        if !self.by.is_rehearsal {
            pair.output.remove(name, true).map_err(failed)?;
        }
        self.deleted.push(path.to_owned());
        Ok(true)
    }

    /// Deletes a file or a link.
    fn entry(&mut self, pair: &Pair, name: &OsStr, path: &Path) -> Result<bool, FileError> {
        let Some(stat) = pair.output.stat(name)? else { return Ok(true) };
        let is_ours = self.is_ours(self.by.record.spot(pair.spot, name), &stat);
        if !is_ours || pair.source.stat(name)?.is_some() {
            return Ok(false);
        }
        if !self.by.is_rehearsal {
            pair.output.remove(name, false)?;
            if stat.st_nlink > 1 {
                self.touched.insert((stat.st_dev, stat.st_ino));
            }
        }
        self.deleted.push(path.to_owned());
        Ok(true)
    }

    /// Whether it is what Evener made there.
    fn is_ours(&self, spot: Spot, stat: &Stat) -> bool {
        let Some(known) = self.by.record.find(spot) else { return false };
        let (made, now) = (known.row.output, Stamp::of(stat));
        // What was compared when its first name went is not compared again.
        let now = match self.touched.contains(&(stat.st_dev, stat.st_ino)) {
            true => Stamp { changed_ns: made.changed_ns, ..now },
            false => now,
        };
        self.by.record.is_same(&made, &now)
    }
}
