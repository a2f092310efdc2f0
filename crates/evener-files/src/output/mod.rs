//! Output comes to be as drafts under temporary names in the directory of the final one, and a settlement
//! makes a batch of them durable with one sync, has them promised in the record, then renames them, then syncs the names.
//!
//! A crash at any moment leaves under a final name either what was there before or the whole new file. A run
//! holds a lock on every directory that the user named for output, which the kernel drops with the process. So a run that
//! enters a directory and finds no such lock on it or above may remove the drafts in it: the run that wrote them was killed.

mod attributes;
mod directory;
mod draft;
mod leftovers;
mod register;
mod renewal;
mod settlement;

pub(crate) use attributes::{Attributes, Xattrs, kept_xattrs};
pub(crate) use directory::{MakesWay, OutputDir, Outputs, SourceDir, give_back, give_owner_access};
pub(crate) use draft::{
    CompleteDraft, Draft, PARTS_MAX, unnamed_file, write_at, write_sparse_at, write_text,
};
pub(crate) use leftovers::is_own_name;
pub use register::abandon_drafts;
pub(crate) use renewal::{renew, renew_link};
pub(crate) use settlement::{Origin, Settlement, SyncErrors};
