//! Where a record lies: beside the output, or, where nothing can be written there and for single files, among what Evener keeps of its user.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// A directory, and the name of a record in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(super) dir: PathBuf,
    pub(super) name: OsString,
    /// Rows that are kept at most, the newest ones; the others' outputs are proven from what they hold.
    pub(super) rows_max: usize,
    /// Whether the directory is Evener's own, to be made where it is missing.
    pub(super) is_kept: bool,
}

/// A record is `.OUT.evener-record`; draft names begin otherwise.
const SUFFIX: &str = ".evener-record";

/// Single outputs of one user whose rows are kept. Assumed, not measured: 10000, one MiB.
const SINGLE_ROWS_MAX: usize = 10_000;

/// Whether a name is that of a record.
pub(crate) fn is_record(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b".") && name.ends_with(SUFFIX.as_bytes())
}

/// The places for runs into `target`, the best first.
pub(super) fn places(target: &Path, is_tree: bool, state_dir: Option<&Path>) -> Vec<Place> {
    let absolute = std::path::absolute(target).ok();
    let kept = state_dir.zip(absolute.as_deref());
    if !is_tree {
        let place = kept.map(|(dir, _)| Place {
            dir: dir.to_owned(),
            name: named(b"single-outputs"),
            rows_max: SINGLE_ROWS_MAX,
            is_kept: true,
        });
        return place.into_iter().collect();
    }
    let kept = kept.map(|(dir, absolute)| {
        let hash = Sha256::digest(absolute.as_os_str().as_bytes());
        let hex: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        Place { dir: dir.to_owned(), name: named(hex.as_bytes()), rows_max: usize::MAX, is_kept: true }
    });
    beside(target).into_iter().chain(kept).collect()
}

/// Beside an output that has a name and a directory around it.
fn beside(target: &Path) -> Option<Place> {
    let real;
    let target = match target.file_name() {
        Some(_) => target,
        // `.`, `..` and the like.
        None => {
            real = std::fs::canonicalize(target).ok()?;
            &real
        }
    };
    let dir = match target.parent()? {
        here if here.as_os_str().is_empty() => Path::new("."),
        dir => dir,
    };
    Some(Place {
        dir: dir.to_owned(),
        name: named(target.file_name()?.as_bytes()),
        rows_max: usize::MAX,
        is_kept: false,
    })
}

fn named(middle: &[u8]) -> OsString {
    let mut name = OsString::from(".");
    name.push(OsStr::from_bytes(middle));
    name.push(SUFFIX);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_lies_beside_its_output_and_is_known_by_its_name() {
        let place = |target: &str| beside(Path::new(target)).map(|place| place.dir.join(place.name));
        assert_eq!(place("out"), Some("./.out.evener-record".into()));
        assert_eq!(place("/a/out/"), Some("/a/.out.evener-record".into()));
        assert_eq!(place("/"), None);
        assert!(is_record(&named(b"out")) && !is_record(OsStr::new("out.evener-record")));
    }
}
