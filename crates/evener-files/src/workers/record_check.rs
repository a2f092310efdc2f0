//! What the record shows to be finished, a handful at a time: the usual case of a second run, in which nothing is opened.
//!
//! Two looks by name for each file, in directories that are asked for once for all that lie side by side. What is not plainly
//! finished is judged one by one ([`super::existing_output`]).

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{self, AtFlags, FileType, Stat};

use super::worker::{Run, Worker};
use crate::record::{Asked, Record, Stamp};
use crate::request::Existing;
use crate::walk::{Item, What};

/// Counts what is finished, and returns the rest.
pub(super) fn leave_finished_out(worker: &mut Worker<'_, '_, '_>, files: Vec<Item>) -> Vec<Item> {
    let run = worker.run;
    if run.request.options.existing == Existing::Replace || run.record.is_empty() {
        return files;
    }
    let found = files.len();
    let mut rest = Vec::new();
    let mut files = files.into_iter().peekable();
    while let Some(first) = files.next() {
        let mut together = vec![first];
        while let Some(next) = files.next_if(|next| lie_side_by_side(&together[0], next)) {
            together.push(next);
        }
        // Of a run that was stopped all are named.
        rest.extend(if run.is_stopped() { together } else { unfinished(run, together) });
    }
    worker.summary.already_done += (found - rest.len()) as u64;
    rest
}

/// Whether two were found in one directory, and have their outputs in one.
fn lie_side_by_side(one: &Item, other: &Item) -> bool {
    match (&one.what, &other.what) {
        (What::Found(place), What::Found(other_place)) => {
            Arc::ptr_eq(place, other_place) && Arc::ptr_eq(&one.dir, &other.dir)
        }
        _ => false,
    }
}

/// Those of files side by side that are not plainly finished: recorded for this request, with one name each, and both sides as they were.
fn unfinished(run: &Run<'_>, files: Vec<Item>) -> Vec<Item> {
    let (dir, What::Found(place)) = (&files[0].dir, &files[0].what) else { return files };
    let Some((output, source)) = dir.fd().ok().zip(place.fd().ok()).filter(|_| !dir.is_new) else {
        return files;
    };
    let record = run.record;
    let known = |item: &Item| {
        let known = record.find(item.dir.spot.join(&item.name))?;
        (record.asked(&known) == Asked::Same).then_some((known.row.source, known.row.output))
    };
    let rows: Vec<_> = files.iter().map(known).collect();
    // One side after the other: what lies side by side in the kernel's caches is looked at together.
    let outputs = rows
        .iter()
        .zip(&files)
        .map(|(row, item)| row.filter(|(_, stamp)| is_still(record, &output, &item.name, stamp)));
    let rows: Vec<_> = outputs.collect();
    let is_unfinished = |(row, item): &(Option<(Stamp, Stamp)>, Item)| {
        !row.is_some_and(|(stamp, _)| is_still(record, &source, item.source_name(), &stamp))
    };
    rows.into_iter().zip(files).filter(is_unfinished).map(|(_, item)| item).collect()
}

/// Whether a file in a directory is the one that was recorded, under this name only.
fn is_still(record: &Record, dir: &OwnedFd, name: &OsStr, stamp: &Stamp) -> bool {
    let is_it = |stat: &Stat| {
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        is_file && stat.st_nlink == 1 && record.is_same(stamp, &Stamp::of(stat))
    };
    fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| is_it(&stat))
}
