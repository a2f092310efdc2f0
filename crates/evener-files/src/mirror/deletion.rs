//! Outputs that have lost their source: those that the record shows to be Evener's own, as it made them, go; nothing else does.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use evener::Cancel;
use rustix::fs::{FileType, Stat};

use super::side::{NamedInput, Pair};
use crate::error::FileError;
use crate::filter::Filter;
use crate::input::place::OpenPlaces;
use crate::naming::Naming;
use crate::output::Outputs;
use crate::record::{Record, Spot, Stamp};

/// How outputs are deleted.
pub(crate) struct Deletion<'a> {
    pub(crate) record: &'a Record,
    pub(crate) filter: &'a Filter,
    pub(crate) naming: &'a Naming,
    /// Whether they are named only.
    pub(crate) is_rehearsal: bool,
    pub(crate) open: &'a Arc<OpenPlaces>,
    /// What the run did, and which files are its keys.
    pub(crate) outputs: &'a Outputs,
    /// Behind a stop nothing more is deleted.
    pub(crate) cancel: &'a Cancel,
}

/// The deletion in one tree.
struct Run<'a> {
    by: &'a Deletion<'a>,
    output: &'a Path,
    /// Where it is below the output.
    relative: PathBuf,
    deleted: Vec<PathBuf>,
    /// Outputs of which a name was taken away here, so that the time of their inode is another.
    touched: HashSet<(u64, u64)>,
}

/// A directory on the way down. They are a list and not calls in each other: a tree may be deeper than a stack.
struct Level {
    pair: Pair,
    entries: std::vec::IntoIter<(OsString, FileType)>,
    /// Whether nothing is left in it so far.
    is_empty: bool,
    /// Whether something of Evener's went from it.
    has_lost: bool,
}

/// What failed, and where.
type Failed = (PathBuf, FileError);

impl Deletion<'_> {
    /// Deletes what stands in `output` and comes from nothing in `source` any more; returns what that was. Nothing is deleted behind an
    /// error.
    pub(crate) fn run(&self, named: &NamedInput) -> (Vec<PathBuf>, Result<(), Failed>) {
        let NamedInput { source, output: Ok(output), spot } = named else { return (Vec::new(), Ok(())) };
        let (relative, deleted, touched) = (PathBuf::new(), Vec::new(), HashSet::new());
        let mut run = Run { by: self, output, relative, deleted, touched };
        let pair = Pair::open(source, output, *spot, self.open).map_err(|error| (output.clone(), error));
        let done = pair.and_then(|pair| match pair.source.is_there() {
            true => run.tree(pair),
            // Gone, or not mounted: that is no reason to delete all that was made of it.
            false => Ok(()),
        });
        (run.deleted, done)
    }
}

