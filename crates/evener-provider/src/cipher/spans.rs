//! How an update falls into blocks, and what of a piece of memory is input and output.

use evener_core::BLOCK_BYTES;
use evener_core::job::Memory;

/// How an update falls into blocks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Bytes that go to the held block.
    pub(crate) fill: usize,
    /// Whether the held block, then whole, is worked on.
    pub(crate) flush: bool,
    /// Bytes that are worked on where they lie.
    pub(crate) bulk: usize,
}

impl Cut {
    /// `holds_back`: a whole last block waits for what comes (decryption with padding).
    pub(crate) fn of(held: usize, len: usize, holds_back: bool) -> Self {
        let fill = if held > 0 { len.min(BLOCK_BYTES - held) } else { 0 };
        let after = len - fill;
        let flush = held + fill == BLOCK_BYTES && (!holds_back || after > 0);
        let whole = after - after % BLOCK_BYTES;
        let bulk = if holds_back && whole == after { whole.saturating_sub(BLOCK_BYTES) } else { whole };
        Self { fill, flush, bulk }
    }

    pub(crate) fn flushed(&self) -> usize {
        if self.flush { BLOCK_BYTES } else { 0 }
    }

    pub(crate) fn output(&self) -> usize {
        self.flushed() + self.bulk
    }
}

pub(crate) fn input_of<'m>(memory: &'m Memory<'_>) -> &'m [u8] {
    match memory {
        Memory::InPlace { space, input_bytes } => &space[..*input_bytes],
        Memory::Apart { src, .. } => src,
    }
}

pub(crate) fn output_of<'m>(memory: &'m Memory<'_>, len: usize) -> &'m [u8] {
    match memory {
        Memory::InPlace { space, .. } => &space[..len],
        Memory::Apart { dst, .. } => &dst[..len],
    }
}

pub(crate) fn output_mut<'m>(memory: &'m mut Memory<'_>, len: usize) -> &'m mut [u8] {
    match memory {
        Memory::InPlace { space, .. } => &mut space[..len],
        Memory::Apart { dst, .. } => &mut dst[..len],
    }
}

pub(super) fn last_block(bytes: &[u8]) -> [u8; BLOCK_BYTES] {
    *bytes.last_chunk().expect("block work is whole blocks, and not none")
}

/// Moves a big-endian counter by `blocks`; it wraps at 2^128.
pub(super) fn advance(counter: &mut [u8; 16], blocks: u128) {
    *counter = u128::from_be_bytes(*counter).wrapping_add(blocks).to_be_bytes();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OpenSSL's own steps, byte by byte: a block goes when it is whole and, held back, when another byte comes.
    fn simulated(held: usize, len: usize, holds_back: bool) -> (usize, usize) {
        let (mut waiting, mut passed) = (held, 0);
        for _ in 0..len {
            if waiting == BLOCK_BYTES {
                (waiting, passed) = (0, passed + BLOCK_BYTES);
            }
            waiting += 1;
            if waiting == BLOCK_BYTES && !holds_back {
                (waiting, passed) = (0, passed + BLOCK_BYTES);
            }
        }
        (passed, waiting)
    }

    #[test]
    fn an_update_falls_into_blocks_as_if_byte_by_byte() {
        for holds_back in [false, true] {
            for held in 0..=if holds_back { BLOCK_BYTES } else { BLOCK_BYTES - 1 } {
                for len in 1..70 {
                    let cut = Cut::of(held, len, holds_back);
                    let waiting = held + len - cut.output();
                    assert_eq!(
                        (cut.output(), waiting),
                        simulated(held, len, holds_back),
                        "{held} {len} {cut:?}"
                    );
                    assert_eq!(cut.bulk % BLOCK_BYTES, 0);
                }
            }
        }
    }

    #[test]
    fn a_counter_carries_and_wraps() {
        let mut counter = [0xff; 16];
        advance(&mut counter, 2);
        assert_eq!(counter, 1_u128.to_be_bytes());
        advance(&mut counter, u128::MAX);
        assert_eq!(counter, [0; 16]);
    }
}
