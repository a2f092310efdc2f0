//! CBC and ECB: what is no whole block waits for the rest, and the last one is padded (RFC 5652, 6.3).

use evener_core::Family;
use evener_kernels::modes::BLOCK;
use zeroize::Zeroizing;

use super::BlockContext;
use crate::inner_cipher::call::Update;

impl BlockContext {
    /// A piece of CBC or ECB.
    pub(super) fn blocks(&mut self, call: &Update) -> Option<usize> {
        let all = self.held_bytes.checked_add(call.len())?;
        let mut out = all / BLOCK * BLOCK;
        if self.pads && !self.encrypts && out == all {
            // It may be the last, which is padded.
            out = out.saturating_sub(BLOCK);
        }
        if out == 0 {
            let place = self.held.get_mut(self.held_bytes..all)?;
            if !place.is_empty() {
                place.copy_from_slice(call.input().get(..place.len())?);
            }
            self.held_bytes = all;
            return Some(0);
        }
        if !call.can_put(out) || call.is_end() && call.len() > 0 {
            return None;
        }
        // SAFETY: input of this length is there, and room for as much as comes out.
        unsafe { self.whole(call, all, out) }?;
        Some(out)
    }

    /// So many bytes out, of all that is there: what was held comes first, and what is behind them is held. What is read is read before it may be written over,
    /// wherever the places lie.
    ///
    /// # Safety
    /// The call has its input, and room for `out` bytes.
    pub(super) unsafe fn whole(&mut self, call: &Update, all: usize, out: usize) -> Option<()> {
        let (input, output) = call.places()?;
        let before = self.held_bytes;
        let mut tail = Zeroizing::new([0; BLOCK]);
        // All of the input: what comes out has what was held.
        let tail_bytes = all - out;
        call.copy_input(call.len() - tail_bytes, &mut tail[..tail_bytes]);
        let mut first = Zeroizing::new([0; BLOCK]);
        let begun = if before > 0 { BLOCK - before } else { 0 };
        if before > 0 {
            call.copy_input(0, &mut self.held[before..]);
            let place = first.as_mut_ptr();
            // SAFETY: a block each.
            unsafe { self.key.crypt(&mut self.iv, self.held.as_ptr(), place, 1) };
        }
        let at = if before > 0 { BLOCK } else { 0 };
        if out > at {
            let (from, to) = (input.wrapping_add(begun), output.wrapping_add(at));
            // SAFETY: within the input, and within the room.
            unsafe { self.crypt((from, to, out - at)) }?;
        }
        if before > 0 {
            call.put_output(0, &*first);
        }
        self.held[..tail_bytes].copy_from_slice(&tail[..tail_bytes]);
        self.held_bytes = tail_bytes;
        Some(())
    }

    /// The end of a message; bytes written.
    #[inline]
    pub(crate) fn last(&mut self, call: &Update) -> Option<usize> {
        if !self.has_key || self.is_out_of_service() {
            return None;
        }
        let written = match (self.family(), self.encrypts) {
            (Family::Ctr | Family::Xts, _) => 0,
            (_, true) => self.last_encrypted(call)?,
            (_, false) => self.last_decrypted(call)?,
        };
        self.tally.end_message(self.row(), self.encrypts);
        Some(written)
    }

    pub(super) fn last_encrypted(&mut self, call: &Update) -> Option<usize> {
        if !self.pads {
            return (self.held_bytes == 0).then_some(0);
        }
        if !call.can_put(BLOCK) {
            return None;
        }
        let padding = BLOCK - self.held_bytes;
        self.held.get_mut(self.held_bytes..)?.fill(padding.to_le_bytes()[0]);
        let block = self.held_block();
        call.put_output(0, &*block);
        self.held_bytes = 0;
        Some(BLOCK)
    }

    pub(super) fn last_decrypted(&mut self, call: &Update) -> Option<usize> {
        if self.held_bytes == 0 && !self.pads {
            return Some(0);
        }
        if self.held_bytes != BLOCK {
            return None;
        }
        let chain = self.iv;
        let block = self.held_block();
        let written = if self.pads { unpadded(&block) } else { Some(BLOCK) };
        let Some(written) = written.filter(|&bytes| bytes == 0 || call.can_put(bytes)) else {
            self.iv = chain;
            return None;
        };
        if written > 0 {
            call.put_output(0, block.get(..written)?);
        }
        self.held_bytes = 0;
        Some(written)
    }

    /// What is held, encrypted or decrypted.
    pub(super) fn held_block(&mut self) -> Zeroizing<[u8; BLOCK]> {
        let mut block = Zeroizing::new(self.held);
        let place = block.as_mut_ptr();
        // SAFETY: a block, in its place.
        unsafe { self.key.crypt(&mut self.iv, place, place, 1) };
        block
    }
}

/// Bytes of a last block before its padding (RFC 5652, 6.3); `None` where that is none.
fn unpadded(block: &[u8; BLOCK]) -> Option<usize> {
    let padding = block[BLOCK - 1];
    let mut wrong = u8::from(padding == 0) | u8::from(padding > 16);
    for (behind, byte) in (0_u8..).zip(block.iter().rev()) {
        let counts = 0_u8.wrapping_sub(u8::from(behind < padding));
        wrong |= (byte ^ padding) & counts;
    }
    (std::hint::black_box(wrong) == 0).then(|| BLOCK - usize::from(padding))
}
