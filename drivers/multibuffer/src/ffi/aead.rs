//! GCM and ChaCha20-Poly1305: one message per call. They fill a core's units from within one message, so the
//! library's direct functions are its fastest way for any number of jobs.

use evener_core::Direction;

use crate::ffi::keys::{GcmKeys, address, address_mut};
use crate::ffi::manager::{CHECKED, Manager};
use crate::ffi::span::Span;

/// Longest message of GCM in bytes: 2^39 - 256 bits (SP 800-38D, 5.2.1.1).
pub(crate) const GCM_BYTES_MAX: usize = in_memory(((1 << 39) - 256) / 8);

/// Longest message of ChaCha20-Poly1305 in bytes: 2^32 - 1 blocks of 64 (RFC 8439, 2.8).
pub(crate) const CHACHA_BYTES_MAX: usize = in_memory(((1 << 32) - 1) * 64);

/// A limit, or all that an address can reach where that is less: this crate builds on 32 bits, where it finds no library.
const fn in_memory(bytes: u64) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "compared before")]
    if bytes < usize::MAX as u64 { bytes as usize } else { usize::MAX }
}

/// A message to be encrypted or decrypted with associated data.
pub(crate) struct AeadMessage<'m> {
    pub(crate) direction: Direction,
    pub(crate) nonce: &'m [u8; 12],
    pub(crate) aad: &'m [u8],
    pub(crate) span: Span<'m>,
}

impl Manager {
    /// Encrypts or decrypts a message with AES-GCM and returns the tag, which is still to be compared.
    ///
    /// # Panics
    ///
    /// Where the message is longer than [`GCM_BYTES_MAX`].
    pub(crate) fn gcm(&mut self, keys: &GcmKeys, message: AeadMessage<'_>) -> [u8; 16] {
        let AeadMessage { direction, nonce, aad, span } = message;
        let (src, dst, bytes) = span.addresses();
        assert!(bytes <= GCM_BYTES_MAX, "{bytes} bytes are too many for GCM");
        let functions = match direction {
            Direction::Encrypt => &self.table.gcm_encrypt,
            Direction::Decrypt => &self.table.gcm_decrypt,
        };
        let run = functions[keys.size.index()].expect(CHECKED);
        let (key, state) = (address(&keys.prepared), address_mut(&mut self.states.gcm));
        let mut tag = [0; 16];
        let (aad_bytes, tag_bytes) = (aad.len() as u64, tag.len() as u64);
        // SAFETY: every address goes with its length; key and state were made for this function; input and
        // output are the same memory or do not overlap.
        unsafe {
            run(
                key,
                state,
                dst,
                src,
                bytes as u64,
                nonce.as_ptr(),
                aad.as_ptr(),
                aad_bytes,
                tag.as_mut_ptr(),
                tag_bytes,
            );
        }
        tag
    }

    /// As [`Manager::gcm`], with ChaCha20-Poly1305.
    ///
    /// # Panics
    ///
    /// Where the message is longer than [`CHACHA_BYTES_MAX`].
    pub(crate) fn chacha20_poly1305(&mut self, key: &[u8; 32], message: AeadMessage<'_>) -> [u8; 16] {
        let AeadMessage { direction, nonce, aad, span } = message;
        let (src, dst, bytes) = span.addresses();
        assert!(bytes <= CHACHA_BYTES_MAX, "{bytes} bytes are too many for ChaCha20-Poly1305");
        let (start, end) = (self.table.chacha_start.expect(CHECKED), self.table.chacha_end.expect(CHECKED));
        let update = match direction {
            Direction::Encrypt => self.table.chacha_encrypt.expect(CHECKED),
            Direction::Decrypt => self.table.chacha_decrypt.expect(CHECKED),
        };
        let (key, state) = (address(key), address_mut(&mut self.states.chacha));
        let mut tag = [0; 16];
        // SAFETY: key, nonce and state have the lengths of the header; `aad` goes with its length.
        unsafe { start(key, state, address(nonce), address(aad), aad.len() as u64) };
        // SAFETY: input and output go with their length, and are the same memory or do not overlap.
        unsafe { update(key, state, dst.cast(), src.cast(), bytes as u64) };
        // SAFETY: the tag has the length that is given.
        unsafe { end(state, address_mut(&mut tag), 16) };
        tag
    }
}
