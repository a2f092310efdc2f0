//! A large file: its segments go to all threads in spans, and each span is read, worked on and written at its
//! place by the thread that took it. The thread that ends the last span completes the draft.

use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evener_core::Job;

use super::worker::Worker;
use crate::error::FileError;
use crate::format::Segment;
use crate::output::{CompleteDraft, Draft, Origin, write_at, write_sparse_at};
use crate::segments::{FileWork, span};
use crate::walk::Item;

/// A large file in work.
pub(super) struct Large {
    item: Item,
    work: FileWork,
    /// First segment of the next span.
    next: AtomicU64,
    /// Segments not yet ended, well or badly.
    left: AtomicU64,
    state: Mutex<State>,
}

struct State {
    draft: Option<Draft>,
    /// The first one.
    error: Option<FileError>,
    /// Bytes of output so far: padded files show their length only at the end.
    bytes_out: u64,
}

/// How a large file ended.
type Finished = Result<(CompleteDraft, Origin), FileError>;

impl Large {
    /// Makes the draft and writes the header.
    pub(super) fn open(item: Item, work: FileWork) -> Result<Self, (PathBuf, FileError)> {
        work.source.announce();
        let draft = work.draft(&item).and_then(|draft| {
            write_at(&draft.file, &mut [IoSlice::new(&work.header)], 0)?;
            Ok(draft)
        });
        let draft = match draft {
            Ok(draft) => draft,
            Err(error) => return Err((item.source(), error)),
        };
        let left = AtomicU64::new(work.layout.segment_count());
        let bytes_out = work.header.len() as u64;
        let state = Mutex::new(State { draft: Some(draft), error: None, bytes_out });
        Ok(Self { item, work, next: AtomicU64::new(0), left, state })
    }

    /// Whether a thread may still take a span.
    pub(super) fn has_spans(&self) -> bool {
        // Relaxed, here and below: a number that hands out spans; data travels through none of it.
        self.next.load(Ordering::Relaxed) < self.work.layout.segment_count()
    }

    /// Takes the next span and runs it to completion. `false` where none is left.
    pub(super) fn work_on_span(&self, worker: &mut Worker<'_, '_, '_>) -> bool {
        let count = self.work.layout.segment_count();
        let span = worker.run.plan.slots_per_span() as u64;
        let first = self.next.fetch_add(span, Ordering::Relaxed);
        if first >= count {
            return false;
        }
        let end = count.min(first + span);
        match self.run(worker, first, end) {
            Ok(written) => self.lock().bytes_out += written,
            Err(error) => self.give_up(error),
        }
        // AcqRel: the thread that ends the last span sees what all others wrote into `state`.
        self.left.fetch_sub(end - first, Ordering::AcqRel);
        true
    }

    /// Keeps the first error and hands out no more spans.
    pub(super) fn give_up(&self, error: FileError) {
        self.lock().error.get_or_insert(error);
        let count = self.work.layout.segment_count();
        let next = self.next.swap(count, Ordering::Relaxed).min(count);
        self.left.fetch_sub(count - next, Ordering::AcqRel);
    }

    /// The result, once, to the thread that ended the last span.
    pub(super) fn finish(&self) -> Option<(Item, Finished)> {
        if self.left.load(Ordering::Acquire) > 0 {
            return None;
        }
        let mut state = self.lock();
        let draft = state.draft.take()?;
        let error = state.error.take();
        let bytes_out = state.bytes_out;
        drop(state);
        let finished = match error {
            Some(error) => Err(error),
            None => self.complete(draft, bytes_out),
        };
        Some((self.item.clone(), finished))
    }

    fn complete(&self, draft: Draft, bytes_out: u64) -> Finished {
        if self.work.leaves_holes(&self.item) {
            draft.set_len(bytes_out)?;
        }
        Ok((self.work.complete(draft, &self.item)?, Origin { bytes_out, ..self.work.origin() }))
    }

    /// Reads, works on and writes segments `first..end`; returns the bytes written.
    fn run(&self, worker: &mut Worker<'_, '_, '_>, first: u64, end: u64) -> Result<u64, FileError> {
        let span: Vec<_> = (first..end).map(|index| self.work.layout.segment(index)).collect();
        let mut jobs = worker.slots.split_off(worker.slots.len() - span.len());
        let result = span::read(&self.work, &span, &mut jobs).and_then(|read| {
            worker.caller.crypt(&mut jobs);
            worker.run.progress.add_bytes(read);
            self.write(&span[0], &mut jobs)
        });
        worker.slots.append(&mut jobs);
        result
    }

    fn write(&self, first: &Segment, jobs: &mut [Box<Job<'_>>]) -> Result<u64, FileError> {
        let mut parts = Vec::with_capacity(2 * jobs.len());
        span::emit(&self.work, first.index, jobs, &mut parts)?;
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        let offset = self.work.output_offset(first);
        let file = self.file()?;
        if self.work.leaves_holes(&self.item) {
            write_sparse_at(&file, &parts, offset)?;
        } else {
            write_at(&file, &mut parts, offset)?;
        }
        Ok(bytes)
    }

    /// The draft's file, for as long as a span is written: who completes the draft closes it.
    fn file(&self) -> Result<Arc<OwnedFd>, FileError> {
        self.lock().draft.as_ref().map(|draft| Arc::clone(&draft.file)).ok_or(FileError::Stopped)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
