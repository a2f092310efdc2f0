//! Blocks: rows that were written at once, sealed under the record's key.
//!
//! A record is [`MAGIC`] and then blocks, each = length in 32 bits, little end first || nonce (24 bytes, random) || XChaCha20-Poly1305 of
//! request (16 bytes) || group (16) || rows (96 each), bound to `MAGIC`. A block under another key does not open, and is passed over.

use chacha20poly1305::aead::AeadInPlace as _;
use chacha20poly1305::{Tag, XChaCha20Poly1305, XNonce};

use super::Known;
use super::row::Row;
use crate::error::FormatError;
use crate::random::fill_random;

/// How every record of this version begins.
pub(super) const MAGIC: &[u8; 16] = b"evener record 1\n";
/// How records of other versions begin, too.
pub(super) const MAGIC_OF_ALL: &[u8] = b"evener record ";

const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;
/// Request and group.
const ABOUT_BYTES: usize = 32;
const LENGTH_BYTES: usize = 4;
/// Rows of a block at most, so that a length that damage made up asks for no memory: 1.5 MiB.
const ROWS_MAX: usize = 1 << 14;

/// What was asked, as a keyed digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Request(pub(super) [u8; 16]);

/// Runs that had one passphrase, as a random number: nothing of the passphrase is in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Group(pub(super) [u8; 16]);

/// Blocks of `rows`, ready to be appended.
pub(super) fn seal(
    cipher: &XChaCha20Poly1305,
    request: Request,
    group: Group,
    rows: &[Row],
) -> Result<Vec<u8>, FormatError> {
    let mut blocks = Vec::with_capacity(rows.len() * Row::BYTES + 128);
    for rows in rows.chunks(ROWS_MAX) {
        let mut text = Vec::with_capacity(ABOUT_BYTES + rows.len() * Row::BYTES + TAG_BYTES);
        text.extend_from_slice(&request.0);
        text.extend_from_slice(&group.0);
        rows.iter().for_each(|row| row.write(&mut text));
        let mut nonce = [0; NONCE_BYTES];
        fill_random(&mut nonce)?;
        let sealed = cipher.encrypt_in_place(XNonce::from_slice(&nonce), MAGIC, &mut text);
        sealed.map_err(|error| FormatError::Library(error.to_string()))?;
        let length = u32::try_from(text.len()).expect("a block is short");
        blocks.extend_from_slice(&length.to_le_bytes());
        blocks.extend_from_slice(&nonce);
        blocks.extend_from_slice(&text);
    }
    Ok(blocks)
}

/// Bytes of the block that `bytes` begin with; `None` where no whole one does.
pub(super) fn length(bytes: &[u8]) -> Option<usize> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    let sealed = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let row_bytes = sealed.checked_sub(ABOUT_BYTES + TAG_BYTES)?;
    let is_possible = row_bytes % Row::BYTES == 0 && (1..=ROWS_MAX).contains(&(row_bytes / Row::BYTES));
    let is_whole = rest.len() >= NONCE_BYTES + sealed;
    (is_possible && is_whole).then_some(LENGTH_BYTES + NONCE_BYTES + sealed)
}

/// Adds the rows of a block to `known`; whether it opened. It is opened in place, and one that does not open stays as it was.
pub(super) fn open(cipher: &XChaCha20Poly1305, block: &mut [u8], known: &mut Vec<Known>) -> bool {
    let (nonce, text) = block[LENGTH_BYTES..].split_at_mut(NONCE_BYTES);
    let (text, tag) = text.split_at_mut(text.len() - TAG_BYTES);
    let (nonce, tag) = (XNonce::from_slice(nonce), Tag::from_slice(tag));
    if cipher.decrypt_in_place_detached(nonce, MAGIC, text, tag).is_err() {
        return false;
    }
    let (about, rows) = text.split_at(ABOUT_BYTES);
    let (request, group) = about.split_at(ABOUT_BYTES / 2);
    let (request, group) = (Request(half(request)), Group(half(group)));
    let rows =
        rows.chunks_exact(Row::BYTES).map(|row| Row::read(row.try_into().expect("it has this length")));
    known.extend(rows.map(|row| Known { row, request, group }));
    true
}

fn half(bytes: &[u8]) -> [u8; 16] {
    bytes.try_into().expect("a half has 16 bytes")
}

#[cfg(test)]
mod tests {
    use chacha20poly1305::KeyInit as _;

    use super::super::row::Stamp;
    use super::*;

    fn rows(count: u64) -> Vec<Row> {
        let stamp = |bytes| Stamp { bytes, ..Stamp::default() };
        (0..count)
            .map(|number| Row { source: stamp(number), output: stamp(!number), ..Row::default() })
            .collect()
    }

    fn open_all(cipher: &XChaCha20Poly1305, bytes: &[u8]) -> Vec<Row> {
        let (mut known, mut bytes) = (Vec::new(), bytes.to_vec());
        let mut rest = bytes.as_mut_slice();
        while let Some(length) = length(rest) {
            let (block, behind) = rest.split_at_mut(length);
            let before = block.to_vec();
            assert!(open(cipher, block, &mut known) || *block == *before);
            rest = behind;
        }
        known.into_iter().map(|known| known.row).collect()
    }

    #[test]
    fn rows_come_back_under_their_key_and_under_no_other() {
        let (cipher, other) =
            (XChaCha20Poly1305::new(&[1; 32].into()), XChaCha20Poly1305::new(&[2; 32].into()));
        for count in [1, 2, ROWS_MAX as u64, ROWS_MAX as u64 + 1] {
            let blocks = seal(&cipher, Request::default(), Group::default(), &rows(count)).unwrap();
            assert!(open_all(&cipher, &blocks) == rows(count));
            assert!(open_all(&other, &blocks).is_empty());
        }
    }

    #[test]
    fn a_block_with_any_bit_turned_or_any_byte_missing_gives_no_row_that_was_not_written() {
        let cipher = XChaCha20Poly1305::new(&[1; 32].into());
        let mut blocks = seal(&cipher, Request([7; 16]), Group([8; 16]), &rows(2)).unwrap();
        let first = blocks.len();
        blocks.extend(seal(&cipher, Request([7; 16]), Group([8; 16]), &rows(1)).unwrap());
        let written = rows(2);
        for bit in 0..first * 8 {
            let mut damaged = blocks.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(open_all(&cipher, &damaged).len() <= 1, "{bit}");
        }
        for end in 0..blocks.len() {
            assert!(open_all(&cipher, &blocks[..end]).iter().all(|row| written.contains(row)), "{end}");
        }
    }
}
