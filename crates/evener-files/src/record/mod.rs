//! The record of a run: what stands where, made from what and for which request, so that the same request again finds its work done
//! without opening a file.
//!
//! keys of the request -> [`RequestKey`] (`request_key.rs`) -> places (`place.rs`) -> the file there, a row of blocks (`file.rs`), each sealed
//! (`block.rs`) -> [`Known`] rows (`row.rs`) that are looked up -> drafts that got their names -> new rows, appended.
//!
//! A promise is a row of what is about to get its name, for a run that is killed before it can write the row itself.
//!
//! A row is a note of a proof that was made, never more: whatever does not match it is proven from the output itself. So a record
//! that is missing, damaged, of another version or of another key costs time and nothing else. docs/design/done.md has the reasons.

mod block;
mod file;
mod index;
mod place;
mod request_key;
mod row;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use place::Place;
pub(crate) use place::is_record;
pub(crate) use request_key::RequestKey;
pub(crate) use row::{Header, Row, Spot, Stamp, TICK};
use rustix::fs::Stat;

use block::{Group, Request};
use file::RecordFile;
use index::Index;

/// Which parts of what the file system says of a file show that it is the one that it was. Length and time of change of the contents
/// always do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    /// The time of the last change of the inode, which no program can set.
    pub ctime: bool,
    /// The number of the inode.
    pub inode: bool,
}

impl Default for Trust {
    fn default() -> Self {
        Self { ctime: true, inode: true }
    }
}

/// A row that an earlier run, or one beside this one, has written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) row: Row,
    request: Request,
    group: Group,
}

/// What is known of what stands in an output, and what this run adds.
pub(crate) struct Record {
    key: Option<RequestKey>,
    /// Whether rows were to be kept that could not be.
    is_lost: AtomicBool,
    trust: Trust,
    known: Index,
    /// How many rows came since, so that no process locks to look among none.
    beside_count: AtomicUsize,
    state: Mutex<State>,
    /// Held while a passphrase is tried, so that it is tried once.
    confirming: Mutex<()>,
}

struct State {
    file: Option<RecordFile>,
    /// Rows that came since the record was read, from runs beside this one.
    beside: HashMap<Spot, Vec<Known>>,
    /// Passphrases of earlier runs, and whether this run's is the same.
    groups: Vec<(Group, bool)>,
    /// The group of this run's rows.
    own: Group,
}

/// How a row stands to this run's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The same was asked.
    Same,
    /// The same, if this run's passphrase opens one output of the group.
    IfOpens,
    /// The same, but for the passphrase.
    OtherPassphrase,
    /// Another key, other recipients, another cipher or associated data.
    Other,
}

impl Record {
    /// Nothing is known, and nothing is kept.
    pub(crate) fn none() -> Self {
        Self::open(
            None,
            RunOutput { target: Path::new("."), is_tree: true, state_dir: None },
            Trust::default(),
        )
    }

    /// Reads what is there. Without a key there is no record.
    pub(crate) fn open(key: Option<RequestKey>, output: RunOutput<'_>, trust: Trust) -> Self {
        let mut known = Vec::new();
        let mut file = None;
        let mut own = Group::default();
        if let Some(key) = &key {
            let mut found = RecordFile::new(output.places());
            found.read_new(key, &mut known);
            file = Some(found);
            own = key.new_group();
        }
        let state = Mutex::new(State { file, beside: HashMap::new(), groups: Vec::new(), own });
        let (known, beside_count, confirming) = (Index::new(known), AtomicUsize::new(0), Mutex::new(()));
        let is_lost = AtomicBool::new(false);
        Self { key, is_lost, trust, known, beside_count, state, confirming }
    }

