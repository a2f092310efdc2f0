//! A rehearsal: what a run would do with each file, as far as that is seen without opening it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use evener_fd::Named;
use rustix::fs::{self, AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::side::{NamedInput, Pair};
use crate::error::FileError;
use crate::filter::Filter;
use crate::input::place::OpenPlaces;
use crate::input::source_file::SourceFile;
use crate::naming::Naming;
use crate::output::{Outputs, is_own_name};
use crate::preservation::Keep;
use crate::record::{Record, Spot, Stamp};
use crate::report::{Planned, Skip, Summary};
use crate::request::Existing;

/// What a run would go by.
pub(crate) struct Rehearsal<'a> {
    pub(crate) record: &'a Record,
    pub(crate) filter: &'a Filter,
    pub(crate) naming: &'a Naming,
    pub(crate) keep: Keep,
    pub(crate) existing: Existing,
    /// Where no output may go: device and inode of what was named.
    pub(crate) inputs: Vec<(u64, u64)>,
    pub(crate) open: &'a Arc<OpenPlaces>,
    /// They know the files with keys of the run.
    pub(crate) outputs: &'a Outputs,
}

/// The rehearsal of one named file or directory.
struct Run<'a> {
    by: &'a Rehearsal<'a>,
    source: &'a Path,
    /// What is looked at.
    at: PathBuf,
    summary: &'a mut Summary,
}

impl Rehearsal<'_> {
    /// Adds to `summary` what would be done with a named directory or file.
    pub(crate) fn run(&self, NamedInput { source, output, spot }: &NamedInput, summary: &mut Summary) {
        let mut run = Run { by: self, source, at: source.clone(), summary };
        let done = output.clone().and_then(|output| match source.is_dir() {
            true => Pair::open(source, &output, *spot, self.open)
                .and_then(|pair| if *spot == Spot::default() { Ok(pair) } else { run.spared(pair) })
                .map(|pair| run.tree(pair)),
            false => run.single(&output, *spot),
        });
        if let Err(error) = done {
            summary.failed.push((source.clone(), error));
        }
    }
}

