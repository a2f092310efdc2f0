//! Armor, the text form of age files: how it is recognized, and the binary file inside.
//!
//! Armor is read, never written: [`is_armored`] -> [`dearmored`] -> the rest as usual.

use std::io::{self, BufRead, Read};

use age::armor::ArmoredReader;

const ARMOR_LINE: &[u8] = b"-----BEGIN AGE ENCRYPTED FILE-----";
/// White space that may stand before armor, as in the reference implementation.
const WHITE_BYTES_MAX: usize = 1024;

/// Bytes of a file that show whether it is armored.
pub(crate) const ARMOR_START_BYTES: usize = WHITE_BYTES_MAX + ARMOR_LINE.len();

/// Whether a file whose first bytes are `start` is armored. 1060 bytes are enough.
#[must_use]
pub fn is_armored(start: &[u8]) -> bool {
    start[blank_lines_bytes(start)..].starts_with(ARMOR_LINE)
}

/// The binary file inside an armored one. Reading fails with [`io::ErrorKind::InvalidData`] where the armor is
/// damaged.
///
/// # Errors
///
/// Those of `reader`.
pub fn dearmored<R: BufRead>(mut reader: R) -> io::Result<impl Read> {
    let mut left = WHITE_BYTES_MAX;
    // Blank lines before the armor: the crate takes none.
    while left > 0 && reader.fill_buf()?.first().is_some_and(u8::is_ascii_whitespace) {
        reader.consume(1);
        left -= 1;
    }
    Ok(ArmoredReader::new(reader))
}

fn blank_lines_bytes(start: &[u8]) -> usize {
    let start = &start[..start.len().min(WHITE_BYTES_MAX)];
    start.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(start.len())
}
