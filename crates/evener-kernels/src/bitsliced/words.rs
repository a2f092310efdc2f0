//! Planes of four blocks in words of 64 bits, for any processor: bit `16 r + 4 c + b`.

use super::plane::{Bytes, Plane, transposed};

impl Plane for u64 {
    #[inline(always)]
    unsafe fn sliced(blocks: *const Bytes) -> [Self; 8] {
        let mut eight = [0; 8];
        for block in 0..4 {
            let [a, b, c, d] = *blocks.add(block).cast::<[[u8; 4]; 4]>();
            let [a, b, c, d] = [spread(a), spread(b), spread(c), spread(d)];
            // The last of the column's two bits tells words apart, as the block does.
            (eight[block], eight[4 + block]) = (a | c << 8, b | d << 8);
        }
        transposed(eight)
    }

    #[inline(always)]
    unsafe fn join(planes: [Self; 8], blocks: *mut Bytes) {
        let eight = transposed(planes);
        for block in 0..4 {
            let (even, odd) = (eight[block], eight[4 + block]);
            *blocks.add(block).cast() =
                [gathered(even), gathered(odd), gathered(even >> 8), gathered(odd >> 8)];
        }
    }

    #[inline(always)]
    unsafe fn turned<const ROWS: usize, const COLUMNS: usize>(self) -> Self {
        let turned = self.rotate_right(match ROWS {
            1 => 16,
            2 => 32,
            _ => 0,
        });
        if COLUMNS == 0 {
            return turned;
        }
        let front = const { (0xffff >> (4 * COLUMNS)) * 0x0001_0001_0001_0001 };
        turned >> (4 * COLUMNS) & front | turned << (16 - 4 * COLUMNS) & !front
    }

    #[inline(always)]
    unsafe fn odd_rows() -> Self {
        0xffff_0000_ffff_0000
    }

    #[inline(always)]
    unsafe fn repeated(byte: u8) -> Self {
        Self::from_ne_bytes([byte; 8])
    }

    #[inline(always)]
    unsafe fn lowered<const BITS: i32>(self) -> Self {
        self >> BITS
    }

    #[inline(always)]
    unsafe fn raised<const BITS: i32>(self) -> Self {
        self << BITS
    }
}

/// Four bytes, and a zero behind each.
#[inline(always)]
fn spread(bytes: [u8; 4]) -> u64 {
    let word = u64::from(u32::from_le_bytes(bytes));
    let pairs = (word | word << 16) & 0x0000_ffff_0000_ffff;
    (pairs | pairs << 8) & 0x00ff_00ff_00ff_00ff
}

/// Every other byte.
#[inline(always)]
fn gathered(word: u64) -> [u8; 4] {
    let bytes = word & 0x00ff_00ff_00ff_00ff;
    let pairs = (bytes | bytes >> 8) & 0x0000_ffff_0000_ffff;
    let [a, b, c, d, ..] = (pairs | pairs >> 16).to_le_bytes();
    [a, b, c, d]
}
