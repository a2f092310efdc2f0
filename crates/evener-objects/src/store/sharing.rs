//! What a store has where several machines make one output: uploads that all of them send to, and notes that they leave for each other.

use std::sync::Arc;

use bytes::Bytes;

use super::{Making, Upload};
use crate::outcome::Failure;

/// The folder below a place in which notes lie, each below a folder of its own for one output.
pub(crate) const RESERVED: &str = ".evener";

/// Digits of the name of such a folder, which are hexadecimal.
const FOLDER_DIGITS: usize = 32;

/// A store of that kind. Names of notes are relative to its place.
pub(crate) trait Sharing {
    /// Begins an upload, and tells what the store calls it.
    fn begin_shared(&self, making: &Making) -> Result<String, Failure>;

    /// The upload of this name, to send parts to.
    fn join(&self, making: &Making, upload: &str) -> Result<Arc<dyn Upload>, Failure>;

    /// Gives the output its name. `parts` is what the store calls all of them, in order.
    fn complete_shared(&self, making: &Making, upload: &str, parts: Vec<String>) -> Result<(), Failure>;

    /// Takes back all that was sent to an upload.
    fn abort_shared(&self, making: &Making, upload: &str) -> Result<(), Failure>;

    /// Names of all notes below a folder.
    fn notes(&self, folder: &str) -> Result<Vec<String>, Failure>;

    /// What a note says, if it is there.
    fn note(&self, name: &str) -> Result<Option<Bytes>, Failure>;

    /// Leaves a note: where none is, if it is to be the `first`, in the place of an earlier one else.
    fn leave(&self, name: &str, text: Bytes, first: bool) -> Result<(), Failure>;

    /// Takes a note away.
    fn remove(&self, name: &str) -> Result<(), Failure>;
}

/// Whether a name is that of a note, at any depth: a place may lie above one that was an output's.
pub(super) fn is_reserved(name: &str) -> bool {
    let (mut above, mut own) = ("", "");
    name.split('/').any(|folder| {
        let is_note = above == RESERVED && is_of_digits(own);
        (above, own) = (own, folder);
        is_note
    })
}

fn is_of_digits(folder: &str) -> bool {
    folder.len() == FOLDER_DIGITS && folder.bytes().all(|digit| digit.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_told_from_all_other_names_wherever_they_lie() {
        let digits = "0123456789abcdef0123456789abcdef";
        for note in [".evener/{}/a", "a/b/.evener/{}/c/0-1", ".evener/x/.evener/{}/0"] {
            assert!(is_reserved(&note.replace("{}", digits)), "{note}");
        }
        for other in [
            "a",
            ".evener",
            ".evener/a",
            ".evener/{}",
            ".evener/{}0/a",
            "a.evener/{}/a",
            ".evener.d/{}/a",
            "{}/a",
        ] {
            assert!(!is_reserved(&other.replace("{}", digits)), "{other}");
        }
    }
}
