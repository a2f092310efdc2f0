//! What each part of a piece starts from, worked out before anything is overwritten (docs/design/gcm-split.md has the table).

use std::iter::successors;

use evener_core::Family;
use evener_core::xts::Stride;
use evener_kernels::modes::{BLOCK, Key};

type Block = [u8; BLOCK];

/// What each part starts from, and what the piece behind all of them does.
pub(super) fn of(
    family: Family,
    key: &Key,
    iv: &Block,
    input: &[u8],
    part_bytes: usize,
) -> (Vec<Block>, Block) {
    let count = input.len().div_ceil(part_bytes);
    match family {
        Family::Ctr => {
            let blocks_on =
                |blocks: usize| u128::from_be_bytes(*iv).wrapping_add(blocks as u128).to_be_bytes();
            let starts = (0..count).map(|part| blocks_on(part * part_bytes / BLOCK)).collect();
            (starts, blocks_on(input.len() / BLOCK))
        }
        Family::Cbc => {
            let ends = input.chunks(part_bytes).filter_map(|part| part.last_chunk().copied());
            let mut starts: Vec<Block> = [*iv].into_iter().chain(ends).collect();
            let end = starts.pop().unwrap_or(*iv);
            (starts, end)
        }
        Family::Xts => {
            let stride = Stride::over((part_bytes / BLOCK) as u64);
            let tweaks = successors(Some(key.tweak(iv)), |tweak| Some(stride.after(tweak)));
            (tweaks.take(count).collect(), *iv)
        }
        _ => (vec![*iv; count], *iv),
    }
}