impl Run<'_> {
    fn single(&mut self, output: &Path, spot: Spot) -> Result<(), FileError> {
        let source = SourceFile::open_named(self.source)?.stat;
        let standing = standing_at(output)?;
        self.is_to_be_spared(standing.as_ref().map(|stat| (stat.st_dev, stat.st_ino)))?;
        self.plan(self.source.to_owned(), spot, &source, standing)
    }

    /// A tree, level by level: it may be deeper than a stack.
    fn tree(&mut self, root: Pair) {
        let mut levels: Vec<_> = self.level(root).into_iter().collect();
        while let Some((pair, entries)) = levels.last_mut() {
            let Some((name, kind)) = entries.next() else {
                levels.pop();
                self.at.pop();
                continue;
            };
            self.at.push(&name);
            let is_directory = kind == FileType::Directory;
            let relative = self.at.strip_prefix(self.source).unwrap_or(&self.at);
            if self.by.filter.leaves_out_met(relative, is_directory) {
                self.at.pop();
                continue;
            }
            if is_directory {
                let free = self.is_free(pair, &name);
                match free.and_then(|()| pair.enter(&name)).and_then(|inner| self.spared(inner)) {
                    Ok(inner) => match self.level(inner) {
                        Some(level) => levels.push(level),
                        None => drop(self.at.pop()),
                    },
                    Err(error) => self.failed(error),
                }
                continue;
            }
            let above = levels.len() - 1;
            let (pair, _) = &levels[above];
            match self.entry(pair, &name, kind, above) {
                Ok(()) => drop(self.at.pop()),
                Err(error) => self.failed(error),
            }
        }
    }

    /// A directory whose output was not named itself, and is no input.
    fn spared(&self, pair: Pair) -> Result<Pair, FileError> {
        self.is_to_be_spared(pair.output.identity()).map(|()| pair)
    }

    fn is_to_be_spared(&self, output: Option<(u64, u64)>) -> Result<(), FileError> {
        match output.is_some_and(|identity| self.by.inputs.contains(&identity)) {
            true => Err(FileError::InputInOutput),
            false => Ok(()),
        }
    }

    /// Whether a directory or link may keep its name: no file beside it has an output of that name.
    fn is_free(&self, pair: &Pair, name: &OsStr) -> Result<(), FileError> {
        let Some(rival) = self.by.naming.rival(name).filter(|rival| !is_own_name(rival)) else {
            return Ok(());
        };
        let path = self.at.with_file_name(&rival);
        let relative = path.strip_prefix(self.source).unwrap_or(&path);
        let kind = pair.source.stat(&rival)?.map(|stat| FileType::from_raw_mode(stat.st_mode));
        match kind == Some(FileType::RegularFile) && !self.by.filter.leaves_out_met(relative, false) {
            true => Err(FileError::NameTaken(path)),
            false => Ok(()),
        }
    }

    /// A directory with its entries; what cannot be read has failed.
    fn level(&mut self, pair: Pair) -> Option<(Pair, std::vec::IntoIter<(OsString, FileType)>)> {
        match pair.source.entries() {
            Ok(entries) => Some((pair, entries.into_iter())),
            Err(error) => {
                self.summary.failed.push((self.at.clone(), error));
                None
            }
        }
    }

    /// What is looked at has failed.
    fn failed(&mut self, error: FileError) {
        self.summary.failed.push((self.at.clone(), error));
        self.at.pop();
    }

    /// What is no directory, `above` directories below the one that was named.
    fn entry(&mut self, pair: &Pair, name: &OsStr, kind: FileType, above: usize) -> Result<(), FileError> {
        match kind {
            FileType::RegularFile if is_own_name(name) => self.skip(Skip::Draft),
            FileType::RegularFile => match self.by.naming.output(name)? {
                output if is_own_name(&output) => self.skip(Skip::Draft),
                output => self.file(pair, name, &output),
            },
            FileType::Symlink if self.by.keep.links => self.link(pair, name, above),
            FileType::Symlink => self.skip(Skip::Symlink),
            _ if self.by.keep.specials => Err(FileError::Special),
            _ => self.skip(Skip::Special),
        }
    }

    fn skip(&mut self, why: Skip) -> Result<(), FileError> {
        self.summary.skipped.push((self.at.clone(), why));
        Ok(())
    }

    fn file(&mut self, pair: &Pair, name: &OsStr, output: &OsStr) -> Result<(), FileError> {
        let path = self.at.clone();
        let standing = pair.output.stat(output)?;
        self.is_to_be_spared(standing.as_ref().map(|stat| (stat.st_dev, stat.st_ino)))?;
        if standing.is_some_and(|stat| is_directory(&stat)) {
            return Err(FileError::Directory);
        }
        let Some(source) = pair.source.stat(name)? else { return Ok(()) };
        self.plan(path, pair.spot.join(output), &source, standing)
    }

    /// A symbolic link: where it points is all that it holds.
    fn link(&mut self, pair: &Pair, name: &OsStr, above: usize) -> Result<(), FileError> {
        self.is_free(pair, name)?;
        let path = self.at.clone();
        let Some(target) = pair.source.link_target(name)? else { return Ok(()) };
        let Some(source) = pair.source.stat(name)? else { return Ok(()) };
        if !self.by.keep.takes_link(&target, source.st_uid, above) {
            return Err(FileError::ForeignLink);
        }
        let standing = pair.output.stat(name)?;
        if standing.is_some_and(|stat| is_directory(&stat)) {
            return Err(FileError::Directory);
        }
        if standing.is_some() && pair.output.link_target(name)? == Some(target) {
            self.summary.already_done += 1;
            return Ok(());
        }
        let is_known = |stat: &Stat| self.by.record.is_known(pair.spot.join(name), stat);
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

    fn plan(
        &mut self,
        path: PathBuf,
        spot: Spot,
        source: &Stat,
        output: Option<Stat>,
    ) -> Result<(), FileError> {
        let record = self.by.record;
        let Some(output) = output else {
            self.summary.planned.push((path, Planned::Make));
            return Ok(());
        };
        let known = record.find(spot);
        let known = known.filter(|known| record.is_same(&known.row.output, &Stamp::of(&output)));
        let is_same = known.is_some_and(|known| record.is_same(&known.row.source, &Stamp::of(source)));
        let planned = match (self.by.existing, known) {
            (Existing::Replace, _) => Planned::Replace,
            (Existing::Update, Some(_)) if !is_same => Planned::Replace,
            _ if is_same => {
                self.summary.already_done += 1;
                return Ok(());
            }
            _ => Planned::LookInside,
        };
        if planned == Planned::Replace && self.by.outputs.is_key((output.st_dev, output.st_ino)) {
            return Err(FileError::KeyInOutput);
        }
        self.summary.planned.push((path, planned));
        Ok(())
    }
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
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
