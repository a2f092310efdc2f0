//! Planes of eight blocks in registers of NEON on AArch64: byte `4 c + r` has one bit of each block.

use std::arch::aarch64::*;

use super::plane::{Bits, Bytes, Plane, order, transposed};

impl Bits for uint8x16_t {
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        veorq_u8(self, other)
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        vandq_u8(self, other)
    }
}

impl Plane for uint8x16_t {
    #[inline(always)]
    unsafe fn sliced(blocks: *const Bytes) -> [Self; 8] {
        let mut eight = [vdupq_n_u8(0); 8];
        for (at, block) in eight.iter_mut().enumerate() {
            *block = vld1q_u8(blocks.add(at).cast());
        }
        transposed(eight)
    }

    #[inline(always)]
    unsafe fn join(planes: [Self; 8], blocks: *mut Bytes) {
        for (at, block) in transposed(planes).into_iter().enumerate() {
            vst1q_u8(blocks.add(at).cast(), block);
        }
    }

    #[inline(always)]
    unsafe fn turned<const ROWS: usize, const COLUMNS: usize>(self) -> Self {
        if ROWS == 2 && COLUMNS == 0 {
            return vreinterpretq_u8_u16(vrev32q_u16(vreinterpretq_u16_u8(self)));
        }
        vqtbl1q_u8(self, vld1q_u8(const { &order(ROWS, COLUMNS) }.as_ptr()))
    }

    #[inline(always)]
    unsafe fn odd_rows() -> Self {
        vreinterpretq_u8_u16(vdupq_n_u16(0xff00))
    }

    #[inline(always)]
    unsafe fn repeated(byte: u8) -> Self {
        vdupq_n_u8(byte)
    }

    /// Of bytes, for what would come from the next is masked.
    #[inline(always)]
    unsafe fn lowered<const BITS: i32>(self) -> Self {
        vshrq_n_u8::<BITS>(self)
    }

    #[inline(always)]
    unsafe fn raised<const BITS: i32>(self) -> Self {
        vshlq_n_u8::<BITS>(self)
    }
}
