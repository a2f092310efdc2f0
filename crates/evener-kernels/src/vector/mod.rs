//! A register of one or more blocks, as the kernels see it.
//!
//! The kernels are written once over [`Vector`]; an entry in `gcm/entries.rs` or `modes/entries.rs` names the register and switches the instructions on for all that is
//! inlined into it.

/// Functions of a [`Vector`] that are one instruction of two registers.
macro_rules! of_two {
    ($($name:ident: $instruction:expr),+ $(,)?) => {$(
        #[inline(always)]
        unsafe fn $name(self, other: Self) -> Self {
            $instruction(self, other)
        }
    )+};
}

/// What is alike of all registers of one block.
macro_rules! alone {
    () => {
        const BLOCKS: usize = 1;

        #[inline(always)]
        unsafe fn load_first(from: *const Block, _: usize) -> Self {
            Self::load(from)
        }

        #[inline(always)]
        unsafe fn store_first(self, to: *mut Block, _: usize) {
            self.store(to);
        }

        #[inline(always)]
        unsafe fn first(self, _: usize) -> Self {
            self
        }

        #[inline(always)]
        unsafe fn everywhere(block: Block) -> Self {
            block
        }

        #[inline(always)]
        unsafe fn in_front(block: Block) -> Self {
            block
        }

        #[inline(always)]
        unsafe fn ascending() -> Self {
            Self::zero()
        }

        #[inline(always)]
        unsafe fn behind(self, before: Self) -> Self {
            before
        }

        #[inline(always)]
        unsafe fn of_blocks(blocks: [Block; 4]) -> Self {
            blocks[0]
        }

        #[inline(always)]
        unsafe fn nth(self, _: usize) -> Block {
            self
        }

        #[inline(always)]
        unsafe fn sum(self) -> Block {
            self
        }
    };
}

#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(target_arch = "x86_64")]
pub(crate) mod columns;
#[cfg(target_arch = "x86_64")]
mod four;
#[cfg(target_arch = "x86_64")]
mod one;
#[cfg(target_arch = "x86_64")]
mod two;
#[cfg(target_arch = "x86_64")]
mod words;

#[cfg(target_arch = "aarch64")]
pub(crate) use self::arm::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use self::words::*;

/// A register that holds [`BLOCKS`](Vector::BLOCKS) blocks. "Each block" and "each word" below are those of this register.
///
/// # Safety
/// Of all functions: the processor has the register's instructions, and the caller is compiled with them. Pointers are good for as many blocks as
/// the function says; they need no alignment.
pub(crate) trait Vector: Copy {
    /// Blocks in the register.
    const BLOCKS: usize;
    /// Whether a round adds its key before all else, as AESE does, and not after it, as AESENC: then its key is that of the round before, and the last
    /// round is two steps.
    const KEY_FIRST: bool = false;

    unsafe fn zero() -> Self;
    /// Reads a whole register.
    unsafe fn load(from: *const Block) -> Self;
    /// Reads the first `blocks` blocks, 1 to `BLOCKS`; the others are zero.
    unsafe fn load_first(from: *const Block, blocks: usize) -> Self;
    unsafe fn store(self, to: *mut Block);
    /// Writes the first `blocks` blocks, 1 to `BLOCKS`.
    unsafe fn store_first(self, to: *mut Block, blocks: usize);
    /// The first `blocks` blocks, 1 to `BLOCKS`; the others zero.
    unsafe fn first(self, blocks: usize) -> Self;
    /// The block everywhere.
    unsafe fn everywhere(block: Block) -> Self;
    /// The block in front of zeros.
    unsafe fn in_front(block: Block) -> Self;
    /// 0, 1, ... in the lowest word of 32 bits of each block.
    unsafe fn ascending() -> Self;
    /// Adds words of 32 bits.
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    /// The bytes of each block in reverse order.
    unsafe fn reversed(self) -> Self;
    /// The halves of 64 bits of each block exchanged.
    unsafe fn exchanged(self) -> Self;
    /// One round of AES encryption of each block, by the key of that round, or where [`KEY_FIRST`](Self::KEY_FIRST) of the one before.
    unsafe fn round(self, key: Self) -> Self;
    /// The last round of AES encryption of each block; where [`KEY_FIRST`](Self::KEY_FIRST) all of it that is left behind [`unmixed_round`](Self::unmixed_round).
    unsafe fn last_round(self, key: Self) -> Self;
    /// Where [`KEY_FIRST`](Self::KEY_FIRST): the last round by the key of the one before.
    #[inline(always)]
    unsafe fn unmixed_round(self, _: Self) -> Self {
        self
    }
    /// The same of decryption.
    #[inline(always)]
    unsafe fn unmixed_inverse_round(self, _: Self) -> Self {
        self
    }
    /// One round of AES decryption of each block, by a key of the equivalent inverse cipher.
    unsafe fn inverse_round(self, key: Self) -> Self;
    /// The last round of AES decryption of each block.
    unsafe fn last_inverse_round(self, key: Self) -> Self;
    /// Shifts each half of 64 bits towards its highest bit.
    unsafe fn raised(self, bits: usize) -> Self;
    /// Shifts each half of 64 bits towards its lowest bit.
    unsafe fn lowered(self, bits: usize) -> Self;
    /// The low half of each block in the place of its high half, and zeros in its own.
    unsafe fn low_to_high(self) -> Self;
    /// Each block in the place of the next, and the last block of `before` in that of the first.
    unsafe fn behind(self, before: Self) -> Self;
    /// Carry-less product of the low halves of each block.
    unsafe fn low_by_low(self, other: Self) -> Self;
    /// Carry-less product of the high halves of each block.
    unsafe fn high_by_high(self, other: Self) -> Self;
    /// Carry-less product of the low half of each block with the other's high half.
    unsafe fn low_by_high(self, other: Self) -> Self;
    /// Carry-less product of the high half of each block with the other's low half.
    unsafe fn high_by_low(self, other: Self) -> Self;
    /// Blocks in their order, of which as many are taken as there is room for.
    unsafe fn of_blocks(blocks: [Block; 4]) -> Self;
    /// Block `at`, 0 to `BLOCKS` - 1.
    unsafe fn nth(self, at: usize) -> Block;
    /// The same value, which the compiler cannot know to be the same: what makes it is done before what follows. Without that sums of products
    /// are taken in another order, all at once, and powers of the hash key wait for their turn on the stack.
    unsafe fn pinned(self) -> Self;
    /// The exclusive or of all blocks.
    unsafe fn sum(self) -> Block;
}
