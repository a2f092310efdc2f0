//! The rival in Evener's figures: what a C program does that calls libipsec-mb in a loop, and nothing else.

use std::ffi::CStr;
use std::sync::Arc;

use evener_core::BLOCK_BYTES;
use evener_core::padding::{pad, padded_bytes};

use crate::ffi::keys::{AesKeys, KeySize, address};
use crate::ffi::layout::{BURST_JOBS_MAX, LANE_BYTES_MAX};
use crate::ffi::library::load_first;
use crate::ffi::manager::{CHECKED, Manager};
use crate::ffi::span::Span;
use crate::ffi::work::Work;
use crate::unavailable::Unavailable;

/// One buffer, to be encrypted by [`BareLoop`].
pub struct BareSpan<'m> {
    iv: [u8; BLOCK_BYTES],
    memory: Span<'m>,
    /// Bytes of text; fewer than the output where padding is added.
    text_bytes: usize,
}

impl<'m> BareSpan<'m> {
    /// A buffer that is replaced by its ciphertext. Where `text_bytes` is less than its length, PKCS#7 is added.
    ///
    /// # Panics
    ///
    /// Where the buffer is not `text_bytes` long, padded or not; where it is empty, not whole blocks, or longer
    /// than a SIMD lane takes (65520 bytes).
    #[must_use]
    pub fn in_place(iv: [u8; BLOCK_BYTES], space: &'m mut [u8], text_bytes: usize) -> Self {
        check(text_bytes, space.len());
        Self { iv, memory: Span::InPlace(space), text_bytes }
    }

    /// A text and space for its ciphertext. Where the space is longer, PKCS#7 is added.
    ///
    /// # Panics
    ///
    /// As [`BareSpan::in_place`].
    #[must_use]
    pub fn apart(iv: [u8; BLOCK_BYTES], src: &'m [u8], dst: &'m mut [u8]) -> Self {
        check(src.len(), dst.len());
        Self { iv, memory: Span::Apart(src, dst), text_bytes: src.len() }
    }

    /// Lays padding behind a text in place. Gives input, output and length of what runs first: all of it, or
    /// the whole blocks of a text that lies apart.
    fn first(&mut self) -> (*const u8, *mut u8, usize) {
        match &mut self.memory {
            Span::InPlace(space) => {
                if space.len() > self.text_bytes {
                    pad(space, self.text_bytes);
                }
                let start = space.as_mut_ptr();
                (start.cast_const(), start, space.len())
            }
            Span::Apart(src, dst) => (src.as_ptr(), dst.as_mut_ptr(), src.len() / BLOCK_BYTES * BLOCK_BYTES),
            Span::Shared(..) => unreachable!("no constructor makes one"),
        }
    }

    /// The last block of a text that lies apart, padded in the output, once all before it is encrypted.
    fn second(&mut self) -> Option<&mut [u8]> {
        let Span::Apart(src, dst) = &mut self.memory else { return None };
        let whole = src.len() / BLOCK_BYTES * BLOCK_BYTES;
        if dst.len() == src.len() {
            return None;
        }
        if let Some(before) = dst[..whole].last_chunk() {
            self.iv = *before;
        }
        let last = &mut dst[whole..];
        last[..src.len() - whole].copy_from_slice(&src[whole..]);
        pad(last, src.len() - whole);
        Some(last)
    }
}

fn check(text_bytes: usize, space_bytes: usize) {
    let whole = space_bytes == text_bytes && text_bytes > 0 && text_bytes % BLOCK_BYTES == 0;
    assert!(
        whole || space_bytes == padded_bytes(text_bytes),
        "{text_bytes} bytes in space for {space_bytes}"
    );
    assert!(space_bytes <= LANE_BYTES_MAX, "{space_bytes} bytes are too many for a lane");
}

/// AES-CBC encryption of many buffers in a loop around the library's synchronous burst, without sessions, jobs
/// or slices. For measuring only: the simplest thing that a program can do with the library.
pub struct BareLoop {
    manager: Manager,
    keys: Arc<AesKeys>,
    work: Work,
}

impl BareLoop {
    /// Loads the library, as [`crate::Multibuffer::load`] does, and expands a key of 16, 24 or 32 bytes.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] with the reason.
    ///
    /// # Panics
    ///
    /// Where the key has another length.
    pub fn load(key: &[u8]) -> Result<Self, Unavailable> {
        load_first(|name| Self::load_named(name, key))
    }

    fn load_named(name: &CStr, key: &[u8]) -> Result<Self, Unavailable> {
        let manager = Manager::load(name)?;
        let keys = manager.aes_keys(key);
        Ok(Self { manager, keys, work: Work::CbcEncrypt(KeySize::of(key.len())) })
    }

