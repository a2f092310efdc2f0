//! A worker: one thread of a run, with its caller, its slots, and the drafts that it has completed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use evener::{Caller, Cancel};
use evener_core::Job;

use crate::error::FileError;
use crate::output::{CompleteDraft, Origin, Outputs, Settlement};
use crate::report::{Progress, Summary};
use crate::request::Request;
use crate::segments::slots;
use crate::walk::HardLinks;

/// What all threads of a run share and none of them changes, but for the wish to stop.
pub(super) struct Run<'a> {
    pub(super) request: &'a Request,
    pub(super) outputs: Arc<Outputs>,
    pub(super) hard_links: HardLinks,
    pub(super) plan: slots::Plan,
    pub(super) progress: &'a Progress,
    cancel: &'a Cancel,
    /// Set when every further file would fail alike (disk full).
    stopped: AtomicBool,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        request: &'a Request,
        outputs: Arc<Outputs>,
        plan: slots::Plan,
        progress: &'a Progress,
        cancel: &'a Cancel,
    ) -> Self {
        let (hard_links, stopped) = (HardLinks::default(), AtomicBool::new(false));
        Self { request, outputs, hard_links, plan, progress, cancel, stopped }
    }

    /// Whether files not yet begun are left alone.
    pub(super) fn is_stopped(&self) -> bool {
        let is_stopped = self.stopped.load(Ordering::Relaxed) || self.cancel.is_cancelled();
        if is_stopped {
            self.outputs.abandon();
        }
        is_stopped
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
    settlement: Settlement,
    pub(super) summary: Summary,
}

impl<'w, 'r, 'm> Worker<'w, 'r, 'm> {
    pub(super) fn new(run: &'w Run<'w>, caller: Caller<'r, 'm>, slots: Vec<Box<Job<'m>>>) -> Self {
        Self { run, caller, slots, settlement: Settlement::default(), summary: Summary::default() }
    }

    /// Settles what is left; returns what the thread did.
    pub(super) fn finish(mut self) -> Summary {
        self.settle();
        self.summary
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
        for (origin, result) in self.settlement.settle() {
            if result.is_ok() {
                self.run.progress.add_file();
                origin.names.inspect(|names| self.run.hard_links.done(*names));
            }
            self.summary.record(origin.path, (origin.bytes_in, origin.bytes_out), result);
        }
    }
}
