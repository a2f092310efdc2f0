//! By what planes are computed.

/// Registers or words that planes lie in. A value exists only where the processor has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Means(pub(super) Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Words of 64 bits, of any processor.
    Words,
    /// SSE2, which every x86-64 has.
    #[cfg(target_arch = "x86_64")]
    Sse2,
    #[cfg(target_arch = "x86_64")]
    Ssse3,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    Neon,
}

/// Where in a plane a bit lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Bit `16 r + 4 c + b` of a word.
    Rows,
    /// Bit `b` of byte `4 c + r` of each half.
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))]
    Bytes { halves: usize },
}

impl Means {
    /// The widest.
    #[must_use]
    pub fn best() -> Self {
        Self::all().last().unwrap_or(Self(Kind::Words))
    }

    /// All that this processor has, the narrowest first.
    pub fn all() -> impl Iterator<Item = Self> {
        kinds().into_iter().flatten().map(Self)
    }

    /// By the names of processor features.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Words => "words",
            #[cfg(target_arch = "x86_64")]
            Kind::Sse2 => "sse2",
            #[cfg(target_arch = "x86_64")]
            Kind::Ssse3 => "ssse3",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Kind::Neon => "neon",
        }
    }

    /// Messages, or blocks, side by side.
    #[must_use]
    pub fn lanes(self) -> u32 {
        match self.layout() {
            Layout::Rows => 4,
            Layout::Bytes { halves: 1 } => 8,
            Layout::Bytes { .. } => 16,
        }
    }

    pub(super) fn blocks(self) -> usize {
        self.lanes() as usize
    }

    pub(super) fn layout(self) -> Layout {
        match self.0 {
            Kind::Words => Layout::Rows,
            #[cfg(target_arch = "x86_64")]
            Kind::Sse2 | Kind::Ssse3 => Layout::Bytes { halves: 1 },
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => Layout::Bytes { halves: 2 },
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Kind::Neon => Layout::Bytes { halves: 1 },
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn kinds() -> [Option<Kind>; 4] {
    use std::arch::is_x86_feature_detected as has;
    let (ssse3, avx2) = (has!("ssse3").then_some(Kind::Ssse3), has!("avx2").then_some(Kind::Avx2));
    [Some(Kind::Words), Some(Kind::Sse2), ssse3, avx2]
}

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
fn kinds() -> [Option<Kind>; 2] {
    let has_neon = std::arch::is_aarch64_feature_detected!("neon");
    [Some(Kind::Words), has_neon.then_some(Kind::Neon)]
}

#[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))))]
fn kinds() -> [Option<Kind>; 1] {
    [Some(Kind::Words)]
}
