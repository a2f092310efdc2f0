//! Blocks in turns of eight registers, as all kernels take them.
//!
//! A kernel walks over its blocks by [`walk`], which hands its [`Step`] a turn at a time and what is left behind the last turn in one step, by as
//! many registers as that fills.

use std::arch::asm;

use crate::aes::Schedule;
use crate::vector::{self, Block, Vector};

/// Registers in a turn: their rounds hide each other's latency, 4 cycles on Zen 4 and Ice Lake, by twice. With more of them the round keys
/// and the products would not fit into sixteen registers.
pub(crate) const REGISTERS: usize = 8;

/// What a kernel does with up to [`REGISTERS`] registers of blocks.
pub(crate) trait Step<V: Vector> {
    /// Registers of a turn: 6 or [`REGISTERS`].
    const TURN: usize = REGISTERS;

    /// Takes `blocks` blocks from there to there, which fill `COUNT` registers, but for a part of the last where not `FULL`. A register's
    /// blocks are read, once or twice, before its place or that of a later one is written.
    ///
    /// # Safety
    /// As [`Vector`]; both are good for that many blocks.
    unsafe fn take<const COUNT: usize, const FULL: bool>(
        &mut self,
        from: *const Block,
        to: *mut Block,
        blocks: usize,
    );
}

/// Takes `blocks` blocks from there to there, which are the same or apart, or of which the output begins before the input.
///
/// # Safety
/// As [`Vector`]; both are good for that many blocks.
#[inline(always)]
pub(crate) unsafe fn walk<V: Vector, S: Step<V>>(
    step: &mut S,
    from: *const Block,
    to: *mut Block,
    blocks: usize,
) {
    const { assert!(S::TURN == 6 || S::TURN == REGISTERS, "the turns that are written here") };
    let turn = S::TURN * V::BLOCKS;
    let (mut from, mut to, mut left) = (from, to, blocks);
    while left >= turn {
        if S::TURN == 6 {
            step.take::<6, true>(from, to, turn);
        } else {
            step.take::<REGISTERS, true>(from, to, turn);
        }
        (from, to, left) = (from.add(turn), to.add(turn), left - turn);
    }
    match left.div_ceil(V::BLOCKS) {
        0 => {}
        1 => step.take::<1, false>(from, to, left),
        2 => step.take::<2, false>(from, to, left),
        3 => step.take::<3, false>(from, to, left),
        4 => step.take::<4, false>(from, to, left),
        5 => step.take::<5, false>(from, to, left),
        6 => step.take::<6, false>(from, to, left),
        7 if S::TURN == REGISTERS => step.take::<7, false>(from, to, left),
        8 if S::TURN == REGISTERS => step.take::<8, false>(from, to, left),
        _ => {}
    }
}

/// Blocks of register `register` of `COUNT` that `blocks` blocks fill.
#[inline(always)]
fn blocks_in<V: Vector, const COUNT: usize>(register: usize, blocks: usize) -> usize {
    if register == COUNT - 1 { blocks - (COUNT - 1) * V::BLOCKS } else { V::BLOCKS }
}

/// The blocks of register `register`, from `from` on.
///
/// # Safety
/// As [`Step::take`].
#[inline(always)]
pub(crate) unsafe fn loaded<V: Vector, const COUNT: usize, const FULL: bool>(
    from: *const Block,
    register: usize,
    blocks: usize,
) -> V {
    let at = from.wrapping_add(register * V::BLOCKS);
    if FULL { V::load(at) } else { V::load_first(at, blocks_in::<V, COUNT>(register, blocks)) }
}

/// Writes all registers.
///
/// # Safety
/// As [`Step::take`].
#[inline(always)]
pub(crate) unsafe fn store_all<V: Vector, const COUNT: usize, const FULL: bool>(
    texts: [V; COUNT],
    to: *mut Block,
    blocks: usize,
) {
    for (register, text) in texts.into_iter().enumerate() {
        store_one::<V, COUNT, FULL>(text, to, register, blocks);
    }
}

/// Writes register `register`.
///
/// # Safety
/// As [`Step::take`].
#[inline(always)]
pub(crate) unsafe fn store_one<V: Vector, const COUNT: usize, const FULL: bool>(
    text: V,
    to: *mut Block,
    register: usize,
    blocks: usize,
) {
    let at = to.add(register * V::BLOCKS);
    if FULL {
        text.store(at);
    } else {
        text.store_first(at, blocks_in::<V, COUNT>(register, blocks));
    }
}

