//! The kernels by level: each names its register and switches the instructions on for all that is inlined into it.

use super::{Mode, cbc, ctr, ecb, xts};
use crate::aes::Schedule;
use crate::level::{Level, Width};
use crate::vector::Block;

/// Takes so many blocks from there to there, by what it carries from block to block. Called only where the processor has the level's instructions.
pub(super) type Kernel = unsafe fn(&Schedule, &mut Block, *const Block, *mut Block, usize);

/// The kernel of a mode at a level.
pub(super) fn of(level: Level, mode: Mode) -> Kernel {
    match level.width() {
        Width::One => one::of(mode),
        #[cfg(target_arch = "x86_64")]
        Width::Two => two::of(mode),
        #[cfg(target_arch = "x86_64")]
        Width::Four => four::of(mode),
    }
}

macro_rules! kernels {
    ($name:ident, $vector:ty, $features:literal: $($kernel:ident = $body:expr),+ $(,)?) => {
        mod $name {
            use super::*;

            pub(super) fn of(mode: Mode) -> Kernel {
                match mode {
                    Mode::EcbEncryption => ecb_encrypt,
                    Mode::EcbDecryption => ecb_decrypt,
                    Mode::CbcDecryption => cbc_decrypt,
                    Mode::Ctr => ctr_crypt,
                    Mode::XtsEncryption => xts_encrypt,
                    Mode::XtsDecryption => xts_decrypt,
                }
            }

            $(#[target_feature(enable = $features)]
            unsafe fn $kernel(
                key: &Schedule,
                chain: &mut Block,
                from: *const Block,
                to: *mut Block,
                blocks: usize,
            ) {
                $body(key, chain, from, to, blocks)
            })+
        }
    };
    ($name:ident, $vector:ty, $features:literal) => {
        kernels! { $name, $vector, $features:
            ecb_encrypt = ecb::crypt::<$vector, true>,
            ecb_decrypt = ecb::crypt::<$vector, false>,
            cbc_decrypt = cbc::decrypt::<$vector>,
            ctr_crypt = ctr::crypt::<$vector>,
            xts_encrypt = xts::crypt::<$vector, true>,
            xts_decrypt = xts::crypt::<$vector, false>,
        }
    };
}

#[cfg(target_arch = "x86_64")]
kernels!(one, Block, "aes,pclmulqdq,sse4.1,ssse3");
#[cfg(target_arch = "aarch64")]
kernels!(one, Block, "neon,aes");
#[cfg(target_arch = "x86_64")]
kernels!(two, std::arch::x86_64::__m256i, "aes,pclmulqdq,sse4.1,ssse3,avx2,vaes,vpclmulqdq");
#[cfg(target_arch = "x86_64")]
kernels!(
    four,
    std::arch::x86_64::__m512i,
    "aes,pclmulqdq,sse4.1,ssse3,avx2,vaes,vpclmulqdq,avx512f,avx512bw,avx512vl"
);
