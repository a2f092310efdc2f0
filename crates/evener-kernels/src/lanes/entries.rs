//! The kernels by level: each names its register and switches the instructions on for all that is inlined into it.

use std::sync::Arc;

use super::space::Space;
use super::{Key, Message, burst};
use crate::level::{Level, Width};
use crate::vector::Block;

/// Encrypts messages under keys of one size, short ones that are alike or any. Called only where the processor has the level's instructions.
pub(super) type Kernel = unsafe fn(&mut Space, &[Arc<Key>], &[Message<'_>], bool);

/// The kernel of a level.
pub(super) fn of(level: Level) -> Kernel {
    match level.width() {
        Width::One => one,
        #[cfg(target_arch = "x86_64")]
        Width::Two => two,
        #[cfg(target_arch = "x86_64")]
        Width::Four => four,
    }
}

macro_rules! kernel {
    ($name:ident, $vector:ty, $features:literal) => {
        #[target_feature(enable = $features)]
        unsafe fn $name(space: &mut Space, keys: &[Arc<Key>], messages: &[Message<'_>], are_alike: bool) {
            burst::encrypt::<$vector>(space, keys, messages, are_alike)
        }
    };
}

#[cfg(target_arch = "x86_64")]
kernel!(one, Block, "aes,sse4.1,ssse3");
#[cfg(target_arch = "aarch64")]
kernel!(one, Block, "neon,aes");
#[cfg(target_arch = "x86_64")]
kernel!(two, std::arch::x86_64::__m256i, "aes,sse4.1,ssse3,avx2,vaes");
#[cfg(target_arch = "x86_64")]
kernel!(four, std::arch::x86_64::__m512i, "aes,sse4.1,ssse3,avx2,vaes,avx512f,avx512bw,avx512vl");
