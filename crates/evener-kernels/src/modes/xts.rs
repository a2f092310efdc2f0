//! XTS (IEEE 1619, NIST SP 800-38E): whole blocks of a data unit. What steals ciphertext is `mod.rs`'s.
//!
//! Block `i` has the tweak of the unit times x^i. A register's tweaks are those of the register before times x to its number of blocks, and those of a turn's
//! first register those of the first before times x to the turn's, so that no turn waits for the whole chain of the one before: two shifts, and one carry-less
//! product that folds what has left the block back in.

use crate::aes::Schedule;
use crate::turn::{REGISTERS, Step, first_key, last_round, loaded, middle_rounds, store_all, walk};
use crate::vector::{self, Block, Vector};

/// x^7 + x^2 + x + 1, what x^128 is.
const POLYNOMIAL: u64 = 0x87;

struct Xts<'k, V, const ENCRYPTS: bool> {
    key: &'k Schedule,
    /// Of the next turn's first blocks.
    tweaks: V,
    /// Of the block behind those that were taken.
    next: Block,
}

impl<V: Vector, const ENCRYPTS: bool> Step<V> for Xts<'_, V, ENCRYPTS> {
    /// Texts and tweaks of six fit into sixteen registers, with a round key and what moves tweaks on; 32 have room for those of eight.
    const TURN: usize = if V::BLOCKS == 4 { REGISTERS } else { 6 };

    #[inline(always)]
    unsafe fn take<const COUNT: usize, const FULL: bool>(
        &mut self,
        from: *const Block,
        to: *mut Block,
        blocks: usize,
    ) {
        let first_key = first_key::<V>(self.key);
        let tweaks = tweaks::<V, COUNT>(self.tweaks);
        // Begun before the rounds where one register more is free for it: what the next turn waits for.
        let next = if V::BLOCKS == 1 && FULL { behind(tweaks).pinned() } else { self.tweaks };
        let mut texts = tweaks;
        for (register, text) in texts.iter_mut().enumerate() {
            *text = text.xor(first_key).xor(loaded::<V, COUNT, FULL>(from, register, blocks));
        }
        let last_key = middle_rounds::<V, COUNT, ENCRYPTS>(self.key, &mut texts);
        for (text, tweak) in texts.iter_mut().zip(tweaks) {
            *text = last_round::<V, ENCRYPTS>(*text, last_key.xor(tweak));
        }
        store_all::<V, COUNT, FULL>(texts, to, blocks);
        if FULL {
            self.tweaks = if V::BLOCKS == 1 { next } else { behind(tweaks) };
        } else {
            let (last, taken) = (tweaks[COUNT - 1], blocks - (COUNT - 1) * V::BLOCKS);
            self.next = if taken < V::BLOCKS { last.nth(taken) } else { times_x_to(last, V::BLOCKS).nth(0) };
        }
    }
}

/// Encrypts or decrypts blocks from the tweak in `chain` on, which is that of the block behind them then. The key is of that direction.
///
/// # Safety
/// As [`Vector`]; both are good for that many blocks.
#[inline(always)]
pub(super) unsafe fn crypt<V: Vector, const ENCRYPTS: bool>(
    key: &Schedule,
    chain: &mut Block,
    from: *const Block,
    to: *mut Block,
    blocks: usize,
) {
    let mut first = [*chain; 4];
    for at in 1..V::BLOCKS {
        first[at] = times_x_to(first[at - 1], 1);
    }
    let mut step = Xts::<V, ENCRYPTS> { key, tweaks: V::of_blocks(first), next: Block::zero() };
    walk::<V, _>(&mut step, from, to, blocks);
    let is_whole = blocks % (Xts::<V, ENCRYPTS>::TURN * V::BLOCKS) == 0;
    *chain = if is_whole { step.tweaks.nth(0) } else { step.next };
}

/// The tweaks of `COUNT` registers from the first on.
#[inline(always)]
unsafe fn tweaks<V: Vector, const COUNT: usize>(first: V) -> [V; COUNT] {
    let mut tweaks = [first; COUNT];
    if V::BLOCKS == 1 {
        // By additions, which wait for two instructions a block: the bits that leave a block's halves are the first block's, one after the other.
        let mut leaving = vector::leaving(first.nth(0));
        for register in 1..COUNT {
            tweaks[register] = V::in_front(vector::doubled(tweaks[register - 1].nth(0), leaving, POLYNOMIAL));
            leaving = leaving.add(leaving);
        }
    } else {
        for register in 1..COUNT {
            tweaks[register] = times_x_to(tweaks[register - 1], V::BLOCKS);
        }
    }
    tweaks
}

/// The tweaks of the register behind these.
#[inline(always)]
unsafe fn behind<V: Vector, const COUNT: usize>(tweaks: [V; COUNT]) -> V {
    if V::BLOCKS == 1 {
        let last = tweaks[COUNT - 1].nth(0);
        V::in_front(vector::doubled(last, vector::leaving(last), POLYNOMIAL))
    } else {
        times_x_to(tweaks[0], COUNT * V::BLOCKS)
    }
}

/// Each block times x^power, 1 to 32.
#[inline(always)]
unsafe fn times_x_to<V: Vector>(tweaks: V, power: usize) -> V {
    let polynomial = V::everywhere(vector::number(0, POLYNOMIAL));
    let over = tweaks.lowered(64 - power);
    tweaks.raised(power).xor(over.low_to_high()).xor(over.high_by_low(polynomial))
}
