//! The kernels by level: each names its register and switches the instructions on for all that is inlined into it.

use super::blocks::{self, Chain};
use super::key::Key;
use crate::turn::REGISTERS;
use crate::vector::{Block, Vector as _};

/// Encrypts or decrypts and hashes so many blocks from there to there.
type Crypt = unsafe fn(&Key, &mut Chain, *const Block, *mut Block, usize);

/// The kernels of a level. Each is called only where the processor has the level's instructions, with pointers good for so many blocks.
pub(crate) struct Entries {
    pub(crate) encrypt: Crypt,
    pub(crate) decrypt: Crypt,
    /// Hashes so many blocks.
    pub(crate) hash: unsafe fn(&Key, &mut Chain, *const Block, usize),
    /// Makes powers of the hash key until there are so many.
    make_powers: unsafe fn(&mut Key, usize),
    /// Blocks of a turn, which needs as many powers.
    turn: usize,
}

impl Entries {
    /// Those of the key's level.
    #[inline]
    pub(crate) fn of(key: &Key) -> &'static Self {
        &ENTRIES[key.width as usize]
    }

    /// Makes powers of the hash key for so many blocks, where there are too few: a key that serves one short message needs few.
    #[inline]
    pub(crate) fn need_powers(&self, key: &mut Key, blocks: usize) {
        let wanted = self.turn.min(blocks);
        if key.known() < wanted {
            // SAFETY: a level exists only where the processor has its instructions.
            unsafe { (self.make_powers)(key, wanted) }
        }
    }
}

/// In the order of [`Width`](crate::level::Width).
static ENTRIES: &[Entries] = &[
    one::ENTRIES,
    #[cfg(target_arch = "x86_64")]
    two::ENTRIES,
    #[cfg(target_arch = "x86_64")]
    four::ENTRIES,
];

macro_rules! entries {
    ($name:ident, $vector:ty, $features:literal) => {
        mod $name {
            use super::*;

            pub(super) const ENTRIES: Entries =
                Entries { encrypt, decrypt, hash, make_powers, turn: REGISTERS * <$vector>::BLOCKS };

            #[target_feature(enable = $features)]
            unsafe fn make_powers(key: &mut Key, wanted: usize) {
                while key.known() < wanted {
                    if key.known() < <$vector>::BLOCKS {
                        // SAFETY: as the caller says.
                        unsafe { key.double_powers::<Block>() }
                    } else {
                        // SAFETY: as the caller says.
                        unsafe { key.double_powers::<$vector>() }
                    }
                }
            }

            #[target_feature(enable = $features)]
            unsafe fn encrypt(
                key: &Key,
                chain: &mut Chain,
                from: *const Block,
                to: *mut Block,
                blocks: usize,
            ) {
                blocks::crypt::<$vector, true>(key, chain, from, to, blocks)
            }

            #[target_feature(enable = $features)]
            unsafe fn decrypt(
                key: &Key,
                chain: &mut Chain,
                from: *const Block,
                to: *mut Block,
                blocks: usize,
            ) {
                blocks::crypt::<$vector, false>(key, chain, from, to, blocks)
            }

            #[target_feature(enable = $features)]
            unsafe fn hash(key: &Key, chain: &mut Chain, from: *const Block, blocks: usize) {
                blocks::hash::<$vector>(key, chain, from, blocks)
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
entries!(one, Block, "aes,pclmulqdq,sse4.1,ssse3");
#[cfg(target_arch = "aarch64")]
entries!(one, Block, "neon,aes");
#[cfg(target_arch = "x86_64")]
entries!(two, std::arch::x86_64::__m256i, "aes,pclmulqdq,sse4.1,ssse3,avx2,vaes,vpclmulqdq");
#[cfg(target_arch = "x86_64")]
entries!(
    four,
    std::arch::x86_64::__m512i,
    "aes,pclmulqdq,sse4.1,ssse3,avx2,vaes,vpclmulqdq,avx512f,avx512bw,avx512vl"
);
