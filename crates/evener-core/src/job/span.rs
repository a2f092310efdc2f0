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
