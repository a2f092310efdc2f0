//! A mark that tells a finished output from any other: of which source it was made, and for which key.

use crate::request::Task;

/// Bytes of a mark. Half a digest: as hard to meet by chance as an object's own random values.
const MARK_BYTES: usize = 16;

/// A digest of `about` (what the source is) and of the keys of `task`, as 32 hexadecimal digits.
///
/// It tells nothing of them. A Tink key is its key; recipients are public, so that there the random `salt` keeps who does not know it from
/// trying guesses.
///
/// `None` where a passphrase belongs to the keys, which is in no digest.
#[must_use]
pub fn mark(task: &Task, salt: &[u8], about: &[&[u8]]) -> Option<String> {
    let facts = task.key_facts();
    if facts.is_by_passphrase {
        return None;
    }
    let digest = facts.digest(b"evener object 1", salt, about);
    Some(digest[..MARK_BYTES].iter().map(|byte| format!("{byte:02x}")).collect())
}
