//! The memory of a job made ready for the library, with PKCS#7 on the way.
//!
//! A job that is to be padded is either short, and its padding is laid into the output before it runs, or it
//! runs without its last block, which `padding_blocks.rs` makes up for. A write behind a long text would fetch a line of
//! memory long before the library comes to it, and a text that lies apart cannot be written to at all.

use evener_core::job::{Memory, SharedSpan};
use evener_core::padding::pad;
use evener_core::{BLOCK_BYTES, Job};

use crate::ffi::Span;

/// Longest short job in bytes, padding included. Measured with `examples/lanes.rs`: at 512 bytes of text padding
/// first is 5 to 10 ns cheaper than a tail, at 1 KiB dearer unless all is in cache, at 4 KiB apart by a third.
const SHORT_BYTES_MAX: usize = 512 + BLOCK_BYTES;

/// Whether the last block of a job is left to `padding_blocks.rs`: `bytes` with padding, `text_bytes` without. A block
/// alone is a tail too, for then nothing else is left of the job.
#[inline]
pub(crate) const fn has_tail(text_bytes: usize, bytes: usize) -> bool {
    bytes > text_bytes && (bytes > SHORT_BYTES_MAX || bytes == BLOCK_BYTES)
}

/// IV of a job of `bytes`, and what the library is to work on first of it. Of what is shared that is all: it has no padding.
#[inline]
pub(crate) fn iv_and_front<'j>(job: &'j mut Job<'_>, bytes: usize) -> (&'j [u8; BLOCK_BYTES], Span<'j>) {
    match job.shared_span() {
        Some(SharedSpan { src, dst }) => (job.iv(), Span::Shared(src, dst)),
        None => {
            let parts = job.parts();
            (parts.iv, front(parts.memory, bytes))
        }
    }
}

/// What the library is to work on first of a job of `bytes`; empty where the tail is everything.
#[inline]
pub(crate) fn front(memory: Memory<'_>, bytes: usize) -> Span<'_> {
    match memory {
        Memory::InPlace { space, input_bytes } => {
            let bytes = front_bytes(input_bytes, bytes);
            let space = &mut space[..bytes];
            if bytes > input_bytes {
                pad(space, input_bytes);
            }
            Span::InPlace(space)
        }
        Memory::Apart { src, dst } => {
            let bytes = front_bytes(src.len(), bytes);
            let space = &mut dst[..bytes];
            if bytes <= src.len() {
                return Span::Apart(&src[..bytes], space);
            }
            space[..src.len()].copy_from_slice(src);
            pad(space, src.len());
            Span::InPlace(space)
        }
    }
}

#[inline]
const fn front_bytes(text_bytes: usize, bytes: usize) -> usize {
    if has_tail(text_bytes, bytes) { bytes - BLOCK_BYTES } else { bytes }
}

/// The text of the last block and the block of ciphertext before it, or the IV.
pub(crate) fn tail<'j>(job: &'j Job<'_>, bytes: usize) -> (&'j [u8], &'j [u8; BLOCK_BYTES]) {
    let start = bytes - BLOCK_BYTES;
    let before = job.output_span()[..start].last_chunk().unwrap_or_else(|| job.iv());
    (&job.input()[start..], before)
}
