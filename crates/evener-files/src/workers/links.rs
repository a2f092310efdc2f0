//! Links: symbolic ones are made anew with the same target, and names that wait for another name of their file are linked to
//! its output at the end.

use std::ffi::CStr;

use rustix::fs::{self, FileType, Stat};

use super::worker::{Run, Worker};
use crate::error::FileError;
use crate::output::{CompleteDraft, Origin, Settlement};
use crate::report::Summary;
use crate::request::Existing;
use crate::walk::{Item, What};

/// Makes a symbolic link unless it stands there already.
pub(super) fn work_on(worker: &mut Worker<'_, '_, '_>, item: Item) {
    let What::Link(target, stat) = &item.what else { return };
    let force = worker.run.request.options.existing == Existing::Replace;
    match made(&item, target, stat, force) {
        Ok(Some(draft)) => {
            let origin =
                Origin { path: item.source.clone(), bytes_in: 0, bytes_out: 0, row: None, names: None };
            worker.finished(item, Ok((draft, origin)));
        }
        Ok(None) => worker.summary.already_done += 1,
        Err(error) => worker.failed(item.source, error),
    }
}

/// The draft of a link; `None` where one with that target stands under its name.
fn made(item: &Item, target: &CStr, stat: &Stat, force: bool) -> Result<Option<CompleteDraft>, FileError> {
    let standing = if item.dir.is_new { None } else { item.dir.stat(&item.name)? };
    if standing.is_some_and(|standing| is_link(&standing)) {
        let there = fs::readlinkat(&*item.dir.fd()?, &item.name, Vec::new());
        if there.is_ok_and(|there| *there == *target) {
            return Ok(None);
        }
    }
    match standing {
        Some(_) if !force => Err(FileError::Exists),
        _ => CompleteDraft::link(&item.dir, &item.name, target, stat, force).map(Some),
    }
}

fn is_link(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Symlink
}

/// Links all names that wait.
pub(super) fn link_names(run: &Run<'_>, summary: &mut Summary) {
    let mut settlement = Settlement::new(&run.sync_errors);
    let replace = run.request.options.existing == Existing::Replace;
    for (path, draft) in run.hard_links.waiting(replace, run.record) {
        match draft {
            _ if run.is_stopped() => summary.failed.push((path, FileError::Stopped)),
            Ok((draft, origin)) => settlement.add(draft, origin),
            Err(error) => summary.failed.push((path, error)),
        }
        if settlement.is_due() {
            settle(run, &mut settlement, summary);
        }
    }
    settle(run, &mut settlement, summary);
}

fn settle(run: &Run<'_>, settlement: &mut Settlement<'_>, summary: &mut Summary) {
    for (Origin { path, row, .. }, result) in settlement.settle() {
        if result.is_ok() {
            run.progress.add_file();
            run.record.add(row.as_slice());
        }
        summary.record(path, (0, 0), result);
    }
}
