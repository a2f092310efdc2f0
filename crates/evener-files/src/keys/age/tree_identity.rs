//! The identity of a tree under a passphrase, and what else is made for a passphrase once: small files under it, and new passphrases.
//!
//! A tree under a passphrase is sealed for an identity that is made for it; that identity stands in the tree's output as one
//! age file under the passphrase ([`TREE_IDENTITY`]). So scrypt runs once, and any age opens the tree: `age -d -i TREE/.evener-identity.age`.

use std::time::SystemTime;

use secrecy::SecretString;
use zeroize::Zeroizing;

use super::facts::identity;
use super::file_key::random;
use super::identities::{NewIdentity, generate_identity};
use super::small_file;
use crate::armor::is_armored;
use crate::error::FormatError;
use crate::keys::age::WorkFactors;
use crate::keys::text::decoded;

/// The name of a tree's identity in the tree's output.
pub const TREE_IDENTITY: &str = ".evener-identity.age";

/// Whether a file is an age file, armored or not, by its first bytes.
#[must_use]
pub fn is_age_file(start: &[u8]) -> bool {
    is_armored(start) || start.starts_with(b"age-encryption.org/")
}

/// A small file under a passphrase.
///
/// # Errors
///
/// [`FormatError::Library`] where the kernel gives no random bytes.
pub fn sealed_under(passphrase: &SecretString, plain: &[u8]) -> Result<Vec<u8>, FormatError> {
    small_file::seal(plain, passphrase.clone(), small_file::FACTORS)
}

/// What a small file under a passphrase holds.
///
/// # Errors
///
/// [`FormatError::Identity`] where it is damaged or under another passphrase.
pub fn opened_under(passphrase: &SecretString, file: &[u8]) -> Result<Zeroizing<Vec<u8>>, FormatError> {
    opened_within(passphrase, file, small_file::FACTORS)
}

fn opened_within(
    passphrase: &SecretString,
    file: &[u8],
    factors: WorkFactors,
) -> Result<Zeroizing<Vec<u8>>, FormatError> {
    let opened = small_file::Sealed::read(file)?.open(passphrase.clone(), factors)?;
    opened.ok_or_else(|| identity("wrong passphrase for the encrypted file"))
}

/// A tree's identity, new: the text of it, and the file that keeps it.
///
/// # Errors
///
/// As [`sealed_under`].
pub fn new_tree_identity(
    passphrase: &SecretString,
    factors: WorkFactors,
) -> Result<(Zeroizing<String>, Vec<u8>), FormatError> {
    let NewIdentity { file: text, .. } = generate_identity(SystemTime::now(), false)?;
    let file = small_file::seal(text.as_bytes(), passphrase.clone(), factors)?;
    Ok((text, file))
}

/// A tree's identity from the file that keeps it; one that asks for more than `factors` accept is refused.
///
/// # Errors
///
/// As [`opened_under`].
pub fn tree_identity(
    passphrase: &SecretString,
    file: &[u8],
    factors: WorkFactors,
) -> Result<Zeroizing<String>, FormatError> {
    decoded(&opened_within(passphrase, file, factors)?)
        .ok_or_else(|| identity("the encrypted file is not text"))
}

/// A new passphrase of ten words, 110 bits.
///
/// # Errors
///
/// [`FormatError::Library`] where the kernel gives no random bytes.
pub fn new_passphrase() -> Result<Zeroizing<String>, FormatError> {
    let words: Vec<&str> = WORDS.lines().collect();
    let mut passphrase = Zeroizing::new(String::with_capacity(16 * PASSPHRASE_WORDS));
    let random = random::<{ 2 * PASSPHRASE_WORDS }>()?;
    for pair in random.chunks_exact(2) {
        if !passphrase.is_empty() {
            passphrase.push('-');
        }
        // 2048 words: no remainder favours any of them.
        passphrase.push_str(words[usize::from(u16::from_le_bytes([pair[0], pair[1]])) % words.len()]);
    }
    Ok(passphrase)
}

/// As many words as age takes.
const PASSPHRASE_WORDS: usize = 10;
/// The 2048 English words of BIP 39, as in age.
const WORDS: &str = include_str!("words.txt");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_passphrases_are_ten_words_and_never_the_same() {
        let (one, other) = (new_passphrase().unwrap(), new_passphrase().unwrap());
        assert_ne!(*one, *other);
        assert!(one.split('-').all(|word| WORDS.lines().any(|known| known == word)), "{}", *one);
        assert_eq!((one.split('-').count(), WORDS.lines().count()), (10, 2048));
    }
}