/// The first round key, read anew in each turn.
///
/// # Safety
/// As [`Vector`].
#[inline(always)]
pub(crate) unsafe fn first_key<V: Vector>(rounds: &Schedule) -> V {
    if V::KEY_FIRST { V::zero() } else { V::everywhere(*unmoved(rounds.keys())) }
}

/// The key of a round between the first and the last.
///
/// # Safety
/// As [`Vector`].
#[inline(always)]
pub(crate) unsafe fn round_key<V: Vector>(keys: *const Block, round: usize) -> V {
    V::everywhere(*keys.add(if V::KEY_FIRST { round - 1 } else { round }))
}

/// The rounds between the first key and the last, of which the last is returned.
///
/// # Safety
/// As [`Vector`].
#[inline(always)]
pub(crate) unsafe fn middle_rounds<V: Vector, const COUNT: usize, const ENCRYPTS: bool>(
    rounds: &Schedule,
    texts: &mut [V; COUNT],
) -> V {
    let (keys, last) = (unmoved(rounds.keys()), rounds.last());
    for round in 1..last {
        let key = round_key::<V>(keys, round);
        for text in &mut *texts {
            *text = if ENCRYPTS { text.round(key) } else { text.inverse_round(key) };
        }
    }
    begin_last::<V, COUNT, ENCRYPTS>(keys, last, texts)
}

/// What of the last round comes before its key, which is returned.
///
/// # Safety
/// As [`Vector`].
#[inline(always)]
pub(crate) unsafe fn begin_last<V: Vector, const COUNT: usize, const ENCRYPTS: bool>(
    keys: *const Block,
    last: usize,
    texts: &mut [V; COUNT],
) -> V {
    if V::KEY_FIRST {
        // Without a key there are no rounds.
        let key = round_key::<V>(keys, last.max(1));
        for text in &mut *texts {
            *text = if ENCRYPTS { text.unmixed_round(key) } else { text.unmixed_inverse_round(key) };
        }
    }
    V::everywhere(*keys.add(last))
}

/// One block, encrypted.
///
/// # Safety
/// As [`Vector`].
#[inline(always)]
pub(crate) unsafe fn encrypted(rounds: &Schedule, block: Block) -> Block {
    let mut texts = [block.xor(first_key::<Block>(rounds))];
    let last_key = middle_rounds::<Block, 1, true>(rounds, &mut texts);
    texts[0].last_round(last_key)
}

/// The last round.
///
/// # Safety
/// As [`Vector`].
#[inline(always)]
pub(crate) unsafe fn last_round<V: Vector, const ENCRYPTS: bool>(text: V, key: V) -> V {
    if ENCRYPTS { text.last_round(key) } else { text.last_inverse_round(key) }
}

/// The counters of `blocks` blocks, which fill `COUNT` registers but for a part of the last, with the first round key added.
#[inline(always)]
pub(crate) unsafe fn counters<V: Vector, const COUNT: usize>(
    counter: &mut Block,
    blocks: usize,
    first_key: V,
) -> [V; COUNT] {
    let mut next = V::everywhere(*counter).add(V::ascending());
    let step = V::everywhere(word(V::BLOCKS));
    *counter = counter.add(word(blocks));
    // No closure: it would be compiled without the register's instructions.
    let mut counters = [next; COUNT];
    for counter in &mut counters {
        *counter = next.reversed().xor(first_key);
        next = next.add(step);
    }
    counters
}

/// A number in the lowest word.
#[inline(always)]
unsafe fn word(number: usize) -> Block {
    vector::number(0, number as u64)
}

/// The same address, which the compiler cannot know to be the same: what is read there is read in each turn, and not kept in registers from
/// turn to turn that would have to be saved on the stack.
#[inline(always)]
pub(crate) unsafe fn unmoved(address: *const Block) -> *const Block {
    let mut address = address;
    asm!("/* {0} */", inout(reg) address, options(readonly, nostack, preserves_flags));
    address
}

/// The same place, of which the compiler knows no more what is in it: what was written is there, and what is read comes from there, and from no copy
/// on the stack.
#[inline(always)]
pub(crate) unsafe fn unmoved_mut<T>(place: &mut T) -> &mut T {
    let mut address: *mut T = place;
    asm!("/* {0} */", inout(reg) address, options(nostack, preserves_flags));
    &mut *address
}
