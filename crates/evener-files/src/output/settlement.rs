//! The settlement: it makes a batch of complete drafts durable with one sync, renames them, and syncs the names.

use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs;
use rustix::io::Errno;

use super::directory::OutputDir;
use super::draft::CompleteDraft;
use crate::error::FileError;
use crate::input::beneath::open_one;
use crate::input::source_file::READ_FLAGS;
use crate::record::{Row, Stamp};

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
    /// What is to be recorded when it has its name.
    pub(crate) row: Option<Row>,
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
        if let Err(errno) = sync(&drafts) {
            let error = |(_, origin)| (origin, Err(FileError::io("sync the output")(errno)));
            return drafts.into_iter().map(error).collect();
        }
        let dirs: HashMap<u64, Arc<OutputDir>> =
            drafts.iter().map(|(draft, _)| (draft.place().0.device, Arc::clone(draft.place().0))).collect();
        let is_one = drafts.len() == 1;
        let settled: Vec<_> = drafts.into_iter().map(rename).collect();
        // The names themselves: one directory, or all of them at once, which costs less than each by itself.
        let synced =
            dirs.values().try_for_each(|dir| if is_one { fs::fsync(&dir.fd) } else { fs::syncfs(&dir.fd) });
        match synced {
            Ok(()) => settled,
            Err(errno) => {
                let failed = |(origin, renamed): Settled| {
                    (origin, renamed.and_then(|()| Err(FileError::io("sync the directory")(errno))))
                };
                settled.into_iter().map(failed).collect()
            }
        }
    }
}

/// Gives a draft its name, and the row what stands under it.
fn rename((draft, mut origin): (CompleteDraft, Origin)) -> Settled {
    let renamed = draft.rename();
    if let (Ok(Some(stat)), Some(row)) = (&renamed, &mut origin.row) {
        row.output = Stamp::of(stat);
    }
    (origin, renamed.map(drop))
}

/// One `syncfs` per file system, or one `fsync` where there is a single draft.
fn sync(drafts: &[(CompleteDraft, Origin)]) -> Result<(), Errno> {
    if let [(draft, _)] = drafts {
        let (dir, name) = draft.place();
        return fs::fsync(open_one(dir.fd.as_fd(), name, READ_FLAGS)?);
    }
    let mut devices = HashSet::new();
    for (draft, _) in drafts {
        let (dir, _) = draft.place();
        if devices.insert(dir.device) {
            fs::syncfs(&dir.fd)?;
        }
    }
    Ok(())
}