    /// Encrypts all of them, in bursts of at most 128.
    ///
    /// # Panics
    ///
    /// Where the library refuses what it documents to take.
    pub fn encrypt(&mut self, spans: &mut [BareSpan<'_>]) {
        self.manager.job_slots.prepare(self.work);
        for chunk in spans.chunks_mut(BURST_JOBS_MAX) {
            let mut count = 0;
            for span in chunk.iter_mut() {
                let (src, dst, bytes) = span.first();
                if bytes > 0 {
                    self.fill(count, src, dst, bytes, &span.iv);
                    count += 1;
                }
            }
            self.run(count);
            let mut count = 0;
            for span in chunk.iter_mut() {
                if let Some(start) = span.second().map(<[u8]>::as_mut_ptr) {
                    self.fill(count, start, start, BLOCK_BYTES, &span.iv);
                    count += 1;
                }
            }
            self.run(count);
        }
    }

    fn fill(&mut self, place: usize, src: *const u8, dst: *mut u8, bytes: usize, iv: &[u8; BLOCK_BYTES]) {
        let slot = self.manager.job_slots.slot(place);
        slot.enc_keys = address(&self.keys.encrypt);
        slot.src = src;
        slot.dst = dst;
        slot.cipher_bytes = bytes as u64;
        slot.iv = iv.as_ptr();
    }

    /// Runs the first `count` slots, which were filled from spans of the chunk at hand.
    fn run(&self, count: usize) {
        if count == 0 {
            return;
        }
        let burst = self.manager.table.cipher_burst.expect(CHECKED);
        let (cipher, direction, key_bytes) = self.work.cipher();
        let (manager, jobs) = (self.manager.address(), self.manager.job_slots.first());
        let count_u32 = u32::try_from(count).expect("at most 128");
        // SAFETY: `encrypt` has just filled the slots; each span has borrowed its memory, and its length was
        // checked.
        let completed = unsafe { burst(manager, jobs, count_u32, cipher, direction, key_bytes) };
        assert_eq!(completed as usize, count, "the library takes what its header says");
    }
}

#[cfg(test)]
mod tests {
    use evener_core::{Algorithm, Direction, InlineDriver as _, Job, Padding, Session};

    use super::*;
    use crate::Multibuffer;

    const KEY: [u8; 24] = [3; 24];
    const IV: [u8; BLOCK_BYTES] = [8; BLOCK_BYTES];

    fn by_driver(padding: Padding, text: &[u8]) -> Vec<u8> {
        let session = Session::new(Algorithm::Aes192Cbc, Direction::Encrypt, padding, &KEY).unwrap();
        let mut space = vec![0; session.output_bytes_max(text.len())];
        let mut job = Job::apart(text, &mut space);
        job.arm(&session, &IV, text.len());
        let mut burst = [job];
        Multibuffer::load().unwrap().run(&mut burst);
        burst[0].output().to_vec()
    }

    #[test]
    fn the_bare_loop_makes_what_the_driver_makes() {
        let mut bare = match BareLoop::load(&KEY) {
            Ok(bare) => bare,
            Err(unavailable) => {
                println!("skipped: {unavailable}");
                return;
            }
        };
        let texts: Vec<Vec<u8>> = [16, 160, 4096, 65_504].map(|bytes| vec![0x77; bytes]).to_vec();
        let odd: Vec<Vec<u8>> = (0..150).map(|bytes| vec![0x42; bytes * 7]).collect();
        for (padding, texts) in [(Padding::None, &texts), (Padding::Pkcs7, &texts), (Padding::Pkcs7, &odd)] {
            let expected: Vec<Vec<u8>> = texts.iter().map(|text| by_driver(padding, text)).collect();
            let mut apart: Vec<Vec<u8>> = expected.iter().map(|output| vec![0; output.len()]).collect();
            let mut in_place = apart.clone();
            let mut spans: Vec<BareSpan<'_>> =
                texts.iter().zip(&mut apart).map(|(text, space)| BareSpan::apart(IV, text, space)).collect();
            bare.encrypt(&mut spans);
            assert_eq!(apart, expected);
            for (text, space) in texts.iter().zip(&mut in_place) {
                space[..text.len()].copy_from_slice(text);
            }
            let both = texts.iter().zip(&mut in_place);
            let mut spans: Vec<BareSpan<'_>> =
                both.map(|(text, space)| BareSpan::in_place(IV, space, text.len())).collect();
            bare.encrypt(&mut spans);
            assert_eq!(in_place, expected);
        }
    }
}
