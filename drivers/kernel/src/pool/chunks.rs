//! A long text in pieces, each with the IV that the one before leaves.

use evener_core::{BLOCK_BYTES, Direction, Family};

use crate::pool::device::{Spec, Task};

/// Calls `run` with IV, piece, and whether it is the first; the piece is replaced by its result.
pub(crate) fn in_pieces<E>(
    task: &mut Task,
    piece_bytes: usize,
    mut run: impl FnMut(&[u8], &mut [u8], bool) -> Result<(), E>,
) -> Result<(), E> {
    let Spec { algorithm, direction } = task.spec;
    let (mut iv, iv_bytes) = (task.iv, algorithm.iv_bytes());
    for (number, piece) in task.text_mut().chunks_mut(piece_bytes).enumerate() {
        let next = next_iv(algorithm.family(), &iv, piece, direction);
        run(&iv[..iv_bytes], piece, number == 0)?;
        iv = next.unwrap_or_else(|| last_block(piece));
    }
    Ok(())
}

/// The IV after `piece`, where it is known before the work; `None` where the result's last block is the next IV.
#[must_use]
pub fn next_iv(family: Family, iv: &[u8; 16], piece: &[u8], direction: Direction) -> Option<[u8; 16]> {
    match family {
        Family::Cbc if direction == Direction::Encrypt => None,
        Family::Cbc => Some(last_block(piece)),
        Family::Ctr => {
            let blocks = u128::try_from(piece.len().div_ceil(BLOCK_BYTES)).unwrap_or(u128::MAX);
            Some(u128::from_be_bytes(*iv).wrapping_add(blocks).to_be_bytes())
        }
        _ => Some(*iv),
    }
}

pub(crate) fn last_block(piece: &[u8]) -> [u8; BLOCK_BYTES] {
    piece.last_chunk().copied().unwrap_or_default()
}
