//! A mark that tells a finished output from any other: of which source it was made, and for which key.

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

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
    let key = facts.secret.as_ref().map_or(salt, |secret| &secret[..]);
    let mut mark = hmac(key);
    mark.update(b"evener object 1");
    // Each part with its length, so that no two are one text.
    for part in facts.parts.iter().map(|part| &part[..]).chain(about.iter().copied()) {
        mark.update(&(part.len() as u64).to_le_bytes());
        mark.update(part);
    }
    let digest = mark.finalize().into_bytes();
    Some(digest[..MARK_BYTES].iter().map(|byte| format!("{byte:02x}")).collect())
}

fn hmac(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("it takes keys of any length")
}
