//! The settlement: it makes a batch of complete drafts durable with one sync, renames them, and syncs the names.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs;

use super::directory::OutputDir;
use super::draft::CompleteDraft;
use crate::error::FileError;

/// Drafts that are settled together at most. See `docs/results/files.md` for the choice.
const BATCH_FILES: usize = 4_096;

/// Bytes of drafts that are settled together at most, so that a killed run loses little.
const BATCH_BYTES: u64 = 1 << 30;

/// What a complete draft was made from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// The source.
    pub(crate) path: PathBuf,
    /// Its length, and that of the output, in bytes.
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// Device and inode of the source, where it has several names.
    pub(crate) names: Option<(u64, u64)>,
}

/// Drafts that are complete and wait to be settled.
#[derive(Default)]
pub(crate) struct Settlement {
    drafts: Vec<(CompleteDraft, Origin)>,
    bytes: u64,
}

/// How a draft ended.
pub(crate) type Settled = (Origin, Result<(), FileError>);

impl Settlement {
    /// Adds a complete draft.
    pub(crate) fn add(&mut self, draft: CompleteDraft, origin: Origin) {
        self.bytes += origin.bytes_out;
        self.drafts.push((draft, origin));
    }

    /// Whether it is time to settle.
    pub(crate) fn is_due(&self) -> bool {
        self.drafts.len() >= BATCH_FILES || self.bytes >= BATCH_BYTES
    }

    /// Syncs what was written, renames every draft to its final name, and syncs the names.
    pub(crate) fn settle(&mut self) -> Vec<Settled> {
        let drafts = std::mem::take(&mut self.drafts);
        self.bytes = 0;
        if let Err(error) = sync(&drafts) {
            return drafts.into_iter().map(|(_, origin)| (origin, Err(error.clone()))).collect();
        }
        let dirs: HashMap<u64, Arc<OutputDir>> =
            drafts.iter().map(|(draft, _)| (draft.device(), Arc::clone(draft.place().0))).collect();
        let is_one = drafts.len() == 1;
        let settled: Vec<_> = drafts.into_iter().map(|(draft, origin)| (origin, draft.rename())).collect();
        // The names themselves: one directory, or all of them at once, which costs less than each by itself.
        let synced = dirs.values().try_for_each(|dir| {
            let fd = dir.fd()?;
            let synced = if is_one { fs::fsync(&*fd) } else { fs::syncfs(&*fd) };
            synced.map_err(FileError::io("sync the directory"))
        });
        match synced {
            Ok(()) => settled,
            Err(error) => {
                let failed = |(origin, renamed): Settled| (origin, renamed.and_then(|()| Err(error.clone())));
                settled.into_iter().map(failed).collect()
            }
        }
    }
}

/// One `syncfs` per file system, or one `fsync` where there is a single draft of a file.
fn sync(drafts: &[(CompleteDraft, Origin)]) -> Result<(), FileError> {
    if let [(draft, _)] = drafts {
        return draft.sync();
    }
    let mut devices = HashSet::new();
    for (draft, _) in drafts {
        let (dir, _) = draft.place();
        if devices.insert(draft.device()) {
            fs::syncfs(&*dir.fd()?).map_err(FileError::io("sync the output"))?;
        }
    }
    Ok(())
}
