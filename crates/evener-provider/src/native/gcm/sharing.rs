//! A piece of text that may be split between threads (`native/split.rs`): each works on a stretch of whole blocks, and their hashes are joined.

use std::sync::OnceLock;

use evener_core::BLOCK_BYTES;
use evener_kernels::gcm::{Key, Message, Stretch};

use super::{GcmContext, Nonce, crypt};
use crate::native::Refused;
use crate::native::split::{Cut, Place, Split};

impl GcmContext {
    /// From how many bytes on a piece may be split between threads.
    #[inline]
    pub(super) fn split_from(&self) -> usize {
        self.row().native_split_from()
    }

    /// A piece of text that may be split: what is missing of a block that is begun, whole blocks, and what is left.
    pub(super) fn large(&mut self, (from, to, bytes): Place) -> Result<usize, Refused> {
        let row = self.row();
        let Self { message: Some(message), key, encrypts, tally, .. } = self else { return Err(Refused) };
        let encrypts = *encrypts;
        let begun = usize::from(message.text_bytes().to_le_bytes()[0]) % BLOCK_BYTES;
        let head = if begun > 0 { bytes.min(BLOCK_BYTES - begun) } else { 0 };
        let bulk = (bytes - head) / BLOCK_BYTES * BLOCK_BYTES;
        let at = |offset: usize, bytes| (from.wrapping_add(offset), to.wrapping_add(offset), bytes);
        let split = Split::of(row, encrypts, at(head, bulk));
        if let Some(cut) = split.as_ref().and_then(Split::cut) {
            // SAFETY: within what the caller lends for the call.
            unsafe { crypt(message, key, encrypts, at(0, head)) };
            // SAFETY: as above.
            if !unsafe { shared(message, key, encrypts, &cut, bulk) } {
                self.nonce = Nonce::Used;
                return Err(Refused);
            }
            tally.take(bytes - bulk);
            // SAFETY: as above.
            unsafe { crypt(message, key, encrypts, at(head + bulk, bytes - head - bulk)) };
        } else {
            tally.take(bytes);
            // SAFETY: as above.
            unsafe { crypt(message, key, encrypts, (from, to, bytes)) };
        }
        split.into_iter().for_each(Split::end);
        Ok(bytes)
    }
}

/// Whole blocks of a message, each part of them by a thread of its own; whether all are done.
///
/// # Safety
/// The piece's places are good for reading and writing.
unsafe fn shared(message: &mut Message, key: &mut Key, encrypts: bool, cut: &Cut<'_>, bulk: usize) -> bool {
    if !message.begin_parts(key) {
        return false;
    }
    let part_blocks = cut.part_bytes / BLOCK_BYTES;
    let stretches: Vec<OnceLock<Stretch>> =
        (0..bulk.div_ceil(cut.part_bytes)).map(|_| OnceLock::new()).collect();
    let (begun, key) = (&*message, &*key);
    let part = |index: usize, (from, to, bytes): Place| {
        let mut stretch = begun.stretch(index * part_blocks);
        let blocks = bytes / BLOCK_BYTES;
        if encrypts {
            // SAFETY: the part's place.
            unsafe { stretch.crypt::<true>(key, from, to, blocks) };
        } else {
            // SAFETY: as above.
            unsafe { stretch.crypt::<false>(key, from, to, blocks) };
        }
        // Each part is given out once.
        stretches.get(index).map(|place| place.set(stretch).is_ok());
    };
    // SAFETY: the caller's word.
    let is_done = unsafe { cut.share(&part) };
    for stretch in &stretches {
        match stretch.get() {
            Some(stretch) if is_done => message.join(key, stretch),
            _ => return false,
        }
    }
    true
}
