//! A long text in chunks, each with the IV that the one before leaves.

use evener_core::{BLOCK_BYTES, Direction, Family};

use crate::pool::device::{Spec, Task};

/// Calls `run` with IV, chunk, and whether it is the first; the chunk is replaced by its result.
pub(crate) fn in_chunks<E>(
    task: &mut Task,
    chunk_bytes: usize,
    mut run: impl FnMut(&[u8], &mut [u8], bool) -> Result<(), E>,
) -> Result<(), E> {
    let Spec { algorithm, direction } = task.spec;
    let (mut iv, iv_bytes) = (task.iv, algorithm.iv_bytes());
    for (number, chunk) in task.text_mut().chunks_mut(chunk_bytes).enumerate() {
        let next = next_iv(algorithm.family(), &iv, chunk, direction);
        run(&iv[..iv_bytes], chunk, number == 0)?;
        iv = next.unwrap_or_else(|| last_block(chunk));
    }
    Ok(())
}

/// The IV after `chunk`, where it is known before the work; `None` where the result's last block is the next IV.
#[must_use]
pub fn next_iv(family: Family, iv: &[u8; 16], chunk: &[u8], direction: Direction) -> Option<[u8; 16]> {
    match family {
        Family::Cbc if direction == Direction::Encrypt => None,
        Family::Cbc => Some(last_block(chunk)),
        Family::Ctr => {
            let blocks = u128::try_from(chunk.len().div_ceil(BLOCK_BYTES)).unwrap_or(u128::MAX);
            Some(u128::from_be_bytes(*iv).wrapping_add(blocks).to_be_bytes())
        }
        _ => Some(*iv),
    }
}

pub(crate) fn last_block(chunk: &[u8]) -> [u8; BLOCK_BYTES] {
    chunk.last_chunk().copied().unwrap_or_default()
}
