//! A rehearsal: what a run would do with each file, as far as that is seen without opening it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use evener_fd::Named;
use rustix::fs::{self, AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::side::Pair;
use crate::error::FileError;
use crate::filter::Filter;
use crate::input::place::OpenPlaces;
use crate::input::source_file::SourceFile;
use crate::output::is_draft;
use crate::preservation::Keep;
use crate::record::{Record, Spot, Stamp, is_record};
use crate::report::{Planned, Skip, Summary};
use crate::request::Existing;

/// What a run would go by.
pub(crate) struct Rehearsal<'a> {
    pub(crate) record: &'a Record,
    pub(crate) filter: &'a Filter,
    pub(crate) keep: Keep,
    pub(crate) existing: Existing,
    pub(crate) open: &'a Arc<OpenPlaces>,
}

/// The rehearsal of one named file or directory.
struct Run<'a> {
    by: &'a Rehearsal<'a>,
    source: &'a Path,
    summary: &'a mut Summary,
}

impl Rehearsal<'_> {
    /// Adds to `summary` what would be done with a named directory or file.
    pub(crate) fn run(&self, (source, output, spot): &(PathBuf, PathBuf, Spot), summary: &mut Summary) {
        let mut run = Run { by: self, source, summary };
        let done = match source.is_dir() {
            true => Pair::open(source, output, *spot, self.open).map(|pair| run.directory(&pair)),
            false => run.single(output),
        };
        if let Err(error) = done {
            summary.failed.push((source.clone(), error));
        }
    }
}

impl Run<'_> {
    fn single(&mut self, output: &Path) -> Result<(), FileError> {
        let output = match (output.is_dir(), self.source.file_name()) {
            (true, Some(name)) => output.join(name),
            _ => output.to_owned(),
        };
        let source = SourceFile::open_named(self.source)?.stat;
        let spot = self.by.record.spot(Spot::default(), output.file_name().unwrap_or_default());
        self.plan(self.source.to_owned(), spot, &source, standing_at(&output)?);
        Ok(())
    }

    fn directory(&mut self, pair: &Pair) {
        let failed = |run: &mut Self, name: &OsStr, error| {
            let path = run.source.join(&pair.relative).join(name);
            run.summary.failed.push((path, error));
        };
        let entries = match pair.source.entries() {
            Ok(entries) => entries,
            Err(error) => return failed(self, OsStr::new(""), error),
        };
        for (name, kind) in entries {
            if self.by.filter.leaves_out(&pair.relative.join(&name), kind == FileType::Directory) {
                continue;
            }
            let done = match kind {
                FileType::Directory => pair.enter(&name).map(|inner| self.directory(&inner)),
                FileType::RegularFile if is_draft(&name) || is_record(&name) => {
                    self.skip(pair, &name, Skip::Draft)
                }
                FileType::RegularFile => self.file(pair, &name),
                FileType::Symlink if self.by.keep.links => self.link(pair, &name),
                FileType::Symlink => self.skip(pair, &name, Skip::Symlink),
                _ if self.by.keep.specials => Err(FileError::Special),
                _ => self.skip(pair, &name, Skip::Special),
            };
            if let Err(error) = done {
                failed(self, &name, error);
            }
        }
    }

    fn path(&self, pair: &Pair, name: &OsStr) -> PathBuf {
        self.source.join(&pair.relative).join(name)
    }

    fn skip(&mut self, pair: &Pair, name: &OsStr, why: Skip) -> Result<(), FileError> {
        self.summary.skipped.push((self.path(pair, name), why));
        Ok(())
    }

    fn file(&mut self, pair: &Pair, name: &OsStr) -> Result<(), FileError> {
        let path = self.path(pair, name);
        if let Some(source) = pair.source.stat(name)? {
            self.plan(path, self.by.record.spot(pair.spot, name), &source, pair.output.stat(name)?);
        }
        Ok(())
    }

    /// A symbolic link: where it points is all that it holds.
    fn link(&mut self, pair: &Pair, name: &OsStr) -> Result<(), FileError> {
        let path = self.path(pair, name);
        let Some(target) = pair.source.link_target(name)? else { return Ok(()) };
        let Some(source) = pair.source.stat(name)? else { return Ok(()) };
        if !self.by.keep.takes_link(&target, source.st_uid, pair.relative.iter().count()) {
            return Err(FileError::ForeignLink);
        }
        let standing = pair.output.stat(name)?;
        if standing.is_some() && pair.output.link_target(name)? == Some(target) {
            self.summary.already_done += 1;
            return Ok(());
        }
        let is_known = |stat: &Stat| self.by.record.is_known(self.by.record.spot(pair.spot, name), stat);
        let planned = match (self.by.existing, standing) {
            (_, None) => Planned::Make,
            (Existing::Replace, Some(_)) => Planned::Replace,
            (Existing::Update, Some(stat)) if is_known(&stat) => Planned::Replace,
            (Existing::Keep, Some(stat)) if is_known(&stat) => return Err(FileError::Outdated),
            _ => return Err(FileError::Exists),
        };
        self.summary.planned.push((path, planned));
        Ok(())
    }

    fn plan(&mut self, path: PathBuf, spot: Spot, source: &Stat, output: Option<Stat>) {
        let record = self.by.record;
        let Some(output) = output else { return self.summary.planned.push((path, Planned::Make)) };
        let known = record.find(spot);
        let known = known.filter(|known| record.is_same(&known.row.output, &Stamp::of(&output)));
        let is_same = known.is_some_and(|known| record.is_same(&known.row.source, &Stamp::of(source)));
        let planned = match (self.by.existing, known) {
            (Existing::Replace, _) => Planned::Replace,
            (Existing::Update, Some(_)) if !is_same => Planned::Replace,
            _ if is_same => return self.summary.already_done += 1,
            _ => Planned::LookInside,
        };
        self.summary.planned.push((path, planned));
    }
}

/// What stands at a path that the user named, if anything.
fn standing_at(path: &Path) -> Result<Option<Stat>, FileError> {
    let named = match Named::find(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        named => named.map_err(FileError::io("look at the output"))?,
    };
    match fs::statat(named.dir(), named.name(), AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(None),
        stat => stat.map(Some).map_err(FileError::io("look at the output")),
    }
}