impl Run<'_> {
    fn tree(&mut self, root: Pair) -> Result<(), Failed> {
        let mut levels = vec![self.level(root)?];
        let done = self.levels(&mut levels);
        // Where it went wrong or was stopped: they are to have their modes again nevertheless, and their times as far as they keep them.
        for mut left in levels.into_iter().rev() {
            left.pair.output.restore(left.pair.source.is_there()).ok();
        }
        done
    }

    fn levels(&mut self, levels: &mut Vec<Level>) -> Result<(), Failed> {
        while let Some(level) = levels.last_mut() {
            if self.by.cancel.is_cancelled() {
                return Ok(());
            }
            let Some((name, kind)) = level.entries.next() else {
                self.leave(levels)?;
                continue;
            };
            self.relative.push(&name);
            let is_directory = kind == FileType::Directory;
            if !self.by.filter.leaves_out_met(&self.relative, is_directory) && is_directory {
                let inner = level.pair.enter(&name).map_err(|error| (self.path(), error))?;
                levels.push(self.level(inner)?);
                continue;
            }
            let gone = match self.source_of(&name, kind) {
                Some(source) => {
                    let gone = self.entry(&level.pair, &name, (&source, kind));
                    gone.map_err(|error| (self.path(), error))?
                }
                None => false,
            };
            level.is_empty &= gone;
            level.has_lost |= gone;
            self.relative.pop();
        }
        Ok(())
    }

    /// The path of what is looked at.
    fn path(&self) -> PathBuf {
        self.output.join(&self.relative)
    }

    fn level(&self, pair: Pair) -> Result<Level, Failed> {
        let entries = pair.output.entries().map_err(|error| (self.path(), error))?.into_iter();
        Ok(Level { pair, entries, is_empty: true, has_lost: false })
    }

    /// Leaves a directory, and deletes it where nothing is left in it and it is Evener's: made by a run, or emptied by this one.
    /// Until then it stays in the list, so that it is put right where that goes wrong.
    fn leave(&mut self, levels: &mut Vec<Level>) -> Result<(), Failed> {
        let Some((left, above)) = levels.split_last_mut() else { return Ok(()) };
        let mut above = above.last_mut();
        let gone = match &above {
            Some(above) => self.directory(left, &above.pair).map_err(|error| (self.path(), error))?,
            None => false,
        };
        if !gone {
            let restored = left.pair.output.restore(left.pair.source.is_there());
            restored.map_err(|error| (self.path(), error))?;
        }
        if let Some(above) = &mut above {
            above.is_empty &= gone;
            above.has_lost |= gone;
            self.relative.pop();
        }
        levels.pop();
        Ok(())
    }

    fn directory(&mut self, left: &Level, above: &Pair) -> Result<bool, FileError> {
        let name = self.relative.file_name().unwrap_or_default();
        if !left.is_empty || left.pair.source.is_there() || self.is_there(above, name, FileType::Directory)? {
            return Ok(false);
        }
        let is_ours = |stat| self.by.record.is_directory_of_ours(left.pair.spot, &stat);
        if !left.has_lost && !above.output.stat(name)?.is_some_and(is_ours) {
            return Ok(false);
        }
        if !self.by.is_rehearsal {
            above.output.remove(name, true)?;
        }
        self.deleted.push(self.path());
        Ok(true)
    }

    /// The name of the source of a file or link that a run would have made; what the filter leaves out is none.
    fn source_of<'n>(&self, name: &'n OsStr, kind: FileType) -> Option<Cow<'n, OsStr>> {
        let source = match kind {
            FileType::RegularFile => self.by.naming.source(name)?,
            FileType::Symlink => Cow::Borrowed(name),
            _ => return None,
        };
        let is_left_out = self.by.filter.leaves_out_met(&self.relative.with_file_name(&source), false);
        (!is_left_out).then_some(source)
    }

    /// Whether `source` is there, of which an output of this kind comes: under other names than their own files have other outputs.
    fn is_there(&self, pair: &Pair, source: &OsStr, kind: FileType) -> Result<bool, FileError> {
        let Some(stat) = pair.source.stat(source)? else { return Ok(false) };
        let is_file = |kind| kind == FileType::RegularFile;
        let now = FileType::from_raw_mode(stat.st_mode);
        Ok(*self.by.naming == Naming::Kept || is_file(now) == is_file(kind))
    }

    /// Deletes a file or a link.
    fn entry(
        &mut self,
        pair: &Pair,
        name: &OsStr,
        (source, kind): (&OsStr, FileType),
    ) -> Result<bool, FileError> {
        let Some(stat) = pair.output.stat(name)? else { return Ok(true) };
        let is_key = self.by.outputs.is_key((stat.st_dev, stat.st_ino));
        let is_ours = !is_key && self.is_ours(pair.spot.join(name), &stat);
        if !is_ours || self.is_there(pair, source, kind)? {
            return Ok(false);
        }
        if !self.by.is_rehearsal {
            pair.output.remove(name, false)?;
            if stat.st_nlink > 1 {
                self.touched.insert((stat.st_dev, stat.st_ino));
            }
        }
        self.deleted.push(self.path());
        Ok(true)
    }

    /// Whether it is what Evener made there.
    fn is_ours(&self, spot: Spot, stat: &Stat) -> bool {
        let Some(known) = self.by.record.find(spot) else { return false };
        let (made, now) = (known.row.output, Stamp::of(stat));
        let identity = (stat.st_dev, stat.st_ino);
        // What was compared when its first name went is not compared again; and the run itself may have changed the time.
        let by_run = self.by.outputs.changed_before(identity) == Some(made.changed_ns);
        let now = match by_run || self.touched.contains(&identity) {
            true => Stamp { changed_ns: made.changed_ns, ..now },
            false => now,
        };
        self.by.record.is_same(&made, &now)
    }
}
