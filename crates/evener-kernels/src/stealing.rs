//! The end of a data unit of XTS that is not whole blocks: its last block and the part behind it (IEEE 1619, 5.3.2).

use std::ptr;

use zeroize::Zeroize as _;

use crate::mode::BLOCK;

/// A key of XTS, as far as ends of units need it.
pub(crate) trait Steals {
    /// Takes whole blocks from the tweak of the first on, which is that of the block behind them then.
    ///
    /// # Safety
    /// `from` is good for reading and `to` for writing that many blocks.
    unsafe fn crypt_whole(&self, tweak: &mut [u8; BLOCK], from: *const u8, to: *mut u8, blocks: usize);

    /// Whether it is a key for decryption.
    fn decrypts(&self) -> bool;

    /// The end of a unit, at least a block, whose first block has this tweak.
    ///
    /// # Safety
    /// `from` is good for reading and `to` for writing so many bytes.
    unsafe fn crypt_end(&self, tweak: &mut [u8; BLOCK], from: *const u8, to: *mut u8, bytes: usize) {
        debug_assert!(bytes >= BLOCK, "a unit has at least a block");
        let part = bytes % BLOCK;
        if part == 0 {
            // SAFETY: the caller's word.
            return unsafe { self.crypt_whole(tweak, from, to, bytes / BLOCK) };
        }
        let whole = bytes / BLOCK - 1;
        let (last, place) = (from.wrapping_add(whole * BLOCK), to.wrapping_add(whole * BLOCK));
        let mut ends = [0; 2 * BLOCK];
        // SAFETY: it and the part behind it, into as much room and more.
        unsafe { ptr::copy_nonoverlapping(last, ends.as_mut_ptr(), BLOCK + part) };
        // SAFETY: the blocks before.
        unsafe { self.crypt_whole(tweak, from, to, whole) };
        self.steal(tweak, &mut ends, part);
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping(ends.as_ptr(), place, BLOCK + part) };
        ends.zeroize();
    }

    /// The last block of a unit and the `part` bytes behind it: the part goes into the place of what is stolen from the block.
    fn steal(&self, tweak: &mut [u8; BLOCK], ends: &mut [u8; 2 * BLOCK], part: usize) {
        let mut last = *tweak;
        let mut block = [0; BLOCK];
        // The kernel moves the tweak on by a block, whatever it is used for.
        // SAFETY: one block each.
        unsafe { self.crypt_whole(tweak, block.as_ptr(), block.as_mut_ptr(), 1) };
        let (mut first, mut second) = if self.decrypts() { (*tweak, last) } else { (last, *tweak) };
        block.copy_from_slice(&ends[..BLOCK]);
        // SAFETY: as above.
        unsafe { self.crypt_whole(&mut first, block.as_ptr(), block.as_mut_ptr(), 1) };
        let mut stolen = block;
        stolen[..part].copy_from_slice(&ends[BLOCK..BLOCK + part]);
        ends[BLOCK..BLOCK + part].copy_from_slice(&block[..part]);
        // SAFETY: as above.
        unsafe { self.crypt_whole(&mut second, stolen.as_ptr(), ends.as_mut_ptr(), 1) };
        for secret in [&mut block, &mut stolen, &mut first, &mut second, &mut last] {
            secret.zeroize();
        }
    }
}
