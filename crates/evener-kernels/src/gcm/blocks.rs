//! Whole blocks of a message: encrypted or decrypted by counters, and hashed, in turns of eight registers.
//!
//! ```text
//! encrypt    keys 1 | keys 2, hash 1 | keys 3, hash 2 | ... | hash n      hashes what the turn before wrote
//! decrypt    keys 1, hash 1 | keys 2, hash 2 | ...                        hashes what it is about to decrypt
//! ```
//!
//! A turn's AES rounds wait for each other, its products do not: woven into the rounds they cost little of their own (Gueron and Kounavis;
//! BoringSSL's `aes-gcm-avx2-x86_64` is the model for wide registers). A turn needs one reduction, for block `i` of `n` is multiplied by
//! the hash key's power `n - i`. What is less than a turn goes in one step, by as many registers as it fills.

use super::key::{Key, MOST_POWERS};
use super::product::Product;
use crate::turn::{REGISTERS, begin_last, counters, first_key, round_key, unmoved, unmoved_mut};
use crate::vector::{Block, Vector};

/// What a message carries from block to block.
#[derive(Clone, Copy)]
pub(crate) struct Chain {
    /// The next block's counter, bytes reversed: the counter of 32 bits is the lowest word.
    pub(crate) counter: Block,
    /// The hash so far, bytes reversed.
    pub(crate) hash: Block,
}

/// Encrypts or decrypts `blocks` blocks `from` there `to` there, which are the same or apart, and hashes them.
///
/// # Safety
/// As [`Vector`]; both are good for that many blocks.
#[inline(always)]
pub(crate) unsafe fn crypt<V: Vector, const ENCRYPTS: bool>(
    key: &Key,
    chain: &mut Chain,
    from: *const Block,
    to: *mut Block,
    blocks: usize,
) {
    let turn = REGISTERS * V::BLOCKS;
    let (mut from, mut to, mut left) = (from, to, blocks);
    let mut is_hash_due = false;
    while left >= turn {
        match (ENCRYPTS, is_hash_due) {
            (true, false) => crypt_turn::<V, false>(key, chain, to, from, to),
            (true, true) => crypt_turn::<V, true>(key, chain, to.sub(turn), from, to),
            (false, _) => crypt_turn::<V, true>(key, chain, from, from, to),
        }
        is_hash_due = ENCRYPTS;
        (from, to, left) = (from.add(turn), to.add(turn), left - turn);
    }
    if is_hash_due {
        hash_turn::<V>(key, chain, to.sub(turn));
    }
    match left.div_ceil(V::BLOCKS) {
        0 => {}
        1 => crypt_part::<V, ENCRYPTS, 1>(key, chain, from, to, left),
        2 => crypt_part::<V, ENCRYPTS, 2>(key, chain, from, to, left),
        3 => crypt_part::<V, ENCRYPTS, 3>(key, chain, from, to, left),
        4 => crypt_part::<V, ENCRYPTS, 4>(key, chain, from, to, left),
        5 => crypt_part::<V, ENCRYPTS, 5>(key, chain, from, to, left),
        6 => crypt_part::<V, ENCRYPTS, 6>(key, chain, from, to, left),
        7 => crypt_part::<V, ENCRYPTS, 7>(key, chain, from, to, left),
        _ => crypt_part::<V, ENCRYPTS, 8>(key, chain, from, to, left),
    }
}

/// Hashes `blocks` blocks.
///
/// # Safety
/// As [`Vector`]; `from` is good for that many blocks.
#[inline(always)]
pub(crate) unsafe fn hash<V: Vector>(key: &Key, chain: &mut Chain, from: *const Block, blocks: usize) {
    let turn = REGISTERS * V::BLOCKS;
    let (mut from, mut left) = (from, blocks);
    while left >= turn {
        hash_turn::<V>(key, chain, from);
        (from, left) = (from.add(turn), left - turn);
    }
    if left == 0 {
        return;
    }
    let mut product = Product::zero();
    let mut carried = V::in_front(chain.hash);
    let mut powers = key.powers(left);
    while left > 0 {
        let here = left.min(V::BLOCKS);
        product.add_here(V::load_first(from, here).reversed().xor(carried), V::load(powers));
        carried = V::zero();
        (from, powers, left) = (from.add(here), powers.add(here), left - here);
    }
    chain.hash = product.reduced();
}

