//! The settlement: it makes a batch of complete drafts durable with one sync, has them promised in the record where nothing but that would
//! tell of them, renames them, and syncs the names.
//!
//! Path: [`Settlement::add`] -> [`Settlement::is_due`] (so often as it costs little, and before a kill could lose much) -> [`Settlement::settle`].

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs;
use rustix::io::Errno;

use super::directory::OutputDir;
use super::draft::CompleteDraft;
use crate::error::FileError;
use crate::record::{Record, Row, Stamp};

/// Drafts that are settled together at most: as many as a thread makes in the time below.
const BATCH_FILES: usize = 4_096;

/// Bytes of drafts that are settled together at most: what a killed run may lose, and half of it, for a thread has a batch in work besides.
const BATCH_BYTES: u64 = 32 << 20;

/// Longest that a draft waits to be settled: half of what a killed run may lose, for a thread looks only between two batches.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// A settlement is made early where the last one took at most this part of the time since: 2 % of a run.
const TIMES_COST: u32 = 50;

/// What a complete draft was made from.
#[derive(Default)]
pub(crate) struct Origin {
    /// The source.
    pub(crate) path: PathBuf,
    /// Its length, and that of the output, in bytes.
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// What is to be recorded when it has its name.
    pub(crate) row: Option<Row>,
    /// Device and inode of the source, where it has several names.
    pub(crate) names: Option<(u64, u64)>,
    /// Device and inode of the output, when it has its name.
    pub(crate) output: Option<(u64, u64)>,
}

/// Drafts of one thread that are complete and wait to be settled.
pub(crate) struct Settlement<'r> {
    drafts: Vec<(CompleteDraft, Origin)>,
    bytes: u64,
    /// When the first of them came.
    since: Instant,
    /// When the last settlement ended, and what it took.
    settled_at: Instant,
    cost: Duration,
    errors: &'r SyncErrors,
    /// Where outputs are promised before they have their names.
    promises: Option<&'r Record>,
    /// The errors that this thread knows of, at its last settlement.
    errors_known: HashMap<u64, u64>,
}

/// Errors of writing on each file system (by its device) that a sync of any thread has told. The kernel tells each once, while it may be
/// another thread's drafts that were not written.
#[derive(Default)]
pub(crate) struct SyncErrors(Mutex<HashMap<u64, (u64, Option<Errno>)>>);

/// How a draft ended.
pub(crate) type Settled = (Origin, Result<(), FileError>);

impl<'r> Settlement<'r> {
    /// `promises` is the record in which outputs are promised.
    pub(crate) fn new(errors: &'r SyncErrors, promises: Option<&'r Record>) -> Self {
        let now = Instant::now();
        Self {
            drafts: Vec::new(),
            bytes: 0,
            since: now,
            settled_at: now,
            cost: Duration::ZERO,
            errors,
            promises,
            errors_known: HashMap::new(),
        }
    }

    /// Adds a complete draft.
    pub(crate) fn add(&mut self, mut draft: CompleteDraft, origin: Origin) {
        match self.drafts.as_mut_slice() {
            // One by itself is synced by the descriptor that wrote it.
            [] => self.since = Instant::now(),
            [(first, _)] => {
                first.close();
                draft.close();
            }
            _ => draft.close(),
        }
        self.bytes += origin.bytes_out;
        self.drafts.push((draft, origin));
    }

    /// Whether it is time to settle.
    pub(crate) fn is_due(&self) -> bool {
        !self.drafts.is_empty() && self.is_due_at(Instant::now())
    }

    fn is_due_at(&self, now: Instant) -> bool {
        self.drafts.len() >= BATCH_FILES
            || self.bytes >= BATCH_BYTES
            || now.duration_since(self.since) >= WAIT_MAX
            || now.duration_since(self.settled_at) >= self.cost * TIMES_COST
    }

    /// Removes every draft, where there is no time to sync what was written.
    pub(crate) fn give_up(&mut self) -> Vec<Settled> {
        self.bytes = 0;
        let drafts = std::mem::take(&mut self.drafts);
        drafts.into_iter().map(|(_, origin)| (origin, Err(FileError::Stopped))).collect()
    }

    /// Syncs what was written, renames every draft to its final name, and syncs the names.
    pub(crate) fn settle(&mut self) -> Vec<Settled> {
        let drafts = std::mem::take(&mut self.drafts);
        if drafts.is_empty() {
            return Vec::new();
        }
        let begun = Instant::now();
        self.bytes = 0;
        let settled = self.settle_all(drafts);
        self.settled_at = Instant::now();
        self.cost = self.settled_at - begun;
        settled
    }

