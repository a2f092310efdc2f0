//! What a store has where several machines make one output: uploads that all of them send to, and notes that they leave for each other.

use std::sync::Arc;

use bytes::Bytes;

use super::{Making, Upload};
use crate::outcome::Failure;

/// The folder below a place in which notes lie, each below a folder of its own for one output.
pub(crate) const RESERVED: &str = ".evener";

/// Digits of the name of such a folder, and of a mark, which are hexadecimal.
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

/// Whether a name is that of a note, at any depth, for a place may lie above one that was an output's: `.evener/OBJECT/TRY/0` or `0-2`, where TRY
/// is a mark and three numbers. Who gives an object a name that only looks like one has it as an object.
pub(crate) fn is_reserved(name: &str) -> bool {
    let mut behind = name.rsplit('/');
    let (own, tried, object, folder) = (behind.next(), behind.next(), behind.next(), behind.next());
    let is_note = own.is_some_and(|own| own.split('-').count() <= 2 && own.split('-').all(is_number));
    let is_try = tried.and_then(|tried| tried.split_once('-')).is_some_and(|(mark, numbers)| {
        is_of_digits(mark) && numbers.split('-').count() == 3 && numbers.split('-').all(is_number)
    });
    folder == Some(RESERVED) && object.is_some_and(is_of_digits) && is_try && is_note
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

fn is_of_digits(folder: &str) -> bool {
    let is_digit = |digit: u8| digit.is_ascii_digit() || matches!(digit, b'a'..=b'f');
    folder.len() == FOLDER_DIGITS && folder.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_told_from_all_other_names_wherever_they_lie() {
        let digits = "0123456789abcdef0123456789abcdef";
        for note in [".evener/{}/{}-2-8388608-9000/0", "a/b/.evener/{}/{}-3-8388608-9000/0-1"] {
            assert!(is_reserved(&note.replace("{}", digits)), "{note}");
        }
        for other in [
            "a",
            ".evener",
            ".evener/a",
            ".evener/{}",
            ".evener/{}/a",
            ".evener/{}/{}/0",
            ".evener/{}/{}-2-8388608/0",
            ".evener/{}/{}-2-8388608-9000/a",
            ".evener/{}/{}-2-8388608-9000/0-1-2",
            ".evener/{}/{}-2-8388608-9000/0.age",
            ".evener/{}/{}-2-8388608-9000/0/a",
            ".evener/{}0/{}-2-8388608-9000/0",
            "a.evener/{}/{}-2-8388608-9000/0",
            "{}/{}-2-8388608-9000/0",
        ] {
            assert!(!is_reserved(&other.replace("{}", digits)), "{other}");
        }
    }
}
