//! The memory of a job: one span for input and output, two apart, or one of its own; and how a driver sees it.

use zeroize::Zeroizing;

use super::TAG_BYTES_MAX;

/// The memory of a job.
pub(super) enum Span<'m> {
    /// Input stands at the start of `room`, output replaces it.
    InPlace { room: &'m mut [u8] },
    /// Input and output lie apart.
    Apart { src: &'m [u8], dst: &'m mut [u8] },
    /// As in place, in memory of the job's own; nothing while a driver works in it.
    Owned { room: Zeroizing<Vec<u8>> },
}

impl Span<'_> {
    /// Room for input, in bytes.
    pub(super) fn input_room(&self) -> usize {
        match self {
            Self::InPlace { room } => room.len(),
            Self::Owned { room } => room.len(),
            Self::Apart { src, .. } => src.len(),
        }
    }

    /// Memory to read input into (in place only; empty otherwise).
    pub(super) fn room_mut(&mut self) -> &mut [u8] {
        match self {
            Self::InPlace { room } => room,
            Self::Owned { room } => room,
            Self::Apart { .. } => &mut [],
        }
    }

    /// So many bytes of input.
    #[inline]
    pub(super) fn input(&self, bytes: usize) -> &[u8] {
        match self {
            Self::InPlace { room } => &room[..bytes],
            Self::Owned { room } => &room[..bytes],
            Self::Apart { src, .. } => &src[..bytes],
        }
    }

    /// All that output may take.
    #[inline]
    pub(super) fn output(&self) -> &[u8] {
        match self {
            Self::InPlace { room } => room,
            Self::Owned { room } => room,
            Self::Apart { dst, .. } => dst,
        }
    }

    /// The same, to be written.
    pub(super) fn output_mut(&mut self) -> &mut [u8] {
        match self {
            Self::InPlace { room } => room,
            Self::Owned { room } => room,
            Self::Apart { dst, .. } => dst,
        }
    }

    /// As a driver sees it, with so many bytes of input.
    #[inline]
    pub(super) fn memory(&mut self, input_bytes: usize) -> Memory<'_> {
        match self {
            Self::InPlace { room } => Memory::InPlace { room, input_bytes },
            Self::Owned { room } => Memory::InPlace { room, input_bytes },
            Self::Apart { src, dst } => Memory::Apart { src: &src[..input_bytes], dst },
        }
    }
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
    /// `input_bytes` of input at the start of `room`; output replaces it and may use all of `room`.
    InPlace {
        /// Input and room for output.
        room: &'j mut [u8],
        /// Length of the input.
        input_bytes: usize,
    },
    /// Input and output do not overlap.
    Apart {
        /// The input, whole.
        src: &'j [u8],
        /// Room for output.
        dst: &'j mut [u8],
    },
}
