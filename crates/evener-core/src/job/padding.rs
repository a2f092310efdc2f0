//! PKCS#7 (RFC 5652, 6.3), for drivers whose library does not pad, or pads at the price of another call.

use crate::units::BLOCK_BYTES;

/// Length of a text of `text_bytes` with its padding: the next block boundary, and a whole block more where it
/// ends on one.
#[must_use]
pub const fn padded_bytes(text_bytes: usize) -> usize {
    text_bytes - text_bytes % BLOCK_BYTES + BLOCK_BYTES
}

/// Padding behind a text of whole blocks: each byte is how many there are.
const WHOLE_BLOCK: [u8; BLOCK_BYTES] = [16; BLOCK_BYTES];

/// Fills `space` with padding from `text_bytes` on.
///
/// # Panics
///
/// Where `space` is not [`padded_bytes`] long.
pub fn pad(space: &mut [u8], text_bytes: usize) {
    assert_eq!(space.len(), padded_bytes(text_bytes), "space for the text and its padding");
    let padding = &mut space[text_bytes..];
    // Behind whole blocks, where most texts end: one store, where a fill of any length is a call.
    if let Ok(block) = <&mut [u8; BLOCK_BYTES]>::try_from(&mut *padding) {
        *block = WHOLE_BLOCK;
        return;
    }
    let value = u8::try_from(padding.len()).expect("at most a block");
    padding.fill(value);
}

/// Bytes of text in the last block of a padded text; `None` where the padding is not PKCS#7.
///
/// Takes the same steps for every block, so that only the outcome says anything about it.
#[must_use]
pub fn text_bytes(last: &[u8; BLOCK_BYTES]) -> Option<usize> {
    let value = last[BLOCK_BYTES - 1];
    let padding_bytes = usize::from(value);
    let mut wrong = u8::from(padding_bytes == 0) | u8::from(padding_bytes > BLOCK_BYTES);
    for (place, byte) in last.iter().enumerate() {
        let is_padding = u8::from(place + padding_bytes >= BLOCK_BYTES);
        wrong |= is_padding * (byte ^ value);
    }
    (wrong == 0).then(|| BLOCK_BYTES - padding_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_taken_for_what_it_is_and_nothing_else() {
        for text in 0..BLOCK_BYTES {
            let mut block = [0xAA; BLOCK_BYTES];
            pad(&mut block, text);
            assert_eq!(text_bytes(&block), Some(text));
            for damaged in text..BLOCK_BYTES {
                let mut block = block;
                block[damaged] ^= 0x40;
                assert_eq!(text_bytes(&block), None, "text of {text}, byte {damaged}");
            }
        }
        for value in [0, 17, 32, 255] {
            assert_eq!(text_bytes(&[value; BLOCK_BYTES]), None, "{value}");
        }
    }

    #[test]
    fn a_text_of_whole_blocks_gets_a_block_of_padding() {
        assert_eq!([0, 1, 15, 16, 17, 32].map(padded_bytes), [16, 16, 16, 32, 32, 48]);
        let mut space = [0; 32];
        pad(&mut space, 16);
        assert_eq!(space[16..], [16; 16]);
    }
}