    fn settle_all(&mut self, mut drafts: Vec<(CompleteDraft, Origin)>) -> Vec<Settled> {
        // The first directory met on each file system stands for all.
        let mut dirs: HashMap<u64, Arc<OutputDir>> = HashMap::new();
        for (draft, _) in &drafts {
            let dir = draft.place().0;
            dirs.entry(draft.device()).or_insert_with(|| Arc::clone(dir));
        }
        let written = match drafts.as_mut_slice() {
            [(draft, _)] => draft.sync(),
            _ => self.sync_all(&dirs, "sync the output"),
        };
        if let Err(error) = written {
            return drafts.into_iter().map(|(_, origin)| (origin, Err(error.clone()))).collect();
        }
        self.promise(&drafts);
        let is_one = drafts.len() == 1;
        let settled: Vec<_> = drafts.into_iter().map(rename).collect();
        // The names themselves: one directory, or all of them at once, which costs less than each by itself.
        let synced = match dirs.values().next() {
            Some(dir) if is_one => dir.sync(),
            _ => self.sync_all(&dirs, "sync the directory"),
        };
        match synced {
            Ok(()) => settled,
            Err(error) => {
                let failed = |(origin, renamed): Settled| (origin, renamed.and_then(|()| Err(error.clone())));
                settled.into_iter().map(failed).collect()
            }
        }
    }

    /// Writes down what is about to get its name, so that a run that is killed before it can say so is understood by the next one.
    fn promise(&self, drafts: &[(CompleteDraft, Origin)]) {
        let Some(record) = self.promises else { return };
        let rows = drafts.iter().filter_map(|(draft, origin)| draft.promised(origin.row?));
        record.promise(&rows.collect::<Vec<_>>());
    }

    /// One `syncfs` per file system. An error that another thread was told since the last time is one of this thread's drafts, too, as
    /// far as is known.
    fn sync_all(&mut self, dirs: &HashMap<u64, Arc<OutputDir>>, what: &'static str) -> Result<(), FileError> {
        let mut outcome = Ok(());
        for (&device, dir) in dirs {
            let known = self.errors_known.entry(device).or_default();
            let synced = dir.fd().and_then(|fd| {
                self.errors.sync(device, known, || fs::syncfs(&*fd)).map_err(FileError::io(what))
            });
            outcome = outcome.and(synced);
        }
        outcome
    }
}

/// Gives a draft its name, and the row what stands under it.
fn rename((draft, mut origin): (CompleteDraft, Origin)) -> Settled {
    let renamed = draft.rename();
    if let Ok(Some(stat)) = &renamed {
        origin.output = Some((stat.st_dev, stat.st_ino));
        origin.row = origin.row.map(|row| Row { output: Stamp::of(stat), ..row });
    }
    (origin, renamed.map(drop))
}

impl SyncErrors {
    /// Syncs a file system; an error, too, where one came up that is not among those `known`, which are brought up to date.
    fn sync(
        &self,
        device: u64,
        known: &mut u64,
        sync: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        // Locked all the while: no thread hears that all is well while another hears of an error.
        let mut errors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, last) = errors.entry(device).or_default();
        if let Err(errno) = sync() {
            (*count, *last) = (*count + 1, Some(errno));
        }
        let news = *count != *known;
        *known = *count;
        match last {
            Some(errno) if news => Err(*errno),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_sync_is_told_once_to_every_thread() {
        let errors = SyncErrors::default();
        let (mut one, mut other, mut third) = (0, 0, 0);
        assert_eq!(errors.sync(1, &mut one, || Ok(())), Ok(()));
        assert_eq!(errors.sync(1, &mut one, || Err(Errno::IO)), Err(Errno::IO));
        assert_eq!(errors.sync(1, &mut other, || Ok(())), Err(Errno::IO), "the kernel tells it once");
        for known in [&mut one, &mut other] {
            assert_eq!(errors.sync(1, known, || Ok(())), Ok(()));
        }
        assert_eq!(errors.sync(2, &mut third, || Ok(())), Ok(()), "another file system");
    }

    #[test]
    fn a_settlement_is_due_when_it_is_cheap_and_at_last_after_a_second() {
        let errors = SyncErrors::default();
        let mut settlement = Settlement::new(&errors, None);
        let begun = settlement.since;
        let due_after = |settlement: &Settlement<'_>, time| settlement.is_due_at(begun + time);
        assert!(!settlement.is_due(), "there is nothing to settle");
        settlement.cost = Duration::from_millis(10);
        assert!(!due_after(&settlement, Duration::from_millis(499)));
        assert!(due_after(&settlement, Duration::from_millis(500)), "2 % of the time since");
        settlement.cost = Duration::from_secs(1);
        assert!(!due_after(&settlement, Duration::from_millis(999)));
        assert!(due_after(&settlement, WAIT_MAX));
        settlement.bytes = BATCH_BYTES;
        assert!(due_after(&settlement, Duration::ZERO));
    }
}
