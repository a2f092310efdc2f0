//! The memory of a job: one span for input and output, two apart, one of its own, or two that another process may change; and how a driver sees it.

use std::ptr;
use std::sync::atomic::AtomicU8;

use zeroize::Zeroizing;

use super::TAG_BYTES_MAX;

/// The memory of a job.
pub(super) enum Span<'m> {
    /// Input stands at the start of `space`, output replaces it.
    InPlace { space: &'m mut [u8] },
    /// Input and output lie apart.
    Apart { src: &'m [u8], dst: &'m mut [u8] },
    /// As in place, in memory of the job's own; nothing while a driver works in it.
    Owned { space: Zeroizing<Vec<u8>> },
    /// What another process may change at any time.
    Shared(SharedSpan<'m>),
}

/// Memory for a job, as who brings it has it.
pub enum Loan<'m> {
    /// Input at the start of this, which output replaces.
    InPlace(&'m mut [u8]),
    /// Input and output apart.
    Apart {
        /// The input, whole.
        src: &'m [u8],
        /// Space for output. For hashes it may be empty.
        dst: &'m mut [u8],
    },
}

impl<'m> From<Loan<'m>> for Span<'m> {
    fn from(loan: Loan<'m>) -> Self {
        match loan {
            Loan::InPlace(space) => Self::InPlace { space },
            Loan::Apart { src, dst } => Self::Apart { src, dst },
        }
    }
}

impl<'m> Span<'m> {
    /// Space for input, in bytes.
    pub(super) fn input_space(&self) -> usize {
        match self {
            Self::InPlace { space } => space.len(),
            Self::Owned { space } => space.len(),
            Self::Apart { src, .. } => src.len(),
            Self::Shared(shared) => shared.src.len(),
        }
    }

    /// Memory to read input into (in place only; empty otherwise).
    pub(super) fn space_mut(&mut self) -> &mut [u8] {
        match self {
            Self::InPlace { space } => space,
            Self::Owned { space } => space,
            Self::Apart { .. } | Self::Shared(_) => &mut [],
        }
    }

    /// So many bytes of input; none of what is shared.
    #[inline]
    pub(super) fn input(&self, bytes: usize) -> &[u8] {
        match self {
            Self::InPlace { space } => &space[..bytes],
            Self::Owned { space } => &space[..bytes],
            Self::Apart { src, .. } => &src[..bytes],
            Self::Shared(_) => &[],
        }
    }

    /// Space for output, in bytes.
    #[inline]
    pub(super) fn output_space(&self) -> usize {
        match self {
            Self::Shared(shared) => shared.dst.len(),
            _ => self.output().len(),
        }
    }

    /// What is shared, if it is.
    #[inline]
    pub(super) const fn shared(&self) -> Option<SharedSpan<'m>> {
        match self {
            Self::Shared(shared) => Some(*shared),
            _ => None,
        }
    }

    /// Whether input and output lie in two places.
    #[inline]
    pub(super) fn is_apart(&self) -> bool {
        match self {
            Self::Apart { .. } => true,
            Self::Shared(SharedSpan { src, dst }) => !ptr::eq(src.as_ptr(), dst.as_ptr()),
            Self::InPlace { .. } | Self::Owned { .. } => false,
        }
    }

    /// Whether both are in place, or both apart.
    #[inline]
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::InPlace { .. }, Self::InPlace { .. }) | (Self::Apart { .. }, Self::Apart { .. }) => true,
            _ => self.is_apart() == other.is_apart(),
        }
    }

    /// All that output may take; none of what is shared.
    #[inline]
    pub(super) fn output(&self) -> &[u8] {
        match self {
            Self::InPlace { space } => space,
            Self::Owned { space } => space,
            Self::Apart { dst, .. } => dst,
            Self::Shared(_) => &[],
        }
    }

    /// The same, to be written.
    pub(super) fn output_mut(&mut self) -> &mut [u8] {
        match self {
            Self::InPlace { space } => space,
            Self::Owned { space } => space,
            Self::Apart { dst, .. } => dst,
            Self::Shared(_) => &mut [],
        }
    }

    /// As a driver sees it, with so many bytes of input.
    ///
    /// # Panics
    ///
    /// Where it is shared: no reference is made to that.
    #[inline]
    pub(super) fn memory(&mut self, input_bytes: usize) -> Memory<'_> {
        match self {
            Self::InPlace { space } => Memory::InPlace { space, input_bytes },
            Self::Owned { space } => Memory::InPlace { space, input_bytes },
            Self::Apart { src, dst } => Memory::Apart { src: &src[..input_bytes], dst },
            Self::Shared(_) => unreachable!("a driver is given a shared span only where it takes such"),
        }
    }
}

/// Memory of a job that another process may change at any time, also while a driver works on it. So there are atomics where elsewhere slices of
/// bytes are: who works on it takes addresses to C, or loads bytes one by one, and believes nothing that it read a second time.
#[derive(Clone, Copy, Debug)]
pub struct SharedSpan<'m> {
    /// The input, whole.
    pub src: &'m [AtomicU8],
    /// Space for output: the input's own place, or one that does not overlap it. Empty for hashes.
    pub dst: &'m [AtomicU8],
}

impl SharedSpan<'_> {
    /// One without memory.
    pub const EMPTY: Self = Self { src: &[], dst: &[] };
}

/// What a driver works on: the parts of a job, taken apart once.
pub struct Parts<'j> {
    /// IV, nonce, counter block or tweak; the first [`crate::Algorithm::iv_bytes`] count.
    pub iv: &'j [u8; 16],
    /// Associated data (AEAD only).
    pub aad: &'j [u8],
    /// The memory.
    pub memory: Memory<'j>,
    /// Tag or digest: read when an AEAD decrypts, written otherwise.
    pub tag: &'j mut [u8; TAG_BYTES_MAX],
}

/// The memory of a job as a driver sees it.
pub enum Memory<'j> {
    /// `input_bytes` of input at the start of `space`; output replaces it and may use all of `space`.
    InPlace {
        /// Input and space for output.
        space: &'j mut [u8],
        /// Length of the input.
        input_bytes: usize,
    },
    /// Input and output do not overlap.
    Apart {
        /// The input, whole.
        src: &'j [u8],
        /// Space for output.
        dst: &'j mut [u8],
    },
}
