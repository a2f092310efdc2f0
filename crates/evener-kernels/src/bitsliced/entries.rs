//! The kernels by means: each names its planes and switches the instructions on for all that is inlined into it.

use super::means::{Kind, Means};
use super::plane::{Bytes, Plane};
use super::rounds;

/// Encrypts or decrypts as many blocks as there are side by side, where they lie, by planes of so many round keys and one. Called only where the processor has the
/// instructions.
pub(super) type Kernel = unsafe fn(*mut Bytes, *const u64, usize);

/// Those of one means: encryption and decryption.
pub(super) fn of(means: Means) -> (Kernel, Kernel) {
    match means.0 {
        Kind::Words => (words::encrypt, words::decrypt),
        #[cfg(target_arch = "x86_64")]
        Kind::Sse2 => (sse2::encrypt, sse2::decrypt),
        #[cfg(target_arch = "x86_64")]
        Kind::Ssse3 => (ssse3::encrypt, ssse3::decrypt),
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => (avx2::encrypt, avx2::decrypt),
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        Kind::Neon => (neon::encrypt, neon::decrypt),
    }
}

macro_rules! kernels {
    ($name:ident, $plane:ty $(, $features:literal)?) => {
        mod $name {
            use super::*;

            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn encrypt(blocks: *mut Bytes, keys: *const u64, last: usize) {
                crypt::<$plane, true>(blocks, keys, last);
            }

            $(#[target_feature(enable = $features)])?
            pub(super) unsafe fn decrypt(blocks: *mut Bytes, keys: *const u64, last: usize) {
                crypt::<$plane, false>(blocks, keys, last);
            }
        }
    };
}

kernels!(words, u64);
#[cfg(target_arch = "x86_64")]
kernels!(sse2, crate::bitsliced::registers::Half<false>);
#[cfg(target_arch = "x86_64")]
kernels!(ssse3, crate::bitsliced::registers::Half<true>, "ssse3");
#[cfg(target_arch = "x86_64")]
kernels!(avx2, crate::bitsliced::registers::Both, "avx2");
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
kernels!(neon, std::arch::aarch64::uint8x16_t, "neon");

/// # Safety
/// As [`Plane`]; there are as many blocks, and planes of that kind of `last` + 1 round keys.
#[inline(always)]
unsafe fn crypt<P: Plane, const ENCRYPTS: bool>(blocks: *mut Bytes, keys: *const u64, last: usize) {
    let mut planes = P::sliced(blocks);
    if ENCRYPTS {
        rounds::encrypt(&mut planes, keys.cast(), last);
    } else {
        rounds::decrypt(&mut planes, keys.cast(), last);
    }
    P::join(planes, blocks);
}
