//! CTR (NIST SP 800-38A, 6.5) with a counter of 128 bits, highest byte first, as OpenSSL counts.

use crate::aes::Schedule;
use crate::turn::{Step, counters, first_key, loaded, middle_rounds, store_all, walk};
use crate::vector::{self, Block, Vector};

struct Ctr<'k> {
    key: &'k Schedule,
    /// The next block's counter, bytes reversed, of which only the lowest word of 32 bits is counted up.
    counter: Block,
}

impl<V: Vector> Step<V> for Ctr<'_> {
    #[inline(always)]
    unsafe fn take<const COUNT: usize, const FULL: bool>(
        &mut self,
        from: *const Block,
        to: *mut Block,
        blocks: usize,
    ) {
        let mut texts = counters::<V, COUNT>(&mut self.counter, blocks, first_key::<V>(self.key));
        let last_key = middle_rounds::<V, COUNT, true>(self.key, &mut texts);
        for (register, text) in texts.iter_mut().enumerate() {
            *text = text.last_round(last_key.xor(loaded::<V, COUNT, FULL>(from, register, blocks)));
        }
        store_all::<V, COUNT, FULL>(texts, to, blocks);
    }
}

/// Encrypts or decrypts blocks by the counter in `chain`, which is that of the block behind them then.
///
/// # Safety
/// As [`Vector`]; both are good for that many blocks.
#[inline(always)]
pub(super) unsafe fn crypt<V: Vector>(
    key: &Schedule,
    chain: &mut Block,
    from: *const Block,
    to: *mut Block,
    blocks: usize,
) {
    let first = chain.reversed();
    let (mut from, mut to, mut left) = (from, to, blocks);
    let mut step = Ctr { key, counter: first };
    // The lowest word goes round at most once in 64 GiB: what lies before that is counted by itself.
    let [low, _] = vector::halves(first);
    let before_end = (1_usize << 32) - (low & 0xffff_ffff) as usize;
    if left >= before_end {
        walk::<V, _>(&mut step, from, to, before_end);
        (from, to, left) = (from.add(before_end), to.add(before_end), left - before_end);
        step.counter = plus(first, before_end);
    }
    walk::<V, _>(&mut step, from, to, left);
    *chain = step.counter.reversed();
}

/// The counter so many blocks on.
#[inline(always)]
unsafe fn plus(counter: Block, blocks: usize) -> Block {
    let [low, high] = vector::halves(counter);
    let (low, is_over) = low.overflowing_add(blocks as u64);
    vector::number(high.wrapping_add(u64::from(is_over)), low)
}
