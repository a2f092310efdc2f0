//! A register of blocks of one, two or four messages, and how text comes into it and goes.
//!
//! Each width takes as much of a message at a time as its registers allow: a line of the cache with 512 bits, half of one with 256. Where the
//! places of messages collide in the cache, as those that begin on pages do, a line is fetched so many times less often.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::turn::unmoved;
#[cfg(target_arch = "x86_64")]
use crate::vector::columns::{by_columns_of_four, by_columns_of_two};
use crate::vector::{Block, Vector};

/// A register of which each block is of another message.
///
/// # Safety
/// As [`Vector`]. There are as many places as the registers in question have blocks, each good for as many blocks from its block `at` on as are
/// taken.
pub(super) trait Lanes: Vector {
    /// Registers that hide each other's latency.
    const REGISTERS: usize;
    /// Blocks of a message that are taken at a time.
    const TURN: usize;

    /// Encrypts a turn of each place behind `chain`.
    unsafe fn turn<const COUNT: usize>(lanes: &Places<Self>, chain: &mut [Self; COUNT], at: usize);
    /// One block of each place of one register.
    unsafe fn gather(from: *const *const Block, at: usize) -> Self;
    /// Writes it back.
    unsafe fn scatter(self, to: *const *mut Block, at: usize);
}

/// Lanes as the kernel sees them.
pub(super) struct Places<V> {
    /// Round keys, those of all lanes by rounds.
    pub(super) keys: *const V,
    /// How many rounds there are.
    pub(super) rounds: usize,
    pub(super) from: *const *const Block,
    pub(super) to: *const *mut Block,
}

impl<V: Lanes> Places<V> {
    /// Encrypts a block of each lane behind that in `chain`.
    #[inline(always)]
    unsafe fn encrypt<const COUNT: usize>(&self, chain: &mut [V; COUNT], texts: [V; COUNT]) {
        let mut key = unmoved(self.keys.cast()).cast::<V>();
        let last = key.add(self.rounds * V::REGISTERS);
        let mut end = last;
        if V::KEY_FIRST {
            end = last.sub(V::REGISTERS);
            for (chain, text) in chain.iter_mut().zip(texts) {
                *chain = chain.xor(text);
            }
        } else {
            for (register, (chain, text)) in chain.iter_mut().zip(texts).enumerate() {
                *chain = chain.xor(text.xor(*key.add(register)));
            }
            key = key.add(V::REGISTERS);
        }
        while key != end {
            for (register, text) in chain.iter_mut().enumerate() {
                *text = text.round(*key.add(register));
            }
            // Of unknown length, so that the loop is not unrolled: what is short stays in the processor's cache of decoded instructions.
            key = unmoved(key.add(V::REGISTERS).cast()).cast();
        }
        for (register, text) in chain.iter_mut().enumerate() {
            if V::KEY_FIRST {
                *text = text.unmixed_round(*end.add(register));
            }
            *text = text.last_round(*last.add(register));
        }
    }
}

/// Encrypts a block of each place behind `chain`.
#[inline(always)]
pub(super) unsafe fn single<V: Lanes, const COUNT: usize>(
    lanes: &Places<V>,
    chain: &mut [V; COUNT],
    at: usize,
) {
    let mut texts = *chain;
    for (register, text) in texts.iter_mut().enumerate() {
        *text = V::gather(lanes.from.add(register * V::BLOCKS), at);
    }
    lanes.encrypt(chain, texts);
    for (register, text) in chain.iter().enumerate() {
        text.scatter(lanes.to.add(register * V::BLOCKS), at);
    }
}

impl Lanes for Block {
    const REGISTERS: usize = 8;
    const TURN: usize = 1;

    #[inline(always)]
    unsafe fn turn<const COUNT: usize>(lanes: &Places<Self>, chain: &mut [Self; COUNT], at: usize) {
        single(lanes, chain, at);
    }

    #[inline(always)]
    unsafe fn gather(from: *const *const Block, at: usize) -> Self {
        Self::load((*from).add(at))
    }

    #[inline(always)]
    unsafe fn scatter(self, to: *const *mut Block, at: usize) {
        self.store((*to).add(at));
    }
}

#[cfg(target_arch = "x86_64")]
impl Lanes for __m256i {
    const REGISTERS: usize = 8;
    const TURN: usize = 2;

    #[inline(always)]
    unsafe fn turn<const COUNT: usize>(lanes: &Places<Self>, chain: &mut [Self; COUNT], at: usize) {
        let (mut first, mut second) = (*chain, *chain);
        for (register, (first, second)) in first.iter_mut().zip(&mut second).enumerate() {
            let from = lanes.from.add(register * 2);
            let (one, other) = (Self::load((*from).add(at)), Self::load((*from.add(1)).add(at)));
            [*first, *second] = by_columns_of_two(one, other);
        }
        lanes.encrypt(chain, first);
        first = *chain;
        lanes.encrypt(chain, second);
        for (register, (first, second)) in first.into_iter().zip(chain).enumerate() {
            let to = lanes.to.add(register * 2);
            let [one, other] = by_columns_of_two(first, *second);
            one.store((*to).add(at));
            other.store((*to.add(1)).add(at));
        }
    }

    #[inline(always)]
    unsafe fn gather(from: *const *const Block, at: usize) -> Self {
        let (one, other) = ((*from).add(at), (*from.add(1)).add(at));
        _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(Block::load(one)), Block::load(other))
    }

    #[inline(always)]
    unsafe fn scatter(self, to: *const *mut Block, at: usize) {
        _mm256_castsi256_si128(self).store((*to).add(at));
        _mm256_extracti128_si256::<1>(self).store((*to.add(1)).add(at));
    }
}

#[cfg(target_arch = "x86_64")]
impl Lanes for __m512i {
    const REGISTERS: usize = 4;
    const TURN: usize = 4;

    #[inline(always)]
    unsafe fn turn<const COUNT: usize>(lanes: &Places<Self>, chain: &mut [Self; COUNT], at: usize) {
        let mut turn = [*chain; 4];
        for register in 0..COUNT {
            let from = lanes.from.add(register * 4);
            let columns = by_columns_of_four([
                Self::load((*from).add(at)),
                Self::load((*from.add(1)).add(at)),
                Self::load((*from.add(2)).add(at)),
                Self::load((*from.add(3)).add(at)),
            ]);
            for (blocks, column) in turn.iter_mut().zip(columns) {
                blocks[register] = column;
            }
        }
        for blocks in &mut turn {
            lanes.encrypt(chain, *blocks);
            *blocks = *chain;
        }
        #[expect(clippy::needless_range_loop, reason = "four rows are gone through side by side")]
        for register in 0..COUNT {
            let to = lanes.to.add(register * 4);
            let columns = [turn[0][register], turn[1][register], turn[2][register], turn[3][register]];
            for (lane, row) in by_columns_of_four(columns).into_iter().enumerate() {
                row.store((*to.add(lane)).add(at));
            }
        }
    }

    #[inline(always)]
    unsafe fn gather(from: *const *const Block, at: usize) -> Self {
        let front = _mm512_castsi256_si512(__m256i::gather(from, at));
        _mm512_inserti64x4::<1>(front, __m256i::gather(from.add(2), at))
    }

    #[inline(always)]
    unsafe fn scatter(self, to: *const *mut Block, at: usize) {
        _mm512_castsi512_si256(self).scatter(to, at);
        _mm512_extracti64x4_epi64::<1>(self).scatter(to.add(2), at);
    }
}
