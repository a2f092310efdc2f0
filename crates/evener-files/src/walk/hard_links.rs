//! Hard links: names of one file in the input become names of one file in the output. The first name met is worked on; the
//! others are linked to its output when everything is done.
//!
//! Kept are the files with several names, and of those the names that wait: who has none, costs nothing.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::item::Item;
use crate::output::OutputDir;
use crate::record::Row;

/// Device and inode of a file.
pub(crate) type Identity = (u64, u64);

/// Files with several names, by what they are in the input.
#[derive(Default)]
pub(crate) struct HardLinks {
    files: Mutex<HashMap<Identity, Names>>,
}

/// The names of one file.
pub(crate) struct Names {
    pub(crate) first: Name,
    /// The first one's output, once it stands there.
    pub(crate) output: Option<Identity>,
    /// What was recorded of it.
    pub(crate) row: Option<Row>,
    /// Names that wait.
    pub(crate) others: Vec<Waiting>,
}

/// A name, in the input and in the output.
#[derive(Clone)]
pub(crate) struct Name {
    pub(crate) source: PathBuf,
    pub(crate) dir: Arc<OutputDir>,
    pub(crate) name: OsString,
}

/// A name that waits for the first one.
pub(crate) struct Waiting {
    pub(crate) name: Name,
    /// Whether the link takes the place of what stands there.
    pub(crate) replaces: bool,
    /// Whether what stands there is finished, a file of its own.
    pub(crate) is_finished: bool,
}

impl Name {
    fn of(item: &Item) -> Self {
        Self { source: item.source(), dir: Arc::clone(&item.dir), name: item.name.clone() }
    }
}

impl HardLinks {
    /// Whether `item`, a name of `file` that is to be made, has to wait for another one.
    pub(crate) fn must_wait(&self, file: Identity, item: &Item, replaces: bool) -> bool {
        use std::collections::hash_map::Entry;
        match self.lock().entry(file) {
            Entry::Vacant(vacant) => {
                let first = Name::of(item);
                vacant.insert(Names { first, output: None, row: None, others: Vec::new() });
                false
            }
            Entry::Occupied(mut names) => {
                let name = Name::of(item);
                names.get_mut().others.push(Waiting { name, replaces, is_finished: false });
                true
            }
        }
    }

    /// Says that `output`, of `item`, a name of `file`, stands there finished, and what is recorded of it; whether it waits, for it is not yet a name of the
    /// first one's output.
    pub(crate) fn stands(&self, file: Identity, item: &Item, output: Identity, row: Option<Row>) -> bool {
        use std::collections::hash_map::Entry;
        match self.lock().entry(file) {
            Entry::Vacant(vacant) => {
                let first = Name::of(item);
                vacant.insert(Names { first, output: Some(output), row, others: Vec::new() });
                false
            }
            Entry::Occupied(names) if names.get().output == Some(output) => false,
            Entry::Occupied(mut names) => {
                let name = Name::of(item);
                names.get_mut().others.push(Waiting { name, replaces: true, is_finished: true });
                true
            }
        }
    }

    /// Says that the first name of `file` has its output now, and what was recorded of it.
    pub(crate) fn done(&self, file: Identity, output: Option<Identity>, row: Option<Row>) {
        if let Some(names) = self.lock().get_mut(&file) {
            names.output = output;
            names.row = row;
        }
    }

    /// Files of which names wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Names> {
        let files = std::mem::take(&mut *self.lock());
        files.into_values().filter(|names| !names.others.is_empty())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Identity, Names>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
