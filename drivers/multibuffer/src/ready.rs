//! The memory of a job made ready for the library: padded where the session pads, without touching input that
//! lies apart.

use evener_core::BLOCK_BYTES;
use evener_core::job::Memory;
use evener_core::padding::pad;

use crate::ffi::Span;

/// Up to this length a job that lies apart is copied and padded before it runs in place: one lane instead of
/// two. `examples/lanes.rs` shows where the copy begins to cost more than the second lane.
pub(crate) const COPY_BYTES_MAX: usize = 512;

/// The memory of a job, made ready to be worked on.
pub(crate) struct Ready<'p> {
    /// Whole blocks; at least one.
    pub(crate) front: Span<'p>,
    /// The last block of the output with the padded end of the text in it, where `front` does not include it.
    pub(crate) tail: Option<&'p mut [u8]>,
}

impl<'p> Ready<'p> {
    /// Makes `memory` ready for work on `bytes`, which is more than the input where padding is to be added.
    pub(crate) fn new(memory: Memory<'p>, bytes: usize) -> Self {
        match memory {
            Memory::InPlace { room, input_bytes } => {
                let room = &mut room[..bytes];
                if bytes > input_bytes {
                    pad(room, input_bytes);
                }
                Self { front: Span::InPlace(room), tail: None }
            }
            Memory::Apart { src, dst } if src.len() == bytes => {
                Self { front: Span::Apart(src, &mut dst[..bytes]), tail: None }
            }
            Memory::Apart { src, dst } if bytes <= COPY_BYTES_MAX => {
                let room = &mut dst[..bytes];
                copy_and_pad(src, room);
                Self { front: Span::InPlace(room), tail: None }
            }
            Memory::Apart { src, dst } => {
                let (front, tail) = dst[..bytes].split_at_mut(bytes - BLOCK_BYTES);
                let (text, end) = src.split_at(front.len());
                copy_and_pad(end, tail);
                Self { front: Span::Apart(text, front), tail: Some(tail) }
            }
        }
    }
}

impl<'p> Ready<'p> {
    /// The last block that [`Ready::new`] has laid apart, and the block of output before it, once that is there.
    pub(crate) fn tail_of(memory: Memory<'p>, bytes: usize) -> Option<(&'p [u8; BLOCK_BYTES], &'p mut [u8])> {
        match memory {
            Memory::Apart { src, dst } if src.len() != bytes && bytes > COPY_BYTES_MAX => {
                let (front, tail) = dst[..bytes].split_at_mut(bytes - BLOCK_BYTES);
                Some((front.last_chunk()?, tail))
            }
            Memory::InPlace { .. } | Memory::Apart { .. } => None,
        }
    }
}

fn copy_and_pad(text: &[u8], room: &mut [u8]) {
    room[..text.len()].copy_from_slice(text);
    pad(room, text.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_apart_becomes_one_span_or_a_front_and_a_padded_tail() {
        for bytes in [0, 1, 15, 16, 511, 512, 513, 1000] {
            let (src, mut dst) = (vec![7_u8; bytes], vec![0_u8; bytes / 16 * 16 + 16]);
            let padded = dst.len();
            let ready = Ready::new(Memory::Apart { src: &src, dst: &mut dst }, padded);
            let value = u8::try_from(padded - bytes).unwrap();
            match (ready.front, ready.tail) {
                (Span::InPlace(room), None) => {
                    assert_eq!((room[..bytes].to_vec(), room[padded - 1]), (src, value));
                }
                (Span::Apart(text, front), Some(tail)) => {
                    assert!(padded > COPY_BYTES_MAX);
                    assert_eq!((text.len(), front.len()), (padded - 16, padded - 16));
                    assert_eq!((tail.len(), tail[15]), (16, value));
                }
                _ => panic!("{bytes}"),
            }
        }
    }
}
