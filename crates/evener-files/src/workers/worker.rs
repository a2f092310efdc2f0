//! A worker: one thread of a run, with its caller, its slots, and the drafts that it has completed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use evener::{Caller, Cancel};
use evener_core::Job;

use super::armored_source;
use super::existing_output::is_finished;
use crate::error::FileError;
use crate::output::{CompleteDraft, Origin, Settlement, SyncErrors};
use crate::report::{Progress, Summary};
use crate::request::{Request, Task};
use crate::segments::{FileWork, KeyTrial, slots};
use crate::walk::Item;

/// What all threads of a run share and none of them changes, but for the wish to stop.
pub(super) struct Run<'a> {
    pub(super) request: &'a Request,
    pub(super) plan: slots::Plan,
    pub(super) progress: &'a Progress,
    cancel: &'a Cancel,
    /// Set when every further file would fail alike (disk full).
    stopped: AtomicBool,
    sync_errors: SyncErrors,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        request: &'a Request,
        plan: slots::Plan,
        progress: &'a Progress,
        cancel: &'a Cancel,
    ) -> Self {
        Self {
            request,
            plan,
            progress,
            cancel,
            stopped: AtomicBool::new(false),
            sync_errors: SyncErrors::default(),
        }
    }

    /// Whether files not yet begun are left alone.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.cancel.is_cancelled()
    }

    /// Whether the run is to end at once: what is complete and not yet settled is left to the next run, too.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
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
    pub(super) summary: Summary,
}

impl<'w, 'r, 'm> Worker<'w, 'r, 'm> {
    pub(super) fn new(run: &'w Run<'w>, caller: Caller<'r, 'm>, slots: Vec<Box<Job<'m>>>) -> Self {
        Self {
            run,
            caller,
            slots,
            settlement: Settlement::new(&run.sync_errors),
            summary: Summary::default(),
        }
    }

    /// Settles what is left, or gives it up where the run was cancelled; returns what the thread did.
    pub(super) fn finish(mut self) -> Summary {
        self.settle();
        self.summary
    }

    /// Opens a file unless its finished result stands there already.
    pub(super) fn open(&mut self, item: &Item) -> Result<Option<FileWork>, FileError> {
        let task = &self.run.request.task;
        let mut source = item.open()?;
        if let Task::Decrypt(opener) = task {
            source = armored_source::dearmored(opener.armor(), source, &item.dir, || self.run.is_stopped())?;
        }
        let keys = &mut KeyTrial { caller: &mut self.caller, slots: &mut self.slots };
        if is_finished(self.run.request, item, &source, keys)? {
            return Ok(None);
        }
        FileWork::open(self.run.request, source, keys).map(Some)
    }

    /// Whether another run, which came up meanwhile, has finished the file.
    fn is_done_by_another(&mut self, origin: &Origin) -> bool {
        let Origin { path, root, place: Some((dir, name)), .. } = origin else { return false };
        let Ok(dir) = dir.anew() else { return false };
        let item = Item { source: path.clone(), root: root.clone(), dir, name: name.clone() };
        matches!(self.open(&item), Ok(None))
    }

    /// Hands a complete draft to the settlement, or records why there is none.
    pub(super) fn finished(&mut self, path: PathBuf, result: Result<(CompleteDraft, Origin), FileError>) {
        match result {
            Ok((draft, origin)) => self.settlement.add(draft, origin),
            Err(error) => self.failed(path, error),
        }
    }

    /// Records why a file failed; stops the run where every other one would fail alike.
    pub(super) fn failed(&mut self, path: PathBuf, error: FileError) {
        if error.stops_the_run() {
            self.run.stop();
        }
        self.summary.failed.push((path, error));
    }

    pub(super) fn settle_if_due(&mut self) {
        if self.settlement.is_due() {
            self.settle();
        }
    }

    fn settle(&mut self) {
        let settled =
            if self.run.is_cancelled() { self.settlement.give_up() } else { self.settlement.settle() };
        for (origin, result) in settled {
            match result {
                Ok(()) => {
                    self.run.progress.add_file();
                    self.summary.record(origin.path, (origin.bytes_in, origin.bytes_out), Ok(()));
                }
                Err(FileError::Exists) if self.is_done_by_another(&origin) => self.summary.already_done += 1,
                Err(error) => self.failed(origin.path, error),
            }
        }
    }
}
