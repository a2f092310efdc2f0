//! The crew: threads that take chores until there are none. A chore is a handful of files from the walk, or
//! a span of a large file that some thread has opened.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use evener::{Caller, Cancel};
use evener_core::Job;

use super::{armored_source, cbc_interleave};
use crate::error::FileError;
use crate::format::Opener;
use crate::output::{Complete, Origin, Settlement};
use crate::report::{Progress, Summary};
use crate::request::{Request, Task};
use crate::segments::Work;
use crate::segments::buffers;
use crate::walk::{Item, Met, Walk};
use crate::workers::batch::Batch;
use crate::workers::existing_output::is_done;
use crate::workers::large::Large;

/// Most files that a thread takes from the walk at a time.
const FILES_MAX: u64 = 32;

/// Bytes that a thread takes from the walk at a time, as far as the mean of what came before tells.
const CHORE_BYTES: u64 = 4 << 20;

/// What all threads of a run share.
pub(crate) struct Crew<'a> {
    pub(crate) request: &'a Request,
    pub(crate) plan: buffers::Plan,
    pub(crate) progress: &'a Progress,
    cancel: &'a Cancel,
    /// Set when every further file would fail alike (disk full).
    stopped: AtomicBool,
    counter: Mutex<Counter>,
    changed: Condvar,
    summary: Mutex<Summary>,
}

/// Where chores come from.
struct Counter {
    walk: Walk,
    walked_out: bool,
    /// Large files with spans left.
    large: VecDeque<Arc<Large>>,
    /// Threads that have files from the walk in hand and may still open large ones.
    opening: usize,
    files: u64,
    bytes: u64,
}

enum Chore {
    Files(Vec<Item>),
    Span(Arc<Large>),
}

impl<'a> Crew<'a> {
    pub(crate) fn new(
        request: &'a Request,
        walk: Walk,
        plan: buffers::Plan,
        progress: &'a Progress,
        cancel: &'a Cancel,
    ) -> Self {
        let counter = Counter { walk, walked_out: false, large: [].into(), opening: 0, files: 0, bytes: 0 };
        Self {
            request,
            plan,
            progress,
            cancel,
            stopped: AtomicBool::new(false),
            counter: Mutex::new(counter),
            changed: Condvar::new(),
            summary: Mutex::default(),
        }
    }

    /// Ends the run: directories get their times, and the sum is returned.
    pub(crate) fn finish(self) -> Summary {
        let mut counter = self.counter.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut summary = self.summary.into_inner().unwrap_or_else(PoisonError::into_inner);
        summary.failed.extend(counter.walk.finish());
        summary
    }

    /// Whether files not yet begun are left alone.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.cancel.is_cancelled()
    }

    fn counter(&self) -> MutexGuard<'_, Counter> {
        self.counter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next chore; waits while another thread may still open a large file.
    fn next(&self, summary: &mut Summary) -> Option<Chore> {
        let mut counter = self.counter();
        loop {
            if self.is_stopped() {
                return None;
            }
            if let Some(large) = counter.next_large() {
                return Some(Chore::Span(large));
            }
            let files = counter.next_files(summary);
            if !files.is_empty() {
                counter.opening += 1;
                return Some(Chore::Files(files));
            }
            if counter.opening == 0 {
                return None;
            }
            counter = self.changed.wait(counter).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets other threads take spans of a large file.
    fn share(&self, large: &Arc<Large>) {
        self.counter().large.push_back(Arc::clone(large));
        self.changed.notify_all();
    }

    /// Says that the files of a chore are dealt with.
    fn files_are_done(&self, files: u64, bytes: u64) {
        let mut counter = self.counter();
        counter.opening -= 1;
        counter.files += files;
        counter.bytes += bytes;
        drop(counter);
        self.changed.notify_all();
    }
}

impl Counter {
    fn next_large(&mut self) -> Option<Arc<Large>> {
        while let Some(large) = self.large.front() {
            if large.has_spans() {
                return Some(Arc::clone(large));
            }
            self.large.pop_front();
        }
        None
    }

    fn next_files(&mut self, summary: &mut Summary) -> Vec<Item> {
        let mean = self.bytes.checked_div(self.files).unwrap_or(CHORE_BYTES / 4).max(1);
        let wanted = usize::try_from((CHORE_BYTES / mean).clamp(1, FILES_MAX)).unwrap_or(1);
        let mut files = Vec::with_capacity(wanted);
        while files.len() < wanted && !self.walked_out {
            match self.walk.next() {
                Some(met) => files.extend(note(summary, met)),
                None => self.walked_out = true,
            }
        }
        files
    }
}

/// Lets the others come to their end when a thread panics, which is a bug, instead of waiting for it.
struct StopOnPanic<'c>(&'c Crew<'c>);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stopped.store(true, Ordering::Relaxed);
            self.0.changed.notify_all();
        }
    }
}

