//! What the outside of an encrypted file says: its format, for which kinds of keys it is, and how long its parts are. No key is used.
//!
//! start of the file -> armor is taken off -> the format by its first bytes -> its header -> lengths of the rest.

use std::io::{BufReader, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::armor::{ARMOR_START_BYTES, Armor};
use crate::error::FormatError;
use crate::format::{HEADER_START_BYTES_MAX, HeaderView, outside};

/// What was seen. Fields of the age format are those of `age-inspect --json`; those of the others have the same meaning.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Inspection {
    /// The format and its version, such as `age-encryption.org/v1`.
    pub version: String,
    /// Whether a quantum computer could not open it either: `yes`, `no` or `unknown`.
    pub postquantum: &'static str,
    /// Whether it is text (age's armor, or base64 of the openssl format).
    pub armor: bool,
    /// Kinds of recipients, one for each in order, as the header names them; of the other formats the kind of key.
    pub stanza_types: Vec<String>,
    /// Lengths of its parts.
    pub sizes: Sizes,
}

/// Lengths in bytes. A payload has more than one possible length where padding or segments are not seen from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Sizes {
    /// The header.
    pub header: u64,
    /// What the armor adds.
    pub armor: u64,
    /// Nonces and tags; at least so much where it is not seen from outside.
    pub overhead: u64,
    /// The least that the plaintext may have.
    pub min_payload: u64,
    /// The most that the plaintext may have.
    pub max_payload: u64,
    /// The least padding.
    pub min_padding: u64,
    /// The most padding.
    pub max_padding: u64,
}

/// Looks at a file from its start to its end.
///
/// # Errors
///
/// [`FormatError::Header`] where it is in none of the formats or its header is damaged, [`FormatError::Truncated`] where no file has this
/// length, [`FormatError::Library`] where it cannot be read.
pub fn inspect(file: impl Read + Send) -> Result<Inspection, FormatError> {
    let read = AtomicU64::new(0);
    let mut counted = Counted { inner: file, bytes: &read };
    let start = read_at_most(&mut counted, ARMOR_START_BYTES as u64)?;
    let armor = [Armor::Age, Armor::Base64].into_iter().find(|armor| armor.is_armored(&start));
    let whole = (&start[..]).chain(counted);
    let Some(armor) = armor else { return binary(whole, || None) };
    let bare = armor.dearmored(BufReader::new(whole)).map_err(cannot_read)?;
    binary(bare, || Some(read.load(Ordering::Relaxed)))
}

/// Looks at a binary file; `text_bytes` says, when it was read, how long its text was.
fn binary(mut file: impl Read, text_bytes: impl FnOnce() -> Option<u64>) -> Result<Inspection, FormatError> {
    let start = read_at_most(&mut file, HEADER_START_BYTES_MAX as u64)?;
    // What is in none of the formats may go on for ever.
    if let Err(error @ FormatError::Header { .. }) = outside(&start, start.len() as u64) {
        return Err(error);
    }
    let rest = std::io::copy(&mut file, &mut std::io::sink()).map_err(cannot_read)?;
    let bytes = start.len() as u64 + rest;
    let text_bytes = text_bytes();
    let HeaderView { version, postquantum, kinds, header, shortest, longest } = outside(&start, bytes)?;
    let body = bytes.saturating_sub(header);
    let sizes = Sizes {
        header,
        armor: text_bytes.map_or(0, |text| text.saturating_sub(bytes)),
        overhead: body - longest.0 - longest.1,
        min_payload: shortest.0,
        max_payload: longest.0,
        min_padding: longest.1,
        max_padding: shortest.1,
    };
    Ok(Inspection { version, postquantum, armor: text_bytes.is_some(), stanza_types: kinds, sizes })
}

fn read_at_most(file: &mut impl Read, most: u64) -> Result<Vec<u8>, FormatError> {
    let mut bytes = Vec::new();
    file.by_ref().take(most).read_to_end(&mut bytes).map_err(cannot_read)?;
    Ok(bytes)
}

fn cannot_read(error: std::io::Error) -> FormatError {
    FormatError::Library(format!("cannot read: {error}"))
}

/// A reader that counts.
struct Counted<'c, R> {
    inner: R,
    bytes: &'c AtomicU64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let came = self.inner.read(to)?;
        self.bytes.fetch_add(came as u64, Ordering::Relaxed);
        Ok(came)
    }
}
