//! ECB, CBC decryption, CTR and XTS of one message, in pieces of whole blocks, as many at once as a kernel takes.
//!
//! What goes on from piece to piece is one block, the caller's: the last ciphertext (CBC), the next counter (CTR), the tweak (XTS).

use std::ptr;

use zeroize::Zeroize as _;

use super::entries::{self, Kernel};
use super::key::{Planes, Schedule};
use super::means::Means;
use super::plane::Bytes;
pub use crate::mode::{BLOCK, Mode};
use crate::place::begins_inside;
use crate::stack::with_stack_wiped;
use crate::stealing::Steals;

/// Most blocks that a kernel takes.
const BLOCKS_MAX: usize = 16;

/// A key for one of the modes. Wiped when it goes.
pub struct Key {
    planes: Planes,
    /// Of XTS: what encrypts a unit's number.
    tweak_planes: Planes,
    last: usize,
    mode: Mode,
    blocks: usize,
    encrypt: Kernel,
    decrypt: Kernel,
}

impl Key {
    /// A place for a key, by these means; without one, and of no use before [`set`](Self::set).
    #[must_use]
    pub fn new(means: Means) -> Self {
        let (encrypt, decrypt) = entries::of(means);
        let [planes, tweak_planes] = [Planes::new(means.layout()), Planes::new(means.layout())];
        Self { planes, tweak_planes, last: 0, mode: Mode::Ctr, blocks: means.blocks(), encrypt, decrypt }
    }

    /// Puts a key in: of 16, 24 or 32 bytes, for XTS two in a row of 16 or 32; false, and nothing done, for any other length. Whether the two
    /// of XTS differ, as they have to, is the caller's to see.
    pub fn set(&mut self, mode: Mode, key: &[u8]) -> bool {
        let (one, other) = if mode.is_xts() { key.split_at(key.len() / 2) } else { (key, key) };
        let mut schedule = Schedule::new();
        if mode.is_xts() && (one.len() != other.len() || one.len() == 24) || !schedule.set(one) {
            return false;
        }
        self.planes.put(u32::MAX, &schedule);
        (self.last, self.mode) = (schedule.last(), mode);
        if mode.is_xts() && schedule.set(other) {
            self.tweak_planes.put(u32::MAX, &schedule);
        }
        true
    }

    /// Takes so many blocks from there to there, from what `chain` carries on. The places may overlap in any way.
    ///
    /// # Safety
    /// `from` is good for reading and `to` for writing that many blocks.
    pub unsafe fn crypt(&self, chain: &mut [u8; BLOCK], from: *const u8, to: *mut u8, blocks: usize) {
        let mut from = from;
        if begins_inside(from, to, blocks * BLOCK) {
            // SAFETY: the caller's word.
            unsafe { ptr::copy(from, to, blocks * BLOCK) };
            from = to;
        }
        // SAFETY: the caller's word.
        with_stack_wiped(|| unsafe { self.crypt_forwards(chain, from.cast(), to.cast(), blocks) });
    }

    /// # Safety
    /// As [`crypt`](Self::crypt), of places of which the second does not begin inside of the first.
    unsafe fn crypt_forwards(&self, chain: &mut Bytes, from: *const Bytes, to: *mut Bytes, blocks: usize) {
        let (mut from, mut to) = (from, to);
        let kernel = if self.mode.inverts() { self.decrypt } else { self.encrypt };
        let mut turn = Turn::new();
        for begun in (0..blocks).step_by(self.blocks) {
            let count = self.blocks.min(blocks - begun);
            // SAFETY: the caller's word.
            unsafe { turn.read(from, count) };
            turn.begin(self.mode, count, chain);
            // SAFETY: a means exists only where its instructions do; there are more blocks, and planes of all round keys.
            unsafe { kernel(turn.blocks.as_mut_ptr(), self.planes.as_ptr(), self.last) };
            // SAFETY: the caller's word.
            unsafe { turn.write(to, count) };
            (from, to) = (from.wrapping_add(count), to.wrapping_add(count));
        }
    }

