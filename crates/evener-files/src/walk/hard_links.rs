//! Hard links: names of one file in the input become names of one file in the output. The first name met is worked on; the
//! others are linked to its output when everything is done.
//!
//! Kept are the files with several names, and of those the names that wait: who has none, costs nothing.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::item::Item;
use crate::error::FileError;
use crate::output::{CompleteDraft, Origin, OutputDir};
use crate::record::{Record, Row};

/// Files with several names.
#[derive(Default)]
pub(crate) struct HardLinks {
    files: Mutex<HashMap<(u64, u64), Names>>,
}

/// The names of one file.
struct Names {
    first: Name,
    /// Whether the first one's output stands there.
    is_done: bool,
    /// What was recorded of it.
    row: Option<Row>,
    others: Vec<Name>,
}

struct Name {
    source: PathBuf,
    dir: Arc<OutputDir>,
    name: OsString,
}

impl Name {
    fn of(item: &Item) -> Self {
        Self { source: item.source.clone(), dir: Arc::clone(&item.dir), name: item.name.clone() }
    }
}

impl HardLinks {
    /// Whether `item`, a name of `file`, has to wait for another one.
    pub(crate) fn must_wait(&self, file: (u64, u64), item: &Item) -> bool {
        use std::collections::hash_map::Entry;
        match self.lock().entry(file) {
            Entry::Vacant(vacant) => {
                vacant.insert(Names { first: Name::of(item), is_done: false, row: None, others: Vec::new() });
                false
            }
            Entry::Occupied(mut names) => {
                names.get_mut().others.push(Name::of(item));
                true
            }
        }
    }

    /// Says that the output of `item`, a name of `file`, stands there already.
    pub(crate) fn stands(&self, file: (u64, u64), item: &Item) {
        let first = || Names { first: Name::of(item), is_done: true, row: None, others: Vec::new() };
        self.lock().entry(file).or_insert_with(first);
    }

    /// Says that the output of the first name of `file` stands there now, and what was recorded of it.
    pub(crate) fn done(&self, file: (u64, u64), row: Option<Row>) {
        if let Some(names) = self.lock().get_mut(&file) {
            names.is_done = true;
            names.row = row;
        }
    }

    /// What is to be made of each name that waits, after everything else is done.
    pub(crate) fn waiting(
        &self,
        replace: bool,
        record: &Record,
    ) -> impl Iterator<Item = (PathBuf, Result<(CompleteDraft, Origin), FileError>)> {
        let files = std::mem::take(&mut *self.lock());
        files.into_values().flat_map(move |Names { first, is_done, row, others }| {
            let linked = move |other: Name| {
                let row = row.map(|row| Row { spot: record.spot(other.dir.spot, &other.name), ..row });
                let (to, path) = ((&*first.dir, &*first.name), other.source);
                let draft = match is_done {
                    true => CompleteDraft::another_name(&other.dir, &other.name, to, replace),
                    false => Err(FileError::OtherName(first.source.clone())),
                };
                let origin = Origin { path: path.clone(), bytes_in: 0, bytes_out: 0, row, names: None };
                (path, draft.map(|draft| (draft, origin)))
            };
            others.into_iter().map(linked).collect::<Vec<_>>()
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(u64, u64), Names>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
