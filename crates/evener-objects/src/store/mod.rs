//! Stores: where objects are listed, read and written. Names are relative to the place that the user named.
//!
//! `places.rs` has what users name, `remote.rs` S3's, Google's and Azure's, by the crate `object_store`, `parts.rs` and `blocks.rs` their two kinds of uploads, `sharing.rs`
//! what several machines need to make one output, `timeouts.rs` how long a request may take, `errors.rs` what they fail with, `walk.rs` listings that are taken up again; `local/` directories, by descriptors and without following links.
//! Either way an output appears under its name when all of it is there, together with its mark.

mod blocks;
#[cfg(test)]
pub(crate) mod breaking;
mod errors;
mod local;
mod parts;
mod places;
mod remote;
mod sharing;
mod signing;
mod timeouts;
mod walk;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::outcome::{Failure, Retries};
use crate::spared::Spared;

pub(crate) use places::{are_same, places};
pub(crate) use sharing::{RESERVED, Sharing, is_reserved};
pub(crate) use walk::{Step, Walk};

/// An object that a listing had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its name below the place.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// What the store tells this state of it from others by.
    pub(crate) version: String,
}

impl Found {
    /// An object that has this entity tag.
    pub(crate) fn by_tag(name: &str, bytes: u64, tag: &str) -> Self {
        Self { name: name.to_owned(), bytes, version: format!("{BY_ETAG}{tag}") }
    }

    /// Its entity tag, where that is a strong one, and one alone, as reads can demand it: the store gives another to other bytes.
    pub(crate) fn strong_tag(&self) -> Option<&str> {
        let tag = self.version.strip_prefix(BY_ETAG)?;
        let bare = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).unwrap_or(tag);
        let is_one = !bare.is_empty() && !bare.contains('"') && !tag.starts_with("W/");
        is_one.then_some(tag)
    }
}

/// What a version begins with that the store takes as a condition.
const BY_ETAG: &str = "etag ";

/// An output that stands under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The mark that Evener gave it.
    pub(crate) mark: Option<String>,
    /// Whether it was written to afterwards.
    pub(crate) is_changed: bool,
}

/// How an output is to be made.
#[derive(Clone, Debug)]
pub(crate) struct Making {
    pub(crate) name: String,
    pub(crate) mark: String,
    /// Whether what stands there is replaced; else it is a failure.
    pub(crate) replaces: bool,
}

/// Objects of a listing, one after the other.
pub(crate) type Listing = Box<dyn Iterator<Item = Result<Found, Unlisted>> + Send>;

/// What a listing does not have.
#[derive(Debug)]
pub(crate) struct Unlisted {
    /// What stands under this name or below it, or all that would follow. The name of the place itself is empty.
    pub(crate) name: Option<String>,
    pub(crate) failure: Failure,
}

/// A place with objects below it.
pub(crate) trait Store: Send + Sync {
    /// Objects whose names are greater than `after`, in the order that the store has. It may give others besides, but names nothing as unlisted
    /// that has no part in these.
    fn list(&self, after: &str) -> Listing;

    /// Bytes of an object that is still as it was found.
    fn read(&self, found: &Found, range: Range<u64>) -> Result<Bytes, Failure>;

    /// What stands under a name.
    fn standing(&self, name: &str) -> Result<Option<Standing>, Failure>;

    /// Whether what was found marks a folder only: an object without bytes whose name ends in a slash, which no listing here shows. One that
    /// has gone since is taken for such a marker; one that has changed is a failure.
    fn is_marker(&self, found: &Found) -> Result<bool, Failure> {
        Ok(found.bytes == 0 && self.standing(&found.name)?.is_none())
    }

    /// Makes an output at once.
    fn put(&self, making: &Making, output: Bytes) -> Result<(), Failure>;

    /// Begins an output that is made of parts.
    fn begin(&self, making: &Making) -> Result<Arc<dyn Upload>, Failure>;

    /// The same for several machines, where the store can.
    fn sharing(&self) -> Option<&dyn Sharing> {
        None
    }
}

/// An output that is being made of parts, by several threads. Nothing of it is seen before it is complete.
pub(crate) trait Upload: Send + Sync {
    /// Takes a part: its number, counted from 0, its place in the whole, and its bytes. The same part may come again, and each comes, unless
    /// [`Upload::give_up`] is called.
    fn part(&self, number: usize, place: u64, bytes: Bytes) -> Result<(), Failure>;

    /// Gives the output its name. All parts are there.
    fn complete(&self) -> Result<(), Failure>;

    /// Hears that parts may be missing, so that none is waited for.
    fn give_up(&self) {}

    /// Takes back what was sent.
    fn abort(&self);

    /// What the store calls the parts of these numbers, in order, where it has them all and others may send more of the same output.
    fn sent(&self, _: &Range<usize>) -> Option<Vec<String>> {
        None
    }
}

/// What a directory for outputs heeds.
#[derive(Debug)]
pub(crate) struct Rules {
    /// What no output takes the place of.
    pub(crate) spared: Spared,
    /// Whether outputs without marks are of no use, for another run would take them for another program's.
    pub(crate) needs_marks: bool,
}

/// The store that a URI names. Where there is no such directory, the failure is that it is absent.
pub(crate) fn open(place: &str, retries: Retries) -> Result<Arc<dyn Store>, Failure> {
    let rules = Rules { spared: Spared::default(), needs_marks: false };
    open_for_outputs(place, retries, rules)
}

/// The same for outputs.
pub(crate) fn open_for_outputs(
    place: &str,
    retries: Retries,
    rules: Rules,
) -> Result<Arc<dyn Store>, Failure> {
    match place.strip_prefix("file://") {
        Some(path) => Ok(Arc::new(local::Local::open(path, rules)?)),
        None => Ok(Arc::new(remote::Remote::open(place, retries)?)),
    }
}

/// Makes the directory that a place is, and those above it, where there is none.
pub(crate) fn make_directory(place: &str) -> Result<(), Failure> {
    let Some(path) = place.strip_prefix("file://") else { return Ok(()) };
    std::fs::create_dir_all(path).map_err(|error| Failure::never(format_args!("{path}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_strong_where_it_is_one_that_names_one_state() {
        let strong = |version: &str| {
            let found = Found { name: String::new(), bytes: 0, version: version.to_owned() };
            found.strong_tag().map(str::to_owned)
        };
        // Azure lists them bare.
        for tag in ["\"1\"", "0x8DE1", "\"a,b\""] {
            assert_eq!(strong(&format!("etag {tag}")).as_deref(), Some(tag));
        }
        for other in ["etag W/\"1\"", "etag \"1\", \"2\"", "etag \"\"", "etag ", "time 7", "file 1 2 3"] {
            assert_eq!(strong(other), None, "{other}");
        }
    }
}