/// One thread of the crew.
pub(crate) struct Hand<'c, 'r, 'm> {
    pub(crate) crew: &'c Crew<'c>,
    pub(crate) caller: Caller<'r, 'm>,
    /// Idle jobs, each with its slot.
    pub(crate) slots: Vec<Box<Job<'m>>>,
    settlement: Settlement,
    summary: Summary,
}

impl<'c, 'r, 'm> Hand<'c, 'r, 'm> {
    pub(crate) fn new(crew: &'c Crew<'c>, caller: Caller<'r, 'm>, slots: Vec<Box<Job<'m>>>) -> Self {
        Self { crew, caller, slots, settlement: Settlement::default(), summary: Summary::default() }
    }

    /// Takes chores until there are none, then settles what is left.
    pub(crate) fn work(mut self) {
        let _waking = StopOnPanic(self.crew);
        while let Some(chore) = self.crew.next(&mut self.summary) {
            match chore {
                Chore::Files(files) => self.work_on_files(files),
                Chore::Span(large) => self.work_on_large(&large),
            }
            if self.settlement.is_due() {
                self.settle();
            }
        }
        self.settle();
        self.crew.summary.lock().unwrap_or_else(PoisonError::into_inner).absorb(self.summary);
    }

    fn work_on_files(&mut self, files: Vec<Item>) {
        let (count, mut bytes) = (files.len() as u64, 0);
        let mut batch = Batch::default();
        let mut chained = Vec::new();
        for item in files {
            if self.crew.is_stopped() {
                break;
            }
            if self.slots.is_empty() {
                // To open a file takes a slot; the batch has them all.
                std::mem::take(&mut batch).run(self);
            }
            match self.open(&item) {
                Ok(Some(work)) => {
                    bytes += work.source.len();
                    self.sort_in(item, work, &mut batch, &mut chained);
                }
                Ok(None) => self.summary.already_done += 1,
                Err(error) => self.failed(item.source, error),
            }
        }
        batch.run(self);
        cbc_interleave::run(self, chained);
        self.crew.files_are_done(count, bytes);
    }

    /// Opens a file unless its finished result stands there already.
    fn open(&mut self, item: &Item) -> Result<Option<Work>, FileError> {
        let task = &self.crew.request.task;
        let mut source = item.open()?;
        if matches!(task, Task::Decrypt(Opener::Age(_))) {
            source = armored_source::taken_off(source, &item.dir, || self.crew.is_stopped())?;
        }
        if is_done(self.crew.request, item, &source, &mut self.caller, &mut self.slots)? {
            return Ok(None);
        }
        Work::open(task, source, &mut self.caller, &mut self.slots).map(Some)
    }

    fn sort_in(&mut self, item: Item, work: Work, batch: &mut Batch<'m>, chained: &mut Vec<(Item, Work)>) {
        let slots = self.crew.plan.slots as u64;
        if work.is_chained() {
            chained.push((item, work));
        } else if work.layout.segment_count() > slots.min(self.crew.plan.slots_per_span() as u64) {
            // A span needs slots, and the batch may hold most of them.
            std::mem::take(batch).run(self);
            match Large::open(item, work, self.crew.request.options.force) {
                Ok(large) => {
                    let large = Arc::new(large);
                    self.crew.share(&large);
                    self.work_on_large(&large);
                }
                Err((path, error)) => self.failed(path, error),
            }
        } else {
            if !batch.has_room(&work, self.slots.len()) {
                std::mem::take(batch).run(self);
            }
            if let Err((path, error)) = batch.add(item, work, &mut self.slots) {
                self.failed(path, error);
            }
        }
    }

    /// Takes spans of a large file until there are none.
    fn work_on_large(&mut self, large: &Large) {
        while !self.crew.is_stopped() && large.work_on_span(self) {}
        if self.crew.is_stopped() {
            large.give_up(FileError::Stopped);
        }
        if let Some((path, finished)) = large.finish() {
            self.finished(path, finished);
        }
    }

    /// Hands a complete draft to the settlement, or notes why there is none.
    pub(crate) fn finished(&mut self, path: PathBuf, result: Result<(Complete, Origin), FileError>) {
        match result {
            Ok((draft, origin)) => self.settlement.add(draft, origin),
            Err(error) => self.failed(path, error),
        }
    }

    fn failed(&mut self, path: PathBuf, error: FileError) {
        if error.stops_the_run() {
            self.crew.stopped.store(true, Ordering::Relaxed);
            self.crew.changed.notify_all();
        }
        self.summary.failed.push((path, error));
    }

    fn settle(&mut self) {
        for (origin, result) in self.settlement.settle() {
            if result.is_ok() {
                self.crew.progress.add_file();
            }
            self.summary.record(origin.path, (origin.bytes_in, origin.bytes_out), result);
        }
    }
}

/// What a walk met that is no work.
fn note(summary: &mut Summary, met: Met) -> Option<Item> {
    match met {
        Met::File(item) => return Some(item),
        Met::Skipped(path, skip) => summary.skipped.push((path, skip)),
        Met::Failed(path, error) => summary.failed.push((path, error)),
    }
    None
}