    /// A whole data unit of XTS, at least a block, under this number. The places may overlap in any way.
    ///
    /// # Safety
    /// `from` is good for reading and `to` for writing so many bytes.
    pub unsafe fn crypt_unit(&self, number: &[u8; BLOCK], from: *const u8, to: *mut u8, bytes: usize) {
        let mut tweak = self.tweak(number);
        // SAFETY: the caller's word.
        unsafe { self.crypt_unit_at(&mut tweak, from, to, bytes) };
        tweak.zeroize();
    }

    /// The same of the end of a unit, at least a block, whose first block has this tweak.
    ///
    /// # Safety
    /// As [`crypt_unit`](Self::crypt_unit).
    pub unsafe fn crypt_unit_at(&self, tweak: &mut [u8; BLOCK], from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's word.
        unsafe { self.crypt_end(tweak, from, to, bytes) };
    }

    /// The tweak of a unit's first block.
    #[must_use]
    pub fn tweak(&self, number: &[u8; BLOCK]) -> [u8; BLOCK] {
        let mut turn = Turn::new();
        turn.blocks[0] = *number;
        let (block, planes) = (turn.blocks.as_mut_ptr(), self.tweak_planes.as_ptr());
        // SAFETY: as in `crypt`.
        with_stack_wiped(|| unsafe { (self.encrypt)(block, planes, self.last) });
        turn.blocks[0]
    }
}

impl Steals for Key {
    unsafe fn crypt_whole(&self, tweak: &mut [u8; BLOCK], from: *const u8, to: *mut u8, blocks: usize) {
        // SAFETY: the caller's word.
        unsafe { self.crypt(tweak, from, to, blocks) };
    }

    fn decrypts(&self) -> bool {
        self.mode.inverts()
    }
}

/// Blocks on their way through a kernel, and what is added to them behind it. Wiped when they go.
#[repr(C, align(64))]
struct Turn {
    blocks: [Bytes; BLOCKS_MAX],
    added: [Bytes; BLOCKS_MAX],
}

impl Turn {
    const fn new() -> Self {
        Self { blocks: [[0; BLOCK]; BLOCKS_MAX], added: [[0; BLOCK]; BLOCKS_MAX] }
    }

    /// # Safety
    /// There are as many.
    unsafe fn read(&mut self, from: *const Bytes, count: usize) {
        // SAFETY: the caller's word; as many and more there.
        unsafe { ptr::copy_nonoverlapping(from, self.blocks.as_mut_ptr(), count) };
    }

    /// What a mode does with text before the kernel.
    fn begin(&mut self, mode: Mode, count: usize, chain: &mut Bytes) {
        let places = self.blocks[..count].iter_mut().zip(&mut self.added);
        match mode {
            Mode::EcbEncryption | Mode::EcbDecryption => {}
            Mode::CbcDecryption => {
                for (block, added) in places {
                    *added = std::mem::replace(chain, *block);
                }
            }
            Mode::Ctr => {
                for (block, added) in places {
                    *added = std::mem::replace(block, *chain);
                    *chain = u128::from_be_bytes(*chain).wrapping_add(1).to_be_bytes();
                }
            }
            Mode::XtsEncryption | Mode::XtsDecryption => {
                for (block, added) in places {
                    *block = sum(block, chain);
                    *added = *chain;
                    *chain = times_x(*chain);
                }
            }
        }
    }

    /// # Safety
    /// There is room for as many.
    unsafe fn write(&mut self, to: *mut Bytes, count: usize) {
        for (at, (block, added)) in self.blocks[..count].iter().zip(&self.added).enumerate() {
            // SAFETY: the caller's word.
            unsafe { to.wrapping_add(at).write_unaligned(sum(block, added)) };
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.blocks.zeroize();
        self.added.zeroize();
    }
}

#[inline]
fn sum(one: &Bytes, other: &Bytes) -> Bytes {
    (u128::from_ne_bytes(*one) ^ u128::from_ne_bytes(*other)).to_ne_bytes()
}

/// In the field of XTS (IEEE 1619, 5.2).
#[inline]
fn times_x(tweak: Bytes) -> Bytes {
    let number = u128::from_le_bytes(tweak);
    let over = 0_u128.wrapping_sub(number >> 127) & 0x87;
    (number << 1 ^ over).to_le_bytes()
}
