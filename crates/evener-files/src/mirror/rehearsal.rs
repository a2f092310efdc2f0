//! A rehearsal: what a run would do with each file, as far as that is seen without opening it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};

use super::side::Pair;
use crate::error::FileError;
use crate::filter::Filter;
use crate::output::is_draft;
use crate::record::{Record, Spot, Stamp, is_record};
use crate::report::{Planned, Summary};
use crate::request::Existing;

struct Rehearsal<'a> {
    record: &'a Record,
    filter: &'a Filter,
    existing: Existing,
    source: &'a Path,
    summary: &'a mut Summary,
}

/// Adds to `summary` what would be done with a named directory or file.
pub(crate) fn rehearse(
    (source, output, spot): &(PathBuf, PathBuf, Spot),
    record: &Record,
    filter: &Filter,
    existing: Existing,
    summary: &mut Summary,
) {
    let mut rehearsal = Rehearsal { record, filter, existing, source, summary };
    let is_directory = std::fs::metadata(source).map(|metadata| metadata.is_dir());
    let done = match is_directory {
        Err(error) => Err(FileError::io("read")(error)),
        Ok(true) => Pair::open(source, output, *spot).map(|pair| rehearsal.directory(&pair)),
        Ok(false) => rehearsal.single(output),
    };
    if let Err(error) = done {
        summary.failed.push((source.clone(), error));
    }
}

impl Rehearsal<'_> {
    fn single(&mut self, output: &Path) -> Result<(), FileError> {
        let output = match (output.is_dir(), self.source.file_name()) {
            (true, Some(name)) => output.join(name),
            _ => output.to_owned(),
        };
        let stat = |path: &Path| match rustix::fs::lstat(path) {
            Err(rustix::io::Errno::NOENT) => Ok(None),
            stat => stat.map(Some).map_err(FileError::io("read")),
        };
        let source = rustix::fs::stat(self.source).map_err(FileError::io("read"))?;
        let spot = self.record.spot(Spot::default(), output.file_name().unwrap_or_default());
        self.plan(self.source.to_owned(), spot, &source, stat(&output)?);
        Ok(())
    }

    fn directory(&mut self, pair: &Pair) {
        let failed = |rehearsal: &mut Self, name: &OsStr, error| {
            let path = rehearsal.source.join(&pair.relative).join(name);
            rehearsal.summary.failed.push((path, error));
        };
        let entries = match pair.source.entries() {
            Ok(entries) => entries,
            Err(error) => return failed(self, OsStr::new(""), error),
        };
        for (name, kind) in entries {
            if self.filter.leaves_out(&pair.relative.join(&name), kind == FileType::Directory) {
                continue;
            }
            let done = match kind {
                FileType::Directory => pair.enter(&name).map(|inner| self.directory(&inner)),
                FileType::RegularFile if is_draft(&name) || is_record(&name) => Ok(()),
                FileType::RegularFile => self.file(pair, &name),
                _ => Ok(()),
            };
            if let Err(error) = done {
                failed(self, &name, error);
            }
        }
    }

    fn file(&mut self, pair: &Pair, name: &OsStr) -> Result<(), FileError> {
        let path = self.source.join(&pair.relative).join(name);
        if let Some(source) = pair.source.stat(name)? {
            self.plan(path, self.record.spot(pair.spot, name), &source, pair.output.stat(name)?);
        }
        Ok(())
    }

    fn plan(&mut self, path: PathBuf, spot: Spot, source: &Stat, output: Option<Stat>) {
        let Some(output) = output else { return self.summary.planned.push((path, Planned::Make)) };
        let known = self.record.find(spot);
        let known = known.filter(|known| self.record.is_same(&known.row.output, &Stamp::of(&output)));
        let is_same = known.is_some_and(|known| self.record.is_same(&known.row.source, &Stamp::of(source)));
        let planned = match (self.existing, known) {
            (Existing::Replace, _) => Planned::Replace,
            (Existing::Update, Some(_)) if !is_same => Planned::Replace,
            _ if is_same => return self.summary.already_done += 1,
            _ => Planned::LookInside,
        };
        self.summary.planned.push((path, planned));
    }
}
