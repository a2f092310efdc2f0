//! The task queue: what a thread does next is a handful of files from the walk, or a span of a large file that some
//! thread has opened.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FileType, Stat};

use super::large::Large;
use super::worker::Run;
use crate::error::FileError;
use crate::record::Spot;
use crate::report::Summary;
use crate::request::Existing;
use crate::walk::{Entry, Item, Walk};

/// Most files that a thread takes from the walk at a time.
const FILES_MAX: u64 = 32;

/// Bytes that a thread takes from the walk at a time, as far as the mean of what came before tells.
const FILES_BYTES: u64 = 4 << 20;

/// What a thread does next.
pub(super) enum Task {
    Files(Vec<Item>),
    Span(Arc<Large>),
}

/// Where tasks come from.
pub(super) struct TaskQueue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    walk: Walk,
    files_max: u64,
    walked_out: bool,
    /// Large files with spans left.
    large: VecDeque<Arc<Large>>,
    /// Threads that have files from the walk in hand and may still open large ones.
    opening: usize,
    files: u64,
    bytes: u64,
}

impl TaskQueue {
    /// `files_max`: files that a thread may have open at a time.
    pub(super) fn new(walk: Walk, files_max: usize) -> Self {
        let files_max = FILES_MAX.min(files_max as u64);
        let state =
            State { walk, files_max, walked_out: false, large: [].into(), opening: 0, files: 0, bytes: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Ends the walk: files that no thread took, because the run was stopped, are named; directories are let go of.
    pub(super) fn finish(self, run: &Run<'_>, summary: &mut Summary) {
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        while !run.is_cancelled() {
            let left = state.next_files(run, summary);
            if left.is_empty() {
                break;
            }
            for item in left {
                run.outputs.leave_undone(&item.source());
                summary.failed.push((item.source(), FileError::Stopped));
            }
        }
    }

    /// The next task; waits while another thread may still open a large file.
    pub(super) fn next(&self, run: &Run<'_>, summary: &mut Summary) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if run.is_stopped() {
                return None;
            }
            if let Some(large) = state.next_large() {
                return Some(Task::Span(large));
            }
            let files = state.next_files(run, summary);
            if !files.is_empty() {
                state.opening += 1;
                return Some(Task::Files(files));
            }
            if state.opening == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets other threads take spans of a large file.
    pub(super) fn share(&self, large: &Arc<Large>) {
        self.lock().large.push_back(Arc::clone(large));
        self.changed.notify_all();
    }

    /// Records that the files of a task are dealt with.
    pub(super) fn files_are_done(&self, files: u64, bytes: u64) {
        let mut state = self.lock();
        state.opening -= 1;
        state.files += files;
        state.bytes += bytes;
        drop(state);
        self.changed.notify_all();
    }

    /// Lets threads that wait for a task see that the run was stopped.
    pub(super) fn wake_all(&self) {
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next_large(&mut self) -> Option<Arc<Large>> {
        while let Some(large) = self.large.front() {
            if large.has_spans() {
                return Some(Arc::clone(large));
            }
            self.large.pop_front();
        }
        None
    }

    fn next_files(&mut self, run: &Run<'_>, summary: &mut Summary) -> Vec<Item> {
        let mean = self.bytes.checked_div(self.files).unwrap_or(FILES_BYTES / 4).max(1);
        let wanted = usize::try_from((FILES_BYTES / mean).clamp(1, self.files_max)).unwrap_or(1);
        let mut files = Vec::with_capacity(wanted);
        while files.len() < wanted && !self.walked_out {
            let met = self.walk.next(&|dir, name, stat| makes_way(run, dir, name, stat));
            if met.as_ref().is_some_and(|met| leaves_out(run, met)) {
                continue;
            }
            summary.found += u64::from(met.is_some());
            match met {
                Some(Entry::File(item)) => files.push(item),
                Some(Entry::Skipped(path, skip)) => summary.skipped.push((path, skip)),
                Some(Entry::Failed(path, error)) => {
                    run.outputs.leave_undone(&path);
                    summary.failed.push((path, error));
                }
                None => self.walked_out = true,
            }
        }
        files
    }
}

/// Whether what stands where a directory belongs is replaced by it: a file, as any other output is.
fn makes_way(run: &Run<'_>, dir: Spot, name: &OsStr, stat: &Stat) -> bool {
    match run.request.options.existing {
        Existing::Keep => false,
        Existing::Update => run.record.is_known(dir.join(name), stat),
        // A link may be the user's own, to another disk.
        Existing::Replace => FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile,
    }
}

/// Whether the options name an input that is left out, whatever its name.
fn leaves_out(run: &Run<'_>, met: &Entry) -> bool {
    let left_out = &run.request.options.left_out;
    !left_out.is_empty()
        && match met {
            Entry::File(item) => left_out.contains(&item.source()),
            Entry::Failed(path, FileError::NoSuffix(_)) => left_out.contains(path),
            Entry::Failed(..) | Entry::Skipped(..) => false,
        }
}
