//! A plane: one bit of every byte of several blocks.
//!
//! Eight of them are those blocks. Where a bit of row `r`, column `c` and block `b` lies in a plane is each kind's own, as that is what makes rows and columns cheap
//! to turn there: in registers as in Käsper and Schwabe, "Faster and Timing-Attack Resistant AES-GCM" (CHES 2009), by bytes, in words by rows of 16 bits.

/// A block: byte `4 c + r` is that of row `r` and column `c`.
pub(super) type Bytes = [u8; 16];

/// Bits side by side.
///
/// # Safety
/// Of all functions, as of [`Plane`]'s: the processor has the instructions of the kind, and the caller is compiled with them.
pub(super) trait Bits: Copy {
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn and(self, other: Self) -> Self;
}

macro_rules! bits_of_words {
    ($($word:ty)*) => {$(
        impl Bits for $word {
            #[inline(always)]
            unsafe fn xor(self, other: Self) -> Self {
                self ^ other
            }

            #[inline(always)]
            unsafe fn and(self, other: Self) -> Self {
                self & other
            }
        }
    )*};
}

// Of four bytes, for the schedule of a key; of four blocks.
bits_of_words!(u32 u64);

/// # Safety
/// As [`Bits`].
pub(super) trait Plane: Bits {
    /// Planes of as many blocks as there is room for, the lowest bit first.
    unsafe fn sliced(blocks: *const Bytes) -> [Self; 8];
    /// Writes those blocks back.
    unsafe fn join(planes: [Self; 8], blocks: *mut Bytes);
    /// Every bit is that which was so many rows and columns further.
    unsafe fn turned<const ROWS: usize, const COLUMNS: usize>(self) -> Self;
    /// Ones in the second row and the fourth.
    unsafe fn odd_rows() -> Self;
    /// The byte everywhere.
    unsafe fn repeated(byte: u8) -> Self;
    /// Shifts each 64 bits towards the lowest.
    unsafe fn lowered<const BITS: i32>(self) -> Self;
    /// Shifts each 64 bits towards the highest.
    unsafe fn raised<const BITS: i32>(self) -> Self;
}

/// Exchanges what tells the eight apart with what tells the bits of a byte apart: twice is nothing.
#[inline(always)]
pub(super) unsafe fn transposed<P: Plane>(eight: [P; 8]) -> [P; 8] {
    let [a, b, c, d, e, f, g, h] = eight;
    let mask = P::repeated(0x55);
    let ((a, b), (c, d)) = (exchanged::<P, 1>(a, b, mask), exchanged::<P, 1>(c, d, mask));
    let ((e, f), (g, h)) = (exchanged::<P, 1>(e, f, mask), exchanged::<P, 1>(g, h, mask));
    let mask = P::repeated(0x33);
    let ((a, c), (b, d)) = (exchanged::<P, 2>(a, c, mask), exchanged::<P, 2>(b, d, mask));
    let ((e, g), (f, h)) = (exchanged::<P, 2>(e, g, mask), exchanged::<P, 2>(f, h, mask));
    let mask = P::repeated(0x0f);
    let ((a, e), (b, f)) = (exchanged::<P, 4>(a, e, mask), exchanged::<P, 4>(b, f, mask));
    let ((c, g), (d, h)) = (exchanged::<P, 4>(c, g, mask), exchanged::<P, 4>(d, h, mask));
    [a, b, c, d, e, f, g, h]
}

/// The higher bits of one, by `mask` and a shift, exchanged with the lower ones of the other.
#[inline(always)]
unsafe fn exchanged<P: Plane, const SHIFT: i32>(one: P, other: P, mask: P) -> (P, P) {
    let differ = one.lowered::<SHIFT>().xor(other).and(mask);
    (one.xor(differ.raised::<SHIFT>()), other.xor(differ))
}

/// Where the bytes of a block come from that are turned by so many rows and columns.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) const fn order(rows: usize, columns: usize) -> Bytes {
    let mut order = [0; 16];
    let mut at = 0;
    while at < 16 {
        let (row, column) = ((at + rows) % 4, (at / 4 + columns) % 4);
        #[expect(clippy::cast_possible_truncation, reason = "below 16")]
        {
            order[at] = (4 * column + row) as u8;
        }
        at += 1;
    }
    order
}
