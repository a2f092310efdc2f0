//! Links: symbolic ones are made anew with the same target, and names that wait for another name of their file are linked to
//! its output at the end.

use std::ffi::CStr;

use rustix::fs::{FileType, Stat};

use super::worker::{Run, Worker};
use crate::error::FileError;
use crate::output::{Attributes, CompleteDraft, Origin, OutputDir, Settlement, renew_link};
use crate::record::{Header, Row, Stamp};
use crate::report::Summary;
use crate::request::Existing;
use crate::walk::{Identity, Item, Name, Names, Waiting, What};

/// Makes a symbolic link unless it stands there already.
pub(super) fn work_on(worker: &mut Worker<'_, '_, '_>, item: Item) {
    let What::Link(_, target, source) = &item.what else { return };
    match made(worker, &item, target, source) {
        Ok(Some(draft)) => {
            let row = Some(row(target, source));
            let origin = Origin { path: item.source(), row, ..Origin::default() };
            worker.finished(item, Ok((draft, origin)));
        }
        Ok(None) => worker.summary.already_done += 1,
        Err(error) => worker.failed(item.source(), error),
    }
}

/// Whether the symbolic link that `item` asks for stands there.
pub(super) fn stands(item: &Item) -> Result<bool, FileError> {
    let What::Link(_, target, _) = &item.what else { return Ok(false) };
    Ok(item.dir.link_target(&item.name)?.is_some_and(|there| *there == **target))
}

/// What is recorded of a link, but for place and stamp of the output.
fn row(target: &CStr, source: &Stat) -> Row {
    Row { source: Stamp::of(source), header: Header::of(target.to_bytes()), ..Row::default() }
}

/// The draft of a link; `None` where one with that target stands under its name.
fn made(
    worker: &mut Worker<'_, '_, '_>,
    item: &Item,
    target: &CStr,
    source: &Stat,
) -> Result<Option<CompleteDraft>, FileError> {
    let run = worker.run;
    let existing = run.request.options.existing;
    let standing = if item.dir.is_new { None } else { item.dir.stat(&item.name)? };
    if let Some(standing) = standing {
        let spot = item.dir.spot.join(&item.name);
        let is_known = run.record.is_known(spot, &standing);
        if stands(item)? {
            let is_same = |stamp: &Stamp| run.record.is_same(stamp, &Stamp::of(source));
            let has_changed = run.record.find(spot).is_none_or(|known| !is_same(&known.row.source));
            if has_changed || !is_known {
                let standing = match has_changed {
                    true => renew_link(&item.dir.open_link(&item.name)?, source, is_known, item.dir.keep())?,
                    false => standing,
                };
                worker.proven(Row { spot, output: Stamp::of(&standing), ..row(target, source) });
            }
            return Ok(None);
        }
        if FileType::from_raw_mode(standing.st_mode) == FileType::Directory {
            return Err(FileError::Directory);
        }
        match existing {
            Existing::Replace => {}
            Existing::Update if is_known => {}
            Existing::Keep if is_known => return Err(FileError::Outdated),
            Existing::Update | Existing::Keep => return Err(FileError::Exists),
        }
    }
    let attributes = Attributes::of(source);
    CompleteDraft::link(&item.dir, &item.name, target, &attributes, standing.is_some()).map(Some)
}

/// Links all names that wait.
pub(super) fn link_names(run: &Run<'_>, summary: &mut Summary) {
    let mut linking = Linking {
        run,
        settlement: Settlement::new(&run.sync_errors, run.promises()),
        linked: Vec::new(),
        rows: Vec::new(),
    };
    for names in run.hard_links.waiting() {
        linking.link(names, summary);
        if linking.settlement.is_due() {
            linking.settle(summary);
        }
    }
    linking.settle(summary);
}

/// Names on the way to be linked.
struct Linking<'r> {
    run: &'r Run<'r>,
    settlement: Settlement<'r>,
    /// Of each draft in the settlement its name, and the file that it is to be a name of.
    linked: Vec<(Name, Identity)>,
    /// Names of files of which others are linked, with what was recorded of them.
    rows: Vec<(Name, Identity, Row)>,
}

impl Linking<'_> {
    /// Links the names of one file.
    fn link(&mut self, names: Names, summary: &mut Summary) {
        let Names { first, output, row, others } = names;
        let spot = first.dir.spot.join(&first.name);
        let row = row.or_else(|| self.run.record.find(spot).map(|known| known.row));
        for Waiting { name, replaces, is_finished } in others {
            let draft = match output {
                // It is a file of its own, and finished.
                None if is_finished => Ok(None),
                _ if is_finished && self.run.is_stopped() => Ok(None),
                _ if self.run.is_stopped() => Err(FileError::Stopped),
                None => Err(FileError::OtherName(first.source.clone())),
                Some(output) => {
                    let file = (&*first.dir, &*first.name, output);
                    CompleteDraft::another_name(&name.dir, &name.name, file, replaces)
                        .map(|draft| Some((draft, output)))
                }
            };
            match draft {
                Ok(Some((draft, output))) => {
                    let spot = name.dir.spot.join(&name.name);
                    let promised = row.map(|row| Row { spot, ..row });
                    let origin = Origin { path: name.source.clone(), row: promised, ..Origin::default() };
                    self.settlement.add(draft, origin);
                    self.linked.push((name.clone(), output));
                    self.rows.extend(row.map(|row| (name, output, row)));
                }
                Ok(None) => summary.already_done += 1,
                Err(error) => self.failed(name, error, summary),
            }
        }
        self.rows.extend(row.zip(output).map(|(row, output)| (first, output, row)));
    }

    fn settle(&mut self, summary: &mut Summary) {
        let linked = std::mem::take(&mut self.linked);
        for ((Origin { path, .. }, result), (name, output)) in
            self.settlement.settle().into_iter().zip(linked)
        {
            match result {
                Ok(()) => {
                    self.run.progress.add_file();
                    summary.record(path, (0, 0), Ok(()));
                }
                // A run beside this one may have linked it.
                Err(FileError::Exists) if stands_as(&name.dir, &name, output).is_some() => {
                    summary.already_done += 1;
                }
                Err(error) => self.failed(name, error, summary),
            }
        }
        // With each name that a file gets the time of its inode changes.
        let rows = std::mem::take(&mut self.rows).into_iter().filter_map(|(name, output, row)| {
            let stat = stands_as(&name.dir, &name, output)?;
            let spot = name.dir.spot.join(&name.name);
            Some(Row { spot, output: Stamp::of(&stat), ..row })
        });
        self.run.record.add(&rows.collect::<Vec<_>>());
    }

    fn failed(&self, name: Name, error: FileError, summary: &mut Summary) {
        self.run.outputs.leave_undone(&name.source);
        summary.failed.push((name.source, error));
    }
}

/// What stands under a name, where that is `file`.
fn stands_as(dir: &OutputDir, name: &Name, file: Identity) -> Option<Stat> {
    let stat = dir.stat(&name.name).ok().flatten()?;
    ((stat.st_dev, stat.st_ino) == file).then_some(stat)
}