    /// Whether nothing was written down yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty() && self.beside_count.load(Ordering::Relaxed) == 0
    }

    /// What was written last of a spot, promises aside.
    pub(crate) fn find(&self, spot: Spot) -> Option<Known> {
        self.newest(spot, |row| !row.is_promise())
    }

    /// What is written of the output at a spot that has this header, be it that it was only promised.
    pub(crate) fn find_by_header(&self, spot: Spot, header: Header) -> Option<Known> {
        self.newest(spot, |row| row.header == header)
    }

    /// Whether anything is written of a spot.
    pub(crate) fn tells_of(&self, spot: Spot) -> bool {
        self.newest(spot, |_| true).is_some()
    }

    fn newest(&self, spot: Spot, is_it: impl Fn(&Row) -> bool) -> Option<Known> {
        let is_it = |known: &&Known| is_it(&known.row);
        // Relaxed: the rows themselves are behind the lock; who sees none yet proves what it finds.
        let beside = match self.beside_count.load(Ordering::Relaxed) {
            0 => None,
            _ => self.lock().beside.get(&spot).and_then(|rows| rows.iter().rev().find(is_it)).copied(),
        };
        beside.or_else(|| self.known.rows_of(spot).find(is_it).copied())
    }

    /// Whether `stat` is what was written last of a spot.
    pub(crate) fn is_known(&self, spot: Spot, stat: &Stat) -> bool {
        self.find(spot).is_some_and(|known| self.is_same(&known.row.output, &Stamp::of(stat)))
    }

    /// Whether a directory is one that a run made.
    pub(crate) fn is_directory_of_ours(&self, spot: Spot, stat: &Stat) -> bool {
        let of_directory = Row::of_directory(spot, stat.st_ino);
        self.find(spot).is_some_and(|known| self.is_same(&known.row.output, &of_directory.output))
    }

    /// Whether two stamps are of one file that no process changed in between.
    pub(crate) fn is_same(&self, one: &Stamp, other: &Stamp) -> bool {
        one.is(other, self.trust)
    }

    /// Whether a row's request was this run's.
    pub(crate) fn asked(&self, known: &Known) -> Asked {
        let Some(key) = &self.key else { return Asked::Other };
        if known.request != key.request {
            return Asked::Other;
        }
        if !key.is_by_passphrase {
            return Asked::Same;
        }
        let state = self.lock();
        match state.groups.iter().find(|(group, _)| *group == known.group) {
            Some((_, true)) => Asked::Same,
            Some((_, false)) => Asked::OtherPassphrase,
            None if known.group == state.own => Asked::Same,
            None => Asked::IfOpens,
        }
    }

    /// Finds out by `try_it`, once for each group, whether this run's passphrase is that of a row's group.
    pub(crate) fn confirm<E>(
        &self,
        known: &Known,
        try_it: impl FnOnce() -> Result<bool, E>,
    ) -> Result<Asked, E> {
        let _turn = self.confirming.lock().unwrap_or_else(PoisonError::into_inner);
        if self.asked(known) == Asked::IfOpens {
            self.remember(known, try_it()?);
        }
        Ok(self.asked(known))
    }

    fn remember(&self, known: &Known, fits: bool) {
        let mut state = self.lock();
        state.groups.push((known.group, fits));
        if fits {
            // So that reruns, each of which adds a few rows, have one group to confirm and not one each.
            state.own = known.group;
        }
    }

    /// Writes down what is about to get its name, to last from now on.
    pub(crate) fn promise(&self, rows: &[Row]) {
        self.add(rows);
        if rows.is_empty() {
            return;
        }
        // Synced by a descriptor of its own, while other threads go on to look up and to append.
        let file = self.lock().file.as_mut().and_then(RecordFile::unsynced);
        if let Some(file) = file {
            // Where that fails a power cut may take it: the next run then knows as much as it does without a record.
            file.sync_data().ok();
        }
    }

    /// Writes rows down. Where that cannot be, the next run looks into the outputs.
    pub(crate) fn add(&self, rows: &[Row]) {
        if rows.is_empty() {
            return;
        }
        let mut state = self.lock();
        let own = state.own;
        let is_kept = match (&self.key, &mut state.file) {
            (Some(key), Some(file)) => file.append(key, own, rows),
            _ => false,
        };
        // Relaxed: it is looked at when all is done.
        self.is_lost.fetch_or(!is_kept, Ordering::Relaxed);
    }

    /// Whether there is none, and can be none: nothing is known of any output.
    pub(crate) fn is_absent(&self) -> bool {
        self.key.is_none()
    }

    /// Whether something that this run made is not in the record: there is none, or it could not be written.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// Reads what runs beside this one have written meanwhile; whether there is anything, or may be: whether another is at work.
    pub(crate) fn read_beside(&self) -> bool {
        let Some(key) = &self.key else { return false };
        let mut state = self.lock();
        let State { file: Some(file), beside, .. } = &mut *state else { return false };
        let mut rows = Vec::new();
        file.read_new(key, &mut rows);
        let (is_news, has_company) = (!rows.is_empty(), file.has_company());
        rows.into_iter().for_each(|known| beside.entry(known.row.spot).or_default().push(known));
        self.beside_count.store(beside.len(), Ordering::Relaxed);
        is_news || has_company
    }

    /// Ends the record: what is said twice in it is said once from now on.
    pub(crate) fn finish(self) {
        let Some(key) = &self.key else { return };
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = state.file {
            file.finish(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The output of a run, for which a place is wanted.
#[derive(Clone, Copy)]
pub(crate) struct RunOutput<'a> {
    pub(crate) target: &'a Path,
    /// Whether it is a directory and everything that is made lies in it; otherwise it is one file.
    pub(crate) is_tree: bool,
    pub(crate) state_dir: Option<&'a Path>,
}

impl RunOutput<'_> {
    fn places(&self) -> Vec<Place> {
        place::places(self.target, self.is_tree, self.state_dir)
    }
}
