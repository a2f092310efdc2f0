//! A worker: one thread of a run, with its caller, its slots, and the drafts that it has completed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use evener::{Caller, Cancel};
use evener_core::Job;

use super::header::header_of;
use crate::error::FileError;
use crate::output::{CompleteDraft, Origin, Outputs, Settlement, SyncErrors};
use crate::record::{Record, Row};
use crate::report::{Progress, Summary};
use crate::request::{Request, Task};
use crate::segments::slots;
use crate::walk::{HardLinks, Item};

/// What all threads of a run share and none of them changes, but for the wish to stop.
pub(super) struct Run<'a> {
    pub(super) request: &'a Request,
    pub(super) outputs: Arc<Outputs>,
    pub(super) hard_links: HardLinks,
    pub(super) plan: slots::Plan,
    pub(super) progress: &'a Progress,
    pub(super) record: &'a Record,
    cancel: &'a Cancel,
    /// Set when every further file would fail alike (disk full).
    stopped: AtomicBool,
    pub(super) sync_errors: SyncErrors,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        request: &'a Request,
        outputs: Arc<Outputs>,
        plan: slots::Plan,
        progress: &'a Progress,
        record: &'a Record,
        cancel: &'a Cancel,
    ) -> Self {
        Self {
            request,
            outputs,
            hard_links: HardLinks::default(),
            plan,
            progress,
            record,
            cancel,
            stopped: AtomicBool::new(false),
            sync_errors: SyncErrors::default(),
        }
    }

    /// Whether files not yet begun are left alone.
    pub(super) fn is_stopped(&self) -> bool {
        if self.cancel.is_cancelled() {
            // What is left is not even named.
            self.outputs.abandon();
            return true;
        }
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whether the run is to end at once: what is complete and not yet settled is left to the next run, too.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Where outputs are promised before they have their names: where nothing at hand opens them, or nothing soon, rows alone tell of them.
    pub(super) fn promises(&self) -> Option<&'a Record> {
        let task = &self.request.task;
        (matches!(task, Task::Encrypt(_)) && task.is_dear_to_open()).then_some(self.record)
    }

    /// The row with what is read of an output whose key is dear.
    fn with_ends(&self, row: Row, item: &Item) -> Row {
        let task = &self.request.task;
        if matches!(task, Task::Encrypt(_)) || !task.is_dear_to_open() {
            return row;
        }
        let output = item.dir.open_file(&item.name);
        let header = output.and_then(|output| header_of(task, &output));
        Row { header: header.unwrap_or_default(), ..row }
    }

    /// Rows of directories that were made and are not recorded yet.
    pub(super) fn made_directories(&self) -> impl Iterator<Item = Row> + use<> {
        self.outputs.take_made().into_iter().map(|(spot, inode)| Row::of_directory(spot, inode))
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// One thread of a run.
pub(super) struct Worker<'w, 'r, 'm> {
    pub(super) run: &'w Run<'w>,
    pub(super) caller: Caller<'r, 'm>,
    /// Idle jobs, each with its slot.
    pub(super) slots: Vec<Box<Job<'m>>>,
    settlement: Settlement<'w>,
    /// What the drafts in the settlement were made from, in the same order.
    unsettled: Vec<Item>,
    /// Rows of outputs that were found finished, and not recorded yet.
    proven: Vec<Row>,
    /// Files under whose names something stands by now that another run may have made.
    pub(super) contested: Vec<Item>,
    pub(super) summary: Summary,
}

impl<'w, 'r, 'm> Worker<'w, 'r, 'm> {
    pub(super) fn new(run: &'w Run<'w>, caller: Caller<'r, 'm>, slots: Vec<Box<Job<'m>>>) -> Self {
        let (settlement, summary) = (Settlement::new(&run.sync_errors, run.promises()), Summary::default());
        Self {
            run,
            caller,
            slots,
            settlement,
            unsettled: Vec::new(),
            proven: Vec::new(),
            contested: Vec::new(),
            summary,
        }
    }

    /// Hands a complete draft to the settlement, or records why there is none.
    pub(super) fn finished(&mut self, item: Item, result: Result<(CompleteDraft, Origin), FileError>) {
        match result {
            Ok((draft, mut origin)) => {
                let spot = item.dir.spot.join(&item.name);
                origin.row = origin.row.map(|row| Row { spot, ..row });
                self.settlement.add(draft, origin);
                self.unsettled.push(item);
            }
            Err(error) => self.failed(item.source(), error),
        }
    }

    /// Notes what was found finished, to be recorded with others.
    pub(super) fn proven(&mut self, row: Row) {
        self.proven.push(row);
        if self.proven.len() >= PROVEN_MAX {
            self.record_proven();
        }
    }

    /// Records what was found finished.
    pub(super) fn record_proven(&mut self) {
        self.run.record.add(&std::mem::take(&mut self.proven));
    }

    /// Puts a file off to the end, when a run beside this one may have said what it made there.
    pub(super) fn contest(&mut self, item: Item) {
        self.contested.push(item);
    }

    /// Records why a file failed; stops the run where every other one would fail alike.
    pub(super) fn failed(&mut self, path: PathBuf, error: FileError) {
        if error.stops_the_run() {
            self.run.stop();
        }
        self.run.outputs.leave_undone(&path);
        self.summary.failed.push((path, error));
    }

    pub(super) fn settle_if_due(&mut self) {
        if self.settlement.is_due() {
            self.settle();
        }
    }

    /// Settles what is left, or gives it up where the run was cancelled.
    pub(super) fn settle(&mut self) {
        let settled =
            if self.run.is_cancelled() { self.settlement.give_up() } else { self.settlement.settle() };
        let mut rows = Vec::with_capacity(settled.len());
        for ((origin, result), item) in settled.into_iter().zip(std::mem::take(&mut self.unsettled)) {
            match result {
                Ok(()) => {
                    self.run.progress.add_file();
                    let row = origin.row.map(|row| self.run.with_ends(row, &item));
                    origin.names.inspect(|names| self.run.hard_links.done(*names, origin.output, row));
                    rows.extend(row);
                    self.summary.record(PathBuf::new(), (origin.bytes_in, origin.bytes_out), Ok(()));
                }
                Err(FileError::Exists) => self.contested.push(item),
                Err(error) => self.failed(item.source(), error),
            }
        }
        rows.extend(self.run.made_directories());
        self.run.record.add(&rows);
    }
}

/// Rows of outputs that were found finished, recorded together: a killed run looks into as many once more. Assumed, not measured: 256.
const PROVEN_MAX: usize = 256;
