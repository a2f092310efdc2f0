//! The pool: threads that take tasks until there are none, and run each to completion.
//!
//! A file from the walk is opened, and then goes with other small ones by the batch ([`Batch`]), in step with others of its
//! format where that chains segments ([`cbc_interleave`]), or, where it is large, to all threads in spans ([`Large`]).

use std::sync::{Arc, Mutex, PoisonError};

use evener::{Caller, Cancel};
use evener_core::Job;

use super::Pool;
use super::batch::Batch;
use super::cbc_interleave;
use super::existing_output::{Judged, ToDo, judge, judge_contested};
use super::large::Large;
use super::links;
use super::links::link_names;
use super::queue::{Task, TaskQueue};
use super::record_check;
use super::serial;
use super::worker::{Run, Worker};
use crate::error::FileError;
use crate::output::Outputs;
use crate::record::Record;
use crate::report::{Progress, Summary};
use crate::request::Request;
use crate::segments::{FileWork, KeyTrial, slots};
use crate::walk::{Item, Walk, What};

/// The threads of a run and what they have in common.
pub(crate) struct Workers<'a> {
    run: Run<'a>,
    queue: TaskQueue,
    summary: Mutex<Summary>,
}

/// The tree or trees of a run.
pub(crate) struct TreeRun {
    pub(crate) walk: Walk,
    pub(crate) outputs: Arc<Outputs>,
    /// Files that a thread may have open at a time.
    pub(crate) files_max: usize,
}

/// Lets the others come to their end when a thread panics, which is a bug, instead of waiting for it.
struct StopOnPanic<'p, 'a>(&'p Workers<'a>);

impl Drop for StopOnPanic<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.run.stop();
            self.0.queue.wake_all();
        }
    }
}

impl<'a> Workers<'a> {
    pub(crate) fn new(
        request: &'a Request,
        tree: TreeRun,
        plan: slots::Plan,
        progress: &'a Progress,
        record: &'a Record,
        cancel: &'a Cancel,
    ) -> Self {
        let TreeRun { walk, outputs, files_max } = tree;
        let run = Run::new(request, outputs, plan, progress, record, cancel);
        Self { run, queue: TaskQueue::new(walk, files_max), summary: Mutex::default() }
    }

    /// Ends the run: what was not begun is named, names that wait for others are linked, directories are finished, and the sum is returned.
    ///
    /// # Panics
    ///
    /// Where something that the walk met is neither done nor named: a bug.
    pub(crate) fn finish(self) -> Summary {
        let Self { run, queue, summary } = self;
        let mut summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
        if run.is_cancelled() {
            run.outputs.abandon();
        }
        queue.finish(&run, &mut summary);
        link_names(&run, &mut summary);
        run.record.add(&run.made_directories().collect::<Vec<_>>());
        assert_eq!(summary.accounted_for(), summary.found, "done + failed + left out = found");
        summary.failed.extend(run.outputs.failed());
        summary
    }