/// One turn. Where `HASHES`, the turn of blocks at `hashed` goes into the hash besides.
#[inline(always)]
unsafe fn crypt_turn<V: Vector, const HASHES: bool>(
    key: &Key,
    chain: &mut Chain,
    hashed: *const Block,
    from: *const Block,
    to: *mut Block,
) {
    let chain = unmoved_mut(chain);
    let (keys, last) = (unmoved(key.rounds.keys()), key.rounds.last());
    let mut texts =
        counters::<V, REGISTERS>(&mut chain.counter, REGISTERS * V::BLOCKS, first_key(&key.rounds));
    let mut product = Product::zero();
    let powers = unmoved(key.powers(REGISTERS * V::BLOCKS));
    // No key has fewer rounds than there are registers.
    for round in 1..=REGISTERS {
        let round_key = round_key::<V>(keys, round);
        for text in &mut texts {
            *text = text.round(round_key);
        }
        if HASHES {
            let at = (round - 1) * V::BLOCKS;
            let block = V::load(hashed.add(at)).reversed();
            let block = if round == 1 { block.xor(V::in_front(chain.hash)) } else { block };
            product.add_here(block, V::load(powers.add(at)));
        }
    }
    for round in REGISTERS + 1..last {
        let round_key = round_key::<V>(keys, round);
        for text in &mut texts {
            *text = text.round(round_key);
        }
    }
    if HASHES {
        chain.hash = product.reduced();
    }
    let last_key = begin_last::<V, REGISTERS, true>(keys, last, &mut texts);
    for (at, text) in texts.into_iter().enumerate() {
        let masked = last_key.xor(V::load(from.add(at * V::BLOCKS)));
        text.last_round(masked).store(to.add(at * V::BLOCKS));
    }
}

#[inline(always)]
unsafe fn hash_turn<V: Vector>(key: &Key, chain: &mut Chain, from: *const Block) {
    let powers = key.powers(REGISTERS * V::BLOCKS);
    let mut product = Product::zero();
    for register in 0..REGISTERS {
        let at = register * V::BLOCKS;
        let block = V::load(from.add(at)).reversed();
        let block = if register == 0 { block.xor(V::in_front(chain.hash)) } else { block };
        product.add_here(block, V::load(powers.add(at)));
    }
    chain.hash = product.reduced();
}

/// What is left behind the last turn: `blocks` blocks, which fill `COUNT` registers but for a part of the last.
#[inline(always)]
unsafe fn crypt_part<V: Vector, const ENCRYPTS: bool, const COUNT: usize>(
    key: &Key,
    chain: &mut Chain,
    from: *const Block,
    to: *mut Block,
    blocks: usize,
) {
    let (keys, last) = (unmoved(key.rounds.keys()), key.rounds.last());
    let in_last = blocks - (COUNT - 1) * V::BLOCKS;
    let mut texts = counters::<V, COUNT>(&mut chain.counter, blocks, first_key(&key.rounds));
    for round in 1..last {
        let round_key = round_key::<V>(keys, round);
        for text in &mut texts {
            *text = text.round(round_key);
        }
    }
    let last_key = begin_last::<V, COUNT, true>(keys, last, &mut texts);
    let powers = key.powers(blocks);
    let mut product = Product::zero();
    for (register, text) in texts.into_iter().enumerate() {
        let at = register * V::BLOCKS;
        let here = if register == COUNT - 1 { in_last } else { V::BLOCKS };
        let input = V::load_first(from.add(at), here);
        let output = text.last_round(last_key.xor(input));
        output.store_first(to.add(at), here);
        let hashed = if ENCRYPTS { output.first(here) } else { input };
        let block = hashed.reversed();
        let block = if register == 0 { block.xor(V::in_front(chain.hash)) } else { block };
        product.add_here(block, V::load(powers.add(at)));
    }
    chain.hash = product.reduced();
}

const _: () = assert!(REGISTERS * 4 == MOST_POWERS, "a turn of the widest registers takes all powers");
