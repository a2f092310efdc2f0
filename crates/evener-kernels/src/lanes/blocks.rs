//! The kernel: the same blocks of all lanes.
//!
//! A chain waits for the whole of its last block: 10 to 14 rounds of 3 or 4 cycles (Ice Lake, Zen 4). Where two rounds begin in a cycle, eight
//! registers of other messages fill that time; with 512 bits, of which one round begins in a cycle, four do. So there are 8 lanes by AES-NI and 16 by
//! VAES. Their round keys are operands from memory, for each lane has its own; they lie by rounds, so that one load is that round's key of all
//! messages of a register.
//!
//! Many messages, each with its key: after `aes_cbc_multi.h` of VPP and the multi-buffer CBC of libipsec-mb; of unlike lengths: after Bogdanov,
//! Lauridsen and Tischhauser, "Comb to Pipeline: Fast Software Encryption Revisited" (FSE 2015).

use super::register::{Lanes, Places, single};
use super::space::{LINE, Space};

/// Encrypts so many blocks of each lane of the first `registers` registers.
///
/// # Safety
/// As [`Lanes`]; the places of those lanes are good for as many blocks, and their keys have `rounds` rounds.
#[inline(always)]
pub(super) unsafe fn encrypt<V: Lanes>(space: &mut Space, registers: usize, rounds: usize, blocks: usize) {
    match registers {
        1 => encrypt_by::<V, 1>(space, rounds, blocks),
        2 => encrypt_by::<V, 2>(space, rounds, blocks),
        3 | 4 => encrypt_by::<V, 4>(space, rounds, blocks),
        _ if V::REGISTERS == 4 => {}
        5 | 6 => encrypt_by::<V, 6>(space, rounds, blocks),
        _ => encrypt_by::<V, 8>(space, rounds, blocks),
    }
}

/// Registers that [`encrypt`] takes where so many are in use: fewer kinds are less code.
#[inline(always)]
pub(super) fn registers_for(used: usize) -> usize {
    if used > 1 { used.next_multiple_of(2) } else { used }
}

#[inline(always)]
unsafe fn encrypt_by<V: Lanes, const COUNT: usize>(space: &mut Space, rounds: usize, blocks: usize) {
    let place = space.chain.as_mut_ptr().cast::<V>();
    let mut chain = [*place; COUNT];
    for (register, chain) in chain.iter_mut().enumerate() {
        *chain = *place.add(register);
    }
    let (keys, from, to) = (space.keys.as_ptr().cast::<V>(), space.from.as_ptr(), space.to.as_ptr());
    let lanes = Places { keys, rounds, from, to };
    let mut at = 0;
    while blocks - at >= V::TURN {
        if at % LINE as usize == 0 {
            space.fetch_ahead(COUNT * V::BLOCKS, at);
        }
        V::turn(&lanes, &mut chain, at);
        at += V::TURN;
    }
    while V::TURN > 1 && at < blocks {
        single(&lanes, &mut chain, at);
        at += 1;
    }
    for (register, chain) in chain.into_iter().enumerate() {
        *place.add(register) = chain;
    }
}
