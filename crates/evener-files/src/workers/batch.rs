//! Small files by the burst: all are read, one burst works on them, all are written.

use std::io::IoSlice;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use evener_core::Job;

use super::worker::Worker;
use crate::error::FileError;
use crate::output::{CompleteDraft, Origin, write_at, write_sparse_at};
use crate::segments::slots::SPAN_BYTES;
use crate::segments::{FileWork, span};
use crate::walk::Item;

/// Bytes after which a batch is worked on: as much again as a core's cache holds brings nothing more.
const BATCH_BYTES: u64 = 2 * SPAN_BYTES as u64;

/// Files that have been read and wait to be worked on.
#[derive(Default)]
pub(super) struct Batch<'m> {
    files: Vec<(Item, FileWork, usize)>,
    /// The jobs of all files, one segment each, in order.
    jobs: Vec<Box<Job<'m>>>,
    bytes: u64,
    /// When the first of them was read.
    since: Option<Instant>,
}

/// After this time a batch is worked on whatever is in it: where each file's key takes a second (passphrases), much would be lost by a kill.
const WAIT_MAX: Duration = Duration::from_millis(250);

impl<'m> Batch<'m> {
    /// Whether a file fits, with `free` slots left.
    pub(super) fn has_space(&self, work: &FileWork, free: usize) -> bool {
        work.layout.segment_count() <= free as u64 && self.bytes < BATCH_BYTES
    }

    /// Whether it has waited long enough.
    pub(super) fn is_old(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= WAIT_MAX)
    }

    /// Reads a file into slots and arms its jobs.
    pub(super) fn add(
        &mut self,
        item: Item,
        mut work: FileWork,
        slots: &mut Vec<Box<Job<'m>>>,
    ) -> Result<(), (PathBuf, FileError)> {
        let count = usize::try_from(work.layout.segment_count()).expect("it was compared with the slots");
        let first = slots.len() - count;
        if let Err(error) = read(&work, &mut slots[first..]) {
            return Err((item.source(), error));
        }
        work.source.forget_start();
        self.since.get_or_insert_with(Instant::now);
        self.bytes += work.source.len();
        self.jobs.extend(slots.drain(first..));
        self.files.push((item, work, count));
        Ok(())
    }

    /// Works on everything, writes it, and gives the slots back.
    pub(super) fn run(mut self, worker: &mut Worker<'_, '_, 'm>) {
        if self.files.is_empty() {
            return;
        }
        worker.caller.crypt(&mut self.jobs);
        let mut jobs = self.jobs.as_mut_slice();
        for (item, work, count) in self.files {
            let (own, rest) = jobs.split_at_mut(count);
            jobs = rest;
            worker.run.progress.add_bytes(work.source.len());
            let written = write(&item, &work, own);
            worker.finished(item, written);
        }
        worker.slots.append(&mut self.jobs);
    }
}

/// Reads a whole file and arms its jobs.
fn read(work: &FileWork, jobs: &mut [Box<Job<'_>>]) -> Result<(), FileError> {
    let all: Vec<_> = (0..jobs.len()).map(|index| work.layout.segment(index as u64)).collect();
    // Whether it stayed as it was is looked at when the output is completed.
    span::read(work, &all, jobs).map(drop)
}

/// Writes a file that was worked on; nothing is left where any segment failed.
fn write(
    item: &Item,
    work: &FileWork,
    jobs: &mut [Box<Job<'_>>],
) -> Result<(CompleteDraft, Origin), FileError> {
    let mut parts = vec![IoSlice::new(&work.header)];
    span::emit(work, 0, jobs, &mut parts)?;
    let bytes_out = parts.iter().map(|part| part.len() as u64).sum();
    let draft = work.draft(item)?;
    if work.leaves_holes(item) {
        if write_sparse_at(&draft.file, &parts, 0)? {
            draft.set_len(bytes_out)?;
        }
    } else {
        write_at(&draft.file, &mut parts, 0)?;
    }
    Ok((work.complete(draft, item)?, Origin { bytes_out, ..work.origin() }))
}
