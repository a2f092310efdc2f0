//! What of the processor's instructions kernels of hashes may use.

/// Instructions that kernels of hashes use. A value exists only where the processor has all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Means {
    has_sha: bool,
    /// Bits of the registers in which messages lie side by side: 512, 256, or 0 of none.
    bits: usize,
}

impl Means {
    /// All that this processor has; none where that is not enough for any kernel, or kernels were left out.
    #[must_use]
    pub fn best() -> Option<Self> {
        Self::all().next()
    }

    /// The same without the SHA extensions; none where nothing is left.
    #[must_use]
    pub fn without_sha(self) -> Option<Self> {
        Self { has_sha: false, ..self }.if_any()
    }

    /// The same with registers of at most so many bits; none where nothing is left.
    #[must_use]
    pub fn up_to(self, bits: usize) -> Option<Self> {
        Self::all().find(|means| means.has_sha == self.has_sha && means.bits <= bits.min(self.bits))
    }

    /// Every choice that this processor leaves, the one with most first.
    pub fn all() -> impl Iterator<Item = Self> {
        let widths = [512, 256, 0].into_iter().filter(|bits| has_width(*bits));
        let shas = [true, false].into_iter().filter(|has_sha| !has_sha || has_extensions());
        let pairs = shas.flat_map(move |has_sha| widths.clone().map(move |bits| Self { has_sha, bits }));
        pairs.filter_map(Self::if_any)
    }

    /// The instructions by the names of their processor features.
    #[must_use]
    pub fn name(self) -> &'static str {
        match (self.bits, self.has_sha) {
            (512, true) => "avx512+sha",
            (512, false) => "avx512",
            (256, true) => "avx2+sha",
            (256, false) => "avx2",
            _ => "sha",
        }
    }

    /// Whether the SHA extensions are among them.
    #[must_use]
    pub fn has_sha(self) -> bool {
        self.has_sha
    }

    /// Bits of the registers in which messages lie side by side; 0 of none.
    #[must_use]
    pub fn bits(self) -> usize {
        self.bits
    }

    fn if_any(self) -> Option<Self> {
        (self.has_sha || self.bits > 0).then_some(self)
    }
}

#[cfg(hash_kernels)]
fn has_extensions() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("sha") && has!("sse4.1") && has!("ssse3")
}

#[cfg(hash_kernels)]
fn has_width(bits: usize) -> bool {
    use std::arch::is_x86_feature_detected as has;
    match bits {
        512 => has_width(256) && has!("avx512f") && has!("avx512bw") && has!("avx512vl"),
        256 => has!("avx2"),
        _ => true,
    }
}

#[cfg(not(hash_kernels))]
fn has_extensions() -> bool {
    false
}

#[cfg(not(hash_kernels))]
fn has_width(bits: usize) -> bool {
    bits == 0
}