    fn work_on_files<'m>(&self, worker: &mut Worker<'_, '_, 'm>, files: Vec<Item>) {
        let (count, mut bytes) = (files.len() as u64, 0);
        let files = record_check::leave_finished_out(worker, files);
        let mut batch = Batch::default();
        let mut chained = Vec::new();
        for item in files {
            if self.run.is_stopped() {
                worker.failed(item.source(), FileError::Stopped);
                continue;
            }
            if worker.slots.is_empty() || batch.is_old() {
                // To open a file takes a slot, and the batch has them all; or it takes so long that much would be lost by a kill.
                std::mem::take(&mut batch).run(worker);
                worker.settle_if_due();
            }
            if matches!(item.what, What::Link(..)) {
                links::work_on(worker, item);
                continue;
            }
            match judge(worker, &item) {
                Ok(Judged::ToDo(todo)) if self.must_wait(&todo, &item) => {}
                Ok(Judged::ToDo(todo)) => match self.open(worker, *todo) {
                    Ok(work) => {
                        bytes += work.source.len();
                        self.sort_in(worker, item, work, &mut batch, &mut chained);
                    }
                    Err(error) => worker.failed(item.source(), error),
                },
                Ok(Judged::Finished(names)) => {
                    let waits = names.filter(|_| item.dir.keep().hard_links).is_some_and(|names| {
                        self.run.hard_links.stands(names.source, &item, names.output, names.row)
                    });
                    worker.summary.already_done += u64::from(!waits);
                }
                Ok(Judged::Contested) => worker.contest(item),
                Err(error) => worker.failed(item.source(), error),
            }
        }
        batch.run(worker);
        cbc_interleave::run(worker, chained);
        self.queue.files_are_done(count, bytes);
    }

    /// Whether a file is another name of one that is worked on, to whose output it is linked at the end.
    fn must_wait(&self, todo: &ToDo, item: &Item) -> bool {
        let names = todo.source.names().filter(|_| item.dir.keep().hard_links);
        names.is_some_and(|names| self.run.hard_links.must_wait(names, item, todo.replaces))
    }

    fn open(
        &self,
        worker: &mut Worker<'_, '_, '_>,
        ToDo { source, stamp, replaces }: ToDo,
    ) -> Result<FileWork, FileError> {
        let keys = &mut KeyTrial { caller: &mut worker.caller, slots: &mut worker.slots };
        let work = FileWork::open(self.run.request, source, keys)?;
        Ok(FileWork { replaces, stamp, ..work })
    }

    fn sort_in<'m>(
        &self,
        worker: &mut Worker<'_, '_, 'm>,
        item: Item,
        work: FileWork,
        batch: &mut Batch<'m>,
        chained: &mut Vec<(Item, FileWork)>,
    ) {
        let plan = &self.run.plan;
        // Not let go of before a failure is noted: the directory would be finished.
        let _dir = Arc::clone(&item.dir);
        if work.body.as_serial().is_some() {
            serial::run(worker, item, &work);
        } else if work.is_chained() {
            chained.push((item, work));
        } else if work.layout.segment_count() > (plan.slots as u64).min(plan.slots_per_span() as u64) {
            // A span needs slots, and the batch may hold most of them.
            std::mem::take(batch).run(worker);
            match Large::open(item, work) {
                Ok(large) => {
                    let large = Arc::new(large);
                    self.queue.share(&large);
                    work_on_large(worker, &large);
                }
                Err((path, error)) => worker.failed(path, error),
            }
        } else {
            if !batch.has_space(&work, worker.slots.len()) {
                std::mem::take(batch).run(worker);
            }
            if let Err((path, error)) = batch.add(item, work, &mut worker.slots) {
                worker.failed(path, error);
            }
        }
    }
}

impl Pool for Workers<'_> {
    /// Takes tasks until there are none, then settles what is left.
    fn work<'m>(&self, caller: Caller<'_, 'm>, slots: Vec<Box<Job<'m>>>) {
        let _waking = StopOnPanic(self);
        let mut worker = Worker::new(&self.run, caller, slots);
        while let Some(task) = self.queue.next(&self.run, &mut worker.summary) {
            match task {
                Task::Files(files) => self.work_on_files(&mut worker, files),
                Task::Span(large) => work_on_large(&mut worker, &large),
            }
            if self.run.is_stopped() {
                self.queue.wake_all();
            }
            worker.settle_if_due();
        }
        worker.settle();
        for item in std::mem::take(&mut worker.contested) {
            match judge_contested(&mut worker, &item) {
                Ok(()) => worker.summary.already_done += 1,
                Err(error) => worker.failed(item.source(), error),
            }
        }
        worker.record_proven();
        let summary = worker.summary;
        self.summary.lock().unwrap_or_else(PoisonError::into_inner).absorb(summary);
    }
}

/// Takes spans of a large file until there are none.
fn work_on_large(worker: &mut Worker<'_, '_, '_>, large: &Large) {
    while !worker.run.is_stopped() && large.work_on_span(worker) {
        worker.settle_if_due();
    }
    if worker.run.is_stopped() {
        large.give_up(FileError::Stopped);
    }
    if let Some((item, finished)) = large.finish() {
        worker.finished(item, finished);
    }
}
