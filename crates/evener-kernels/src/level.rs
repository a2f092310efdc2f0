//! What of the processor's instructions a kernel may use.

/// Instructions that a kernel is written for, the narrowest first. A value exists only where the processor has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(Width);

/// Blocks of 16 bytes in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Width {
    /// AES-NI, PCLMULQDQ and SSE4.1; or AESE and PMULL: one block.
    #[cfg(kernels)]
    One,
    /// VAES, VPCLMULQDQ and AVX2: two blocks.
    #[cfg(all(kernels, target_arch = "x86_64"))]
    Two,
    /// VAES, VPCLMULQDQ and AVX-512 (F, BW, VL): four blocks.
    #[cfg(all(kernels, target_arch = "x86_64"))]
    Four,
}

impl Level {
    /// Whether there are kernels: for x86-64, by rustc 1.89 or newer, and for AArch64.
    pub const ARE_BUILT: bool = cfg!(kernels);

    /// The widest that this processor has; none where it lacks what all kernels need, and none at all where they were left out:
    /// [`ARE_BUILT`](Self::ARE_BUILT).
    #[must_use]
    pub fn best() -> Option<Self> {
        Self::all().last()
    }

    /// The widest that this processor has among those whose registers have at most so many bits.
    #[must_use]
    pub fn up_to(bits: usize) -> Option<Self> {
        Self::all().filter(|level| level.bits() <= bits).last()
    }

    /// Family, model and stepping of this processor as it says them itself (CPUID leaf 1, EAX); 0 where it is none of x86-64.
    #[must_use]
    pub fn processor() -> u32 {
        #[cfg(target_arch = "x86_64")]
        #[allow(unused_unsafe, reason = "newer compilers need no block, 1.85 does")]
        // SAFETY: the leaf is there wherever x86-64 is.
        return unsafe { std::arch::x86_64::__cpuid(1).eax };
        #[cfg(not(target_arch = "x86_64"))]
        0
    }

    /// Whether this processor has instructions for AES, whatever kernels are built.
    #[must_use]
    pub fn has_aes() -> bool {
        #[cfg(target_arch = "x86_64")]
        return std::arch::is_x86_feature_detected!("aes");
        #[cfg(target_arch = "aarch64")]
        return std::arch::is_aarch64_feature_detected!("aes");
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        false
    }

    /// Bits of its registers.
    #[must_use]
    pub fn bits(self) -> usize {
        match self.0 {
            #[cfg(kernels)]
            Width::One => 128,
            #[cfg(all(kernels, target_arch = "x86_64"))]
            Width::Two => 256,
            #[cfg(all(kernels, target_arch = "x86_64"))]
            Width::Four => 512,
        }
    }

    /// All that this processor has, the narrowest first.
    pub fn all() -> impl Iterator<Item = Self> {
        widths().into_iter().flatten().map(Self)
    }

    /// The instructions by the names of their processor features.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(all(kernels, target_arch = "x86_64"))]
            Width::One => "aes+pclmulqdq",
            #[cfg(all(kernels, target_arch = "aarch64"))]
            Width::One => "aes+pmull",
            #[cfg(all(kernels, target_arch = "x86_64"))]
            Width::Two => "vaes+vpclmulqdq+avx2",
            #[cfg(all(kernels, target_arch = "x86_64"))]
            Width::Four => "vaes+vpclmulqdq+avx512",
        }
    }

    /// What follows from a level where there is none.
    #[cfg(not(kernels))]
    pub(crate) fn never<T>(self) -> T {
        match self.0 {}
    }

    #[cfg(kernels)]
    pub(crate) fn width(self) -> Width {
        self.0
    }
}

#[cfg(all(kernels, target_arch = "aarch64"))]
fn widths() -> [Option<Width>; 1] {
    use std::arch::is_aarch64_feature_detected as has;
    let one = has!("neon") && has!("aes") && has!("pmull");
    [one.then_some(Width::One)]
}

#[cfg(all(kernels, target_arch = "x86_64"))]
fn widths() -> [Option<Width>; 3] {
    use std::arch::is_x86_feature_detected as has;
    let one = has!("aes") && has!("pclmulqdq") && has!("sse4.1") && has!("ssse3");
    let two = one && has!("vaes") && has!("vpclmulqdq") && has!("avx2");
    let four = two && has!("avx512f") && has!("avx512bw") && has!("avx512vl");
    [one.then_some(Width::One), two.then_some(Width::Two), four.then_some(Width::Four)]
}

#[cfg(not(kernels))]
fn widths() -> [Option<Width>; 3] {
    [None; 3]
}
